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

/** Spans back from now, as the API takes them, in words. */
export const spans: Record<string, string> = {
  '1h': 'last hour', '24h': 'last 24 hours', '7d': 'last 7 days', '30d': 'last 30 days',
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
  const { state, pattern, conversation, taskType: task_type, since } = filters;
  return { ...(isId(search) ? { prefix: search.toLowerCase() } : { search }), state, pattern, conversation, task_type, since };
}

/** What the server cannot look for, so that only runs that are loaded are looked at. */
export function lookedForHere(filters: Filters): string[] {
  return [...(filters.who ? ['who asked'] : []), ...(filters.failed ? ['failed steps'] : [])];
}

/** Whether a run that the server has brought is wanted. */
export const fits = (run: ListedRun, figures: Figures | undefined, filters: Filters): boolean =>
  (!filters.who || figures?.who === filters.who) && (!filters.failed || Boolean(figures?.failed) || run.state === 'failed');

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
    ...chip('since', spans[filters.since] ?? ''),
    ...chip('failed', 'with failed steps'),
  ];
}
