/** What became of the items of an earlier version. */

import type { ConfigItem } from '../../lib/types';
import { prettyText } from './document';

export interface Since {
  type: string;
  key: string;
  how: 'added' | 'changed' | 'deleted';
  /** As people read them; empty if there was or is none. */
  before: string;
  after: string;
}

/** What differs now, sorted by type and key. */
export function sinceThen(was: ConfigItem[], now: ConfigItem[]): Since[] {
  const name = ({ type, key }: ConfigItem): string => JSON.stringify([type, key]);
  const [before, after] = [was, now].map((items) => new Map(items.map((item) => [name(item), item] as const))) as [Map<string, ConfigItem>, Map<string, ConfigItem>];
  const found: Since[] = [];
  for (const place of [...new Set([...before.keys(), ...after.keys()])].sort()) {
    const [old, current] = [before.get(place), after.get(place)];
    const { type, key } = (old ?? current)!;
    const [one, other] = [old, current].map((item) => (item ? prettyText(item.value) : '')) as [string, string];
    if (old && current && one === other) continue;
    found.push({ type, key, how: !old ? 'added' : !current ? 'deleted' : 'changed', before: one, after: other });
  }
  return found;
}
