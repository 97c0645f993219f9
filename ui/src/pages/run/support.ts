/**
 * What a sentence of the answer rests on. The record says which findings and steps a passage cites; below that, sources that use
 * the same words are looked up. The first is on record, the second is only a comparison of texts, and both are called so.
 */

import { citesIn, type Cite } from '../../lib/cites';
import { ancestors, citedStep, type RunModel, type Step } from './model';

export interface Passage {
  step: Step;
  /** The part of the source that has most in common with the sentence. */
  text: string;
  /** How many of the telling words of the sentence it has, from 0 to 1. */
  shared: number;
}

export interface Support {
  /** Steps that the sentence, or what it stands in, cites. */
  cited: { step: Step; cite: Cite; near: boolean }[];
  passages: Passage[];
}

const words = (text: string): string[] =>
  (text.toLowerCase().match(/[\p{L}\p{N}]+(?:[.,]\p{N}+)?/gu) ?? []).filter((word) => word.length > 2 || /\p{N}/u.test(word));

/** `context` is what stands around the sentence, nearest first: its paragraph, then the headings above it. */
export function supportOf(model: RunModel, answer: Step, sentence: string, context: readonly string[]): Support {
  const cited: Support['cited'] = [];
  const add = (text: string, near: boolean): void => {
    for (const cite of citesIn(text)) {
      const step = citedStep(model, answer, cite);
      if (step && !cited.some((one) => one.step === step)) cited.push({ step, cite, near });
    }
  };
  add(sentence, false);
  for (const text of context) {
    if (cited.length > 0) break;
    add(text, true);
  }
  const below = [...ancestors(model, answer.id)].map((id) => model.byId.get(id)!).filter((step) => step.kind === 'tool' && step.output);
  const inside = new Set(cited.flatMap(({ step }) => [...ancestors(model, step.id)]));
  // What the cited agents found comes first; everything else only if they have nothing.
  const own = below.filter((step) => cited.some((one) => one.step.session === step.session) || cited.some((one) => one.step === step));
  const near = passages(own.length > 0 ? own : below.filter((step) => inside.has(step.id)), sentence);
  return { cited, passages: near.length > 0 ? near : passages(below, sentence) };
}

function passages(steps: readonly Step[], sentence: string): Passage[] {
  const wanted = new Set(words(sentence.replace(/\[[^\][]{0,400}\]/g, ' ')));
  if (wanted.size === 0) return [];
  const found: Passage[] = [];
  for (const step of steps) {
    let best: Passage | null = null;
    for (const line of step.output.slice(0, 200_000).split(/\n+|(?<=[.!?])\s+/)) {
      const has = new Set(words(line));
      if (has.size === 0) continue;
      let shared = 0;
      for (const word of wanted) if (has.has(word)) shared += 1;
      shared /= wanted.size;
      if (shared > (best?.shared ?? 0)) best = { step, text: line.trim(), shared };
    }
    if (best && best.shared >= 0.5) found.push(best);
  }
  return found.sort((a, b) => b.shared - a.shared).slice(0, 4);
}
