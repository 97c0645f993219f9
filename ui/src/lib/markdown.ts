/**
 * Markdown of answers as a tree, which a component turns into elements. There is no way from here to HTML: what is not understood
 * stays text, images are not loaded, and links lead only to web addresses.
 */

import { citesAt, type Cite } from './cites';

export type Inline =
  | { kind: 'text'; text: string }
  | { kind: 'code'; text: string }
  | { kind: 'strong' | 'em' | 'strike'; inner: Inline[] }
  | { kind: 'link'; href: string; inner: Inline[] }
  | { kind: 'image'; alt: string }
  /** What answers rest on: `[finding 0]`, `[steps 1, 2]`, `[1]`. */
  | { kind: 'cite'; cites: Cite[]; text: string }
  | { kind: 'break' };

export type Block =
  | { kind: 'heading'; level: number; inner: Inline[] }
  | { kind: 'paragraph'; inner: Inline[] }
  | { kind: 'code'; text: string; language: string }
  | { kind: 'quote'; blocks: Block[] }
  | { kind: 'list'; ordered: boolean; start: number; items: Block[][] }
  | { kind: 'table'; head: Inline[][]; rows: Inline[][][] }
  | { kind: 'rule' };

/** Deeper lists and quotes are shown as text: nobody writes them, and answers may come from anybody. */
const DEEPEST = 8;
const LIST = /^( {0,3})([-*+]|\d{1,9}[.)])( +|$)/;

export function parseMarkdown(text: string, depth = 0): Block[] {
  const lines = text.replace(/\r\n?/g, '\n').split('\n');
  const blocks: Block[] = [];
  let place = 0;
  const line = (): string => lines[place] ?? '';
  while (place < lines.length) {
    if (line().trim() === '') {
      place += 1;
      continue;
    }
    const fence = /^ {0,3}(`{3,}|~{3,})\s*([^`]*)$/.exec(line());
    if (fence) {
      const end = fence[1]!;
      const code: string[] = [];
      place += 1;
      while (place < lines.length && !(line().trim().startsWith(end) && line().trim().replaceAll(end[0]!, '') === '')) {
        code.push(line());
        place += 1;
      }
      place += 1;
      blocks.push({ kind: 'code', text: code.join('\n'), language: fence[2]!.trim().split(/\s/)[0] ?? '' });
      continue;
    }
    const heading = /^ {0,3}(#{1,6})\s+(.*?)\s*#*$/.exec(line());
    if (heading) {
      blocks.push({ kind: 'heading', level: heading[1]!.length, inner: parseInline(heading[2]!) });
      place += 1;
      continue;
    }
    if (/^ {0,3}([-*_])( *\1){2,} *$/.test(line())) {
      blocks.push({ kind: 'rule' });
      place += 1;
      continue;
    }
    if (depth < DEEPEST && /^ {0,3}>/.test(line())) {
      const inside: string[] = [];
      while (/^ {0,3}>/.test(line())) {
        inside.push(line().replace(/^ {0,3}> ?/, ''));
        place += 1;
      }
      blocks.push({ kind: 'quote', blocks: parseMarkdown(inside.join('\n'), depth + 1) });
      continue;
    }
    if (depth < DEEPEST && LIST.test(line())) {
      const [list, next] = readList(lines, place, depth);
      blocks.push(list);
      place = next;
      continue;
    }
    if (line().includes('|') && /^ {0,3}\|?( *:?-+:? *\|)+( *:?-+:? *)?$/.test(lines[place + 1] ?? '') && (lines[place + 1] ?? '').includes('-')) {
      const head = cells(line());
      const rows: Inline[][][] = [];
      place += 2;
      while (place < lines.length && line().includes('|') && line().trim() !== '') {
        rows.push(cells(line()));
        place += 1;
      }
      blocks.push({ kind: 'table', head, rows });
      continue;
    }
    const paragraph: string[] = [];
    while (place < lines.length && line().trim() !== '' && (paragraph.length === 0 || !beginsBlock(line()))) {
      paragraph.push(line());
      place += 1;
    }
    blocks.push({ kind: 'paragraph', inner: parseInline(paragraph.join('\n')) });
  }
  return blocks;
}

