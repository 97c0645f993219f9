/** How states and other closed lists of words are shown. */
import type { IconName } from '../components/icons';

export interface Look {
  word: string;
  tone: 'ok' | 'warn' | 'bad' | 'info' | 'plain';
  icon: IconName;
}

const looks: Record<string, Look> = {
  queued: { word: 'Queued', tone: 'plain', icon: 'clock' },
  running: { word: 'Running', tone: 'info', icon: 'half' },
  waiting: { word: 'Waiting for a person', tone: 'warn', icon: 'pause' },
  answered: { word: 'Answered', tone: 'ok', icon: 'check' },
  'answered-partial': { word: 'Answered in part', tone: 'warn', icon: 'half' },
  limit: { word: 'Limit reached', tone: 'warn', icon: 'stop' },
  failed: { word: 'Failed', tone: 'bad', icon: 'cross' },
  cancelled: { word: 'Cancelled', tone: 'plain', icon: 'stop' },
};

export const stateLook = (state: string): Look => looks[state] ?? { word: state, tone: 'plain', icon: 'dot' };

/** Whether nothing more will happen to a run in this state. */
export const hasEnded = (state: string): boolean => !['queued', 'running', 'waiting'].includes(state);
