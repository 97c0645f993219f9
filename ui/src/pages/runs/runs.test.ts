import { describe, expect, it } from 'vitest';
import type { Reply } from '../../lib/sparql';
import type { ListedRun } from '../../lib/types';
import { figures, queries, type Figures } from './figures';
import { asked, chips, fits, isId, lookedForHere, none, read, written } from './filters';
import { brieflyTokens, csv, grouped, joined, ndjson, total, unseen, updated } from './list';

const run = (run_id: string, changes: Partial<ListedRun> = {}): ListedRun => ({
  run_id, state: 'answered', question: `Question ${run_id}`, pattern: 'react', task_type: 'general', conversation_id: null,
  started: '2026-11-18T10:00:00Z', ms: 100, in_token: 10, out_token: 5, ...changes,
});
const known = (changes: Partial<Figures> = {}): Figures => ({
  agents: 1, modelCalls: 2, toolCalls: 1, failed: 0, who: 'ada', ...changes,
});

describe('filters', () => {
  it('go into the address and come back', () => {
    const filters = { ...none, search: 'north & south', state: 'failed', taskType: 'research', since: '7d', failed: true };
    const query = new URLSearchParams();
    for (const [name, value] of Object.entries(written(filters))) if (value !== null) query.set(name, value);
    expect(read(query)).toEqual(filters);
    expect([...query.keys()].sort()).toEqual(['failed', 'search', 'since', 'state', 'task_type']);
  });
  it('are nothing if the address says nonsense', () => {
    expect(read(new URLSearchParams('since=constructor&failed=yes'))).toEqual(none);
  });
  it('ask the server only for what it knows', () => {
    const filters = { ...none, search: ' north ', taskType: 'research', since: '7d', who: 'ada', state: 'failed' };
    const server = { search: 'north', state: 'failed', pattern: '', conversation: '', task_type: 'research', since: '7d' };
    expect(asked(filters)).toEqual(server);
    expect(lookedForHere(filters)).toEqual(['who asked']);
  });
  it('take the beginning of an id for one', () => {
    for (const id of ['9e35e72b', '9E35E72B-228d', '123456']) expect(isId(id), id).toBe(true);
    for (const words of ['decade', 'facade 1', '12345', 'faded', '']) expect(isId(words), words).toBe(false);
    expect(asked({ ...none, search: '9E35E72B' })).toMatchObject({ prefix: '9e35e72b' });
  });
  it('look here for the rest', () => {
    const fit = (changes: Partial<typeof none>, figures?: Figures, of = run('a')): boolean =>
      fits(of, figures, { ...none, ...changes });
    expect(fit({})).toBe(true);
    expect(fit({ who: 'ada' }, known())).toBe(true);
    expect(fit({ who: 'bob' }, known())).toBe(false);
    expect(fit({ who: 'ada' })).toBe(false);
    expect(fit({ failed: true }, known())).toBe(false);
    expect(fit({ failed: true }, known(), run('a', { state: 'failed' }))).toBe(true);
    expect(fit({ failed: true }, known({ failed: 2 }))).toBe(true);
  });
  it('are told as words that can be taken away', () => {
    const told = chips({ ...none, search: 'x', state: 'limit', failed: true }, (state) => `<${state}>`);
    expect(told).toEqual([
      { name: 'search', text: 'question contains “x”' }, { name: 'state', text: 'state: <limit>' },
      { name: 'failed', text: 'with failed steps' },
    ]);
  });
});

