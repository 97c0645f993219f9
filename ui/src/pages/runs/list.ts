/** The list of runs: grouped, summed, and as files. */

import { tokens } from '../../lib/format';
import type { ListedRun } from '../../lib/types';
import type { Figures } from './figures';

export interface Group {
  /** The conversation, or the id of the run if it stands alone. */
  key: string;
  conversation: string | null;
  /** In the order of the list. */
  runs: ListedRun[];
}

/** Runs of a conversation together, where its newest run stands. */
export function grouped(runs: ListedRun[]): Group[] {
  const groups = new Map<string, Group>();
  for (const run of runs) {
    const conversation = run.conversation_id;
    const key = conversation === null ? `run ${run.run_id}` : `conversation ${conversation}`;
    const group = groups.get(key);
    if (group) group.runs.push(run);
    else groups.set(key, { key, conversation, runs: [run] });
  }
  return [...groups.values()];
}

/** A sum, or nothing if nothing of it was recorded. */
function sum(values: (number | null)[]): number | null {
  const known = values.filter((value) => value !== null);
  return known.length === 0 ? null : known.reduce((total, value) => total + value, 0);
}

export const total = (runs: ListedRun[]): { ms: number; in_token: number | null; out_token: number | null } => ({
  ms: runs.reduce((total, run) => total + run.ms, 0),
  in_token: sum(runs.map((run) => run.in_token)),
  out_token: sum(runs.map((run) => run.out_token)),
});

/** Puts newer knowledge of runs into a list. No row changes its place, and none is added. */
export function updated(runs: ListedRun[], newer: ListedRun[]): ListedRun[] {
  const byId = new Map(newer.map((run) => [run.run_id, run]));
  return runs.map((run) => byId.get(run.run_id) ?? run);
}

/** The runs of a page that a list does not have, which begin after its newest. */
export function unseen(runs: ListedRun[], page: ListedRun[]): ListedRun[] {
  const known = new Set(runs.map((run) => run.run_id));
  const newest = runs[0]?.started ?? '';
  return page.filter((run) => !known.has(run.run_id) && run.started >= newest);
}

/** Joins pages: a run that was on both stands once. */
export function joined(runs: ListedRun[], page: ListedRun[]): ListedRun[] {
  const known = new Set(runs.map((run) => run.run_id));
  return [...runs, ...page.filter((run) => !known.has(run.run_id))];
}

const columns = [
  'run_id', 'state', 'question', 'task_type', 'pattern', 'conversation_id', 'asked_by', 'started', 'ms', 'in_token', 'out_token',
  'agents', 'model_calls', 'tool_calls', 'failed_steps',
] as const;
type Row = Record<(typeof columns)[number], string | number | null>;

function row(run: ListedRun, figures: Figures | undefined): Row {
  const { run_id, state, question, task_type, pattern, conversation_id, started, ms, in_token, out_token } = run;
  return {
    run_id, state, question, task_type, pattern, conversation_id, asked_by: figures?.who || null, started, ms, in_token, out_token,
    agents: figures?.agents ?? null, model_calls: figures?.modelCalls ?? null, tool_calls: figures?.toolCalls ?? null,
    failed_steps: figures?.failed ?? null,
  };
}

/** A value in a line of CSV. Spreadsheets take texts that begin so for formulas; an apostrophe makes them texts. */
function cell(value: string | number | null): string {
  if (value === null) return '';
  if (typeof value === 'number') return String(value);
  const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

export function csv(runs: ListedRun[], figures: Map<string, Figures>): string {
  const lines = runs.map((run) => {
    const values = row(run, figures.get(run.run_id));
    return columns.map((name) => cell(values[name])).join(',');
  });
  return [columns.join(','), ...lines].map((line) => `${line}\r\n`).join('');
}

export const ndjson = (runs: ListedRun[], figures: Map<string, Figures>): string =>
  runs.map((run) => `${JSON.stringify(row(run, figures.get(run.run_id)))}\n`).join('');

/** Tokens in few letters: `2.3 k`. */
export function brieflyTokens(run: { in_token: number | null; out_token: number | null }): string {
  const both = sum([run.in_token, run.out_token]);
  if (both === null) return 'not recorded';
  if (both < 1000) return String(both);
  return both < 1_000_000 ? `${(both / 1000).toFixed(both < 10_000 ? 1 : 0)} k` : `${(both / 1_000_000).toFixed(1)} M`;
}

export const exactTokens = (run: { in_token: number | null; out_token: number | null }): string =>
  tokens(run.in_token, run.out_token);
