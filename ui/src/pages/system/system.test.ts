import { describe, expect, it } from 'vitest';
import type { Reply } from '../../lib/sparql';
import type { WholeRun } from '../../lib/types';
import { oldest, parked, readCheckpoint, readFanIns, readLimits, readMetrics, readUsed } from './figures';

const reply = (variables: string[], ...values: (string | null)[][]): Reply => ({
  'query-type': 'select', variables,
  bindings: values.map((row) => ({ values: row.map((v) => (v === null ? null : { t: 'l', v })) })),
});

describe('what the server tells', () => {
  it('as figures', () => {
    const text = '# HELP a_total All of it.\n# TYPE a_total counter\na_total 12\nb{x="1"} 3.5 170\nrubbish\nc NaN\n';
    expect(readMetrics(text)).toEqual([{ name: 'a_total', help: 'All of it.', value: 12 }, { name: 'b{x="1"}', help: '', value: 3.5 }]);
  });
  it('as a checkpoint', () => {
    expect(readCheckpoint('trellis/ab\n56\nPvV=\n\n— trellis/ab xyz\n')).toEqual({ origin: 'trellis/ab', entries: 56, root: 'PvV=' });
    for (const wrong of ['', 'trellis', 'trellis\nmany\nPvV=', 'trellis\n5\n']) expect(readCheckpoint(wrong), wrong).toBeNull();
  });
  it('as limits, in the order of people', () => {
    const limits = readLimits('{"run-timeout-ms": 5000, "own-limit": 1, "max-iterations": 10, "words": "x"}');
    expect(limits.map(({ name, isTime }) => [name, isTime])).toEqual([['max-iterations', false], ['run-timeout-ms', true], ['own-limit', false]]);
    expect([readLimits('no'), readLimits('null')]).toEqual([[], []]);
  });
});

describe('what waits', () => {
  const run = (run_id: string, started: string, ...expires: string[]): WholeRun =>
    ({ run_id, started, waiting_for: expires.map((time, place) => ({ park: `park/${place}`, expires: time })) }) as WholeRun;
  it('for a person, is in the order of deadlines', () => {
    const runs = [run('a', '2', '2026-11-20', '2026-11-18'), run('b', '1', '2026-11-19'), run('c', '3')];
    expect(parked(runs).map(({ run, question }) => `${run.run_id} ${question.park}`)).toEqual(['a park/1', 'b park/0', 'a park/0']);
    expect(oldest(runs)?.run_id).toBe('b');
    expect(oldest([])).toBeNull();
  });
  it('for agents, belongs to a run', () => {
    const found = readFanIns(reply(['root', 'question', 'correlation', 'expected', 'deadline', 'back'],
      ['urn:trustgraph:agent:a%20b', 'Q', 'c1', '4', '2026', '2'], [null, null, null, null, null, '0']));
    expect(found).toEqual([{ run: 'a b', question: 'Q', correlation: 'c1', expected: 4, deadline: '2026', back: 2 }]);
  });
});

describe('what was used', () => {
  it('is not told as nothing if it was not recorded', () => {
    const used = readUsed(reply(['name', 'calls', 'in', 'out', 'known'], ['m', '3', '100', '5', '2'], ['n', '1', '0', '0', '0'], [null, '0', '0', '0', '0']));
    expect(used).toEqual([{ name: 'm', times: 3, input: 100, output: 5 }, { name: 'n', times: 1, input: null, output: null }]);
  });
});
