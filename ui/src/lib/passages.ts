/** Places in documents that results of tools name, such as `Handbook › Part 1 (lines 1–2 of urn:d)`, as addresses of this page. */

export interface Piece {
  text: string;
  /** The document and the lines that are meant; left out for what is only text. */
  place?: { document: string; lines: [number, number] };
}

const PLACE = /\(lines? (\d{1,9})(?:[–-](\d{1,9}))? of ((?:urn|https?):[^\s()<>"]{1,400})\)/g;

export function pieces(text: string): Piece[] {
  const all: Piece[] = [];
  let done = 0;
  for (const found of text.matchAll(PLACE)) {
    if (found.index > done) all.push({ text: text.slice(done, found.index) });
    const first = Number(found[1]);
    all.push({ text: found[0], place: { document: found[3]!, lines: [first, Number(found[2] ?? first)] } });
    done = found.index + found[0].length;
  }
  if (done < text.length) all.push({ text: text.slice(done) });
  return all;
}

/** The address of a document's text, at some lines of it. */
export function documentAddress(id: string, lines?: [number, number]): string {
  const query = new URLSearchParams({ id });
  if (lines) query.set('lines', `${lines[0]}-${lines[1]}`);
  return `/knowledge/document?${query.toString()}`;
}
