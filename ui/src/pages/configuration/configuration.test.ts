import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { ConfigItem } from '../../lib/types';
import { diff, folded } from './diff';
import { sinceThen } from './earlier';
import { merge, parse, set, unknown, type JsonObject } from './document';
import { hints, told } from './faults';
import { fieldsOf, memberOf, namesOf } from './kinds';
import { matrix, references } from './matrix';
import { argumentsOf } from './tools';

const item = (type: string, key: string, value: unknown): ConfigItem => ({ type, key, value: JSON.stringify(value) });
const items = [
  item('agent-pattern', 'react', { name: 'react', when_to_use: 'Open questions' }),
  item('agent-pattern', 'tree', { name: 'tree', when_to_use: 'Trees' }),
  item('agent-task-type', 'general', { name: 'general' }),
  item('agent-task-type', 'narrow', { valid_patterns: ['react', 'gone'], examples: [{ question: 'x', pattern: 'react' }] }),
  item('tool', 'sample', { type: 'prompt', template: 'sample' }),
  item('prompt', 'template.sample', { prompt: 'x' }),
];
const around = { items, implemented: ['react'] };

describe('an earlier version', () => {
  it('tells what became of its items', () => {
    const was = [item('tool', 'a', { x: 1 }), item('tool', 'b', { x: 1 }), item('tool', 'c', {})];
    const now = [item('tool', 'b', { x: 2 }), { ...item('tool', 'c', {}), value: '{ }' }, item('mcp', 'd', {})];
    expect(sinceThen(was, now).map(({ type, key, how }) => [type, key, how])).toEqual([['mcp', 'd', 'added'], ['tool', 'a', 'deleted'], ['tool', 'b', 'changed']]);
  });
});

describe('the document', () => {
  it('keeps what the form does not know, in its order', () => {
    const document: JsonObject = { zeta: 1, name: 'a', alpha: [true] };
    expect(Object.keys(set(document, 'name', 'b'))).toEqual(['zeta', 'name', 'alpha']);
    expect(set(document, 'name', undefined)).toEqual({ zeta: 1, alpha: [true] });
    expect(unknown(document, ['name'])).toEqual(['zeta', 'alpha']);
  });
  it('says where a text is no JSON', () => {
    expect(parse('{"a": 1}').fault).toBeNull();
    expect(parse('{\n"a": 1,\n}').fault).toMatch(/^This is not JSON: .*\(line 3\)$/);
    expect(parse(' ').fault).toContain('it is empty');
  });
  it('joins changes of different members, and tells those of the same one', () => {
    const base = { a: 1, b: 2, c: 3 };
    expect(merge(base, { a: 9, b: 2, c: 3 }, { a: 1, b: 2 })).toEqual({ value: { a: 9, b: 2 }, both: [] });
    expect(merge(base, { ...base, a: 8 }, { ...base, a: 9 })).toEqual({ value: null, both: ['a'] });
    expect(merge(base, { ...base, a: 8 }, { ...base, a: 8 }).value).toEqual({ a: 8, b: 2, c: 3 });
    expect(merge('text', 'other', 'mine').value).toBeNull();
  });
  it('loses no change when joining', () => {
    const document = fc.dictionary(fc.constantFrom('a', 'b', 'c', 'd'), fc.integer({ min: 0, max: 3 }));
    fc.assert(fc.property(document, document, document, (base, theirs, mine) => {
      const { value } = merge(base, theirs, mine);
      if (value === null) return;
      for (const name of ['a', 'b', 'c', 'd']) {
        if (theirs[name] !== base[name]) expect(value[name]).toBe(theirs[name]);
        if (mine[name] !== base[name]) expect(value[name]).toBe(mine[name]);
      }
    }));
  });
});

describe('differences', () => {
  const text = fc.array(fc.constantFrom('a', 'b', 'c'), { maxLength: 12 }).map((lines) => lines.join('\n'));
  it('lead from one text to the other', () => {
    fc.assert(fc.property(text, text, (before, after) => {
      const lines = diff(before, after);
      const without = (kind: string): string => lines.filter((line) => line.kind !== kind).map((line) => line.text).join('\n');
      expect([without('added'), without('removed')]).toEqual([before, after]);
    }));
  });
  it('are short', () => {
    expect(diff('a\nb\nc', 'a\nx\nc').map(({ kind, text }) => kind[0] + text)).toEqual(['sa', 'rb', 'ax', 'sc']);
    const long = Array.from({ length: 30 }, (_, place) => `line ${place}`).join('\n');
    expect(folded(diff(long, `${long}\nend`), 2)).toEqual([
      null, { kind: 'same', text: 'line 28' }, { kind: 'same', text: 'line 29' }, { kind: 'added', text: 'end' },
    ]);
    expect(folded(diff('a', 'a'))).toEqual([null]);
  });
});

