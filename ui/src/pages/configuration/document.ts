/** One configuration item as a JSON document that a form and a text field edit together. */

export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };
export type JsonObject = { [name: string]: Json };

export const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

export type Parsed = { value: Json; fault: null } | { value: null; fault: string };

/** Reads a text as JSON, or says where it ends to be JSON. */
export function parse(text: string): Parsed {
  try {
    return { value: JSON.parse(text) as Json, fault: null };
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    const place = /position (\d+)/.exec(message);
    const before = place ? text.slice(0, Number(place[1])) : text;
    const line = before.split('\n').length;
    const what = text.trim() === '' ? 'it is empty' : message.replace(/ ?in JSON.*$/s, '');
    return { value: null, fault: `This is not JSON: ${what} (line ${line})` };
  }
}

export const pretty = (value: Json): string => JSON.stringify(value, null, 2);

/** An item's stored text as people read it; what is no JSON stays as it is. */
export function prettyText(stored: string): string {
  const { value, fault } = parse(stored);
  return fault === null ? pretty(value) : stored;
}

/** A document with one member changed. All others stay, in their order; `undefined` takes the member away. */
export function set(document: JsonObject, name: string, value: Json | undefined): JsonObject {
  if (value === undefined) return Object.fromEntries(Object.entries(document).filter(([member]) => member !== name));
  return { ...document, [name]: value };
}

/** Members that no field of the form shows. They are kept as they are. */
export const unknown = (document: JsonObject, known: readonly string[]): string[] =>
  Object.keys(document).filter((name) => !known.includes(name));

export const same = (one: Json | undefined, other: Json | undefined): boolean =>
  JSON.stringify(sorted(one)) === JSON.stringify(sorted(other));

function sorted(value: Json | undefined): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (!isObject(value)) return value;
  return Object.fromEntries(Object.keys(value).sort().map((name) => [name, sorted(value[name])]));
}

export interface Merged {
  /** Null if both changed the same member. */
  value: JsonObject | null;
  /** Members that both changed, each in their own way. */
  both: string[];
}

/** Puts two changes of the same document together, member by member. */
export function merge(base: Json, theirs: Json, mine: Json): Merged {
  if (!isObject(base) || !isObject(theirs) || !isObject(mine)) return { value: null, both: ['value'] };
  const names = [...new Set([...Object.keys(theirs), ...Object.keys(mine), ...Object.keys(base)])];
  const both: string[] = [];
  const value: JsonObject = {};
  for (const name of names) {
    const [was, their, my] = [base[name], theirs[name], mine[name]];
    const chosen = same(their, was) ? my : their;
    if (!same(their, was) && !same(my, was) && !same(their, my)) both.push(name);
    if (chosen !== undefined) value[name] = chosen;
  }
  return both.length > 0 ? { value: null, both } : { value, both };
}
