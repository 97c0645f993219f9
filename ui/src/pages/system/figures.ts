/** What the server tells of itself, read from the places where it tells it. */

import { prefixes, rows, type Reply } from '../../lib/sparql';
import type { ListedRun, OpenQuestion, WholeRun } from '../../lib/types';

/** Figures as Prometheus reads them: name, perhaps labels, value. */
export function readMetrics(text: string): { name: string; help: string; value: number }[] {
  const helps = new Map<string, string>();
  const figures: { name: string; help: string; value: number }[] = [];
  for (const line of text.split('\n')) {
    const help = /^# HELP (\S+) (.*)$/.exec(line);
    if (help) helps.set(help[1]!, help[2]!);
    const sample = /^([a-zA-Z_:][\w:]*)(\{[^}]*\})? ([^ ]+)/.exec(line);
    if (!sample || line.startsWith('#')) continue;
    const value = Number(sample[3]);
    if (!Number.isNaN(value)) figures.push({ name: sample[1]! + (sample[2] ?? ''), help: helps.get(sample[1]!) ?? '', value });
  }
  return figures;
}

/** A turn of a session that somebody has in hand, or that waits. */
export interface Turn {
  workspace: string;
  run_id: string;
  session_id: string;
  turn: string;
  /** When somebody else takes it, when its time is over, or when its question expires. */
  until?: string;
}
/** What `/api/v1/status` tells, where there is one. */
export interface Status {
  processes: { command: string; id: string; since: string }[];
  open_runs: number;
  waiting: { agents: number; aggregators: number };
  in_hand: Turn[];
  fan_ins: Turn[];
  questions: Turn[];
  later: number;
  more?: boolean;
}

export interface Checkpoint {
  /** The log's name. */
  origin: string;
  entries: number;
  root: string;
}

/** The lines of a checkpoint: origin, size, root, and signatures below an empty line. */
export function readCheckpoint(text: string): Checkpoint | null {
  const [origin, entries, root] = text.split('\n');
  if (!origin || !root || !/^\d+$/.test(entries ?? '')) return null;
  return { origin, entries: Number(entries), root };
}

/** Open questions of all runs, the one with the nearest deadline first. */
export function parked(runs: WholeRun[]): { run: WholeRun; question: OpenQuestion }[] {
  return runs.flatMap((run) => (run.waiting_for ?? []).map((question) => ({ run, question })))
    .sort((one, other) => one.question.expires.localeCompare(other.question.expires));
}

/** The one that has waited longest. */
export const oldest = (runs: ListedRun[]): ListedRun | null =>
  runs.reduce<ListedRun | null>((first, run) => (first === null || run.started < first.started ? run : first), null);

export const fanIns = `${prefixes}SELECT ?root ?question ?correlation ?expected ?deadline (COUNT(DISTINCT ?done) AS ?back) {
  ?fan a tg:FanOut ; tg:correlationId ?correlation ; tg:expectedSiblings ?expected ; trellis:deadline ?deadline .
  FILTER NOT EXISTS { ?fan trellis:join ?join }
  ?fan prov:wasDerivedFrom+ ?root . ?root trellis:run ?activity ; tg:query ?question .
  FILTER NOT EXISTS { ?root tg:parentSessionId ?above }
  FILTER NOT EXISTS { ?activity prov:endedAtTime ?ended }
  OPTIONAL { ?done a tg:SubagentCompletion ; tg:correlationId ?correlation }
} GROUP BY ?root ?question ?correlation ?expected ?deadline ORDER BY ?deadline LIMIT 50`;

export interface FanIn {
  run: string;
  question: string;
  correlation: string;
  expected: number;
  back: number;
  deadline: string;
}

/** Fan-ins that wait for agents, as the graph has them. */
export function readFanIns(reply: Reply): FanIn[] {
  const run = (iri: string): string => {
    const id = iri.replace(/^urn:trustgraph:agent:/, '');
    try {
      return decodeURIComponent(id);
    } catch {
      return id;
    }
  };
  return rows(reply).filter(({ root }) => root !== undefined).map((row) => ({
    run: run(row.root!), question: row.question ?? '', correlation: row.correlation ?? '', expected: Number(row.expected ?? 0),
    back: Number(row.back ?? 0), deadline: row.deadline ?? '',
  }));
}

