/**
 * A run as steps that follow from each other, made from its events. A step is one card: what belongs together is folded into it,
 * or stands alone where every record is wanted. Nothing here knows how it is drawn.
 */

import type { DecisionRequested, DurableEvent, FanOutStarted, OptionSet, SessionEnded, StepCompleted } from '../../lib/types';
import { cited, type Cite, type Cited } from '../../lib/cites';
import { agentName, agentNames } from '../../lib/names';

export type Kind =
  'question' | 'routing' | 'split' | 'plan' | 'tool' | 'act' | 'person' | 'message' | 'agent' | 'finding' | 'answer' | 'error';
export type Outcome = 'ok' | 'failed' | 'running' | 'waiting' | 'stopped';

/** A stretch of time in which something was at work. */
export interface Span {
  what: 'model' | 'tool' | 'person' | 'other';
  start: number;
  end: number;
}

export interface Step {
  /** What it is called in the graph of the run. */
  id: string;
  kind: Kind;
  title: string;
  /** What came of it, on one line. */
  line: string;
  session: string;
  parents: string[];
  events: DurableEvent[];
  outcome: Outcome;
  error: string;
  /** Milliseconds since the run began. */
  start: number;
  end: number;
  /** When what it waited for was there. */
  ready: number;
  spans: Span[];
  inToken: number | null;
  outToken: number | null;
  model: string;
  optionSets: OptionSet[];
  thought: string;
  input: unknown;
  output: string;
  /** What an answer says that it rests on, by number; null if that is not recorded. */
  cites: Cited[] | null;
}

export interface Lane {
  session: string;
  parent: string | null;
  name: string;
  goal: string;
  pattern: string;
  group: string[] | null;
  index: number;
  correlation: string | null;
  state: string;
  reason: string;
  error: string;
  steps: string[];
  start: number;
  end: number;
  inToken: number | null;
  outToken: number | null;
  failed: number;
}

export interface Round {
  correlation: string;
  round: number;
  parent: string;
  split: string;
  sessions: string[];
  joined: boolean;
  cause: string;
  deadline: string;
}

export interface RunModel {
  steps: Step[];
  byId: Map<string, Step>;
  lanes: Map<string, Lane>;
  rounds: Round[];
  root: string;
  began: number;
  length: number;
  end: SessionEnded | null;
}

const time = (event: DurableEvent): number => new Date(event.at).getTime();
const add = (a: number | null, b: number | null | undefined): number | null =>
  b === null || b === undefined ? a : (a ?? 0) + b;

/** Steps of events in the order of their numbers. */
export function buildRun(events: readonly DurableEvent[], folded: boolean): RunModel {
  const builder = new Builder(folded);
  for (const event of events) builder.take(event);
  return builder.finish();
}

const UNNAMED = 'Agent';

class Builder {
  readonly steps: Step[] = [];
  readonly byId = new Map<string, Step>();
  readonly lanes = new Map<string, Lane>();
  readonly rounds: Round[] = [];
  /** In every session: the steps that nothing followed yet. */
  readonly heads = new Map<string, string[]>();
  /** The card that an event's own name has become part of. */
  readonly homes = new Map<string, string>();
  readonly plans = new Map<string, { id: string; dependsOn: Map<number, number[]> }>();
  root = '';
  began = 0;
  end: SessionEnded | null = null;

  constructor(readonly folded: boolean) {}

