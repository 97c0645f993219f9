import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { LiveLog } from './live';
import type { Chunk, DurableEvent, RunEvent } from './types';

const at = (seq: number): string => new Date(1_700_000_000_000 + seq * 100).toISOString();
const durable = (seq: number, session_id: string): { seq: number; session_id: string; step_id: string; at: string } => ({
  seq, session_id, step_id: `urn:${seq}`, at: at(seq),
});
const base = { state: 'answered', reason: 'final-answer', model_calls: 1, tool_calls: 0, model_ms: 1, tool_ms: 0 } as const;

/** A run with so many agents, each of which takes so many steps. */
function wholeRun(agents: number, steps: number, fails: boolean): DurableEvent[] {
  const events: DurableEvent[] = [];
  let seq = 0;
  const next = (session: string) => durable(++seq, session);
  events.push({ ...next('r'), type: 'run.started', schema: 1, run_id: 'r', question: 'Why?' });
  events.push({ ...next('r'), type: 'step.completed', kind: 'routing', task_type: 'general', pattern: 'supervisor', option_sets: [] });
  const goals = Array.from({ length: agents }, (_, index) => ({
    index, session_id: `a${index}`, goal: `Goal ${index}`, pattern: 'react', group: null,
  }));
  events.push({
    ...next('r'), type: 'fanout.started', round: 1, correlation_id: 'c', deadline: at(1000), goals, option_sets: [],
  });
  for (const goal of goals) {
    events.push({ ...next(goal.session_id), type: 'agent.started', goal: goal.goal, pattern: 'react', parent_session_id: 'r', index: goal.index });
  }
  for (let step = 0; step < steps; step++) {
    for (const { session_id } of goals) {
      events.push({ ...next(session_id), type: 'step.completed', kind: 'analysis', tool: 'search', message_id: `${session_id}/m${step}`, in_token: 10, out_token: 1 });
      const outcome = fails && step === 0 ? { error: 'timed out' } : { content: 'found' };
      events.push({ ...next(session_id), type: 'step.completed', kind: 'observation', ...outcome });
    }
  }
  for (const { session_id } of goals) events.push({ ...next(session_id), type: 'agent.completed', ...base, answer: 'done' });
  events.push({ ...next('r'), type: 'fanout.joined', round: 1, correlation_id: 'c', cause: 'all-ended', members: [] });
  events.push({ ...next('r'), type: 'run.completed', ...base, run_id: 'r', answer: 'The answer' });
  return events;
}

const chunk = (session_id: string, message: string, content: string): Chunk => ({
  type: 'chunk', session_id, message_id: `${session_id}/${message}`, chunk_type: 'thought', content,
});

const sizes = fc.record({ agents: fc.integer({ min: 1, max: 5 }), steps: fc.integer({ min: 1, max: 4 }), fails: fc.boolean() });

