/** What is wrong with an item: in the server's words after saving, in ours while one types. The server's count. */

import { isObject, type Json } from './document';
import { fieldsOf, memberOf } from './kinds';
import type { ConfigItem } from '../../lib/types';

export interface Fault {
  type: string;
  key: string;
  /** The member; empty if it is about the whole. */
  field: string;
  text: string;
}

/** The server writes a line for each: `type/key: field `name`: what; how to mend it`. */
export function told(message: string): { faults: Fault[]; rest: string } {
  const faults: Fault[] = [];
  const rest: string[] = [];
  for (const line of message.split('\n')) {
    const found = /([a-z-]+)\/(.+?): field `([^`]+)`: (.*)$/.exec(line);
    if (found) faults.push({ type: found[1]!, key: found[2]!, field: found[3]!, text: found[4]! });
    else if (line.trim()) rest.push(line);
  }
  return { faults, rest: rest.join('\n') };
}

export interface Around {
  items: ConfigItem[];
  /** Patterns that this server can run; none if that is not known. */
  implemented: string[] | null;
}

export const valueOf = (item: ConfigItem): Json => {
  try {
    return JSON.parse(item.value) as Json;
  } catch {
    return item.value;
  }
};

export const text = (value: Json | undefined): string => (typeof value === 'string' ? value : '');
export const texts = (value: Json | undefined): string[] =>
  Array.isArray(value) ? value.filter((one) => typeof one === 'string') : [];

/** The patterns that a task type allows; null if it allows all. */
export function allowed(value: Json): string[] | null {
  if (!isObject(value)) return null;
  const list = value.valid_patterns ?? value['valid-patterns'];
  return Array.isArray(list) ? texts(list) : null;
}

/** What can be said while one types. */
export function hints(type: string, key: string, value: Json, around: Around): Fault[] {
  const fault = (field: string, text: string): Fault => ({ type, key, field, text });
  if (!isObject(value)) return [];
  const faults: Fault[] = [];
  for (const field of fieldsOf(type, key, value)) {
    const present = [field.name, ...(field.also ?? [])].filter((name) => value[name] !== undefined);
    if (present.length > 1) faults.push(fault(present[1]!, `${present.map((name) => `“${name}”`).join(' and ')} are both there; “${present[0]}” is used.`));
    const member = value[memberOf(field, value)];
    if (field.needed && (member === undefined || member === null || member === '')) faults.push(fault(field.name, `${field.label} is missing.`));
  }
  const named = value.name;
  if (['agent-task-type', 'agent-pattern', 'schema'].includes(type) && typeof named === 'string' && named !== '' && named !== key) {
    faults.push(fault('name', `The name is not the key “${key}”.`));
  }
  if (type === 'agent-task-type') {
    const list = allowed(value);
    const patterns = new Set(around.items.filter((item) => item.type === 'agent-pattern').map((item) => item.key));
    for (const pattern of list ?? []) {
      if (!patterns.has(pattern)) faults.push(fault('valid_patterns', `There is no pattern “${pattern}” in the configuration.`));
      else if (around.implemented && !around.implemented.includes(pattern)) faults.push(fault('valid_patterns', `“${pattern}” is not implemented by this server, so it is never offered.`));
    }
    const usable = (list ?? [...patterns]).filter((pattern) => patterns.has(pattern) && (around.implemented?.includes(pattern) ?? true));
    if (usable.length === 0) faults.push(fault('valid_patterns', 'No pattern is left that could be chosen.'));
  }
  const words = (value: Json | undefined): string => text(value).toLowerCase().replace(/\W+/g, ' ').trim();
  if (type === 'agent-task-type' || type === 'agent-pattern') {
    const mine = words(value.when_to_use ?? value['when-to-use']);
    const twin = around.items.find((item) => {
      if (item.type !== type || item.key === key) return false;
      const other = valueOf(item);
      return mine !== '' && isObject(other) && words(other.when_to_use ?? other['when-to-use']) === mine;
    });
    if (twin) faults.push(fault('when_to_use', `“${twin.key}” says the same: a model can hardly tell them apart.`));
  }
  if (type === 'tool' && value.type === 'prompt' && typeof value.template === 'string' && value.template !== '') {
    const template = `template.${value.template}`;
    if (!around.items.some((item) => item.type === 'prompt' && item.key === template)) faults.push(fault('template', `There is no prompt “${template}”.`));
  }
  return faults;
}
