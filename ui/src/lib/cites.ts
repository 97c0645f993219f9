/**
 * What an answer names in brackets: `[finding 2]`, `[step 0, step 3]`, `[1]`. Read as the server reads it; whether what is named
 * is on record is another question.
 */

export interface Cite {
  /** `finding`, `step` or `observation`; empty if only a number stands there. */
  of: string;
  number: number;
}

const PART = /^(?:(finding|step|observation)s?)?\s*#?(\d{1,4})$/i;

/** The citations that a text begins with, and how long they are written; null if it begins with none. */
export function citesAt(text: string): { cites: Cite[]; length: number } | null {
  const found = /^\[([^\][\n]{1,400})\](?!\()/.exec(text);
  if (!found) return null;
  const cites: Cite[] = [];
  let before = '';
  for (const part of found[1]!.split(/[,;]/)) {
    const read = PART.exec(part.trim());
    if (!read) return null;
    // `[findings 1, 2]` says the word once.
    const of = (read[1] ?? before).toLowerCase();
    before = of;
    const number = Number(read[2]);
    if (!cites.some((one) => one.of === of && one.number === number)) cites.push({ of, number });
  }
  return { cites, length: found[0].length };
}

/** All citations in a text, each once, in the order in which they stand there. */
export function citesIn(text: string): Cite[] {
  const all: Cite[] = [];
  for (let place = text.indexOf('['); place >= 0; place = text.indexOf('[', place + 1)) {
    for (const cite of citesAt(text.slice(place, place + 420))?.cites ?? []) {
      if (!all.some((one) => citeWords(one) === citeWords(cite))) all.push(cite);
    }
  }
  return all;
}

/** As it is shown and as it stands in an address: `finding 2`, or only `1`. */
export const citeWords = ({ of, number }: Cite): string => (of ? `${of} ${number}` : String(number));

/** Reads what `citeWords` wrote. */
export const readCite = (text: string | null): Cite | null => citesAt(`[${text ?? ''}]`)?.cites[0] ?? null;

/** A citation that the record has. */
export interface Cited {
  index: number;
  /** The model's own word for how sure it is: a claim. */
  confidence?: string;
}

/** What the server has read out of an answer: only what it names and what there is. Null if that is not recorded. */
export function cited(cites: unknown): Cited[] | null {
  return Array.isArray(cites)
    ? (cites as { index?: unknown; confidence?: string }[]).filter((cite): cite is Cited => typeof cite?.index === 'number')
    : null;
}
