/** Which runs are wanted: what the address says, what the server is asked for, and what is left to look for here. */

import type { ListedRun } from '../../lib/types';
import type { Figures } from './figures';

export interface Filters {
  search: string;
  state: string;
  pattern: string;
  conversation: string;
  taskType: string;
  who: string;
  /** A word of `spans`. */
  since: string;
  failed: boolean;
}

export const none: Filters = {
  search: '', state: '', pattern: '', conversation: '', taskType: '', who: '', since: '', failed: false,
};

/** The names in the address. They are those of the API where it has them. */
const names: Record<keyof Filters, string> = {
  search: 'search', state: 'state', pattern: 'pattern', conversation: 'conversation', taskType: 'task_type', who: 'who',
  since: 'since', failed: 'failed',
};

const hour = 3_600_000;
export const spans: Record<string, { word: string; ms: number }> = {
  '1h': { word: 'last hour', ms: hour },
  '24h': { word: 'last 24 hours', ms: 24 * hour },
  '7d': { word: 'last 7 days', ms: 7 * 24 * hour },
  '30d': { word: 'last 30 days', ms: 30 * 24 * hour },
};

export function read(query: URLSearchParams): Filters {
  const text = (name: keyof Filters): string => query.get(names[name]) ?? '';
  return {
    search: text('search'), state: text('state'), pattern: text('pattern'), conversation: text('conversation'),
    taskType: text('taskType'), who: text('who'), since: Object.hasOwn(spans, text('since')) ? text('since') : '',
    failed: text('failed') === '1',
  };
}

/** Changes of the address: what is empty is left out of it. */
export function written(changes: Partial<Filters>): Record<string, string | null> {
  const entries = Object.entries(changes) as [keyof Filters, string | boolean][];
  return Object.fromEntries(entries.map(([name, value]) => [names[name], value === true ? '1' : value || null]));
}

/** Whether a search means an id: at least six of its characters, one of them a digit, and nothing else. */
export const isId = (search: string): boolean => /^(?=.*\d)[0-9a-f][0-9a-f-]{5,}$/i.test(search.trim());

/** What the server can look for by itself. */
export function asked(filters: Filters): Record<string, string> {
  const search = filters.search.trim();
  const { state, pattern, conversation } = filters;
  return { ...(isId(search) ? { prefix: search.toLowerCase() } : { search }), state, pattern, conversation };
}

/** What the server cannot look for, so that only runs that are loaded are looked at. */
export function lookedForHere(filters: Filters): string[] {
  return [
    ...(filters.taskType ? ['task type'] : []), ...(filters.who ? ['who asked'] : []),
    ...(filters.failed ? ['failed steps'] : []),
  ];
}

/** When a run has to have begun at the earliest; 0 if any time will do. */
export const earliest = (filters: Filters, now: number): number => {
  const span = spans[filters.since];
  return span ? now - span.ms : 0;
};

/** Whether a run that the server has brought is wanted. */
export function fits(run: ListedRun, figures: Figures | undefined, filters: Filters, now: number): boolean {
  if (filters.taskType && run.task_type !== filters.taskType) return false;
  if (filters.who && (figures?.who ?? '') !== filters.who) return false;
  if (filters.failed && !figures?.failed && run.state !== 'failed') return false;
  return new Date(run.started).getTime() >= earliest(filters, now);
}

/** Whether older runs are of no interest: the list is in the order of time. */
export const reachesBack = (runs: ListedRun[], filters: Filters, now: number): boolean => {
  const oldest = runs.at(-1);
  return oldest !== undefined && new Date(oldest.started).getTime() < earliest(filters, now);
};

export interface Chip {
  name: keyof Filters;
  text: string;
}

/** What is filtered by, in words, to be taken away one by one. */
export function chips(filters: Filters, stateWord: (state: string) => string): Chip[] {
  const chip = (name: keyof Filters, text: string): Chip[] => (filters[name] ? [{ name, text }] : []);
  const search = filters.search.trim();
  return [
    ...chip('search', isId(search) ? `id begins with ${search}` : `question contains “${search}”`),
    ...chip('state', `state: ${stateWord(filters.state)}`),
    ...chip('pattern', `pattern: ${filters.pattern}`),
    ...chip('taskType', `task type: ${filters.taskType}`),
    ...chip('conversation', `conversation: ${filters.conversation}`),
    ...chip('who', `asked by ${filters.who}`),
    ...chip('since', spans[filters.since]?.word ?? ''),
    ...chip('failed', 'with failed steps'),
  ];
}
