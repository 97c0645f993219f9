/** What a tool asks a person for, as fields: read from its schema, which has plain fields only. The server checks what is sent. */

import type { AskedForm } from '../../lib/types';

type Schema = Record<string, unknown>;

export interface FormField {
  name: string;
  label: string;
  hint: string;
  kind: 'line' | 'text' | 'number' | 'choice' | 'choices';
  /** Of a choice: what is sent, and what is shown. */
  options: { value: unknown; title: string }[];
  /** The kind of a line, as browsers know it. */
  input: 'text' | 'date' | 'email' | 'url';
  isWhole: boolean;
  /** Its lines are sent as a list. */
  isList: boolean;
  needed: boolean;
  /** What stands there at first: a text, or the places of the options that are chosen. */
  initial: string | string[];
}

/** What was typed, by place of form and field: names are the tool's, and may be anything. Choices are kept by their place, too. */
export type Typed = (string | string[])[][];

const text = (value: unknown): string => (typeof value === 'string' ? value : '');
const objects = (value: unknown): Schema[] => (Array.isArray(value) ? value.filter((one): one is Schema => typeof one === 'object' && one !== null) : []);

function optionsOf(schema: Schema): FormField['options'] {
  if (schema.type === 'boolean') return [{ value: true, title: 'yes' }, { value: false, title: 'no' }];
  if (Array.isArray(schema.enum)) {
    const names = Array.isArray(schema.enumNames) ? schema.enumNames : [];
    return schema.enum.map((value: unknown, place) => ({ value, title: text(names[place]) || String(value) }));
  }
  return objects(schema.oneOf ?? schema.anyOf).filter((one) => 'const' in one).map((one) => ({ value: one.const, title: text(one.title) || String(one.const) }));
}

function bounds(schema: Schema): string {
  const of = (least: string, most: string, what: string): string => {
    const [from, to] = [schema[least], schema[most]].map((value) => (typeof value === 'number' ? value : null));
    if (from === null && to === null) return '';
    return `${from === null ? `at most ${to}` : to === null ? `at least ${from}` : `${from} to ${to}`}${what}`;
  };
  return [of('minimum', 'maximum', ''), of('minLength', 'maxLength', ' characters'), of('minItems', 'maxItems', ' chosen')].filter(Boolean).join(', ');
}

export function fieldsOf(form: AskedForm): FormField[] {
  const properties = form.schema.properties;
  if (typeof properties !== 'object' || properties === null) return [];
  const required = Array.isArray(form.schema.required) ? form.schema.required : [];
  return Object.entries(properties as Record<string, Schema>).map(([name, given]) => {
    const schema = typeof given === 'object' && given !== null ? given : {};
    const isList = schema.type === 'array';
    const options = optionsOf(isList && typeof schema.items === 'object' && schema.items !== null ? (schema.items as Schema) : schema);
    const isNumber = schema.type === 'number' || schema.type === 'integer';
    const isLong = schema.type === 'string' && typeof schema.maxLength === 'number' && schema.maxLength > 200;
    const kind = options.length > 0 ? (isList ? 'choices' : 'choice') : isList ? 'text' : isNumber ? 'number' : isLong ? 'text' : 'line';
    const placeOf = (value: unknown): string => String(options.findIndex((option) => option.value === value));
    const first = schema.default;
    const initial =
      kind === 'choices' ? (Array.isArray(first) ? first.map(placeOf).filter((place) => place !== '-1') : [])
      : kind === 'choice' ? (first === undefined || placeOf(first) === '-1' ? '' : placeOf(first))
      : first === undefined || first === null ? '' : Array.isArray(first) ? first.join('\n') : String(first);
    const format = text(schema.format);
    return {
      name, label: text(schema.title) || name, kind, options, initial, needed: required.includes(name), isWhole: schema.type === 'integer', isList,
      hint: [text(schema.description), bounds(schema), isList && options.length === 0 ? 'one per line' : format === 'date-time' ? 'such as 2026-02-28T10:00:00Z' : ''].filter(Boolean).join(' · '),
      input: format === 'date' ? 'date' : format === 'email' ? 'email' : format === 'uri' ? 'url' : 'text',
    };
  });
}

/** Fields as they are at first. */
export const blank = (forms: readonly AskedForm[]): Typed => forms.map((form) => fieldsOf(form).map((field) => field.initial));

export interface Fault {
  form: number;
  field: number;
  text: string;
}
export interface Filled {
  content: Record<string, unknown>;
  faults: Fault[];
}

/** What is sent: the fields of the only form, or an object for each of several. What is left empty is left out. */
export function filled(forms: readonly AskedForm[], typed: Typed): Filled {
  const faults: Fault[] = [];
  const all = forms.map((form, number) => {
    const values: [string, unknown][] = [];
    fieldsOf(form).forEach((field, place) => {
      const given = typed[number]?.[place] ?? field.initial;
      const value = Array.isArray(given) ? chosen(field, given) : read(field, given.trim(), given);
      if (value instanceof Wrong) faults.push({ form: number, field: place, text: value.text });
      else if (value !== undefined) values.push([field.name, value]);
    });
    return Object.fromEntries(values);
  });
  return { content: forms.length === 1 ? all[0]! : Object.fromEntries(all.map((values, place) => [forms[place]!.name, values])), faults };
}

class Wrong {
  constructor(readonly text: string) {}
}

const chosen = (field: FormField, places: string[]): unknown =>
  places.length > 0 || field.needed ? places.map((place) => field.options[Number(place)]?.value) : undefined;

/** The value of what was typed; none if it is left out. */
function read(field: FormField, trimmed: string, typed: string): unknown {
  if (trimmed === '') return field.needed ? new Wrong(field.kind === 'choice' ? 'Choose one.' : 'Fill this in.') : undefined;
  if (field.kind === 'choice') return field.options[Number(trimmed)]?.value;
  if (field.kind === 'number') {
    const value = Number(trimmed);
    if (Number.isNaN(value)) return new Wrong('This must be a number.');
    return field.isWhole && !Number.isInteger(value) ? new Wrong('This must be a whole number.') : value;
  }
  return field.isList ? typed.split('\n').map((one) => one.trim()).filter(Boolean) : typed;
}
