/** The kinds of configuration items: what they are for, and the fields of their forms. */

import type { IconName } from '../../components/icons';
import { isObject, type Json, type JsonObject } from './document';

export interface Field {
  name: string;
  /** Other names that are read in its place. */
  also?: string[];
  label: string;
  hint?: string;
  kind: 'line' | 'text' | 'lines' | 'flag' | 'number' | 'choice' | 'patterns' | 'json';
  choices?: string[];
  needed?: boolean;
}

export interface Kind {
  /** As the API names it. */
  type: string;
  title: string;
  one: string;
  icon: IconName;
  about: string;
  example: Json;
}

export const kinds: Kind[] = [
  { type: 'agent-task-type', title: 'Task types', one: 'task type', icon: 'question',
    about: 'A kind of question: how it is framed, and which patterns may answer it. The router chooses one for each question.',
    example: { name: '', description: '', when_to_use: '', framing_prompt: '', valid_patterns: ['react'] } },
  { type: 'agent-pattern', title: 'Patterns', one: 'pattern', icon: 'split',
    about: 'A way in which agents work. What a pattern does is part of the program; here stands what the router is told of it.',
    example: { name: '', description: '', when_to_use: '' } },
  { type: 'tool', title: 'Tools', one: 'tool', icon: 'tool',
    about: 'What agents may call. A tool that cannot be called here is offered to no model.',
    example: { type: 'http', description: '', url: 'https://api.example.com/{place}', arguments: [{ name: 'place', type: 'string', description: '' }] } },
  { type: 'prompt', title: 'Prompts', one: 'prompt', icon: 'message',
    about: 'What models are asked with. Templates name their variables in double braces.',
    example: { id: '', prompt: 'Answer this question:\n\n{{ question }}', 'response-type': 'text' } },
  { type: 'mcp', title: 'MCP servers', one: 'MCP item', icon: 'external',
    about: 'A tool on an MCP server that is reached over HTTP. Servers that the operator names in a file are listed here, too.',
    example: { url: 'https://mcp.example.com/mcp', 'remote-name': '' } },
  { type: 'agent', title: 'Models and limits', one: 'setting', icon: 'configuration',
    about: 'Which models are asked (key “model”), what a run may use (key “limits”), and a text for every prompt (key “additional-context”).',
    example: { 'max-iterations': 10 } },
  { type: 'schema', title: 'Table schemas', one: 'schema', icon: 'document',
    about: 'What the rows of a table are like. Tables are loaded on the page Knowledge.',
    example: { name: '', description: '', fields: [{ name: 'id', type: 'integer', primary_key: true }, { name: 'name', type: 'string', indexed: true }] } },
  { type: 'tool-service', title: 'Tool services', one: 'tool service', icon: 'act',
    about: 'A service over HTTP whose tools have its address and headers in common.',
    example: { url: 'https://service.example.com/', 'config-params': [] } },
];

export const kindOf = (type: string): Kind =>
  kinds.find((kind) => kind.type === type)
  ?? { type, title: type, one: 'item', icon: 'document', about: 'Stored for other programs; agents do not read it.', example: {} };

/** Items that nobody writes by hand. */
export const isOwn = (type: string): boolean => type === 'trellis';

const name: Field = { name: 'name', label: 'Name', hint: 'As the router knows it: the same as the key.', kind: 'line' };
const description: Field = { name: 'description', label: 'Description', hint: 'Models are told this.', kind: 'text', needed: true };
const whenToUse: Field = {
  name: 'when_to_use', also: ['when-to-use'], label: 'When to use', hint: 'What tells it apart from the others: the router decides by it.', kind: 'text', needed: true,
};
const limits: Field = { name: 'limits', label: 'Limits', hint: 'Names with whole numbers, such as {"max-iterations": 5}.', kind: 'json' };
const models: Field = { name: 'model', label: 'Models', hint: 'provider/name, one per line, in the order in which they are tried.', kind: 'lines' };

export const toolTypes = [
  'http', 'document-rag', 'knowledge-query', 'sparql-query', 'structured-query', 'row-embeddings-query', 'prompt', 'text-completion',
  'mcp-tool', 'tool-service', 'agent',
];
const line = (name: string, label: string, hint?: string, needed = false): Field => ({ name, label, hint, kind: 'line', needed });
const json = (name: string, label: string, hint: string): Field => ({ name, label, hint, kind: 'json' });
const number = (name: string, label: string, hint?: string): Field => ({ name, label, hint, kind: 'number' });
const collection = line('collection', 'Collection', 'Left out: the collection of the question.');
const argumentList = json('arguments', 'Arguments', 'A list of {"name", "type", "description"}, perhaps with "required" and "schema".');

