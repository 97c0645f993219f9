/** Numbers, times and ids as people read them. */

const grouped = new Intl.NumberFormat('en-US');

export const count = (value: number): string => grouped.format(value);

/** `1 step`, `2 steps`. */
export function counted(value: number, one: string, many = `${one}s`): string {
  return `${count(value)} ${value === 1 ? one : many}`;
}

/** How long something took: `10 ms`, `1.4 s`, `2 min 5 s`. What is not known is said. */
export function duration(ms: number | null | undefined): string {
  if (ms === null || ms === undefined || Number.isNaN(ms)) return 'not recorded';
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 9950) return `${(ms / 1000).toFixed(1)} s`;
  if (ms < 59_500) return `${Math.round(ms / 1000)} s`;
  const seconds = Math.round(ms / 1000);
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
}

/** Tokens in and out: `812 in · 96 out`. */
export function tokens(input: number | null | undefined, output: number | null | undefined): string {
  const known = (value: number | null | undefined, word: string): string =>
    value === null || value === undefined ? '' : `${count(value)} ${word}`;
  return [known(input, 'in'), known(output, 'out')].filter(Boolean).join(' · ') || 'not recorded';
}

/** When something was, seen from now: `just now`, `3 min ago`, `in 2 h`. */
export function ago(time: string | number | Date, now: number = Date.now()): string {
  const difference = now - new Date(time).getTime();
  if (Number.isNaN(difference)) return String(time);
  const past = difference >= 0;
  const seconds = Math.round(Math.abs(difference) / 1000);
  if (seconds < 5) return 'just now';
  const [value, unit] =
    seconds < 60 ? [seconds, 's']
    : seconds < 3600 ? [Math.round(seconds / 60), 'min']
    : seconds < 86_400 ? [Math.round(seconds / 3600), 'h']
    : [Math.round(seconds / 86_400), Math.round(seconds / 86_400) === 1 ? 'day' : 'days'];
  return past ? `${value} ${unit} ago` : `in ${value} ${unit}`;
}

/** The exact time in the reader's own zone. */
export function exact(time: string | number | Date): string {
  const date = new Date(time);
  return Number.isNaN(date.getTime())
    ? String(time)
    : date.toLocaleString(undefined, { dateStyle: 'medium', timeStyle: 'medium' });
}

/** The first characters of an id, enough to tell runs apart. */
export const shortId = (id: string): string => (id.length > 8 ? id.slice(0, 8) : id);

/** A text on one line, cut at a word where possible. */
export function brief(text: string, most = 80): string {
  const line = text.replace(/\s+/g, ' ').trim();
  if (line.length <= most) return line;
  const cut = line.slice(0, most - 1);
  const space = cut.lastIndexOf(' ');
  return `${(space > most * 0.6 ? cut.slice(0, space) : cut).trimEnd()}…`;
}

export const surfaceWords: Record<string, string> = {
  api: 'over the API', cli: 'on the command line', mcp: 'over MCP', openai: 'over the OpenAI API', socket: 'over a socket',
  service: 'over TrustGraph’s API', program: '(the program itself)',
};

/** Who did something, in words. */
export function who(caller: { name?: string | null; surface?: string } | null | undefined): string {
  if (!caller) return 'by somebody who is not recorded';
  const way = caller.surface ? (surfaceWords[caller.surface] ?? `over ${caller.surface}`) : '';
  return [caller.name ? `by ${caller.name}` : '', way].filter(Boolean).join(' ') || 'by somebody without a name';
}