  take(event: DurableEvent): void {
    if (this.root === '') {
      this.root = event.session_id;
      this.began = time(event);
    }
    const lane = this.lane(event.session_id);
    lane.end = Math.max(lane.end, time(event) - this.began);
    switch (event.type) {
      case 'run.started':
        lane.goal = event.question;
        lane.name = 'The run';
        lane.state = 'running';
        this.step(event, 'question', 'Question', { output: event.question, line: event.question });
        break;
      case 'agent.started': {
        const round = this.rounds.find((round) => round.correlation === event.correlation_id);
        this.goal(event.session_id, event.goal, event.pattern);
        lane.state = 'running';
        lane.start = time(event) - this.began;
        this.step(event, 'agent', lane.name, { output: event.goal, line: event.goal, parents: round ? [round.split] : [] });
        break;
      }
      case 'step.completed':
        this.reply(event, lane);
        break;
      case 'call.intended':
        if (!this.fold(event, this.newest(event.session_id))) {
          this.step(event, 'act', `About to call ${event.tool}`, { line: 'recorded before the call, so that it is not made twice' });
        }
        break;
      case 'input.required':
        if (!this.fold(event, this.newest(event.session_id))) this.step(event, 'act', `${event.tool} asks for input`, { line: 'it has done nothing yet' });
        break;
      case 'fanout.started':
        this.fanOut(event);
        break;
      case 'fanout.joined': {
        const round = this.rounds.find((round) => round.correlation === event.correlation_id);
        if (!round) break;
        round.joined = true;
        round.cause = event.cause;
        const ends = round.sessions.flatMap((session) => this.heads.get(session) ?? []);
        const parents = ends.length > 0 ? ends : [round.split];
        if (this.folded) {
          this.heads.set(event.session_id, parents);
          this.byId.get(round.split)?.events.push(event);
        } else {
          const failed = event.members.filter((member) => member.error);
          this.step(event, 'act', 'Findings joined', {
            parents, line: `${event.members.length - failed.length} of ${event.members.length} came, ${event.cause.replace(/-/g, ' ')}`,
          });
        }
        break;
      }
      case 'decision.requested':
        this.step(event, 'person', personTitle(event), { line: 'waits for an answer', input: event.arguments, output: event.question, outcome: 'waiting' });
        break;
      case 'decision.made': {
        const asked = [...this.steps].reverse().find((step) =>
          step.session === event.session_id && step.kind === 'person' &&
          step.events.some((one) => one.type === 'decision.requested' && one.park === event.park));
        const said = event.option_sets[0]?.chosen.join(', ') || 'nothing';
        if (asked) {
          asked.outcome = 'ok';
          asked.line = event.decided_by ? `decided: ${said}` : `nobody answered in time: ${said}`;
          asked.optionSets.push(...event.option_sets);
        }
        if (asked && this.folded) {
          asked.events.push(event);
          this.homes.set(event.step_id, asked.id);
          asked.spans.push({ what: 'person', start: asked.end, end: time(event) - this.began });
          asked.end = time(event) - this.began;
        } else {
          this.step(event, 'person', `Decided: ${said}`, { optionSets: event.option_sets, output: event.result ?? '' });
        }
        break;
      }
      case 'run.told':
        this.step(event, 'message', 'Message from a person', { line: event.message, output: event.message });
        break;
      case 'agent.completed':
      case 'run.completed':
      case 'run.failed':
        this.ended(event, lane);
        break;
    }
  }

  finish(): RunModel {
    const length = Math.max(0, ...this.steps.map((step) => step.end));
    return {
      steps: this.steps, byId: this.byId, lanes: this.lanes, rounds: this.rounds, root: this.root, began: this.began, length,
      end: this.end,
    };
  }

  private lane(session: string): Lane {
    let lane = this.lanes.get(session);
    if (!lane) {
      lane = {
        session, parent: null, name: UNNAMED, goal: '', pattern: '', group: null, index: -1, correlation: null, state: 'queued',
        reason: '', error: '', steps: [], start: 0, end: 0, inToken: null, outToken: null, failed: 0,
      };
      this.lanes.set(session, lane);
    }
    return lane;
  }

  private goal(session: string, goal: string, pattern: string): void {
    const lane = this.lane(session);
    lane.goal = goal;
    lane.pattern = pattern;
    if (lane.name === UNNAMED) lane.name = agentName(goal);
  }

  private newest(session: string): Step | undefined {
    return this.byId.get(this.heads.get(session)?.at(-1) ?? '');
  }

  /** Adds an event to a card; false if every record stands alone or there is no such card. */
  private fold(event: DurableEvent, step: Step | undefined): boolean {
    if (!this.folded || !step) return false;
    step.events.push(event);
    this.homes.set(event.step_id, step.id);
    return true;
  }

  private step(event: DurableEvent, kind: Kind, title: string, more: Partial<Step> = {}): Step {
    const heads = this.heads.get(event.session_id) ?? [];
    const parents = more.parents ?? heads;
    const end = time(event) - this.began;
    const ms = event.type === 'step.completed' ? (event.ms ?? 0) : 0;
    const start = Math.max(0, end - ms);
    const ready = Math.min(start, Math.max(0, ...parents.map((id) => this.byId.get(id)?.end ?? 0)));
    const step: Step = {
      id: event.step_id, kind, title, line: '', session: event.session_id, outcome: 'ok', error: '', start, end, ready,
      spans: ms > 0 ? [{ what: 'model', start, end }] : [], inToken: null, outToken: null, model: '', optionSets: [], thought: '',
      input: undefined, output: '', cites: null, ...more, parents, events: [event],
    };
    this.steps.push(step);
    this.byId.set(step.id, step);
    this.homes.set(step.id, step.id);
    this.lane(step.session).steps.push(step.id);
    // What it follows is a head no more; steps of a plan stand beside each other.
    this.heads.set(event.session_id, [...heads.filter((id) => !parents.includes(id)), step.id]);
    return step;
  }

