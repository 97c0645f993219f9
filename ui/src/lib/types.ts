/** The shapes that the server answers with. `/api/openapi.json` describes them; what is not recorded is absent or null. */

export type RunState =
  'queued' | 'running' | 'waiting' | 'answered' | 'answered-partial' | 'limit' | 'failed' | 'cancelled';

/** Who did something, and by which way in. */
export interface Caller {
  name?: string | null;
  surface?: string;
}

export interface ListedRun {
  run_id: string;
  state: RunState;
  question: string;
  pattern: string;
  task_type: string;
  conversation_id: string | null;
  started: string;
  ms: number;
  in_token: number | null;
  out_token: number | null;
  question_truncated?: boolean;
}

export interface ListedRuns {
  runs: ListedRun[];
  next: string | null;
  unreadable?: { run_id?: string; run?: string; reason?: string }[];
}

/** One form of what a tool asks a person for. Its words are the tool's. */
export interface AskedForm {
  name: string;
  message: string;
  /** A JSON schema of an object with plain fields. */
  schema: Record<string, unknown>;
}

export interface OpenQuestion {
  park: string;
  question: string;
  options: string[];
  tool: string | null;
  arguments: Record<string, unknown> | null;
  /** What the tool asks for, if it is the tool that asks. */
  forms?: AskedForm[];
  who: string[] | null;
  expires: string;
  otherwise: string;
  session_id: string;
}

export interface ConfiguredBy {
  version: number;
  time: string;
  by: Caller;
}

export interface WholeRun extends ListedRun {
  seq: number;
  asked_by?: Caller;
  workspace?: string;
  request_id?: string;
  configured?: ConfiguredBy;
  waiting_for?: OpenQuestion[];
  session_id: string;
  reason: string | null;
  answer: string | null;
  error: string | null;
  model: string | null;
  model_calls: number;
  tool_calls: number;
  left_out?: string[];
  missing?: number[];
  cancelled_by?: Caller;
}

export interface NewRun {
  question: string;
  pattern?: string;
  task_type?: string;
  group?: string[];
  collection?: string;
  conversation_id?: string;
  tools?: string[];
  model?: string;
  limits?: Record<string, number>;
}

export interface Begun {
  run_id: string;
  attached: boolean;
  links: Record<string, string>;
}

/** A choice as the events tell it: the options are in the order in which they were offered. */
export interface OptionSet {
  decision: string;
  options: string[];
  excluded: { id: string; why_excluded: string }[];
  chosen: string[];
  decided_by: string;
  enforcement: string;
  source: string;
  /** Not in what was imported. */
  config_version?: number | null;
  signals: string[];
  rationale: string | null;
}

export interface Chunk {
  type: 'chunk';
  session_id: string;
  message_id: string;
  chunk_type: string;
  content: string;
}

interface Durable {
  seq: number;
  session_id: string;
  step_id: string;
  at: string;
  late?: boolean;
}

export interface Goal {
  index: number;
  session_id: string;
  goal: string;
  pattern: string;
  group: string[] | null;
}

export interface RunStarted extends Durable {
  type: 'run.started';
  schema: number;
  run_id: string;
  question: string;
}
export interface AgentStarted extends Durable {
  type: 'agent.started';
  goal: string;
  pattern: string;
  parent_session_id?: string;
  correlation_id?: string;
  index?: number;
  siblings?: number;
}
export interface CallIntended extends Durable {
  type: 'call.intended';
  tool: string;
}
/** A tool was called, has done nothing yet, and asks for input. The question to a person follows. */
export interface InputRequired extends Durable {
  type: 'input.required';
  tool: string;
  forms: number;
}
/** Routing, replies of models and observations in one: `kind` tells which, and patterns add members of their own. */
export interface StepCompleted extends Durable {
  type: 'step.completed';
  kind: string;
  task_type?: string;
  pattern?: string;
  option_sets?: OptionSet[];
  tool?: string;
  arguments?: unknown;
  thought?: string;
  content?: string;
  error?: string;
  message_id?: string;
  answer_message_id?: string;
  ms?: number;
  in_token?: number;
  out_token?: number;
  model?: string;
  attempt?: number;
  [member: string]: unknown;
}
export interface FanOutStarted extends Durable {
  type: 'fanout.started';
  round: number;
  correlation_id: string;
  deadline: string;
  goals: Goal[];
  option_sets: OptionSet[];
}
export interface FanOutJoined extends Durable {
  type: 'fanout.joined';
  round: number;
  correlation_id: string;
  cause: string;
  members: { index: number; session_id: string; reason: string; error: string | null }[];
}
export interface DecisionRequested extends Durable {
  type: 'decision.requested';
  park: string;
  question: string;
  options: string[];
  tool?: string;
  arguments?: Record<string, unknown>;
  forms?: AskedForm[];
  who?: string[];
  expires: string;
  otherwise: string;
}
export interface DecisionMade extends Durable {
  type: 'decision.made';
  park: string;
  arguments?: Record<string, unknown>;
  result?: string;
  /** What was filled in, by the names of the forms. */
  content?: Record<string, unknown>;
  decided_by?: Caller;
  option_sets: OptionSet[];
}
export interface RunTold extends Durable {
  type: 'run.told';
  message: string;
  told_by: Caller;
}
export interface SessionEnded extends Durable {
  type: 'agent.completed' | 'run.completed' | 'run.failed';
  run_id?: string;
  state: RunState;
  reason: string;
  answer?: string;
  error?: string;
  missing?: number[];
  left_out?: string[];
  cancelled_by?: Caller;
  in_token?: number;
  out_token?: number;
  model?: string;
  model_calls: number;
  tool_calls: number;
  model_ms: number;
  tool_ms: number;
}

export type DurableEvent =
  | RunStarted
  | AgentStarted
  | CallIntended
  | InputRequired
  | StepCompleted
  | FanOutStarted
  | FanOutJoined
  | DecisionRequested
  | DecisionMade
  | RunTold
  | SessionEnded;

export type RunEvent = DurableEvent | Chunk;

export interface ConfigItem {
  type: string;
  key: string;
  value: string;
}
export interface Configuration {
  version: number;
  items: ConfigItem[];
}
export interface ConfigChange {
  version: number;
  time: string;
  deleted: boolean;
  value: string | null;
  by?: Caller;
}