describe('the list', () => {
  const runs = [run('c', { conversation_id: 'talk' }), run('b'), run('a', { conversation_id: 'talk', in_token: null })];
  it('keeps conversations together, where their newest run is', () => {
    expect(grouped(runs).map((group) => group.runs.map((one) => one.run_id))).toEqual([['c', 'a'], ['b']]);
    // A conversation that is called like a run is not that run.
    expect(grouped([run('x'), run('y', { conversation_id: 'x' })])).toHaveLength(2);
  });
  it('adds up what was recorded', () => {
    expect(total(runs)).toEqual({ ms: 300, in_token: 20, out_token: 15 });
    expect(total([run('a', { in_token: null, out_token: null })]).in_token).toBeNull();
  });
  it('never moves a row for news', () => {
    const newer = [run('d', { started: '2026-11-18T11:00:00Z' }), run('b', { state: 'failed' })];
    expect(updated(runs, newer).map(({ run_id, state }) => [run_id, state])).toEqual([
      ['c', 'answered'], ['b', 'failed'], ['a', 'answered'],
    ]);
    expect(unseen(runs, newer).map(({ run_id }) => run_id)).toEqual(['d']);
    // A page that goes further back than the list brings old runs, not new ones.
    expect(unseen(runs, [run('0', { started: '2026-11-17T00:00:00Z' })])).toEqual([]);
    expect(joined(runs, [run('a'), run('z')]).map(({ run_id }) => run_id)).toEqual(['c', 'b', 'a', 'z']);
  });
  it('says few tokens and many in few letters', () => {
    const said = (in_token: number | null, out_token: number | null): string => brieflyTokens({ in_token, out_token });
    expect([said(null, null), said(10, null), said(2300, 143), said(45_306, 4479), said(2e6, 0)]).toEqual([
      'not recorded', '10', '2.4 k', '50 k', '2.0 M',
    ]);
  });
});

describe('files', () => {
  const strange = run('a', { question: '=cmd("x"),\n2', conversation_id: null });
  it('are CSV that no spreadsheet runs', () => {
    const text = csv([strange], new Map());
    expect(text.split('\r\n')[0]).toBe(
      'run_id,state,question,task_type,pattern,conversation_id,asked_by,started,ms,in_token,out_token,agents,model_calls,tool_calls,failed_steps',
    );
    expect(text).toContain(`a,answered,"'=cmd(""x""),\n2",general,react,,,2026-11-18T10:00:00Z,100,10,5,,,,\r\n`);
  });
  it('are lines of JSON', () => {
    const lines = ndjson([strange, run('b')], new Map([['b', known({ failed: 3 })]])).trimEnd().split('\n');
    expect(lines.map((line) => JSON.parse(line) as unknown)).toMatchObject([
      { run_id: 'a', failed_steps: null, asked_by: null }, { run_id: 'b', failed_steps: 3, asked_by: 'ada' },
    ]);
  });
});

describe('figures', () => {
  const reply = (variables: string[], ...values: (string | null)[][]): Reply => ({
    'query-type': 'select', variables,
    bindings: values.map((row) => ({ values: row.map((v) => (v === null ? null : { t: 'l', v })) })),
  });
  it('are those of the runs that the graph has', () => {
    const root = 'urn:trustgraph:agent:a';
    const found = figures(['a', 'b', 'c'], {
      sessions: reply(['root', 'agents', 'model', 'tool', 'told'], [root, '3', '7', '2', '3'], ['urn:trustgraph:agent:b', '1', '0', '0', '0'], ['urn:trustgraph:agent:c', '0', null, null, '0']),
      failures: reply(['root', 'failed'], [root, '1'], ['urn:other', '9']),
      callers: reply(['root', 'name', 'surface'], [root, null, 'api']),
    });
    expect([...found]).toEqual([
      ['a', { agents: 3, modelCalls: 7, toolCalls: 2, failed: 1, who: 'unnamed, api' }],
      ['b', { agents: 1, modelCalls: null, toolCalls: null, failed: 0, who: '' }],
    ]);
  });
  it('are asked for without letting an id into the query', () => {
    const { sessions } = queries(['a b> } DROP', 'ok']);
    expect(sessions).toContain('<urn:trustgraph:agent:a%20b%3E%20%7D%20DROP>');
    expect(sessions).toContain('<urn:trustgraph:agent:ok>');
  });
});