  private cost(step: Step, event: StepCompleted, lane: Lane): void {
    step.inToken = add(step.inToken, event.in_token);
    step.outToken = add(step.outToken, event.out_token);
    step.model ||= event.model ?? '';
    lane.inToken = add(lane.inToken, event.in_token);
    lane.outToken = add(lane.outToken, event.out_token);
  }

  private reply(event: StepCompleted, lane: Lane): void {
    const { kind } = event;
    if (kind === 'observation') return this.observation(event, lane);
    const common: Partial<Step> = { optionSets: event.option_sets ?? [], thought: event.thought ?? '' };
    let step: Step;
    if (kind === 'choice' || kind === 'routing') {
      step = this.routing(event, lane, common);
    } else if (kind === 'answer') {
      const isRoot = event.session_id === this.root;
      const parents = this.heads.get(event.session_id) ?? [];
      step = this.step(event, isRoot ? 'answer' : 'finding', isRoot ? 'Answer' : 'Finding', {
        ...common, parents, output: event.content ?? '', line: event.content ?? '', cites: cited(event.cites),
      });
    } else if (['decomposition', 'stances', 'dispatch'].includes(kind)) {
      const title = kind === 'decomposition' ? 'Split into agents' : kind === 'stances' ? 'Sides' : 'Handed to an agent';
      step = this.step(event, 'split', title, { ...common, input: event.goals ?? event.stances ?? event.agent });
    } else if (kind === 'plan' || Array.isArray(event.steps)) {
      const steps = Array.isArray(event.steps) ? (event.steps as PlannedStep[]) : [];
      step = this.step(event, 'plan', kind === 'plan' ? 'Plan' : titled(kind), {
        ...common, input: event.steps, line: `${steps.length} steps`, output: event.content ?? '',
      });
      this.plan(event, steps, step);
    } else if (kind === 'analysis' || kind === 'plan-step') {
      step = this.call(event, common);
    } else {
      const said = [event.content, event.problem, event.advice].filter((text): text is string => typeof text === 'string' && text !== '');
      step = this.step(event, 'act', titled(kind), { ...common, line: said[0] ?? event.thought ?? '', output: said.join('\n\n') });
    }
    if (event.error) {
      step.error = event.error;
      step.outcome = 'failed';
      step.line = event.error;
      lane.failed += 1;
    }
    this.cost(step, event, lane);
  }

  private routing(event: StepCompleted, lane: Lane, common: Partial<Step>): Step {
    const before = this.newest(event.session_id);
    lane.pattern = event.pattern ?? lane.pattern;
    const isSubagent = event.session_id !== this.root;
    const joins = isSubagent ? before?.kind === 'agent' : before?.kind === 'routing';
    if (this.folded && before && joins) {
      this.fold(event, before);
      // The routing repeats what its choices said.
      const known = new Set(event.option_sets?.map((set) => set.decision));
      before.optionSets = [...before.optionSets.filter((set) => !known.has(set.decision)), ...(event.option_sets ?? [])];
      const end = time(event) - this.began;
      if (event.ms) before.spans.push({ what: 'model', start: end - event.ms, end });
      before.end = Math.max(before.end, end);
      before.thought ||= event.thought ?? '';
      if (!isSubagent && event.kind === 'routing') before.line = `${event.task_type} → ${event.pattern}`;
      return before;
    }
    const line = event.kind === 'routing' ? `${event.task_type} → ${event.pattern}` : String(event.chosen ?? '');
    const title = event.kind === 'routing' || this.folded ? 'Routing' : titled(event.option_sets?.[0]?.decision ?? 'choice');
    return this.step(event, 'routing', title, { ...common, line });
  }

