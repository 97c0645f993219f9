/** A server with a folder of its own, and a browser that looks at its page. */

import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { extname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { chromium } from 'playwright-core';

export const program = process.env.TRELLIS_BIN ?? new URL('../../target/debug/trellis', import.meta.url).pathname;
const browsers = [process.env.CHROMIUM, '/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];
// `--headless` comes from the launcher. The sandbox needs what a container seldom has.
const FLAGS = [
  '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update',
  '--disable-sync',
  // With PAGE=dist the page comes from nowhere that the browser knows, and may ask this machine all the same.
  '--disable-features=LocalNetworkAccessChecks',
];

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await new Promise((done) => server.once('listening', done));
  const { port } = server.address();
  await new Promise((done) => server.close(done));
  return port;
}

export class House {
  static async open() {
    const house = new House();
    house.folder = mkdtempSync(join(tmpdir(), 'trellis-page-'));
    house.port = await freePort();
    house.base = `http://127.0.0.1:${house.port}`;
    await house.start();
    const executablePath = browsers.find((path) => path && existsSync(path));
    if (!executablePath) throw new Error('no Chromium was found; install the package `chromium`, or name one with CHROMIUM');
    house.browser = await chromium.launch({ executablePath, args: FLAGS });
    return house;
  }

  async start() {
    const env = { ...process.env };
    // Without these the scripted model plays, the same every time.
    for (const name of ['OPENAI_API_KEY', 'ANTHROPIC_API_KEY', 'OLLAMA_HOST']) delete env[name];
    this.server = spawn(program, ['serve', '--data', join(this.folder, 'data'), '--listen', `127.0.0.1:${this.port}`], { env, stdio: 'ignore' });
    this.server.once('error', (error) => { throw error; });
    for (let tries = 0; tries < 300; tries++) {
      const answers = await fetch(`${this.base}/healthz`).then((reply) => reply.ok, () => false);
      if (answers) return;
      await sleep(100);
    }
    throw new Error(`${program} did not begin to serve within 30 s`);
  }

  /** Ends the server as a power cut would. */
  async kill() {
    const gone = new Promise((done) => this.server.once('exit', done));
    this.server.kill('SIGKILL');
    await gone;
  }

  async close() {
    await this.browser?.close();
    if (this.server) await this.kill();
    rmSync(this.folder, { recursive: true, force: true });
  }

  /** A page that fails the test if a script fails, or if it asks for anything that this server does not have. */
  async page(options = {}) {
    const context = await this.browser.newContext({ viewport: { width: 1600, height: 1000 }, ...options });
    const page = await context.newPage();
    page.faults = [];
    page.on('pageerror', (error) => page.faults.push(`script: ${error.message}`));
    page.on('dialog', (dialog) => { page.faults.push(`dialog: ${dialog.message()}`); void dialog.dismiss(); });
    page.on('console', (message) => { if (/Content Security Policy|Trusted/.test(message.text())) page.faults.push(message.text()); });
    page.on('request', (request) => {
      const url = request.url();
      if (!url.startsWith(this.base) && !url.startsWith('blob:') && !url.startsWith('data:')) page.faults.push(`request: ${url}`);
    });
    if (process.env.PAGE === 'dist') await page.route(this.base + '/**', built);
    page.at = (address, options) => page.goto(this.base + address, options);
    page.done = async () => {
      await context.close();
      if (page.faults.length > 0) throw new Error(page.faults.join('\n'));
    };
    return page;
  }

  async api(path, body, method = body === undefined ? 'GET' : 'POST') {
    const reply = await fetch(this.base + path, {
      method, headers: { 'content-type': 'application/json' }, ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await reply.text();
    if (!reply.ok) throw new Error(`${method} ${path}: ${reply.status} ${text}`);
    return JSON.parse(text);
  }

  /** Asks, and waits for the end or for a question to a person. */
  async ask(question, more = {}) {
    const begun = await this.api('/api/v1/runs?wait=60', { question, ...more });
    return begun.run ?? this.api(`/api/v1/runs/${begun.run_id}`);
  }
}

const dist = new URL('../dist/', import.meta.url).pathname;
const kinds = { '.html': 'text/html; charset=utf-8', '.js': 'text/javascript', '.css': 'text/css', '.svg': 'image/svg+xml' };

/** With PAGE=dist the files in `dist/` are looked at, under the headers of the program, so that a change needs no new program. */
async function built(route) {
  const path = new URL(route.request().url()).pathname;
  const isPage = route.request().isNavigationRequest();
  const file = join(dist, isPage ? 'index.html' : path);
  if (!isPage && !/^\/(assets\/|favicon)/.test(path)) return route.fallback();
  const headers = (await route.fetch({ url: new URL('/', route.request().url()).href, headers: { accept: 'text/html' } })).headers();
  return existsSync(file)
    ? route.fulfill({ status: 200, headers: { ...headers, 'content-type': kinds[extname(file)], 'content-length': undefined, 'content-encoding': undefined }, body: readFileSync(file) })
    : route.fulfill({ status: 404 });
}

const axeSource = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** What is hard to use for somebody, as it is shown now. The checker is put into the page as a script: needs a page with `bypassCSP`. */
export async function faultsOf(page, runOnly = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa']) {
  if (!(await page.evaluate(() => 'axe' in globalThis))) await page.evaluate(axeSource);
  const { violations } = await page.evaluate((runOnly) => globalThis.axe.run(document, { runOnly, resultTypes: ['violations'] }), runOnly);
  return violations.map((one) => `${one.id}: ${one.nodes.slice(0, 3).map((node) => `${node.target} (${node.failureSummary?.split('\n')[1]?.trim()})`).join('; ')}`);
}

/** The same in both colour schemes. Only colours differ between them. */
export async function faultsInBoth(page) {
  await page.emulateMedia({ colorScheme: 'light' });
  const light = await faultsOf(page);
  await page.emulateMedia({ colorScheme: 'dark' });
  const dark = await faultsOf(page, ['color-contrast']);
  return [...light.map((fault) => `light: ${fault}`), ...dark.map((fault) => `dark: ${fault}`)];
}

/** Waits until something holds; says what was there instead if it never does. */
export async function until(what, check, ms = 15_000) {
  const end = Date.now() + ms;
  for (;;) {
    const found = await check();
    if (found) return found;
    if (Date.now() > end) throw new Error(`waited in vain: ${what}`);
    await sleep(40);
  }
}

/** Events of a run that never happened, with as many steps as wanted: what no script of the model gives. */
export function madeUp(id, { agents = 4, steps = 3, state = 'answered', error = undefined, text = 'found' } = {}) {
  const events = [];
  let clock = Date.now() - 60_000;
  const base = (session_id, name) => ({
    seq: events.length + 1, session_id, step_id: `urn:trustgraph:agent:${session_id}/${name}`, at: new Date((clock += 50)).toISOString(),
  });
  const set = { decision: 'tool', options: ['search', 'ask'], excluded: [], chosen: ['search'], decided_by: 'model', enforcement: 'validated', source: 'urn:trellis:config:default:tool', config_version: 1, signals: [], rationale: null };
  const goals = Array.from({ length: agents }, (_, index) => ({ index, session_id: `${id}-a${index}`, goal: `Look at part ${index}`, pattern: 'react', group: null }));
  const ended = { model_calls: 1, tool_calls: 1, model_ms: 1, tool_ms: 1 };
  events.push({ ...base(id, 'session'), type: 'run.started', schema: 1, run_id: id, question: 'A made-up run' });
  events.push({ ...base(id, 'pattern-decision'), type: 'step.completed', kind: 'routing', task_type: 'general', pattern: 'supervisor', option_sets: [] });
  events.push({ ...base(id, 'decompose'), type: 'step.completed', kind: 'decomposition', goals, ms: 30 });
  events.push({ ...base(id, 'fanout/1'), type: 'fanout.started', round: 1, correlation_id: 'c', deadline: new Date(clock + 1e6).toISOString(), goals, option_sets: [] });
  for (const goal of goals) events.push({ ...base(goal.session_id, 'session'), type: 'agent.started', goal: goal.goal, pattern: 'react', parent_session_id: id, correlation_id: 'c', index: goal.index, siblings: agents });
  for (let step = 1; step <= steps; step++) {
    for (const { session_id } of goals) {
      events.push({ ...base(session_id, `i${step}`), type: 'step.completed', kind: 'analysis', tool: 'search', arguments: { q: text }, thought: text, ms: 20, in_token: 10, out_token: 2, option_sets: [set], message_id: `${session_id}/${step}` });
      events.push({ ...base(session_id, `i${step}/observation`), type: 'step.completed', kind: 'observation', content: text, ms: 20 });
    }
  }
  for (const { session_id } of goals) events.push({ ...base(session_id, 'end'), type: 'agent.completed', state: 'answered', reason: 'final-answer', answer: text, ...ended });
  events.push({ ...base(id, 'fanout/1/join'), type: 'fanout.joined', round: 1, correlation_id: 'c', cause: 'all-ended', members: goals.map(({ index, session_id }) => ({ index, session_id, reason: 'final-answer', error: null })) });
  events.push({ ...base(id, 'end'), type: state === 'failed' ? 'run.failed' : 'run.completed', run_id: id, state, reason: state === 'failed' ? 'error' : 'final-answer', ...(error ? { error } : { answer: text }), ...ended });
  const run = {
    run_id: id, session_id: id, state, question: 'A made-up run', pattern: 'supervisor', task_type: 'general', conversation_id: null, started: events[0].at, ms: 5000,
    in_token: 1, out_token: 1, seq: events.length, reason: 'final-answer', answer: error ? null : text, error: error ?? null, model: 'm', model_calls: 1, tool_calls: 1,
  };
  return { run, events };
}

/** The same in each of its states. */
export function madeUpIn(state) {
  const made = madeUp(`run-${state}`, { state: ['failed', 'limit', 'cancelled', 'answered-partial'].includes(state) ? state : 'answered' });
  const { run, events } = made;
  run.state = state;
  const end = events.at(-1);
  if (['queued', 'running', 'waiting'].includes(state)) {
    events.length = state === 'queued' ? 0 : 15;
    Object.assign(run, { answer: null, reason: null });
  }
  if (state === 'waiting') {
    const question = { park: 'park/1', question: 'May search be called?', options: ['approve', 'deny'], tool: 'search', arguments: { q: 'x' }, expires: new Date(Date.now() + 600_000).toISOString(), otherwise: 'deny' };
    events.push({ seq: 16, session_id: `${run.run_id}-a0`, step_id: `urn:trustgraph:agent:${run.run_id}-a0/park/1`, at: new Date().toISOString(), type: 'decision.requested', ...question });
    run.waiting_for = [{ ...question, session_id: `${run.run_id}-a0`, who: null }];
  }
  if (state === 'answered-partial') Object.assign(run, { missing: [2] });
  if (['limit', 'cancelled', 'failed'].includes(state)) {
    const reason = { limit: 'max-model-calls', cancelled: 'cancelled', failed: 'error' }[state];
    const error = state === 'failed' ? 'the model was not reached' : state === 'limit' ? 'the run has used its 200 calls of models' : undefined;
    delete end.answer;
    Object.assign(end, { type: state === 'failed' ? 'run.failed' : 'run.completed', reason, ...(error && { error }) });
    Object.assign(run, { answer: null, error: error ?? null, reason });
  }
  return made;
}

/** Puts a made-up run in the place of a real one. */
export async function serveMadeUp(page, made, sending = (events) => events) {
  const sse = (events) => events.map((event) => `id: ${event.seq}\nevent: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join('');
  const path = `**/api/v1/runs/${made.run.run_id}`;
  await page.route(`${path}/events*`, (route) => {
    const after = Number(route.request().headers()['last-event-id'] ?? 0);
    const left = sending(made.events.filter((event) => event.seq > after));
    const isOpen = ['queued', 'running', 'waiting'].includes(made.run.state);
    // Of a run that goes on nothing more comes, and the connection stays.
    if (left.length === 0 && isOpen) return new Promise(() => {});
    return left.length === 0 ? route.fulfill({ status: 204 }) : route.fulfill({ status: 200, contentType: 'text/event-stream', body: sse(left) });
  });
  await page.route(`${path}/trace*`, (route) => route.fulfill({ json: { sessions: [], documents: {} } }));
  await page.route(`${path}/graph*`, (route) => route.fulfill({ contentType: 'text/plain', body: '' }));
  await page.route(path, (route) => route.fulfill({ json: made.run }));
}
