/** The server's API as functions. All requests of the page go through here. */

import { session } from './session.svelte';
import { SseParser } from './sse';
import type {
  Begun, ConfigChange, ConfigItem, Configuration, ListedRuns, NewRun, RunEvent, WholeRun,
} from './types';

/** A refusal in the server's own words, or that it was not reached. */
export class ApiError extends Error {
  constructor(
    message: string,
    /** 0 if there was no answer at all. */
    readonly status: number,
    /** A word for programs, such as `not-found`. */
    readonly kind: string,
  ) {
    super(message);
  }
}

export interface Options {
  query?: Record<string, string | number | boolean | null | undefined>;
  body?: unknown;
  /** A body that is sent as it is, such as a file. */
  raw?: { body: BodyInit; type: string };
  accept?: string;
  headers?: Record<string, string>;
  signal?: AbortSignal;
  /** Paths outside `/api/v1` that know no workspaces. */
  noWorkspace?: boolean;
}

/** The address of a path with its parameters, and with the workspace unless it is the caller's own. */
export function address(path: string, options: Options = {}): string {
  const query = new URLSearchParams();
  if (session.workspace && !options.noWorkspace) query.set('workspace', session.workspace);
  for (const [name, value] of Object.entries(options.query ?? {})) {
    if (value !== null && value !== undefined && value !== '') query.set(name, String(value));
  }
  const text = query.toString();
  return path + (text ? `?${text}` : '');
}

/** Sends a request. Asks for a token when the server does, and sends it again. */
export async function send(method: string, path: string, options: Options = {}): Promise<Response> {
  for (;;) {
    const token = session.token;
    const headers: Record<string, string> = { accept: options.accept ?? 'application/json', ...options.headers };
    if (token !== null) headers.authorization = `Bearer ${token}`;
    let body: BodyInit | undefined;
    if (options.raw) {
      body = options.raw.body;
      headers['content-type'] = options.raw.type;
    } else if (options.body !== undefined) {
      body = JSON.stringify(options.body);
      headers['content-type'] = 'application/json';
    }
    let response: Response;
    try {
      response = await fetch(address(path, options), { method, headers, body, signal: options.signal });
    } catch (error) {
      if (options.signal?.aborted) throw error;
      session.connected = false;
      throw new ApiError('The server cannot be reached. Is it running?', 0, 'unreachable');
    }
    session.connected = true;
    if (response.status === 401) {
      await session.askForToken(token);
      continue;
    }
    if (!response.ok) throw await refusal(response);
    return response;
  }
}

async function refusal(response: Response): Promise<ApiError> {
  const text = await response.text().catch(() => '');
  let message = text.slice(0, 500) || `The server answered ${response.status}.`;
  let kind = 'error';
  try {
    const body: unknown = JSON.parse(text);
    const error = (body as { error?: unknown }).error;
    if (typeof error === 'string') message = error;
    else if (error && typeof error === 'object') {
      const { message: said, type } = error as { message?: unknown; type?: unknown };
      if (typeof said === 'string') message = said;
      if (typeof type === 'string') kind = type;
    }
  } catch {
    // Plain text is shown as it is.
  }
  return new ApiError(message, response.status, kind);
}

/** Sends a request and reads the JSON of its reply. */
export async function json<T>(method: string, path: string, options: Options = {}): Promise<T> {
  const response = await send(method, path, options);
  return (await response.json()) as T;
}

/** A key that nobody has used. Browsers keep `crypto.randomUUID` for pages over HTTPS and of this machine; this they have everywhere. */
const newKey = (): string => [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, '0')).join('');

const run = (id: string, end = ''): string => `/api/v1/runs/${encodeURIComponent(id)}${end}`;
const item = (type: string, key: string): string =>
  `/api/v1/configuration/${encodeURIComponent(type)}/${encodeURIComponent(key)}`;

