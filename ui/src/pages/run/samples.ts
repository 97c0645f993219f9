/** Runs for tests: as many agents, steps and rounds as a test wants. */
import type { DurableEvent, Goal } from '../../lib/types';

export interface Wanted {
  agents: number;
  /** Calls of tools of each agent. */
  steps: number;
  rounds?: number;
  /** Agents that each agent of the first round sends out itself. */
  nested?: number;
  /** The call of an agent that fails, as `agent/step`. */
  fails?: string;
}

export function sampleRun({ agents, steps, rounds = 1, nested = 0, fails = '' }: Wanted): DurableEvent[] {
  const events: DurableEvent[] = [];
  let clock = 1_700_000_000_000;
  const base = (session_id: string, name: string) => ({
    seq: events.length + 1, session_id, step_id: `urn:trustgraph:agent:${session_id}/${name}`, at: new Date((clock += 100)).toISOString(),
  });
  const ended = { state: 'answered', model_calls: 1, tool_calls: steps, model_ms: 50, tool_ms: 50 } as const;
  const work = (session: string, number: number): void => {
    for (let step = 1; step <= steps; step++) {
      const broken = fails === `${number}/${step}`;
      events.push({ ...base(session, `i${step}`), type: 'step.completed', kind: 'analysis', tool: `tool-${step}`, arguments: { q: 'x' }, ms: 60, in_token: 100, out_token: 10, model: 'm' });
      events.push({ ...base(session, `i${step}/observation`), type: 'step.completed', kind: 'observation', ms: 40, ...(broken ? { error: 'timed out after 5 s' } : { content: `Result ${number}.${step}` }) });
    }
  };
  const fanOut = (parent: string, round: number, count: number, first: number, deep: number): void => {
    const correlation_id = `${parent}-c${round}`;
    const goals: Goal[] = Array.from({ length: count }, (_, place) => ({
      index: first + place, session_id: `${parent}-a${first + place}`, goal: `Goal ${first + place}`, pattern: 'react', group: null,
    }));
    events.push({ ...base(parent, round === 1 ? 'decompose' : `decompose/${round}`), type: 'step.completed', kind: 'decomposition', goals, ms: 80, in_token: 10, out_token: 10 });
    events.push({ ...base(parent, `fanout/${round}`), type: 'fanout.started', round, correlation_id, deadline: new Date(clock + 1e6).toISOString(), goals, option_sets: [] });
    for (const goal of goals) {
      events.push({ ...base(goal.session_id, 'session'), type: 'agent.started', goal: goal.goal, pattern: 'react', parent_session_id: parent, correlation_id, index: goal.index, siblings: count });
    }
    for (const goal of goals) {
      if (deep > 0) fanOut(goal.session_id, 1, deep, 0, 0);
      work(goal.session_id, goal.index);
      events.push({ ...base(goal.session_id, 'final'), type: 'step.completed', kind: 'answer', content: `Finding ${goal.index}`, ms: 70, answer_message_id: 'x' });
      events.push({ ...base(goal.session_id, 'end'), type: 'agent.completed', reason: 'final-answer', answer: `Finding ${goal.index}`, ...ended });
    }
    const members = goals.map(({ index, session_id }) => ({ index, session_id, reason: 'final-answer', error: null }));
    events.push({ ...base(parent, `fanout/${round}/join`), type: 'fanout.joined', round, correlation_id, cause: 'all-ended', members });
  };
  events.push({ ...base('r', 'session'), type: 'run.started', schema: 1, run_id: 'r', question: 'Why?' });
  events.push({ ...base('r', 'pattern-decision'), type: 'step.completed', kind: 'routing', task_type: 'general', pattern: 'supervisor', option_sets: [] });
  for (let round = 1; round <= rounds; round++) fanOut('r', round, agents, (round - 1) * agents, round === 1 ? nested : 0);
  events.push({ ...base('r', 'synthesis'), type: 'step.completed', kind: 'answer', content: 'So it is. [finding 0]', ms: 90, cites: [{ index: 0 }] });
  events.push({ ...base('r', 'end'), type: 'run.completed', run_id: 'r', reason: 'subagents-complete', answer: 'So it is. [finding 0]', ...ended });
  return events;
}
