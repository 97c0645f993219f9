/** The decision space: which task type may be answered by which pattern, and what refers to an item. */

import type { ConfigItem } from '../../lib/types';
import { isObject } from './document';
import { allowed, text, texts, valueOf } from './faults';

export interface Cell {
  allowed: boolean;
  /** Why a pattern that is allowed is never offered. */
  why: string;
}
export interface Row {
  key: string;
  description: string;
  /** It names no patterns: all may be chosen. */
  all: boolean;
  cells: Cell[];
  /** Patterns that it names and that are not configured. */
  strangers: string[];
}
export interface Matrix {
  patterns: { key: string; implemented: boolean | null }[];
  rows: Row[];
}

export function matrix(items: ConfigItem[], implemented: string[] | null): Matrix {
  const of = (type: string): ConfigItem[] => items.filter((item) => item.type === type);
  const patterns = of('agent-pattern').map(({ key }) => ({ key, implemented: implemented?.includes(key) ?? null }));
  const rows = of('agent-task-type').map((item): Row => {
    const value = valueOf(item);
    const list = allowed(value);
    return {
      key: item.key, description: isObject(value) ? text(value.description) : '', all: list === null,
      cells: patterns.map((pattern) => {
        const isAllowed = list === null || list.includes(pattern.key);
        return { allowed: isAllowed, why: isAllowed && pattern.implemented === false ? 'not implemented' : '' };
      }),
      strangers: (list ?? []).filter((name) => patterns.every((pattern) => pattern.key !== name)),
    };
  });
  return { patterns, rows };
}

export interface Reference {
  type: string;
  key: string;
  how: string;
  /** Without the item, this one would be left with nothing. */
  blocks?: boolean;
}

/** Which items name this one. */
export function references(type: string, key: string, items: ConfigItem[], implemented: string[] | null): Reference[] {
  const found: Reference[] = [];
  for (const item of items) {
    const value = valueOf(item);
    if (!isObject(value) || (item.type === type && item.key === key)) continue;
    const add = (how: string, blocks = false): void => void found.push({ type: item.type, key: item.key, how, ...(blocks && { blocks }) });
    if (type === 'agent-pattern' && item.type === 'agent-task-type') {
      const list = allowed(value);
      if (list?.includes(key)) {
        const others = list.filter((one) => one !== key && items.some((other) => other.type === 'agent-pattern' && other.key === one)
          && (implemented?.includes(one) ?? true));
        add('allows it', others.length === 0);
      }
      const examples = Array.isArray(value.examples) ? value.examples : [];
      if (examples.some((example) => isObject(example) && example.pattern === key)) add('has an example of it');
    }
    if (item.type !== 'tool') continue;
    if (type === 'agent-pattern' && value.pattern === key) add('is an agent of it');
    if (type === 'agent-task-type' && value['task-type'] === key) add('is an agent of it');
    if (type === 'prompt' && value.type === 'prompt' && `template.${text(value.template)}` === key) add('asks with it');
    if (type === 'mcp' && value.type === 'mcp-tool' && !value.server && value['mcp-tool'] === key) add('calls it');
    if (type === 'tool-service' && value.service === key) add('is a tool of it');
    if (type === 'schema' && value['schema-name'] === key) add('searches its rows');
  }
  return found;
}

/** The groups that a tool is in. */
export const groupsOf = (item: ConfigItem): string[] => {
  const value = valueOf(item);
  return isObject(value) && Array.isArray(value.group) ? texts(value.group) : ['default'];
};