describe('a run as it happens', () => {
  it('is the same whatever the order, however often, over however many connections', () => {
    fc.assert(
      fc.property(
        sizes,
        fc.array(fc.record({ place: fc.nat(), cut: fc.boolean(), session: fc.nat(5), message: fc.nat(4), text: fc.string() })),
        fc.infiniteStream(fc.nat()),
        ({ agents, steps, fails }, noise, chance) => {
          const events = wholeRun(agents, steps, fails);
          const expected = new LiveLog();
          events.forEach((event) => expected.add(event));
          // Shuffled, with every event at least once and some of them twice, text and cuts in between.
          const shuffled: RunEvent[] = [...events, ...events.filter(() => chance.next().value % 2 === 0)]
            .map((event) => ({ event, place: chance.next().value }))
            .sort((a, b) => a.place - b.place)
            .map(({ event }) => event);
          const log = new LiveLog();
          const early = noise.map(({ place, ...rest }) => ({ place: place % shuffled.length, ...rest }));
          shuffled.forEach((event, place) => {
            for (const one of early.filter((one) => one.place === place)) {
              if (one.cut) log.connect();
              log.add(chunk(`a${one.session % agents}`, `m${one.message % steps}`, one.text));
            }
            const isNew = !shuffled.slice(0, place).includes(event);
            expect(log.add(event)).toBe(isNew);
            // Where a new connection goes on: before the first gap, whatever came behind it.
            const seen = new Set(shuffled.slice(0, place + 1).map((one) => (one.type === 'chunk' ? 0 : one.seq)));
            expect(log.last).toBe(events.findIndex(({ seq }) => !seen.has(seq)) < 0 ? events.length : events.findIndex(({ seq }) => !seen.has(seq)));
          });
          expect(log.events()).toEqual(events);
          expect(log.view()).toEqual(expected.view());
        },
      ),
    );
  });

  it('is the same for who gets the last events once more with each connection', () => {
    fc.assert(
      fc.property(sizes, fc.array(fc.tuple(fc.nat(40), fc.nat(6))), ({ agents, steps, fails }, cuts) => {
        const events = wholeRun(agents, steps, fails);
        const log = new LiveLog();
        let at = 0;
        for (const [more, again] of [...cuts, [events.length, 3] as const]) {
          log.connect();
          events.slice(Math.max(0, at - again), at + more).forEach((event) => log.add(event));
          at = Math.min(events.length, at + more);
          expect(log.events()).toEqual(events.slice(0, at));
        }
      }),
    );
  });

  it('is the same in the middle of the run for who came back and for who stayed', () => {
    fc.assert(
      fc.property(sizes, fc.nat(), fc.nat(), fc.array(fc.string(), { maxLength: 6 }), (size, at, cut, texts) => {
        const events = wholeRun(size.agents, size.steps, size.fails);
        const seen = events.slice(0, at % events.length);
        const open = texts.map((text) => chunk('a0', 'open', text));
        const stayed = new LiveLog();
        [...seen, ...open].forEach((event) => stayed.add(event));
        const back = new LiveLog();
        seen.slice(0, cut % (seen.length + 1)).forEach((event) => back.add(event));
        open.slice(0, cut % (open.length + 1)).forEach((event) => back.add(event));
        // The next connection gives what is behind the last durable event, and every open message from its start.
        back.connect();
        [...seen.slice(back.last), ...open].forEach((event) => back.add(event));
        expect(back.view()).toEqual(stayed.view());
      }),
    );
  });

  it('keeps each text in its own agent, and replaces it when the message is complete', () => {
    const log = new LiveLog();
    const events = wholeRun(2, 1, false);
    const step = events.findIndex((event) => event.type === 'step.completed' && event.kind === 'analysis');
    events.slice(0, step).forEach((event) => log.add(event));
    log.add(chunk('a0', 'm0', 'for '));
    log.add(chunk('a1', 'm0', 'against '));
    log.add(chunk('a0', 'm0', 'zero'));
    const [, first, second] = log.view().agents;
    expect([first!.previews[0]!.text, second!.previews[0]!.text]).toEqual(['for zero', 'against ']);
    log.add(events[step]!);
    expect(log.add(chunk('a0', 'm0', 'old'))).toBe(false);
    expect(log.view().agents[1]!.previews).toEqual([]);
    expect(log.view().agents[2]!.previews).toHaveLength(1);
  });

  it('makes anew only the agents of whom something is new', () => {
    const log = new LiveLog();
    const events = wholeRun(3, 2, false);
    events.slice(0, 8).forEach((event) => log.add(event));
    const before = log.view().agents;
    log.add(chunk('a1', 'm9', 'against'));
    const writing = log.view().agents;
    expect(writing.map((agent, place) => agent === before[place])).toEqual([true, true, false, true]);
    const next = events[8]!;
    log.add(next);
    const after = log.view().agents;
    expect(after.filter((agent, place) => agent !== writing[place]).map(({ session }) => session)).toEqual([next.session_id]);
    log.connect();
    expect(log.view().agents[2]!.previews).toEqual([]);
    expect(log.view().agents.every((agent, place) => agent === log.view().agents[place])).toBe(true);
  });

  it('tells what came of every agent and of the run', () => {
    const log = new LiveLog();
    wholeRun(2, 2, true).forEach((event) => log.add(event));
    const { state, answer, ended, agents, inToken, rounds } = log.view();
    expect([state, answer, ended !== null, inToken, rounds[0]!.joined]).toEqual(['answered', 'The answer', true, 40, true]);
    expect(agents.map((one) => [one.state, one.failedSteps, one.steps.length, one.answer])).toEqual([
      ['answered', 0, 1, 'The answer'], ['answered', 1, 4, 'done'], ['answered', 1, 4, 'done'],
    ]);
  });

  it('shows agents that wait in the queue in the places where they will be', () => {
    const log = new LiveLog();
    wholeRun(4, 1, false).slice(0, 3).forEach((event) => log.add(event));
    const { agents } = log.view();
    expect(agents.map(({ session, state }) => [session, state])).toEqual([
      ['r', 'running'], ['a0', 'queued'], ['a1', 'queued'], ['a2', 'queued'], ['a3', 'queued'],
    ]);
  });

  it('shows a message that was begun again once, and not beyond its record', () => {
    const log = new LiveLog();
    wholeRun(1, 1, false).slice(0, 4).forEach((event) => log.add(event));
    const texts = () => log.previews().map(({ text }) => text);
    const written = (message_id: string, content: string) =>
      log.add({ type: 'chunk', session_id: 'a0', message_id, chunk_type: 'thought', content });
    written('a0/m0', 'first');
    written('a0/m0#2', 'second');
    written('a0/m0', ' late');
    expect(texts()).toEqual(['second']);
    log.add(wholeRun(1, 1, false)[4]!);
    written('a0/m0#2', ' late');
    expect(texts()).toEqual([]);
  });

  it('tells which questions to people are open', () => {
    const log = new LiveLog();
    wholeRun(1, 1, false).slice(0, 5).forEach((event) => log.add(event));
    const asked = { ...durable(6, 'a0'), type: 'decision.requested', park: 'park/1', question: 'May I?', options: ['allow', 'refuse'], expires: at(99), otherwise: 'refuse' } as const;
    log.add({ ...asked, options: [...asked.options] });
    expect(log.view().state).toBe('waiting');
    expect(log.view().open.map(({ park }) => park)).toEqual(['park/1']);
    log.add({ ...durable(7, 'a0'), type: 'decision.made', park: 'park/1', option_sets: [] });
    expect(log.view().open).toEqual([]);
    expect(log.view().state).toBe('running');
  });
});
