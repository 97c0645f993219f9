/** One sentence about a run: what failed, and whether it mattered. */

import { brief, counted } from '../../lib/format';
import type { WholeRun } from '../../lib/types';
import { ancestors, type RunModel, type Step } from './model';

export interface Verdict {
  tone: 'ok' | 'warn' | 'bad' | 'info' | 'plain';
  sentence: string;
  /** Where to look first; null if there is nothing in particular. */
  step: string | null;
}

/** What a step rests on, in numbers. */
export function basis(model: RunModel, id: string): { findings: Step[]; results: Step[]; failed: Step[]; people: Step[] } {
  const below = ancestors(model, id);
  const all = model.steps.filter((step) => step.id !== id && below.has(step.id));
  const results = all.filter((step) => step.kind === 'tool');
  const index = (step: Step): number => model.lanes.get(step.session)?.index ?? 0;
  return {
    findings: all.filter((step) => step.kind === 'finding').sort((a, b) => index(a) - index(b)),
    results,
    failed: results.filter((step) => step.outcome === 'failed'),
    people: all.filter((step) => step.kind === 'person' || step.kind === 'message'),
  };
}

export function basisSentence(model: RunModel, id: string): string {
  const { findings, results, failed, people } = basis(model, id);
  const parts = [
    findings.length > 0 ? counted(findings.length, 'finding') : '',
    results.length > 0 ? counted(results.length, 'tool result') + (failed.length > 0 ? ` (${failed.length} failed)` : '') : '',
    people.length > 0 ? `${people.length} from people` : '',
  ].filter(Boolean);
  return parts.length > 0 ? parts.join(', ') : 'no other step: the model was asked and answered';
}

export function verdict(model: RunModel, run: WholeRun): Verdict {
  const failed = model.steps.filter((step) => step.outcome === 'failed' && step.kind === 'tool');
  const first = failed[0];
  const where = (step: Step): string => {
    const lane = model.lanes.get(step.session);
    return lane && step.session !== model.root ? `“${step.title}” of ${lane.name}` : `“${step.title}”`;
  };
  const what = first
    ? failed.length === 1
      ? `${where(first)} failed: ${brief(first.error, 120)}`
      : `${counted(failed.length, 'call')} of tools failed, first ${where(first)}: ${brief(first.error, 100)}`
    : '';
  const end = model.steps.findLast((step) => step.session === model.root);
  const last = end?.id ?? null;
  const rests = end ? `The answer rests on ${basisSentence(model, end.id)}.` : '';
  const lacking = [...(run.left_out ?? [])];
  if (run.missing?.length) lacking.unshift(`it does without ${run.pattern.startsWith('plan') ? 'step' : 'finding'} ${run.missing.join(', ')}`);
  switch (run.state) {
    case 'queued':
      return { tone: 'plain', sentence: 'Accepted and safely stored; nobody has begun to work on it yet.', step: null };
    case 'running':
      return { tone: 'info', sentence: first ? `Under way. ${what}.` : 'Under way; nothing has failed so far.', step: first?.id ?? null };
    case 'waiting': {
      const asks = model.steps.find((step) => step.outcome === 'waiting');
      return { tone: 'warn', sentence: `Waits for a person: ${brief(run.waiting_for?.[0]?.question ?? 'a question is open', 140)}`, step: asks?.id ?? null };
    }
    case 'answered':
      if (!first) return { tone: 'ok', sentence: `Nothing failed. ${rests}`, step: null };
      return { tone: 'warn', sentence: `${what}. The agent went on without it, and no finding is missing. ${rests}`, step: first.id };
    case 'answered-partial': {
      const lost = [...model.lanes.values()].find((lane) => lane.session !== model.root && lane.state !== 'answered');
      const agent = lost ? `${lost.name} brought nothing${lost.error ? `: ${brief(lost.error, 100)}` : ''}` : what || 'something is missing';
      return { tone: 'warn', sentence: `${agent}. It mattered: ${lacking.join('; ') || 'the answer does without it'}. ${rests}`, step: lost?.steps.at(-1) ?? first?.id ?? last };
    }
    case 'limit':
      return { tone: 'warn', sentence: `Stopped at a limit (${reasonWords(run.reason)})${run.error ? `: ${brief(run.error, 160)}` : ''}. ${lacking.join('; ')}`.trim(), step: last };
    case 'cancelled':
      return { tone: 'plain', sentence: `Cancelled${run.cancelled_by?.name ? ` by ${run.cancelled_by.name}` : ''}. What was recorded until then stays.`, step: last };
    default:
      return { tone: 'bad', sentence: `It has no answer: ${brief(run.error ?? 'no reason is recorded', 220)}${first && !run.error?.includes(first.error) ? ` Before that, ${what}.` : ''}`, step: last };
  }
}

export const reasonWords = (reason: string | null): string => (reason ?? 'not recorded').replace(/-/g, ' ');
