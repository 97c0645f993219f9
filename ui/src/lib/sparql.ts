/** Queries of the graph that holds all runs and all that was loaded. */

import { json } from './api';

/** A term as the server writes it. */
export interface Term {
  /** `i` an IRI, `l` a literal, `b` a blank node. */
  t: string;
  i?: string;
  v?: string;
  d?: string;
  dt?: string;
  ln?: string;
}
interface Triple {
  s: Term;
  p: Term;
  o: Term;
}
export interface Reply {
  'query-type': 'select' | 'ask' | 'construct' | 'describe';
  variables?: string[];
  bindings?: { values: (Term | null)[] }[];
  truncated?: boolean;
  'ask-result'?: boolean;
  triples?: Triple[];
  /** Runs that the index has not taken in yet. */
  'missing-runs'?: number;
}

export const query = (text: string, limits: { limit?: number; timeout?: number } = {}, signal?: AbortSignal) =>
  json<Reply>('POST', '/api/v1/sparql', { body: { query: text, ...limits }, signal });

/** What a term says, without what it is. */
export const textOf = (term: Term | null | undefined): string => term?.i ?? term?.v ?? (term?.d ? `_:${term.d}` : '');

/** The rows of a selection as objects by the names of its variables. What is not bound is absent. */
export function rows(reply: Reply): Record<string, string>[] {
  const names = reply.variables ?? [];
  return (reply.bindings ?? []).map(({ values }) => {
    const row: Record<string, string> = {};
    names.forEach((name, place) => {
      const term = values[place];
      if (term) row[name] = textOf(term);
    });
    return row;
  });
}

/** An IRI between its brackets; null if it could end the brackets early. */
export const iri = (text: string): string | null => (/[\s<>"{}|\\^`]/.test(text) ? null : `<${text}>`);

/** A text as a literal. */
export const literal = (text: string): string => JSON.stringify(text).replace(/\u007f/g, '\\u007F');

export const prefixes = `PREFIX tg: <https://trustgraph.ai/ns/>
PREFIX prov: <http://www.w3.org/ns/prov#>
PREFIX trellis: <urn:trellis:ns:>
PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#>
PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>
`;