export const api = {
  runs: (query: Options['query'], signal?: AbortSignal) => json<ListedRuns>('GET', '/api/v1/runs', { query, signal }),
  run: (id: string, signal?: AbortSignal) => json<WholeRun>('GET', run(id), { signal }),
  ask: (question: NewRun) =>
    json<Begun>('POST', '/api/v1/runs', { body: question, headers: { 'idempotency-key': newKey() } }),
  trace: (id: string, signal?: AbortSignal) => json<unknown>('GET', run(id, '/trace'), { signal }),
  records: (id: string, after = 0, limit = 1000) =>
    json<{ records: unknown[]; next?: number | null }>('GET', run(id, '/records'), { query: { after, limit } }),
  evidence: (id: string) => json<unknown>('GET', run(id, '/evidence')),
  graph: async (id: string, accept: string) => (await send('GET', run(id, '/graph'), { accept })).text(),
  cancel: (id: string) => json<{ state: string }>('POST', run(id, '/cancel'), { body: {} }),
  tell: (id: string, message: string) =>
    json<{ number: number; agents: number }>('POST', run(id, '/tell'), { body: { message } }),
  decide: (id: string, decision: Record<string, unknown>) =>
    json<unknown>('POST', run(id, '/decide'), { body: decision }),

  /** As it is now, or as it was at a version. */
  configuration: (signal?: AbortSignal, at?: string) => json<Configuration>('GET', '/api/v1/configuration', { signal, query: { at } }),
  configure: (items: ConfigItem[]) => json<{ version: number }>('POST', '/api/v1/configuration', { body: { items } }),
  deleteItem: (type: string, key: string) => json<{ version: number }>('DELETE', item(type, key)),
  itemHistory: (type: string, key: string) =>
    json<{ versions: ConfigChange[] }>('GET', item(type, key) + '/history'),

  /** TrustGraph's services by name, such as `librarian` or `iam`. */
  service: <T>(kind: string, body: unknown) => json<T>('POST', `/api/v1/${kind}`, { body, noWorkspace: true }),
  metrics: async () => (await send('GET', '/api/metrics', { accept: 'text/plain', noWorkspace: true })).text(),
};

export interface Following {
  /** The last durable event that was seen. */
  after: number;
  signal: AbortSignal;
  onEvent: (event: RunEvent) => void;
  /** Called whenever a connection begins: all previews begin anew. */
  onConnect?: () => void;
}

/**
 * Follows a run until its end. A cut is mended: the next connection goes on behind the last durable event. Ends when the run
 * has ended or the signal says so; fails if the server refuses.
 */
export async function follow(id: string, options: Following): Promise<void> {
  let { after } = options;
  let failures = 0;
  while (!options.signal.aborted) {
    try {
      const response = await send('GET', run(id, '/events'), {
        accept: 'text/event-stream',
        headers: after > 0 ? { 'last-event-id': String(after) } : {},
        signal: options.signal,
      });
      if (response.status === 204 || !response.body) return;
      failures = 0;
      options.onConnect?.();
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      const parser = new SseParser();
      for (;;) {
        const { done, value } = await reader.read();
        if (done) break;
        for (const { id: number, data } of parser.push(value)) {
          const event = JSON.parse(data) as RunEvent;
          if (number !== null) after = Math.max(after, Number(number));
          options.onEvent(event);
          if (event.type === 'run.completed' || event.type === 'run.failed') return;
        }
      }
    } catch (error) {
      if (options.signal.aborted) return;
      const refused = error instanceof ApiError && error.status >= 400 && error.status < 500 && error.status !== 429;
      if (refused) throw error;
      session.connected = false;
    }
    failures += 1;
    await pause(Math.min(500 * 2 ** failures, 8000), options.signal);
  }
}

/** Waits, but no longer than the signal allows. */
export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal?.addEventListener('abort', () => {
      clearTimeout(timer);
      resolve();
    }, { once: true });
  });
}