const sums = '(COUNT(DISTINCT ?x) AS ?calls) (SUM(COALESCE(xsd:integer(?i), 0)) AS ?in) (SUM(COALESCE(xsd:integer(?o), 0)) AS ?out) (COUNT(?i) + COUNT(?o) AS ?known)';
export const byModel = `${prefixes}SELECT ?name ${sums} {
  ?x tg:llmModel ?name OPTIONAL { ?x tg:inToken ?i } OPTIONAL { ?x tg:outToken ?o } } GROUP BY ?name ORDER BY DESC(?in)`;
/** Sessions, whose totals are known when they have ended. */
export const byPattern = `${prefixes}SELECT ?name ${sums.replace('?calls', '?sessions')} {
  ?q a tg:AgentQuestion ; trellis:run ?x . ?x prov:wasAssociatedWith ?agent
  FILTER(STRSTARTS(STR(?agent), "urn:trustgraph:agent-pattern:"))
  BIND(STRAFTER(STR(?agent), "urn:trustgraph:agent-pattern:") AS ?name)
  OPTIONAL { ?x trellis:totalInToken ?i } OPTIONAL { ?x trellis:totalOutToken ?o } } GROUP BY ?name ORDER BY DESC(?in)`;

export interface Used {
  name: string;
  times: number;
  /** Null if none was recorded. */
  input: number | null;
  output: number | null;
}

export function readUsed(reply: Reply): Used[] {
  return rows(reply).filter(({ name }) => name !== undefined && name !== '').map((row) => {
    const tokens = (value: string | undefined): number | null => (Number(row.known) > 0 && value !== undefined ? Number(value) : null);
    return { name: row.name!, times: Number(row.calls ?? row.sessions ?? 0), input: tokens(row.in), output: tokens(row.out) };
  });
}

export const newestLimits = `${prefixes}SELECT ?limits ?at ?root {
  ?d a tg:PatternDecision ; trellis:limits ?limits ; prov:generatedAtTime ?at ; prov:wasDerivedFrom ?root
  FILTER NOT EXISTS { ?root tg:parentSessionId ?above } } ORDER BY DESC(?at) LIMIT 1`;

/** What limits mean, in the order in which they are told. */
const limitWords: Record<string, string> = {
  'max-iterations': 'Steps of a ReAct session', 'max-plan-steps': 'Steps of a plan', 'max-replans': 'Revisions of a plan',
  'steps-at-once': 'Plan steps at once', 'max-rounds': 'Rounds of a supervisor', 'max-depth': 'Subagents below subagents',
  'max-siblings': 'Agents of one fan-out', 'max-agents': 'Agents of a run', 'max-model-calls': 'Calls of models of a run',
  'max-tokens': 'Tokens of a run', 'max-cost-micros': 'Cost of a run, in millionths', 'fan-in-timeout-ms': 'Waiting for agents',
  'model-timeout-ms': 'One call of a model', 'tool-timeout-ms': 'One call of a tool', 'run-timeout-ms': 'A whole run',
};

export function readLimits(text: string): { name: string; word: string; value: number; isTime: boolean }[] {
  let limits: unknown;
  try {
    limits = JSON.parse(text);
  } catch {
    return [];
  }
  if (typeof limits !== 'object' || limits === null) return [];
  const order = Object.keys(limitWords);
  const place = (name: string): number => (order.includes(name) ? order.indexOf(name) : order.length);
  return Object.entries(limits).filter((entry): entry is [string, number] => typeof entry[1] === 'number')
    .sort(([one], [other]) => place(one) - place(other))
    .map(([name, value]) => ({ name, word: Object.hasOwn(limitWords, name) ? limitWords[name]! : '', value, isTime: name.endsWith('-ms') }));
}
