/** Words of the record in the reader's own. */
import type { IconName } from '../../components/icons';
import { who } from '../../lib/format';
import type { DecisionMade, OptionSet } from '../../lib/types';
import type { Kind, Outcome, Step } from './model';

export const kindLook: Record<Kind, { word: string; icon: IconName }> = {
  question: { word: 'Question', icon: 'question' },
  routing: { word: 'Routing', icon: 'routing' },
  split: { word: 'Fan-out', icon: 'split' },
  plan: { word: 'Plan', icon: 'plan' },
  tool: { word: 'Tool', icon: 'tool' },
  act: { word: 'Act', icon: 'act' },
  person: { word: 'Person', icon: 'person' },
  message: { word: 'Message', icon: 'message' },
  agent: { word: 'Agent', icon: 'agent' },
  finding: { word: 'Finding', icon: 'finding' },
  answer: { word: 'Answer', icon: 'answer' },
  error: { word: 'End', icon: 'warning' },
};

export const outcomeWord: Record<Outcome, string> = {
  ok: 'ok', failed: 'failed', running: 'running', waiting: 'waiting', stopped: 'stopped',
};

export const decisionWords: Record<string, string> = {
  'task-type': 'Task type', pattern: 'Pattern', tool: 'Tool', goals: 'Goals of the agents', 'subagent-pattern': 'Pattern of an agent',
  'subagent-group': 'Tools of an agent', replan: 'Keep or change the plan', round: 'Answer, or another round', approval: 'Approval by a person',
  'uncertain-call': 'A call of which nobody knows whether it was made',
  'tool-input': 'What a tool asked for', edges: 'Facts to be used',
};

/** Who chose, and what that means. */
export const deciderWords: Record<string, { word: string; means: string }> = {
  model: { word: 'the model', means: 'A model was asked, and chose from these options.' },
  'only-option': { word: 'nobody: there was only one', means: 'There was only one option, so no model was asked.' },
  fallback: { word: 'the fallback', means: 'The reply could not be used, so the default was taken.' },
  caller: { word: 'the caller', means: 'The request said so, so no model was asked.' },
  supervisor: { word: 'the supervisor', means: 'The agent that sent this one out had chosen it.' },
  rule: { word: 'a rule', means: 'The program’s own rule decides this; no model was asked.' },
};

/** Questions that people answer, and not models. */
const PERSONAL = ['approval', 'uncertain-call', 'tool-input'];
export const isPersonal = (set: OptionSet): boolean => PERSONAL.includes(set.decision);

/** Who decided a set of a step, as far as it is known. */
export function decider(step: Step, set: OptionSet): { word: string; means: string } {
  const usual = deciderWords[set.decided_by] ?? { word: set.decided_by, means: '' };
  if (!isPersonal(set)) return usual;
  const made = step.events.find((event): event is DecisionMade => event.type === 'decision.made' && event.option_sets.some(({ decision }) => decision === set.decision));
  if (made?.decided_by) return { word: `a person: ${who(made.decided_by).replace(/^by /, '')}`, means: 'Asked by the run, which waited for the answer.' };
  if (set.decided_by === 'rule') return { word: 'nobody in time', means: 'The deadline passed, so what had been announced for that case was done.' };
  return set.decided_by === 'caller' ? { word: 'a person who is not recorded', means: 'Asked by the run, which waited for the answer.' } : usual;
}

export const enforcementWords: Record<string, { word: string; means: string }> = {
  decoding: { word: 'enforced while decoding', means: 'The model could not write anything outside the set.' },
  validated: { word: 'checked afterwards', means: 'The reply was held against the set before it was acted on.' },
  none: { word: 'not enforced', means: 'There was no closed set to hold the choice against.' },
};

/** A configuration item or a node of the graph, as the place where options came from. */
export function sourceOf(source: string | null | undefined): { words: string; type?: string; key?: string } {
  if (!source) return { words: 'not recorded' };
  const found = /^urn:trellis:config:([^:]*):([^:]*)(?::(.*))?$/.exec(source);
  if (!found) return { words: source };
  const decode = (text: string): string => {
    try {
      return decodeURIComponent(text);
    } catch {
      return text;
    }
  };
  const type = decode(found[2]!);
  const key = found[3] === undefined ? undefined : decode(found[3]);
  return { words: key ? `${type} “${key}”` : `all items of ${type}`, type, ...(key === undefined ? {} : { key }) };
}