const ofTool: Record<string, Field[]> = {
  http: [line('url', 'Address', '{name} stands for an argument. The operator has to allow its host.', true), line('method', 'Method'),
    argumentList, json('query', 'Query', 'Parameters with places for arguments.'), json('headers', 'Headers', '{secret:NAME} stands for a secret of the operator’s.'),
    json('body', 'Body', '"{*}" stands for all arguments.')],
  'document-rag': [collection, number('limit', 'Passages', '8 unless set, at most 50.')],
  'knowledge-query': [collection, number('entity-limit', 'Entities'), number('max-path-length', 'Steps from an entity')],
  'sparql-query': [collection, number('limit', 'Rows', '50 unless set.')],
  'structured-query': [collection, number('limit', 'Rows')],
  'row-embeddings-query': [line('schema-name', 'Schema', undefined, true), collection, line('index-name', 'Index'), number('limit', 'Rows')],
  prompt: [line('template', 'Template', 'The id of a prompt: the item template.ID.', true), argumentList],
  'text-completion': [],
  'mcp-tool': [line('server', 'Server', 'As the operator’s file names it; left out: the key of an mcp item stands in “mcp-tool”.'), line('mcp-tool', 'Tool there', undefined, true), argumentList],
  'tool-service': [line('service', 'Service', 'The key of a tool service.', true), argumentList],
  agent: [line('pattern', 'Pattern'), line('task-type', 'Task type')],
};

/** The fields of an item's form; none if it has no form. */
export function fieldsOf(type: string, key: string, value: Json): Field[] {
  switch (type) {
    case 'agent-task-type':
      return [name, description, whenToUse,
        { name: 'framing_prompt', also: ['framing-prompt', 'framing'], label: 'Framing', hint: 'Put before the question in every prompt.', kind: 'text' },
        { name: 'valid_patterns', also: ['valid-patterns'], label: 'Patterns that may be chosen', kind: 'patterns' },
        { name: 'termination', label: 'When to stop', kind: 'text' }, models, limits,
        json('examples', 'Examples', 'Questions of this kind, with or without a pattern.')];
    case 'agent-pattern':
      return [name, description, whenToUse, limits];
    case 'tool': {
      const own = isObject(value) && typeof value.type === 'string' && Object.hasOwn(ofTool, value.type) ? ofTool[value.type] : undefined;
      return [{ name: 'type', label: 'Type', kind: 'choice', choices: toolTypes, needed: true },
        { ...name, hint: 'What models call it; left out: the key.' }, description, ...(own ?? []),
        { name: 'group', label: 'Groups', hint: 'One per line; left out: default.', kind: 'lines' },
        { name: 'effect', label: 'What a call changes', kind: 'choice', choices: ['read', 'idempotent', 'unsafe'], hint: 'Left out: what its type or method says.' },
        { name: 'requires-approval', label: 'Somebody has to agree before each call', kind: 'flag' },
        { name: 'approvers', label: 'Who may agree', hint: 'Names, one per line; nobody named: everybody.', kind: 'lines' },
        number('approval-timeout-ms', 'How long they are waited for, in ms', 'An hour unless set, at most a week.'),
        { name: 'on-uncertain', label: 'If nobody knows whether a call was made', kind: 'choice', choices: ['ask', 'retry', 'continue'] },
        { name: 'applicable-states', also: ['available_in_states'], label: 'Only in these states', kind: 'lines' },
        line('state', 'State afterwards')];
    }
    case 'prompt':
      if (!key.startsWith('template.')) return [];
      return [line('id', 'Id'), { name: 'prompt', label: 'Template', kind: 'text', needed: true },
        { name: 'response-type', label: 'Reply', kind: 'choice', choices: ['text', 'json', 'jsonl'] },
        json('schema', 'Schema of the reply', 'A JSON schema; only for json and jsonl.'), models,
        { name: 'conversation', label: 'What was said after it comes as turns of its own', kind: 'flag' },
        { name: 'next', label: 'Said below each result', kind: 'text' }];
    case 'mcp':
      return [line('url', 'Address', 'Its host has to be allowed by the operator.', true), line('remote-name', 'Tool there', 'Left out: the key.'),
        line('auth-token', 'Token', 'Sent as a bearer token.')];
    case 'schema':
      return [name, { ...description, needed: false }, json('fields', 'Fields', 'A list of {"name", "type"}, perhaps with "primary_key", "indexed", "required", "enum".'),
        { name: 'query-indexes', label: 'Found without reading all rows', kind: 'lines' }, { name: 'vector-indexes', label: 'Found by meaning', kind: 'lines' }];
    case 'tool-service':
      return [line('url', 'Address', undefined, true), json('headers', 'Headers', '{secret:NAME} stands for a secret of the operator’s.'),
        json('config-params', 'Parameters', 'Names, or {"name", "required"}, that its tools set.')];
    default:
      return [];
  }
}

/** The member that a field shows: its own name, or another one that the document has in its place. */
export const memberOf = (field: Field, document: JsonObject): string =>
  [field.name, ...(field.also ?? [])].find((name) => document[name] !== undefined && document[name] !== null) ?? field.name;

/** All names that the form reads. */
export const namesOf = (fields: Field[]): string[] => fields.flatMap((field) => [field.name, ...(field.also ?? [])]);

/** A text without the values of secrets, for what only shows it. */
export const masked = (type: string, text: string): string =>
  type === 'mcp'
    ? text.replace(/("auth-token"\s*:\s*)"((?:[^"\\]|\\.)*)"/g, (_, name: string, secret: string) => `${name}"(set, ends …${secret.slice(-2)})"`)
    : text;
