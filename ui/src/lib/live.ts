/**
 * A run as it happens. Events may come in any order, twice, and in pieces of many connections: the state depends only on which
 * durable events were seen, and on the text that was written since for messages that are still open.
 */

import type {
  Chunk, DecisionRequested, DurableEvent, OptionSet, RunEvent, RunTold, SessionEnded, StepCompleted,
} from './types';
import { cited } from './cites';
import { agentNames } from './names';

/** Text that is still being written. */
export interface Preview {
  session: string;
  message: string;
  kind: string;
  text: string;
}

export interface LiveStep {
  seq: number;
  kind: string;
  title: string;
  text: string;
  error: string;
  ms: number | null;
  at: string;
}

export type AgentState = 'queued' | 'running' | 'waiting' | SessionEnded['state'];

/** One agent session. */
export interface LiveAgent {
  session: string;
  parent: string | null;
  name: string;
  goal: string;
  pattern: string;
  index: number;
  round: number;
  state: AgentState;
  reason: string;
  started: string | null;
  ended: string | null;
  steps: LiveStep[];
  previews: Preview[];
  inToken: number | null;
  outToken: number | null;
  error: string;
  answer: string;
  failedSteps: number;
}

export interface LiveRound {
  correlation: string;
  round: number;
  parent: string;
  deadline: string;
  sessions: string[];
  joined: boolean;
  cause: string;
  optionSets: OptionSet[];
}

export interface LiveRun {
  run: string;
  question: string;
  state: 'queued' | 'running' | 'waiting' | SessionEnded['state'];
  taskType: string;
  pattern: string;
  routing: StepCompleted | null;
  started: string | null;
  ended: string | null;
  end: SessionEnded | null;
  /** The root first, then subagents in the order in which they were planned. */
  agents: LiveAgent[];
  rounds: LiveRound[];
  open: DecisionRequested[];
  told: RunTold[];
  inToken: number | null;
  outToken: number | null;
  answer: string;
  answering: boolean;
  /** The numbers of what the answer cites, as far as they are on record; null if it is not recorded. */
  cited: number[] | null;
}

const key = (session: string, message: string): string => `${session}\u0000${message}`;

/** A message without the number of its attempt, and that number: `…/thought#2` is the second attempt at `…/thought`. */
function attemptOf(message: string): [string, number] {
  const found = /^(.*)#(\d+)$/s.exec(message);
  return found ? [found[1]!, Number(found[2])] : [message, 1];
}

export class LiveLog {
  #bySeq = new Map<number, DurableEvent>();
  #previews = new Map<string, Preview>();
  /** Messages that were completed: what still comes of them is old. */
  #completed = new Set<string>();
  #endedSessions = new Set<string>();
  #sorted: DurableEvent[] | null = [];
  /** What is known after the first so many events. */
  #known = new Known();
  #taken = 0;

  /** Takes an event in. True if it changed anything. */
  add(event: RunEvent): boolean {
    return event.type === 'chunk' ? this.#chunk(event) : this.#durable(event);
  }

  /** A new connection begins: every open message comes again from its start. */
  connect(): void {
    this.#previews.clear();
  }

  /** The durable events by number. */
  events(): DurableEvent[] {
    this.#sorted ??= [...this.#bySeq.values()].sort((a, b) => a.seq - b.seq);
    return this.#sorted;
  }

  /** The number up to which nothing is missing: where a new connection goes on. */
  get last(): number {
    let last = 0;
    for (const { seq } of this.events()) {
      if (seq !== last + 1) break;
      last = seq;
    }
    return last;
  }

