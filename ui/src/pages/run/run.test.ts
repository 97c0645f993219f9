import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { layout, type Picture } from './lanes';
import { ancestors, buildRun, citedStep, criticalPath, namedStep } from './model';
import { sampleRun } from './samples';
import { agentName, agentNames } from '../../lib/names';
import { logLines } from './log';
import { decider, sourceOf } from './words';
import type { DurableEvent } from '../../lib/types';

const wanted = fc.record({
  agents: fc.integer({ min: 1, max: 7 }), steps: fc.integer({ min: 0, max: 4 }), rounds: fc.integer({ min: 1, max: 3 }),
  nested: fc.integer({ min: 0, max: 3 }),
});
const open = (): boolean => false;

function overlaps(picture: Picture): string[] {
  const faults: string[] = [];
  const sorted = [...picture.cards].sort((a, b) => a.y - b.y);
  sorted.forEach((a, place) => {
    for (let next = place + 1; next < sorted.length && sorted[next]!.y < a.y + a.height; next++) {
      const b = sorted[next]!;
      if (a.x < b.x + b.width && b.x < a.x + a.width) faults.push(`${a.id} and ${b.id}`);
    }
  });
  return faults;
}

describe('lanes', () => {
  it('never lets cards overlap, or leave the picture', () => {
    fc.assert(
      fc.property(wanted, fc.boolean(), fc.boolean(), (size, folded, all) => {
        const picture = layout(buildRun(sampleRun(size), folded), all ? open : undefined);
        expect(overlaps(picture)).toEqual([]);
        for (const { x, y, width, height } of picture.cards) {
          expect(x >= 0 && y >= 0 && x + width <= picture.width + 0.5 && y + height <= picture.height + 0.5).toBe(true);
        }
        for (const band of picture.bands) {
          expect(band.x >= -0.5 && band.x + band.width <= picture.width + 0.5 && band.y + band.height <= picture.height + 0.5).toBe(true);
        }
      }),
    );
  });

  it('keeps the recorded order of agents and of steps', () => {
    fc.assert(
      fc.property(wanted, fc.boolean(), (size, folded) => {
        const model = buildRun(sampleRun(size), folded);
        const picture = layout(model, open);
        for (const round of model.rounds) {
          const bands = round.sessions.map((session) => picture.bands.find((band) => band.session === session)!);
          for (let place = 1; place < bands.length; place++) {
            expect(bands[place]!.x).toBeGreaterThanOrEqual(bands[place - 1]!.x + bands[place - 1]!.width);
          }
        }
        const at = new Map(picture.cards.map((card) => [card.id, card]));
        for (const step of model.steps) {
          for (const parent of step.parents) expect(at.get(parent)!.y).toBeLessThan(at.get(step.id)!.y);
        }
      }),
    );
  });

  it('draws the same picture for the same run', () => {
    const events = sampleRun({ agents: 4, steps: 3, rounds: 2, nested: 2 });
    expect(layout(buildRun(events, true))).toEqual(layout(buildRun(structuredClone(events), true)));
  });

  it('does not move columns when a later step comes', () => {
    const events = sampleRun({ agents: 4, steps: 3 });
    const columns = (count: number): number[] => layout(buildRun(events.slice(0, count), true)).bands.map((band) => band.x);
    const first = events.findIndex((event) => event.type === 'agent.started') + 4;
    for (let count = first; count <= events.length; count++) expect(columns(count)).toEqual(columns(first));
  });

  it('places 1,000 steps in less than 50 ms', () => {
    const model = buildRun(sampleRun({ agents: 20, steps: 25 }), false);
    expect(model.steps.length).toBeGreaterThan(1000);
    layout(model, open);
    const times = [0, 1, 2].map(() => {
      const began = performance.now();
      layout(model, open);
      return performance.now() - began;
    });
    expect(Math.min(...times)).toBeLessThan(50);
  });

  it('sums up what cannot be read side by side', () => {
    const picture = layout(buildRun(sampleRun({ agents: 20, steps: 2 }), true));
    expect(picture.bands.every((band) => band.closed)).toBe(true);
    expect(layout(buildRun(sampleRun({ agents: 4, steps: 2, nested: 3 }), true)).bands.filter((band) => band.closed)).toHaveLength(12);
  });
});