describe('faults', () => {
  it('of the server go to their fields', () => {
    const message = 'agent-task-type/x: field `valid_patterns`: expected a list; write a list\nsomething else';
    expect(told(message)).toEqual({
      faults: [{ type: 'agent-task-type', key: 'x', field: 'valid_patterns', text: 'expected a list; write a list' }], rest: 'something else',
    });
  });
  const fields = (key: string, value: JsonObject, type = 'agent-task-type'): string[] => hints(type, key, value, around).map(({ field }) => field);
  const good = { name: 'a', description: 'x', when_to_use: 'y', valid_patterns: ['react'] };
  it('are none where nothing is wrong', () => expect(fields('a', good)).toEqual([]));
  it('are told while one types', () => {
    expect(fields('b', good)).toEqual(['name']);
    expect(fields('a', { ...good, description: '' })).toEqual(['description']);
    expect(fields('a', { ...good, framing: 'x', framing_prompt: 'y' })).toEqual(['framing']);
    expect(fields('a', { ...good, valid_patterns: ['react', 'nope'] })).toEqual(['valid_patterns']);
    // Not implemented, and so nothing is left.
    expect(fields('a', { ...good, valid_patterns: ['tree'] })).toEqual(['valid_patterns', 'valid_patterns']);
    expect(fields('new', { name: 'new', description: 'x', when_to_use: 'open  QUESTIONS!' }, 'agent-pattern')).toEqual(['when_to_use']);
    expect(fields('t', { type: 'prompt', description: 'x', template: 'nope' }, 'tool')).toEqual(['template']);
  });
});

describe('forms', () => {
  it('show the member that is there, whatever it is called', () => {
    const [framing] = fieldsOf('agent-task-type', 'a', {}).filter((field) => field.name === 'framing_prompt');
    expect(memberOf(framing!, { framing: 'x' })).toBe('framing');
    expect(memberOf(framing!, {})).toBe('framing_prompt');
  });
  it('follow the type of a tool', () => {
    const names = (type: string): string[] => namesOf(fieldsOf('tool', 't', { type }));
    expect(names('http')).toContain('url');
    expect(names('document-rag')).not.toContain('url');
    expect(names('constructor')).toContain('type');
  });
});

describe('the matrix', () => {
  it('tells what may be chosen', () => {
    const { patterns, rows } = matrix(items, ['react']);
    expect(patterns).toEqual([{ key: 'react', implemented: true }, { key: 'tree', implemented: false }]);
    expect(rows.map((row) => [row.key, row.all, row.cells.map((cell) => [cell.allowed, cell.why]), row.strangers])).toEqual([
      ['general', true, [[true, ''], [true, 'not implemented']], []],
      ['narrow', false, [[true, ''], [false, '']], ['gone']],
    ]);
    expect(matrix(items, null).patterns[0]!.implemented).toBeNull();
  });
  it('tells what refers to an item, and what would be left with nothing', () => {
    expect(references('agent-pattern', 'react', items, ['react'])).toEqual([
      { type: 'agent-task-type', key: 'narrow', how: 'allows it', blocks: true },
      { type: 'agent-task-type', key: 'narrow', how: 'has an example of it' },
    ]);
    expect(references('prompt', 'template.sample', items, null)).toEqual([{ type: 'tool', key: 'sample', how: 'asks with it' }]);
    expect(references('tool', 'sample', items, null)).toEqual([]);
  });
});

describe('a trial of a tool', () => {
  const list = [{ name: 'city', type: 'string', description: '', required: true }, { name: 'days', type: 'integer', description: '' }];
  it('takes what was typed for what it is', () => {
    expect(argumentsOf(list, { city: '12', days: '3' })).toEqual({ value: { city: '12', days: 3 }, faults: {} });
    expect(argumentsOf(list, { city: 'Oslo', days: ' ' }).value).toEqual({ city: 'Oslo' });
  });
  it('says what is missing or wrong', () => {
    expect(Object.keys(argumentsOf(list, { days: '1.5' }).faults)).toEqual(['city', 'days']);
    expect(Object.keys(argumentsOf(list, { city: 'x', days: 'three' }).faults)).toEqual(['days']);
  });
});