  previews(): Preview[] {
    return [...this.#previews.values()];
  }

  /** What is known of the run. Agents of whom nothing is new are the same objects as before. */
  view(): LiveRun {
    const events = this.events();
    while (this.#taken < events.length) this.#known.take(events[this.#taken++]!);
    return this.#known.view(this.previews());
  }

  #chunk({ session_id: session, message_id: message, chunk_type: kind, content }: Chunk): boolean {
    const name = key(session, message);
    const [plain, attempt] = attemptOf(message);
    if (this.#completed.has(key(session, plain)) || this.#endedSessions.has(session)) return false;
    // A message that was begun again takes the place of what had been written of it before.
    for (const [other, before] of this.#previews) {
      const [same, number] = attemptOf(before.message);
      if (before.session !== session || same !== plain || number === attempt) continue;
      if (number > attempt) return false;
      this.#previews.delete(other);
    }
    const preview = this.#previews.get(name);
    this.#previews.set(name, { session, message, kind, text: (preview?.text ?? '') + content });
    return true;
  }

  #durable(event: DurableEvent): boolean {
    if (this.#bySeq.has(event.seq)) return false;
    const newest = this.events().at(-1);
    if (newest && newest.seq > event.seq) {
      this.#sorted = null;
      this.#known = new Known();
      this.#taken = 0;
    } else this.#sorted!.push(event);
    this.#bySeq.set(event.seq, event);
    if (event.type === 'step.completed') {
      for (const message of [event.message_id, event.answer_message_id]) {
        if (message === undefined) continue;
        const [plain] = attemptOf(message);
        this.#completed.add(key(event.session_id, plain));
        for (const [name, preview] of this.#previews) {
          if (preview.session === event.session_id && attemptOf(preview.message)[0] === plain) this.#previews.delete(name);
        }
      }
    }
    if (['agent.completed', 'run.completed', 'run.failed'].includes(event.type)) {
      this.#endedSessions.add(event.session_id);
      for (const [name, preview] of this.#previews) {
        if (preview.session === event.session_id) this.#previews.delete(name);
      }
    }
    return true;
  }
}

const begun = (one: LiveAgent): void => {
  if (one.state === 'queued') one.state = 'running';
};

const blank = (session: string): LiveAgent => ({
  session, parent: null, name: '', goal: '', pattern: '', index: -1, round: 0, state: 'queued', reason: '', started: null,
  ended: null, steps: [], previews: [], inToken: null, outToken: null, error: '', answer: '', failedSteps: 0,
});

/** What is known of a run after some of its events, which are taken one after the other in their order. */
class Known {
  /** Without its agents, and what only text that is being written says. */
  run: LiveRun = {
    run: '', question: '', state: 'queued', taskType: '', pattern: '', routing: null, started: null, ended: null, end: null,
    agents: [], rounds: [], open: [], told: [], inToken: null, outToken: null, answer: '', answering: false, cited: null,
  };
  #agents = new Map<string, LiveAgent>();
  #open = new Map<string, DecisionRequested>();
  /** Agents as they were told last; none of whom something is new since. */
  #told = new Map<string, LiveAgent>();

  #agent(session: string): LiveAgent {
    const known = this.#agents.get(session) ?? blank(session);
    this.#agents.set(session, known);
    this.#told.delete(session);
    return known;
  }

  take(event: DurableEvent): void {
    const { run } = this;
    const one = this.#agent(event.session_id);
    switch (event.type) {
      case 'run.started':
        run.run = event.run_id;
        run.question = event.question;
        run.started = event.at;
        one.goal = event.question;
        one.started = event.at;
        begun(one);
        break;
      case 'agent.started':
        one.goal = event.goal;
        one.pattern = event.pattern;
        one.parent = event.parent_session_id ?? one.parent;
        one.index = event.index ?? one.index;
        one.started = event.at;
        break;
      case 'step.completed':
        begun(one);
        step(run, one, event);
        break;
      case 'call.intended':
        begun(one);
        break;
      case 'input.required':
        begun(one);
        one.steps.push({ seq: event.seq, kind: 'input', title: `${event.tool} asks for input`, text: '', error: '', ms: null, at: event.at });
        break;
      case 'fanout.started':
        run.rounds.push({
          correlation: event.correlation_id, round: event.round, parent: event.session_id, deadline: event.deadline,
          sessions: event.goals.map((goal) => goal.session_id), joined: false, cause: '', optionSets: event.option_sets,
        });
        const names = agentNames(event.goals.map((goal) => goal.goal));
        for (const [place, goal] of event.goals.entries()) {
          const sent = this.#agent(goal.session_id);
          sent.name = names[place]!;
          sent.goal ||= goal.goal;
          sent.pattern ||= goal.pattern;
          sent.parent = event.session_id;
          sent.index = goal.index;
          sent.round = event.round;
        }
        break;
      case 'fanout.joined': {
        const round = run.rounds.find((round) => round.correlation === event.correlation_id);
        if (round) {
          round.joined = true;
          round.cause = event.cause;
        }
        break;
      }
      case 'decision.requested':
        this.#open.set(key(event.session_id, event.park), event);
        break;
      case 'decision.made':
        this.#open.delete(key(event.session_id, event.park));
        one.steps.push({
          seq: event.seq, kind: 'decision', title: `Decided: ${event.option_sets[0]?.chosen.join(', ') ?? ''}`,
          text: event.result ?? '', error: '', ms: null, at: event.at,
        });
        break;
      case 'run.told':
        // Every agent at work has its own record of it.
        if (event.session_id === run.run || run.run === '') run.told.push(event);
        break;
      case 'agent.completed':
      case 'run.completed':
      case 'run.failed':
        one.state = event.state;
        one.reason = event.reason;
        one.ended = event.at;
        one.error = event.error ?? '';
        one.answer = event.answer ?? '';
        if (event.type !== 'agent.completed') {
          run.end = event;
          run.ended = event.at;
          run.answer = event.answer ?? '';
        }
        break;
    }
  }

  view(previews: readonly Preview[]): LiveRun {
    const run = { ...this.run, rounds: this.run.rounds.map((round) => ({ ...round })), told: [...this.run.told] };
    const writing = new Map<string, Preview[]>();
    for (const preview of previews) {
      writing.set(preview.session, [...(writing.get(preview.session) ?? []), preview]);
      if (preview.session === run.run && preview.kind === 'answer' && !run.end) {
        run.answer = preview.text;
        run.answering = true;
      }
    }
    run.open = [...this.#open.values()].filter((question) => !this.#agents.get(question.session_id)?.ended);
    const agents = [...new Set([...this.#agents.keys(), ...writing.keys()])].map((session) => {
      const before = this.#told.get(session);
      const own = writing.get(session) ?? [];
      if (before?.previews.length === own.length && own.every((preview, place) => preview === before.previews[place])) return before;
      const known = this.#agents.get(session) ?? blank(session);
      const one = { ...known, steps: [...known.steps], previews: own };
      if (run.open.some((question) => question.session_id === session)) one.state = 'waiting';
      if (own.length > 0) begun(one);
      this.#told.set(session, one);
      return one;
    });
    run.agents = ordered(agents, run.run, run.rounds);
    for (const one of run.agents) {
      run.inToken = sum(run.inToken, one.inToken);
      run.outToken = sum(run.outToken, one.outToken);
    }
    run.inToken = run.end?.in_token ?? run.inToken;
    run.outToken = run.end?.out_token ?? run.outToken;
    run.state = run.end ? run.end.state : run.open.length > 0 ? 'waiting' : run.started ? 'running' : 'queued';
    return run;
  }
}

function step(run: LiveRun, one: LiveAgent, event: StepCompleted): void {
  if (event.kind === 'routing') one.pattern ||= event.pattern ?? '';
  if (event.kind === 'routing' && event.session_id === run.run) {
    run.routing ??= event;
    run.taskType = event.task_type ?? run.taskType;
    run.pattern = event.pattern ?? run.pattern;
  }
  if (event.kind === 'answer' && event.session_id === run.run) run.cited = cited(event.cites)?.map(({ index }) => index) ?? null;
  one.inToken = sum(one.inToken, event.in_token ?? null);
  one.outToken = sum(one.outToken, event.out_token ?? null);
  if (event.error) one.failedSteps += 1;
  one.steps.push({
    seq: event.seq, kind: event.kind, title: stepTitle(event), text: event.content ?? event.thought ?? '',
    error: event.error ?? '', ms: event.ms ?? null, at: event.at,
  });
}

/** What a step is called in one line. */
export function stepTitle(event: StepCompleted): string {
  if (event.kind === 'routing') return `${event.task_type ?? '?'} → ${event.pattern ?? '?'}`;
  if (event.kind === 'observation') return event.error ? 'Failed' : 'Result';
  if (typeof event.tool === 'string' && event.tool) return event.tool;
  return event.kind.replace(/-/g, ' ').replace(/^./, (letter) => letter.toUpperCase());
}

const sum = (a: number | null, b: number | null): number | null => (a === null ? b : b === null ? a : a + b);

/** The root, then every fan-out's agents in recorded order, each followed by those that it sent out itself. */
function ordered(agents: LiveAgent[], root: string, rounds: readonly LiveRound[]): LiveAgent[] {
  const left = new Map(agents.map((agent) => [agent.session, agent]));
  const result: LiveAgent[] = [];
  const take = (session: string): void => {
    const agent = left.get(session);
    if (!agent) return;
    left.delete(session);
    result.push(agent);
    for (const round of rounds) {
      if (round.parent === session) round.sessions.forEach(take);
    }
  };
  take(root);
  const rest = [...left.values()].sort((a, b) => a.index - b.index || (a.session < b.session ? -1 : 1));
  for (const agent of rest) take(agent.session);
  return result;
}