  /** A call of a tool, or a step of a plan. */
  private call(event: StepCompleted, common: Partial<Step>): Step {
    const number = /\/step\/(\d+)$/.exec(event.step_id)?.[1];
    const plan = this.plans.get(event.session_id);
    let parents: string[] | undefined;
    if (number !== undefined && plan) {
      const needed = (plan.dependsOn.get(Number(number)) ?? []).map((on) => this.resultOf(event.session_id, on));
      parents = needed.filter((id): id is string => id !== undefined);
      if (parents.length === 0) parents = [plan.id];
    }
    // One reply may call several tools at once.
    const also = Array.isArray(event.also) ? (event.also as { tool: string; arguments: unknown }[]) : [];
    const all = event.tool ? [{ tool: event.tool, arguments: event.arguments }, ...also] : [];
    const title = all.map(({ tool }) => tool).join(', ') || (number === undefined ? 'Step' : 'No tool needed');
    const more = { ...common, input: also.length > 0 ? all : event.arguments, output: event.content ?? '', line: event.content ?? '' };
    return this.step(event, 'tool', title, { ...more, ...(parents ? { parents } : {}), outcome: event.tool ? 'running' : 'ok' });
  }

  private resultOf(session: string, number: number): string | undefined {
    const found = this.steps.filter((step) => step.session === session && new RegExp(`/step/${number}(/|$)`).test(step.id));
    return found.at(-1)?.id;
  }

  private observation(event: StepCompleted, lane: Lane): void {
    const call = this.callOf(event);
    const failed = event.error !== undefined && event.error !== '';
    if (failed) lane.failed += 1;
    const outcome: Outcome = failed ? 'failed' : 'ok';
    const line = failed ? event.error! : (event.content ?? '');
    if (call && this.folded) {
      const end = time(event) - this.began;
      this.fold(event, call);
      call.spans.push({ what: 'tool', start: Math.max(0, end - (event.ms ?? 0)), end });
      call.end = Math.max(call.end, end);
      call.outcome = call.outcome === 'failed' ? 'failed' : outcome;
      call.error ||= event.error ?? '';
      call.line = line;
      call.output = call.output ? `${call.output}\n\n${event.content ?? ''}` : (event.content ?? '');
      this.cost(call, event, lane);
      return;
    }
    if (call) call.outcome = 'ok';
    const step = this.step(event, 'tool', `Result${call ? ` of ${call.title}` : ''}`, {
      outcome, error: event.error ?? '', line, output: event.content ?? '', ...(call ? { parents: [call.id] } : {}),
    });
    for (const span of step.spans) span.what = 'tool';
    this.cost(step, event, lane);
  }

  /** The call that an observation belongs to: the one whose name its own begins with. */
  private callOf(event: StepCompleted): Step | undefined {
    const parts = event.step_id.split('/');
    while (parts.pop() !== undefined && parts.length > 0) {
      const step = this.byId.get(this.homes.get(parts.join('/')) ?? '');
      if (step?.kind === 'tool' && step.session === event.session_id) return step;
    }
    return undefined;
  }

  private plan(event: StepCompleted, steps: PlannedStep[], step: Step): void {
    const known = this.plans.get(event.session_id);
    const dependsOn = new Map(known?.dependsOn);
    const first = known ? Math.max(-1, ...dependsOn.keys()) + 1 : 0;
    steps.forEach((planned, place) => {
      const on = planned.depends_on ?? planned['depends-on'] ?? [];
      dependsOn.set(typeof planned.number === 'number' ? planned.number : first + place, Array.isArray(on) ? on : []);
    });
    this.plans.set(event.session_id, { id: step.id, dependsOn });
  }

  private fanOut(event: FanOutStarted): void {
    const before = this.newest(event.session_id);
    const joins = before?.kind === 'split' && !this.rounds.some((round) => round.split === before.id);
    let split: Step;
    if (this.folded && before && joins) {
      this.fold(event, before);
      split = before;
      split.optionSets = event.option_sets.length > 0 ? event.option_sets : split.optionSets;
      split.end = Math.max(split.end, time(event) - this.began);
    } else {
      split = this.step(event, 'split', 'Agents sent out', { optionSets: event.option_sets });
    }
    split.line = `${event.goals.length} ${event.goals.length === 1 ? 'agent' : 'agents'}, round ${event.round}`;
    this.rounds.push({
      correlation: event.correlation_id, round: event.round, parent: event.session_id, split: split.id,
      sessions: event.goals.map((goal) => goal.session_id), joined: false, cause: '', deadline: event.deadline,
    });
    const names = agentNames(event.goals.map((goal) => goal.goal));
    event.goals.forEach((goal, place) => {
      this.lane(goal.session_id).name = names[place]!;
      this.goal(goal.session_id, goal.goal, goal.pattern);
      const lane = this.lane(goal.session_id);
      lane.parent = event.session_id;
      lane.index = goal.index;
      lane.group = goal.group;
      lane.correlation = event.correlation_id;
      lane.start = lane.end = time(event) - this.began;
    });
  }

