import { describe, expect, it } from 'vitest';
import { citeWords } from '../../lib/cites';
import type { WholeRun } from '../../lib/types';
import { compareSteps } from './compare';
import { logLines } from './log';
import { buildRun } from './model';
import { escape, report } from './report';
import { sampleRun } from './samples';
import { supportOf } from './support';
import { squeeze } from './time';
import { verdict } from './verdict';

const run = (state: string, more: Partial<WholeRun> = {}): WholeRun => ({
  run_id: 'r', session_id: 'r', state: state as WholeRun['state'], question: '<b>Why?</b>', pattern: 'supervisor', task_type: 'general', conversation_id: null,
  started: '2026-01-01T00:00:00Z', ms: 1000, in_token: 1, out_token: 1, seq: 1, reason: null, answer: 'So it is. [finding 0]', error: null, model: null, model_calls: 1, tool_calls: 1, ...more,
});

describe('what a sentence is based on', () => {
  const events = sampleRun({ agents: 3, steps: 2 });
  const model = buildRun(events, true);
  const answer = model.steps.at(-1)!;

  it('tells what is on record from what only has the same words', () => {
    const found = supportOf(model, answer, 'Result 0.2 was there', ['Part [finding 0]']);
    expect(found.cited.map(({ cite, near }) => [citeWords(cite), near])).toEqual([['finding 0', true]]);
    expect(found.passages[0]!.step.session).toBe('r-a0');
    expect(supportOf(model, answer, 'nothing of the kind', []).passages).toEqual([]);
  });
});

describe('what failed, and whether it mattered', () => {
  const broken = buildRun(sampleRun({ agents: 3, steps: 2, fails: '1/2' }), true);

  it('says so in one sentence for every state', () => {
    const fine = buildRun(sampleRun({ agents: 3, steps: 2 }), true);
    expect(verdict(fine, run('answered')).sentence).toBe('Nothing failed. The answer rests on 3 findings, 6 tool results.');
    expect(verdict(broken, run('answered')).sentence).toMatch(/“tool-2” of .* failed: timed out after 5 s\. The agent went on without it/);
    expect(verdict(broken, run('answered-partial', { missing: [1] })).sentence).toMatch(/It mattered: it does without finding 1/);
    expect(verdict(broken, run('failed', { error: 'no model' })).sentence).toMatch(/It has no answer: no model/);
    for (const state of ['queued', 'running', 'waiting', 'limit', 'cancelled']) expect(verdict(fine, run(state)).sentence.length).toBeGreaterThan(5);
  });
});

describe('other views', () => {
  it('has a line for every event', () => {
    const events = sampleRun({ agents: 2, steps: 2, fails: '0/1' });
    const lines = logLines(buildRun(events, true), events);
    expect(lines.map((line) => line.seq)).toEqual(events.map((event) => event.seq));
    expect(lines.filter((line) => line.failed)).toHaveLength(1);
  });

  it('finds only what differs between two runs', () => {
    const one = buildRun(sampleRun({ agents: 2, steps: 2 }), true);
    const other = buildRun(sampleRun({ agents: 2, steps: 2, fails: '1/1' }), true);
    expect(compareSteps(one, one).flatMap((pair) => pair.differences)).toEqual([]);
    expect(compareSteps(one, other).filter((pair) => pair.differences.length > 0)).toHaveLength(1);
  });

  it('keeps the order of times, with and without idle stretches', () => {
    const model = buildRun(sampleRun({ agents: 2, steps: 3 }), true);
    for (const collapse of [false, true]) {
      const { at } = squeeze(model, collapse);
      let before = 0;
      for (let ms = 0; ms <= model.length; ms += 10) {
        expect(at(ms)).toBeGreaterThanOrEqual(before);
        before = at(ms);
      }
      expect(before).toBeLessThanOrEqual(1);
    }
  });

  it('writes a report in which nothing of others is markup', () => {
    const events = sampleRun({ agents: 2, steps: 1 });
    const html = report(buildRun(events, true), run('answered'), events, '<urn:a> <urn:b> "<script>" .', {}, null);
    expect(html).toMatch(/So it is\. <a class="cite" href="#s\d+">\[finding 0\]/);
    expect(html).not.toMatch(/<script|<b>Why|onerror=/);
    expect(html).toContain('&lt;b&gt;Why?');
    expect(escape('"\'<>&')).toBe('&quot;&#39;&lt;&gt;&amp;');
  });
});
