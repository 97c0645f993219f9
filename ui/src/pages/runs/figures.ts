/** What the list of runs lacks and the graph of all runs knows: agents, calls, failed steps, and who asked. */

import type { Reply } from '../../lib/sparql';
import { iri, prefixes, rows } from '../../lib/sparql';

export interface Figures {
  agents: number;
  /** Null while no session has ended: they are counted at its end. */
  modelCalls: number | null;
  toolCalls: number | null;
  failed: number;
  /** A name, or the way in of somebody without one. */
  who: string;
}

const node = (run: string): string => `urn:trustgraph:agent:${encodeURIComponent(run)}`;

/** One query each for the sessions, the failures and the callers of these runs. */
export function queries(runs: string[]): { sessions: string; failures: string; callers: string } {
  const roots = runs.map((run) => iri(node(run))).filter((root) => root !== null).join(' ');
  return {
    sessions: `${prefixes}SELECT ?root (COUNT(DISTINCT ?s) AS ?agents) (SUM(?m) AS ?model) (SUM(?t) AS ?tool) (COUNT(?m) AS ?told) {
      VALUES ?root { ${roots} } ?s tg:parentSessionId* ?root . ?s a tg:AgentQuestion .
      OPTIONAL { ?s trellis:run ?r . ?r trellis:modelCalls ?mt ; trellis:toolCalls ?tt .
        BIND(xsd:integer(?mt) AS ?m) BIND(xsd:integer(?tt) AS ?t) } } GROUP BY ?root`,
    failures: `${prefixes}SELECT ?root (COUNT(DISTINCT ?x) AS ?failed) {
      VALUES ?root { ${roots} } ?x a tg:Error ; prov:wasDerivedFrom* ?root } GROUP BY ?root`,
    callers: `${prefixes}SELECT ?root ?name ?surface {
      VALUES ?root { ${roots} } OPTIONAL { ?root prov:wasAttributedTo/rdfs:label ?name } OPTIONAL { ?root trellis:surface ?surface } }`,
  };
}

/** Puts the replies together. A run that the graph does not have yet has no figures. */
export function figures(
  runs: string[], replies: { sessions: Reply; failures: Reply; callers: Reply },
): Map<string, Figures> {
  const runOf = new Map(runs.map((run) => [node(run), run]));
  const found = new Map<string, Figures>();
  for (const { root = '', agents, model, tool, told } of rows(replies.sessions)) {
    const run = runOf.get(root);
    if (run === undefined || Number(agents) === 0) continue;
    const sum = (value: string | undefined): number | null => (Number(told) > 0 ? Number(value ?? 0) : null);
    const [modelCalls, toolCalls] = [sum(model), sum(tool)];
    found.set(run, { agents: Number(agents), modelCalls, toolCalls, failed: 0, who: '' });
  }
  const add = (reply: Reply, what: (figures: Figures, row: Record<string, string>) => void): void => {
    for (const row of rows(reply)) {
      const run = runOf.get(row.root ?? '');
      const figures = run === undefined ? undefined : found.get(run);
      if (figures) what(figures, row);
    }
  };
  add(replies.failures, (figures, row) => (figures.failed = Number(row.failed ?? 0)));
  add(replies.callers, (figures, row) => (figures.who = row.name || (row.surface ? `unnamed, ${row.surface}` : '')));
  return found;
}