describe('steps of a run', () => {
  it('folds a call and its result into one card, and shows every record where that is wanted', () => {
    const events = sampleRun({ agents: 4, steps: 3 });
    const folded = buildRun(events, true);
    // Question, routing, fan-out, four times agent, three calls, finding; the answer.
    expect(folded.steps).toHaveLength(3 + 4 * 5 + 1);
    expect(buildRun(events, false).steps.length).toBe(events.length);
    expect(folded.steps.flatMap((step) => step.events)).toHaveLength(events.length);
  });

  it('gives the end of a run that came without an answer to the run, not to the agent that was last', () => {
    const events = sampleRun({ agents: 3, steps: 1 }).slice(0, -2);
    const base = { seq: events.length + 1, session_id: 'r', step_id: 'urn:trustgraph:agent:r/end', at: events.at(-1)!.at };
    const ended = { state: 'failed', reason: 'error', error: 'no model', model_calls: 1, tool_calls: 1, model_ms: 1, tool_ms: 1 } as const;
    const model = buildRun([...events, { ...base, type: 'run.failed', run_id: 'r', ...ended }], true);
    expect(model.steps.at(-1)).toMatchObject({ kind: 'error', session: 'r', error: 'no model' });
    expect(model.steps.filter((step) => step.error !== '')).toHaveLength(1);
  });

  it('keeps what a tool asked beside its call, and what was answered beside the question', () => {
    const at = (seq: number, session_id = 'r') => ({ seq, session_id, at: new Date(1_700_000_000_000 + seq * 100).toISOString() });
    const id = (name: string) => `urn:trustgraph:agent:r/${name}`;
    const set = { decision: 'tool-input', options: ['answer', 'decline'], excluded: [], chosen: ['answer'], decided_by: 'caller', enforcement: 'validated', source: 's', config_version: 1, signals: [], rationale: null };
    const events: DurableEvent[] = [
      { ...at(1), step_id: id('session'), type: 'run.started', schema: 1, run_id: 'r', question: 'Book' },
      { ...at(2), step_id: id('i1'), type: 'step.completed', kind: 'analysis', tool: 'book', arguments: {}, also: [{ tool: 'look', arguments: {} }] },
      { ...at(3), step_id: id('i1/observation/input/1'), type: 'input.required', tool: 'book', forms: 1 },
      { ...at(4), step_id: id('park/1'), type: 'decision.requested', park: 'park/1', question: 'How many?', options: ['answer', 'decline'], tool: 'book', forms: [{ name: 'f', message: 'm', schema: {} }], expires: at(9).at, otherwise: 'decline' },
      { ...at(5), step_id: id('park/1/decision'), type: 'decision.made', park: 'park/1', content: { f: { people: 4 } }, decided_by: { name: 'Ann', surface: 'api' }, option_sets: [set] },
      { ...at(6), step_id: id('i1/observation'), type: 'step.completed', kind: 'observation', content: 'booked' },
    ];
    const folded = buildRun(events, true);
    expect(folded.steps.map(({ title, outcome }) => [title, outcome])).toEqual([['Question', 'ok'], ['book, look', 'ok'], ['book asks', 'ok']]);
    expect(folded.steps.flatMap((step) => step.events)).toHaveLength(events.length);
    expect(decider(folded.steps[2]!, set).word).toBe('a person: Ann over the API');
    expect(decider(folded.steps[1]!, { ...set, decided_by: 'rule' }).word).toBe('nobody in time');
    expect(buildRun(events, false).steps).toHaveLength(events.length);
    expect(logLines(folded, events).map(({ text }) => text).join('\n')).toMatch(/book asks for input: 1 form[\s\S]*“m”[\s\S]*Decided by Ann over the API: answer · filled in: {"f":{"people":4}}/);
    // An event of a newer server is a line, too.
    expect(logLines(folded, [...events, { ...at(7), step_id: id('x'), type: 'of.tomorrow' } as unknown as DurableEvent]).at(-1)!.text).toContain('of.tomorrow');
  });

  it('joins what the agents found', () => {
    const model = buildRun(sampleRun({ agents: 4, steps: 1 }), true);
    const answer = model.steps.at(-1)!;
    expect(answer.kind).toBe('answer');
    expect(answer.parents).toHaveLength(4);
    expect(ancestors(model, answer.id).size).toBe(model.steps.length);
    expect(citedStep(model, answer, { of: 'finding', number: 0 })!.output).toBe('Finding 0');
    // What is not among its citations on record is none, but can be looked at.
    expect(citedStep(model, answer, { of: 'finding', number: 2 })).toBeUndefined();
    expect(namedStep(model, answer, { of: 'finding', number: 2 })!.output).toBe('Finding 2');
    const inner = model.steps.find((step) => step.kind === 'finding')!;
    expect(namedStep(model, inner, { of: '', number: 1 })!.output).toBe('Result 0.1');
  });

  it('marks the call that failed and nothing else', () => {
    const model = buildRun(sampleRun({ agents: 3, steps: 2, fails: '1/2' }), true);
    expect(model.steps.filter((step) => step.outcome === 'failed').map((step) => step.title)).toEqual(['tool-2']);
    expect([...model.lanes.values()].map((lane) => lane.failed)).toEqual([0, 0, 1, 0]);
  });

  it('follows the chain that took longest back to the question', () => {
    const model = buildRun(sampleRun({ agents: 3, steps: 2 }), true);
    const path = criticalPath(model);
    expect(path.has(model.steps[0]!.id) && path.has(model.steps.at(-1)!.id)).toBe(true);
    expect([...path].some((id) => id.includes('r-a2'))).toBe(true);
    expect([...path].some((id) => id.includes('r-a0'))).toBe(false);
  });
});

describe('words', () => {
  it('names agents by what tells them apart', () => {
    expect(agentName('Analyse financial health and stability of Company X')).toBe('Financial health');
    expect(agentName('for, rebuttal 1: Compare the costs')).toBe('For, rebuttal 1');
    expect(agentName('')).toBe('Agent');
    const weigh = (company: string): string => `Weigh finances and legal exposure of Company ${company} for the comparison`;
    expect(agentNames([weigh('X'), weigh('Y'), 'Look up the register'])).toEqual(['Company X', 'Company Y', 'Register']);
    expect(agentNames(['same', 'same'])).toEqual(['Same 1', 'Same 2']);
  });

  it('reads where options came from', () => {
    expect(sourceOf('urn:trellis:config:default:agent-task-type:risk-assessment')).toMatchObject({ type: 'agent-task-type', key: 'risk-assessment' });
    expect(sourceOf('urn:trellis:config:default:tool')).toEqual({ words: 'all items of tool', type: 'tool' });
    expect(sourceOf(null).words).toBe('not recorded');
  });
});
