/** How much script a browser loads: at first, and in all. Sizes are those of gzip at its best, in bytes. */

import { readdirSync, readFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';

const dist = new URL('../dist/', import.meta.url);
/** The most that it may be. */
export const FIRST = 60_000;
export const ALL = 150_000;

export const scripts = readdirSync(new URL('assets/', dist)).filter((name) => name.endsWith('.js'));
const text = new Map(scripts.map((name) => [name, readFileSync(new URL(`assets/${name}`, dist), 'utf8')]));
export const size = (name) => gzipSync(text.get(name), { level: 9 }).length;

/** A script with all that it cannot do without. */
function needed(name, found = new Set()) {
  if (!text.has(name) || found.has(name)) return found;
  found.add(name);
  for (const [, other] of text.get(name).matchAll(/(?:from|import)\s*["']\.\/([^"']+\.js)["']/g)) needed(other, found);
  return found;
}

const index = readFileSync(new URL('index.html', dist), 'utf8');
/** Those that are loaded at first. */
export const first = new Set();
for (const [, name] of index.matchAll(/assets\/([^"']+\.js)/g)) needed(name, first);
// The page that is shown first.
for (const name of scripts.filter((name) => name.startsWith('Ask-'))) needed(name, first);

const sum = (names) => [...names].reduce((total, name) => total + size(name), 0);
export const [atFirst, inAll] = [sum(first), sum(scripts)];
