/** What is loaded, from the several places that know of it, and how it is asked for. */

import { api, json, send } from '../../lib/api';
import { session } from '../../lib/session.svelte';

export interface LoadedCollection {
  collection: string;
  quads: number;
  sources: number;
  unfinished: string[];
}
export interface LoadedTable {
  collection: string;
  table: string;
  rows: number;
  unfinished: string[];
}
export interface StoredDocument {
  id: string;
  /** Seconds since 1970. */
  time: number;
  kind: string;
  title: string;
  tags: string[];
  size: number;
  comments?: string;
  'parent-id'?: string;
  'document-type'?: string;
}
export interface Loaded {
  collections: LoadedCollection[];
  tables: LoadedTable[];
  documents: StoredDocument[];
  /** Those that are only described yet. */
  described: string[];
  schemas: string[];
}

/** TrustGraph's services name the workspace in the body. */
export const service = <T>(kind: string, body: Record<string, unknown>): Promise<T> =>
  api.service<T>(kind, session.workspace ? { ...body, workspace: session.workspace } : body);

export async function loaded(signal: AbortSignal): Promise<Loaded> {
  const [collections, tables, documents, described, configuration] = await Promise.all([
    json<{ collections: LoadedCollection[] }>('GET', '/api/v1/collections', { signal }),
    json<{ tables: LoadedTable[] }>('GET', '/api/v1/tables', { signal }),
    service<{ 'document-metadatas': StoredDocument[] }>('librarian', { operation: 'list-documents', 'include-children': true }),
    service<{ collections: { collection: string }[] }>('collection-management', { operation: 'list-collections' }),
    api.configuration(signal),
  ]);
  return {
    collections: collections.collections, tables: tables.tables, documents: documents['document-metadatas'],
    described: described.collections.map(({ collection }) => collection),
    schemas: configuration.items.filter((item) => item.type === 'schema').map((item) => item.key),
  };
}

const tagged = (document: StoredDocument, name: string): string[] =>
  document.tags.filter((tag) => tag.startsWith(`${name}:`)).map((tag) => tag.slice(name.length + 1));
export const collectionsOf = (document: StoredDocument): string[] => tagged(document, 'collection');
export const loadedBy = (document: StoredDocument): string => tagged(document, 'loaded-by')[0] ?? '';
/** What was loaded, not what was read of it. */
export const isSource = (document: StoredDocument): boolean => !document['parent-id'];
/** Where the text of a document is: of HTML and PDF it was written beside the source. */
export const textOf = (document: StoredDocument, all: StoredDocument[]): string =>
  all.find((one) => one['parent-id'] === document.id && one.id.endsWith('/text'))?.id ?? document.id;

export interface Summed {
  name: string;
  quads: number;
  sources: number;
  documents: number;
  tables: number;
  rows: number;
  unfinished: string[];
}

/** One row for each collection that anything is in. */
export function summed({ collections, tables, documents, described }: Loaded): Summed[] {
  const found = new Map<string, Summed>();
  const of = (name: string): Summed => {
    const known = found.get(name) ?? { name, quads: 0, sources: 0, documents: 0, tables: 0, rows: 0, unfinished: [] };
    found.set(name, known);
    return known;
  };
  for (const name of described) of(name);
  for (const one of collections) {
    const sum = of(one.collection);
    sum.quads += one.quads;
    sum.sources += one.sources;
    sum.unfinished.push(...one.unfinished);
  }
  for (const one of tables) {
    const sum = of(one.collection);
    sum.tables += 1;
    sum.rows += one.rows;
    sum.unfinished.push(...one.unfinished);
  }
  for (const one of documents.filter(isSource)) for (const name of collectionsOf(one)) of(name).documents += 1;
  return [...found.values()].sort((one, other) => one.name.localeCompare(other.name));
}

export interface Passage {
  title: string;
  document: string;
  source: string;
  headings: string[];
  lines: [number, number];
  text: string;
  score: number;
}
export interface Statement {
  subject: string;
  predicate: string;
  object: string;
  graph: string | null;
}
export interface Found {
  passages: Passage[];
  statements: Statement[];
  notes: string[];
}

/** Asks the MCP tool `search_knowledge`, which is the one way over HTTP to passages without asking a model. */
export async function search(what: { query?: string; about?: string; collection: string; limit: number }, signal: AbortSignal): Promise<Found> {
  const body = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'search_knowledge', arguments: what } };
  const response = await send('POST', '/mcp', { body, accept: 'application/json, text/event-stream', signal });
  return readFound(await response.text());
}

/** The reply of the tool, plain or as the data of an event. */
export function readFound(text: string): Found {
  const lines = text.split('\n').filter((line) => line.startsWith('data:')).map((line) => line.slice(5).trim());
  for (const candidate of [...lines, text]) {
    let message: {
      error?: { message?: string };
      result?: { isError?: boolean; structuredContent?: Partial<Found>; content?: { text?: string }[] };
    };
    try {
      message = JSON.parse(candidate) as typeof message;
    } catch {
      continue;
    }
    if (message.error) throw new Error(message.error.message ?? 'The search failed.');
    const { result } = message;
    if (!result) continue;
    if (result.isError) throw new Error(result.content?.[0]?.text ?? 'The search failed.');
    const { passages = [], statements = [], notes = [] } = result.structuredContent ?? {};
    return { passages, statements, notes };
  }
  throw new Error('The server’s reply could not be read.');
}

/** `26-29` as lines; null if it is none. */
export function readLines(text: string | null): [number, number] | null {
  const found = /^(\d{1,9})-(\d{1,9})$/.exec(text ?? '');
  if (!found) return null;
  const [first, last] = [Number(found[1]), Number(found[2])];
  return first >= 1 && last >= first ? [first, last] : null;
}
