import { describe, expect, it } from 'vitest';
import type { AskedForm } from '../../lib/types';
import { blank, fieldsOf, filled, type Typed } from './form';

const form = (name: string, properties: Record<string, unknown>, required: string[] = []): AskedForm => ({ name, message: 'How?', schema: { type: 'object', properties, required } });
const table = form('table', {
  people: { type: 'integer', title: 'Guests', minimum: 1, maximum: 8 },
  when: { type: 'string', oneOf: [{ const: 'noon', title: 'At noon' }, { const: 'night', title: 'At night' }] },
  size: { enum: [1, 2.5], enumNames: ['small', 'large'] },
  outside: { type: 'boolean', default: false },
  extras: { type: 'array', items: { enum: ['wine', 'bread'] }, default: ['bread'] },
  notes: { type: 'string', maxLength: 2000 },
  day: { type: 'string', format: 'date' },
  names: { type: 'array', items: { type: 'string' } },
  tip: { type: 'number' },
}, ['people', 'when']);

const fill = (typed: Typed, values: Record<string, string>): void => {
  for (const [name, value] of Object.entries(values)) typed[0]![fieldsOf(table).findIndex((field) => field.name === name)] = value;
};

describe('what a tool asks for', () => {
  it('has a field for each of its members', () => {
    expect(fieldsOf(table).map(({ name, kind, label, needed }) => [name, kind, label, needed])).toEqual([
      ['people', 'number', 'Guests', true], ['when', 'choice', 'when', true], ['size', 'choice', 'size', false], ['outside', 'choice', 'outside', false],
      ['extras', 'choices', 'extras', false], ['notes', 'text', 'notes', false], ['day', 'line', 'day', false], ['names', 'text', 'names', false], ['tip', 'number', 'tip', false],
    ]);
    expect(fieldsOf(table)[0]!.hint).toBe('1 to 8');
    expect(fieldsOf(table)[6]!.input).toBe('date');
    expect(fieldsOf({ name: 'x', message: '', schema: {} })).toEqual([]);
  });

  it('is sent with the values of the schema, and without what was left empty', () => {
    const typed = blank([table]);
    fill(typed, { people: '4', when: '1', size: '1', names: 'Ann\n Bob \n', tip: '0.5' });
    expect(filled([table], typed)).toEqual({ content: { people: 4, when: 'night', size: 2.5, outside: false, extras: ['bread'], names: ['Ann', 'Bob'], tip: 0.5 }, faults: [] });
  });

  it('says what is wrong before it is sent', () => {
    const typed = blank([table]);
    fill(typed, { people: '2.5', tip: 'much' });
    expect(filled([table], typed).faults.map(({ field, text }) => `${fieldsOf(table)[field]!.name}: ${text}`)).toEqual(['people: This must be a whole number.', 'when: Choose one.', 'tip: This must be a number.']);
  });

  it('takes names that mean something to scripts as names', () => {
    const evil = [form('__proto__', JSON.parse('{"__proto__": {"type": "string"}, "constructor": {"type": "string"}}')), form('b', {})];
    const { content } = filled(evil, [['x', 'y'], []]);
    expect(JSON.stringify(content)).toBe('{"__proto__":{"__proto__":"x","constructor":"y"},"b":{}}');
    expect(({} as Record<string, unknown>).x).toBeUndefined();
  });

  it('names several forms', () => {
    const other = form('bill', { pays: { type: 'string' } });
    expect(filled([form('a', { x: { type: 'integer' } }), other], [['1'], ['me']]).content).toEqual({ a: { x: 1 }, bill: { pays: 'me' } });
  });
});