function beginsBlock(line: string): boolean {
  return /^ {0,3}(#{1,6}\s|>|`{3,}|~{3,}|[-*+] +\S|1[.)] +\S)/.test(line) || /^ {0,3}([-*_])( *\1){2,} *$/.test(line);
}

function readList(lines: readonly string[], start: number, depth: number): [Block, number] {
  const first = LIST.exec(lines[start]!)!;
  const ordered = /\d/.test(first[2]!);
  const items: Block[][] = [];
  let place = start;
  while (place < lines.length) {
    const marker = LIST.exec(lines[place]!);
    if (!marker || /\d/.test(marker[2]!) !== ordered) break;
    const indent = marker[0].length;
    const item = [lines[place]!.slice(indent)];
    place += 1;
    while (place < lines.length) {
      const line = lines[place]!;
      const own = line.search(/\S/);
      if (own < 0) {
        // An empty line ends the item unless what follows is indented.
        const next = (lines[place + 1] ?? '').search(/\S/);
        if (next < Math.min(indent, 2)) break;
        item.push('');
      } else if (own >= Math.min(indent, 2)) {
        item.push(line.slice(Math.min(own, indent)));
      } else if (LIST.test(line) || beginsBlock(line)) {
        break;
      } else {
        item.push(line);
      }
      place += 1;
    }
    items.push(parseMarkdown(item.join('\n'), depth + 1));
    // Empty lines between items belong to the list.
    let next = place;
    while (next < lines.length && lines[next]!.trim() === '') next += 1;
    if (next > place && next < lines.length && LIST.test(lines[next]!)) place = next;
  }
  return [{ kind: 'list', ordered, start: ordered ? Number.parseInt(first[2]!, 10) : 1, items }, place];
}

function cells(line: string): Inline[][] {
  const bare = line.trim().replace(/^\|/, '').replace(/\|$/, '');
  return bare.split('|').map((cell) => parseInline(cell.trim()));
}

/** Each pattern begins where the text does; the first that fits wins. None of them looks further back. */
export function parseInline(text: string, depth = 0): Inline[] {
  const parts: Inline[] = [];
  let plain = '';
  const flush = (): void => {
    if (plain) parts.push({ kind: 'text', text: plain });
    plain = '';
  };
  let place = 0;
  while (place < text.length) {
    const taken = depth < DEEPEST ? special(text, place, depth) : null;
    if (taken) {
      flush();
      parts.push(taken.part);
      place = taken.end;
    } else if (text[place] === '\\' && /[!-/:-@[-`{-~]/.test(text[place + 1] ?? '')) {
      plain += text[place + 1]!;
      place += 2;
    } else {
      plain += text[place]!;
      place += 1;
    }
  }
  flush();
  return parts;
}

/** As many characters are looked at for the end of a part: answers may be long and full of beginnings. */
const REACH = 4000;

function special(text: string, place: number, depth: number): { part: Inline; end: number } | null {
  const until = (end: string, from: number): number => {
    const found = text.slice(from, from + REACH).indexOf(end);
    return found < 0 ? -1 : from + found;
  };
  const letter = text[place]!;
  if (letter === '`') {
    const ticks = /^`+/.exec(text.slice(place, place + 8))![0];
    const end = until(ticks, place + ticks.length);
    if (end < 0) return null;
    return { part: { kind: 'code', text: text.slice(place + ticks.length, end).replace(/\n/g, ' ').trim() }, end: end + ticks.length };
  }
  if (letter === '\n') {
    return { part: /(  |\\)$/.test(text.slice(Math.max(0, place - 2), place)) ? { kind: 'break' } : { kind: 'text', text: '\n' }, end: place + 1 };
  }
  if (letter === '*' || letter === '_' || (letter === '~' && text[place + 1] === '~')) {
    const double = text[place + 1] === letter;
    const mark = double ? letter + letter : letter;
    const from = place + mark.length;
    if (/\s/.test(text[from] ?? ' ') || (letter === '_' && /\w/.test(text[place - 1] ?? ' '))) return null;
    const end = until(mark, from + 1);
    if (end < 0 || /\s/.test(text[end - 1]!) || text.slice(from, end).includes('\n\n')) return null;
    if (letter === '_' && /\w/.test(text[end + mark.length] ?? ' ')) return null;
    const kind = letter === '~' ? 'strike' : double ? 'strong' : 'em';
    return { part: { kind, inner: parseInline(text.slice(from, end), depth + 1) }, end: end + mark.length };
  }
  if (letter === '!' && text[place + 1] === '[') {
    const image = /^!\[([^\]\n]{0,500})\]\([^()\s]{0,2000}(?:\s+"[^"]{0,500}")?\)/.exec(text.slice(place, place + 3100));
    return image ? { part: { kind: 'image', alt: image[1]! }, end: place + image[0].length } : null;
  }
  if (letter === '[') {
    const near = text.slice(place, place + 3100);
    const link = /^\[([^\]\n]{1,1000})\]\(([^()\s]{1,2000})(?:\s+"[^"]{0,500}")?\)/.exec(near);
    if (link) {
      const href = webAddress(link[2]!);
      const inner = parseInline(link[1]!, depth + 1);
      return { part: href ? { kind: 'link', href, inner } : { kind: 'text', text: link[0] }, end: place + link[0].length };
    }
    const found = citesAt(near);
    return found ? { part: { kind: 'cite', cites: found.cites, text: near.slice(0, found.length) }, end: place + found.length } : null;
  }
  if (letter === 'h' && /^https?:\/\//.test(text.slice(place, place + 8)) && !/\w/.test(text[place - 1] ?? ' ')) {
    const found = /^https?:\/\/[^\s<>"'`]{1,2000}/.exec(text.slice(place, place + 2010))![0].replace(/[.,;:!?)\]*_]+$/, '');
    const href = webAddress(found);
    return href ? { part: { kind: 'link', href, inner: [{ kind: 'text', text: found }] }, end: place + found.length } : null;
  }
  return null;
}

/** The address if it is one of the web, written without names and passwords in it. */
export function webAddress(text: string): string | null {
  try {
    const url = new URL(text);
    return (url.protocol === 'http:' || url.protocol === 'https:') && !url.username && !url.password ? url.href : null;
  } catch {
    return null;
  }
}

/** The words of a part without its marks. */
export function plainText(parts: readonly Inline[]): string {
  return parts
    .map((part) => {
      switch (part.kind) {
        case 'text':
        case 'code':
        case 'cite':
          return part.text;
        case 'image':
          return part.alt;
        case 'break':
          return '\n';
        default:
          return plainText(part.inner);
      }
    })
    .join('');
}