  private ended(event: SessionEnded, lane: Lane): void {
    lane.state = event.state;
    lane.reason = event.reason;
    lane.error = event.error ?? '';
    lane.inToken = event.in_token ?? lane.inToken;
    lane.outToken = event.out_token ?? lane.outToken;
    if (event.type !== 'agent.completed') this.end = event;
    const isRoot = event.session_id === this.root;
    const newest = this.newest(event.session_id);
    const answered = event.state === 'answered' || event.state === 'answered-partial';
    const outcome: Outcome = event.state === 'failed' ? 'failed' : answered ? 'ok' : 'stopped';
    if (newest?.session === event.session_id && (newest.kind === 'answer' || newest.kind === 'finding') && this.folded) {
      this.fold(event, newest);
      newest.end = Math.max(newest.end, time(event) - this.began);
      if (outcome !== 'ok') newest.outcome = outcome;
      newest.error ||= event.error ?? '';
      return;
    }
    const kind = answered || event.answer ? (isRoot ? 'answer' : 'finding') : 'error';
    const title = kind === 'error' ? endTitle(event) : isRoot ? 'Answer' : 'Finding';
    // Whatever was still under way goes no further.
    for (const id of lane.steps) {
      const step = this.byId.get(id)!;
      if (step.outcome === 'running' || step.outcome === 'waiting') step.outcome = 'stopped';
    }
    this.step(event, kind, this.folded || kind === 'error' ? title : 'End', {
      outcome, error: event.error ?? '', output: event.answer ?? '', line: event.error || event.answer || event.reason,
    });
  }
}

interface PlannedStep {
  number?: number;
  goal?: string;
  depends_on?: number[];
  'depends-on'?: number[];
}

function personTitle(event: DecisionRequested): string {
  if (!event.tool) return 'Question to a person';
  if ((event.forms ?? []).length > 0) return `${event.tool} asks`;
  return event.options.includes('retry') ? `Was ${event.tool} called?` : `May ${event.tool} be called?`;
}

const titled = (word: string): string => word.replace(/-/g, ' ').replace(/^./, (letter) => letter.toUpperCase());

function endTitle(event: SessionEnded): string {
  switch (event.state) {
    case 'cancelled':
      return 'Cancelled';
    case 'limit':
      return event.reason === 'timeout' ? 'Out of time' : 'Limit reached';
    default:
      return 'Failed';
  }
}

/** Everything that a step rests on, itself included. */
export function ancestors(model: RunModel, id: string): Set<string> {
  const found = new Set<string>();
  const left = [id];
  for (let next = left.pop(); next !== undefined; next = left.pop()) {
    if (found.has(next) || !model.byId.has(next)) continue;
    found.add(next);
    left.push(...model.byId.get(next)!.parents);
  }
  return found;
}

/** The chain that set the total time: from the last step back, always along what came last. */
export function criticalPath(model: RunModel): Set<string> {
  const path = new Set<string>();
  let step: Step | undefined = model.steps.reduce<Step | undefined>((last, one) => (!last || one.end >= last.end ? one : last), undefined);
  while (step && !path.has(step.id)) {
    path.add(step.id);
    const parents: Step[] = step.parents.map((id) => model.byId.get(id)).filter((one): one is Step => one !== undefined);
    step = parents.reduce<Step | undefined>((last, one) => (!last || one.end > last.end ? one : last), undefined);
  }
  return path;
}

/** What an answer cites. What the record does not have among its citations was not there to be cited, whatever the text says. */
export function citedStep(model: RunModel, answer: Step, cite: Cite): Step | undefined {
  const onRecord = !answer.cites || answer.cites.some(({ index }) => index === cite.number);
  return onRecord ? namedStep(model, answer, cite) : undefined;
}

/** What a citation names in the session of an answer: what an agent found, the result of a plan's step, or that of a call. */
export function namedStep(model: RunModel, answer: Step, { of, number }: Cite): Step | undefined {
  const own = (pattern: string): Step | undefined =>
    model.steps.findLast((step) => step.session === answer.session && step.kind === 'tool' && new RegExp(`/${pattern}${number}(/|$)`).test(step.id));
  const finding = (): Step | undefined => {
    const lane = [...model.lanes.values()].find((lane) => lane.parent === answer.session && lane.index === number && lane.correlation !== null);
    return lane ? model.byId.get(lane.steps.at(-1) ?? '') : undefined;
  };
  if (of === 'finding') return finding();
  if (of === 'step') return own('step/') ?? own('i');
  if (of === 'observation') return own('i');
  return own('i') ?? own('step/') ?? finding();
}
