/** What only the graph of a run tells: read when the run has ended, and laid over the steps that its events made. */

export interface TraceDecision {
  id: string;
  kind: string | null;
  rejected: string | null;
  goal: string | null;
}
export interface TraceStep {
  step: string;
  id: string;
  decisions?: TraceDecision[];
  cost?: { failed_attempts?: string[] };
  format?: string;
  mended?: string[];
  state?: string | null;
  idempotency_key?: string | null;
  limits?: Record<string, number>;
  confidence?: string | null;
  mark?: { attempt: number; late: boolean; seq: number | null };
}
export interface Trace {
  sessions: { session: string; steps: TraceStep[] }[];
  documents: Record<string, string>;
}

export class TraceIndex {
  readonly #steps = new Map<string, TraceStep>();

  constructor(readonly trace: Trace) {
    for (const session of trace.sessions) {
      for (const step of session.steps) this.#steps.set(step.id, step);
    }
  }

  of(id: string): TraceStep | undefined {
    return this.#steps.get(id);
  }

  /** The reply that named something outside the set, if there was one. */
  rejected(ids: readonly string[], decision: string): string | null {
    for (const id of ids) {
      const found = this.of(id)?.decisions?.find((one) => one.kind === decision && one.rejected !== null);
      if (found?.rejected) return this.trace.documents[found.rejected] ?? 'The reply is recorded, but its text is not here.';
    }
    return null;
  }

  late(): TraceStep[] {
    return [...this.#steps.values()].filter((step) => step.mark?.late);
  }
}
