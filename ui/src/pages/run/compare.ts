/** Two runs side by side: what was decided otherwise comes first. */

import { brief, duration, tokens } from '../../lib/format';
import { stateLook } from '../../lib/states';
import type { WholeRun } from '../../lib/types';
import type { RunModel, Step } from './model';
import { decisionWords } from './words';

export interface Difference {
  about: string;
  a: string;
  b: string;
  differs: boolean;
}

const none = '–';

export function compareFacts(a: WholeRun, b: WholeRun): Difference[] {
  const row = (about: string, of: (run: WholeRun) => string): Difference => ({ about, a: of(a), b: of(b), differs: of(a) !== of(b) });
  return [
    row('Question', (run) => run.question),
    row('Configuration', (run) => (run.configured ? `version ${run.configured.version}` : 'not recorded')),
    row('Task type', (run) => run.task_type || none),
    row('Pattern', (run) => run.pattern || none),
    row('Model', (run) => run.model ?? 'not recorded'),
    row('State', (run) => stateLook(run.state).word),
    row('Took', (run) => duration(run.ms)),
    row('Tokens', (run) => tokens(run.in_token, run.out_token)),
    row('Calls of models', (run) => String(run.model_calls)),
    row('Calls of tools', (run) => String(run.tool_calls)),
  ];
}

/** What a step is in both runs: the same kind of step, at the same place of the agent with the same goal. */
function keyOf(model: RunModel, step: Step, places: Map<string, number>): string {
  const goal = step.session === model.root ? '' : (model.lanes.get(step.session)?.goal ?? '');
  const place = `${goal}\u0000${step.kind}`;
  const number = places.get(place) ?? 0;
  places.set(place, number + 1);
  return `${place}\u0000${number}`;
}

export interface Pair {
  agent: string;
  a: Step | null;
  b: Step | null;
  differences: Difference[];
}

export function compareSteps(a: RunModel, b: RunModel): Pair[] {
  const pairs = new Map<string, Pair>();
  for (const [side, model] of [['a', a], ['b', b]] as const) {
    const places = new Map<string, number>();
    for (const step of model.steps) {
      const key = keyOf(model, step, places);
      const agent = step.session === model.root ? 'The run itself' : (model.lanes.get(step.session)?.name ?? '');
      const pair = pairs.get(key) ?? { agent, a: null, b: null, differences: [] };
      pair[side] = step;
      pairs.set(key, pair);
    }
  }
  for (const pair of pairs.values()) pair.differences = differences(pair.a, pair.b);
  return [...pairs.values()];
}

function differences(a: Step | null, b: Step | null): Difference[] {
  if (!a || !b) return [{ about: 'Only in one run', a: a?.title ?? none, b: b?.title ?? none, differs: true }];
  const found: Difference[] = [];
  const add = (about: string, one: string, other: string): void => {
    if (one !== other) found.push({ about, a: one || none, b: other || none, differs: true });
  };
  const kinds = [...new Set([...a.optionSets, ...b.optionSets].map((set) => set.decision))];
  for (const kind of kinds) {
    const [left, right] = [a, b].map((step) => step.optionSets.filter((set) => set.decision === kind));
    const word = decisionWords[kind] ?? kind;
    add(`${word}: options`, left!.map((set) => set.options.join(', ')).join(' | '), right!.map((set) => set.options.join(', ')).join(' | '));
    add(`${word}: chosen`, left!.map((set) => set.chosen.join(', ')).join(' | '), right!.map((set) => set.chosen.join(', ')).join(' | '));
    add(`${word}: decided by`, left!.map((set) => set.decided_by).join(' | '), right!.map((set) => set.decided_by).join(' | '));
  }
  add('What', a.title, b.title);
  add('Outcome', a.error ? `${a.outcome}: ${a.error}` : a.outcome, b.error ? `${b.outcome}: ${b.error}` : b.outcome);
  add('Arguments', JSON.stringify(a.input) ?? '', JSON.stringify(b.input) ?? '');
  add('Result', brief(a.output, 300), brief(b.output, 300));
  return found;
}
