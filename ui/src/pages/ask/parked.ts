/** Questions that a run waits for: what kind of question it is, and what each answer means. */

import type { AskedForm } from '../../lib/types';

export interface Asked {
  park: string;
  session_id: string;
  question: string;
  options: string[];
  tool?: string | null;
  arguments?: Record<string, unknown> | null;
  forms?: AskedForm[];
  who?: string[] | null;
  expires: string;
  otherwise: string;
}

export const answerWords: Record<string, { word: string; means: string }> = {
  approve: { word: 'Approve', means: 'The call is made.' },
  deny: { word: 'Deny', means: 'The call is not made; the model is told so, and goes on.' },
  retry: { word: 'Call it again', means: 'Perhaps for a second time.' },
  continue: { word: 'Go on without it', means: 'The model is told that nobody knows what came of it.' },
  result: { word: 'It was made: use this result', means: 'The model is shown what you write.' },
  answer: { word: 'Send', means: 'The call is made again with it.' },
  decline: { word: 'Decline', means: 'The tool is told that there is no answer.' },
};
export const answerWord = (choice: string): string => (Object.hasOwn(answerWords, choice) ? answerWords[choice]!.word : choice);

export type Sort = 'approval' | 'uncertain' | 'input' | 'other';

export function sortOf(question: Asked): Sort {
  if ((question.forms ?? []).length > 0) return 'input';
  if (question.options.includes('retry')) return 'uncertain';
  return question.options.includes('approve') ? 'approval' : 'other';
}

export const titles: Record<Sort, string> = {
  approval: 'A person has to agree', uncertain: 'A person has to say what became of a call', input: 'A tool asks for something', other: 'A person has to decide',
};

export const explained: Record<Sort, string> = {
  approval: 'Nothing has been called yet.',
  uncertain: 'The server was cut off while this was called. It changes something with every call, so it is not called again unasked: look where it works whether it was made.',
  input: 'The tool was called and has done nothing yet. It is called again with what is filled in here. What you write is kept on record: no passwords, no keys.',
  other: '',
};

/** Answers with which a call is made, so that its arguments can be changed. */
export const callsWith = (choice: string): boolean => choice === 'approve' || choice === 'retry';
