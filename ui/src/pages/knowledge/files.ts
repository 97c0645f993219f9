/** Files that can be loaded: what each is, where it goes, and what the server says of it. */

export type Kind = 'graph' | 'document' | 'rows';
export interface Sort {
  kind: Kind;
  /** As the API names it; documents tell it by their names. */
  format: string;
  word: string;
}

const sorts: Record<string, Sort> = {
  ttl: { kind: 'graph', format: 'turtle', word: 'Turtle' },
  nt: { kind: 'graph', format: 'n-triples', word: 'N-Triples' },
  nq: { kind: 'graph', format: 'n-quads', word: 'N-Quads' },
  trig: { kind: 'graph', format: 'trig', word: 'TriG' },
  jsonld: { kind: 'graph', format: 'json-ld', word: 'JSON-LD' },
  rdf: { kind: 'graph', format: 'rdf-xml', word: 'RDF/XML' },
  owl: { kind: 'graph', format: 'rdf-xml', word: 'RDF/XML' },
  txt: { kind: 'document', format: '', word: 'plain text' },
  text: { kind: 'document', format: '', word: 'plain text' },
  md: { kind: 'document', format: '', word: 'Markdown' },
  markdown: { kind: 'document', format: '', word: 'Markdown' },
  html: { kind: 'document', format: '', word: 'HTML' },
  htm: { kind: 'document', format: '', word: 'HTML' },
  pdf: { kind: 'document', format: '', word: 'PDF' },
  csv: { kind: 'rows', format: 'csv', word: 'CSV' },
  tsv: { kind: 'rows', format: 'tsv', word: 'TSV' },
  jsonl: { kind: 'rows', format: 'jsonl', word: 'JSON Lines' },
  ndjson: { kind: 'rows', format: 'jsonl', word: 'JSON Lines' },
  parquet: { kind: 'rows', format: 'parquet', word: 'Parquet' },
};
export const endings = Object.keys(sorts).map((ending) => `.${ending}`);

/** What a file is, by its name; null if nothing here reads it. */
export function sortOf(name: string): Sort | null {
  const ending = name.slice(name.lastIndexOf('.') + 1).toLowerCase();
  return name.includes('.') && Object.hasOwn(sorts, ending) ? sorts[ending]! : null;
}

/** Documents are sent whole in one message, which the server bounds. */
export const largestDocument = 64 * 1024 * 1024;

/** A name that the server takes for a collection or a table. */
export const isName = (name: string): boolean => /^[A-Za-z0-9._~:@+=,-]{1,200}$/.test(name);

/** A table's name made of that of a file. */
export function tableOf(name: string): string {
  const stem = name.replace(/^.*[\\/]/, '').replace(/\.[^.]*$/, '');
  return stem.toLowerCase().replace(/[^a-z0-9_]+/g, '_').replace(/^_+|_+$/g, '') || 'table';
}

export interface Place {
  line: number;
  column: number | null;
}

/** Where in the file a mistake is, if the server's message says it: `name:3:7: …`, `line 3`. */
export function placeOf(message: string): Place | null {
  const found = /:(\d+):(\d+)(?::|\s|$)/.exec(message) ?? /\bline (\d+)(?:,? column (\d+))?/i.exec(message) ?? /:(\d+)(?::\s|$)/.exec(message);
  if (!found) return null;
  return { line: Number(found[1]), column: found[2] === undefined ? null : Number(found[2]) };
}

/** The line of a text and those around it. */
export function linesAround(text: string, line: number, around = 1): { number: number; text: string }[] {
  const lines = text.split(/\r\n|\n|\r/);
  const first = Math.max(1, line - around);
  return lines.slice(first - 1, line + around).map((text, place) => ({ number: first + place, text: text.slice(0, 300) }));
}

/** The bytes of a size in words. */
export function size(bytes: number): string {
  if (bytes < 1000) return `${bytes} B`;
  if (bytes < 1_000_000) return `${(bytes / 1000).toFixed(bytes < 10_000 ? 1 : 0)} kB`;
  return `${(bytes / 1_000_000).toFixed(1)} MB`;
}

export interface NewField {
  name: string;
  type: 'string' | 'integer' | 'float' | 'boolean';
}

/** Records of a beginning of CSV; the last one is left out, because it may be cut off. */
export function records(text: string, separator: string): string[][] {
  const all: string[][] = [];
  let [record, cell, quoted] = [[] as string[], '', false];
  for (let place = 0; place < text.length; place += 1) {
    const letter = text[place]!;
    if (quoted) {
      if (letter !== '"') cell += letter;
      else if (text[place + 1] === '"') {
        cell += '"';
        place += 1;
      } else quoted = false;
    } else if (letter === '"' && cell === '') quoted = true;
    else if (letter === separator) {
      record.push(cell);
      cell = '';
    } else if (letter === '\n' || letter === '\r') {
      if (letter === '\r' && text[place + 1] === '\n') place += 1;
      all.push([...record, cell]);
      [record, cell] = [[], ''];
    } else cell += letter;
  }
  return all;
}

const typeOf = (values: string[]): NewField['type'] => {
  const there = values.filter((value) => value !== '');
  if (there.length === 0) return 'string';
  if (there.every((value) => /^-?(0|[1-9]\d{0,14})$/.test(value))) return 'integer';
  if (there.every((value) => /^-?\d+(\.\d+)?([eE][+-]?\d+)?$/.test(value) && !/^-?0\d/.test(value))) return 'float';
  return there.every((value) => /^(true|false)$/i.test(value)) ? 'boolean' : 'string';
};

/** The fields that the beginning of a file shows; none if nothing can be told. Types are a guess that one looks at. */
export function fieldsOf(beginning: string, format: string): NewField[] {
  const named = (columns: string[], values: (column: number) => string[]): NewField[] => {
    const fields = columns.map((column, place) => ({ name: fieldName(column), type: typeOf(values(place)) }));
    return fields.filter((field, place) => field.name !== '' && fields.findIndex((one) => one.name === field.name) === place);
  };
  if (format === 'jsonl') {
    const objects = beginning.split('\n').slice(0, 200).map((line) => {
      try {
        const value: unknown = JSON.parse(line);
        return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {};
      } catch {
        return {};
      }
    });
    const names = [...new Set(objects.flatMap((object) => Object.keys(object)))];
    const text = (value: unknown): string =>
      value === undefined || value === null ? '' : typeof value === 'string' ? `"${value}"` : JSON.stringify(value);
    return named(names, (place) => objects.map((object) => text(object[names[place]!])));
  }
  const text = beginning.replace(/^\ufeff/, '');
  const head = text.split(/[\r\n]/, 1)[0] ?? '';
  const separator = format === 'tsv' ? '\t'
    : [',', ';', '\t', '|'].reduce((best, one) => (head.split(one).length > head.split(best).length ? one : best), ',');
  // A file of one line has no end of line behind it.
  const [columns, ...rows] = records(text.includes('\n') ? text : `${text}\n`, separator);
  return named(columns ?? [], (place) => rows.slice(0, 200).map((row) => (row[place] ?? '').trim()));
}

/** A column's name as a field is called. */
const fieldName = (column: string): string => column.trim().toLowerCase().replace(/[^a-z0-9_]+/g, '_').replace(/^_+|_+$/g, '');
