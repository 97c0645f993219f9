/** Runs, Configuration, Knowledge and System against the real server. */

import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { faultsInBoth, faultsOf, House, until } from './house.mjs';

let house;
let files;

before(async () => {
  house = await House.open();
  files = mkdtempSync(join(tmpdir(), 'trellis-files-'));
});
after(async () => {
  await house?.close();
  if (files) rmSync(files, { recursive: true, force: true });
});

async function file(name, text) {
  const path = join(files, name);
  writeFileSync(path, text);
  return path;
}
const places = ['/runs', '/configuration', '/configuration/agent-task-type', '/configuration/agent-task-type/general', '/configuration/tool?new=1',
  '/configuration/tool/search-notes?view=test', '/configuration/mcp', '/configuration/agent', '/knowledge', '/knowledge/load', '/knowledge/documents',
  '/knowledge/tables', '/knowledge/search', '/knowledge/sparql', '/system'];
async function accessible(page, what) {
  assert.deepEqual(await faultsOf(page), [], what);
  const beyond = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  assert.ok(beyond <= 0, `${what} is ${beyond} px too wide`);
}
async function everywhere(what) {
  for (const [width, colorScheme] of [[1600, 'light'], [1000, 'dark'], [320, 'light'], [320, 'dark']]) {
    const page = await house.page({ viewport: { width, height: 900 }, colorScheme });
    for (const place of places) {
      await page.at(place);
      await page.locator('main h1').waitFor();
      await page.waitForLoadState('networkidle');
      await accessible(page, `${what}: ${place} at ${width} px, ${colorScheme}`);
    }
    await page.done();
  }
}

test('empty pages say what would be there and how to get it', async () => {
  const page = await house.page();
  await page.at('/runs');
  await page.getByRole('heading', { name: 'Nothing asked yet' }).waitFor();
  await page.at('/knowledge');
  await page.getByRole('heading', { name: 'Nothing is loaded yet' }).waitFor();
  await page.getByRole('tab', { name: /Documents/ }).click();
  await page.getByRole('heading', { name: 'No document is loaded' }).waitFor();
  await page.at('/system');
  await page.getByText('No run has recorded its limits yet').waitFor();
  await page.at('/configuration/mcp');
  await page.getByRole('heading', { name: 'No MCP item is configured' }).waitFor();
  await page.done();
});

test('empty pages can be used by everybody', () => everywhere('empty'));

test('runs are found, grouped, followed and taken along', async () => {
  await house.ask('How deep is the well?', { pattern: 'react', conversation_id: 'wells' });
  await house.ask('And how wide? <img src=x onerror=alert(1)>', { pattern: 'react', conversation_id: 'wells' });
  await house.ask('Compare two suppliers', { pattern: 'react', limits: { 'max-model-calls': 1 } });
  const page = await house.page();
  await page.at('/runs');
  const row = (text) => page.locator('tbody tr', { hasText: text });
  await row('How deep is the well?').waitFor();
  await page.getByRole('link', { name: /^Conversation wells/ }).waitFor();
  // The question is text, and nothing in it runs.
  await page.getByText('<img src=x onerror=alert(1)>').waitFor();
  await until('the graph knows what failed', async () => (await row('Compare two suppliers').getByText(/failed/).count()) > 0 || (await page.reload(), false));

  await page.getByLabel('State').selectOption('limit');
  await until('only the stopped run is left', async () => (await page.locator('tbody tr').count()) === 1);
  assert.match(page.url(), /state=limit/);
  await page.getByRole('button', { name: 'Remove the filter state: Limit reached' }).click();
  await page.getByLabel('Search').fill('wide');
  await until('the search is in the address', () => page.url().includes('search=wide'));
  await until('one row fits', async () => (await page.locator('tbody tr:not(.head)').count()) === 1);
  await page.getByLabel('Search').fill('nothing has these words');
  await page.getByRole('heading', { name: 'No run matches' }).waitFor();
  await page.getByRole('button', { name: 'clear them all' }).click();
  await row('How deep is the well?').waitFor();

  // News are told, and no row moves before one wants to see them.
  const first = await page.locator('tbody tr:not(.head)').first().innerText();
  await house.ask('A question from elsewhere', { pattern: 'react' });
  const news = page.getByRole('button', { name: '1 new run, show' });
  await news.waitFor({ timeout: 15_000 });
  assert.equal((await page.locator('tbody tr:not(.head)').first().innerText()).split('\n')[0], first.split('\n')[0]);
  await news.click();
  await row('A question from elsewhere').waitFor();

  const download = async (name) => {
    const [saved] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name, exact: true }).click()]);
    return readFileSync(await saved.path(), 'utf8');
  };
  const lines = (await download('NDJSON')).trimEnd().split('\n').map((line) => JSON.parse(line));
  assert.equal(lines.length, 4);
  assert.deepEqual(lines.map(({ state }) => state).sort(), ['answered', 'answered', 'answered', 'limit']);
  assert.match(await download('CSV'), /^run_id,state,question,/);

  await page.getByRole('link', { name: /^Conversation wells/ }).click();
  await page.getByRole('heading', { name: 'Conversation wells' }).waitFor();
  const asked = await page.locator('.asked strong').allInnerTexts();
  assert.deepEqual(asked.map((text) => text.slice(0, 8)), ['How deep', 'And how ']);
  await page.getByText('Scripted by the rehearsal model').first().waitFor();
  await page.done();
});

test('the last known list stays while the server is away', async () => {
  const page = await house.page();
  await page.at('/runs');
  await page.getByText('How deep is the well?').first().waitFor();
  await house.kill();
  await page.getByText('This is the list as it was').waitFor({ timeout: 15_000 });
  assert.ok(await page.getByText('How deep is the well?').first().isVisible());
  await house.start();
  await page.getByText('This is the list as it was').waitFor({ state: 'detached', timeout: 15_000 });
  await page.done();
});

test('an item is changed in form and JSON, checked, restored, and never overwritten', async () => {
  const page = await house.page();
  await page.at('/configuration');
  const cell = page.getByRole('row', { name: /^summarisation/ }).getByRole('cell');
  await cell.first().waitFor();
  assert.deepEqual((await cell.allInnerTexts()).map((text) => /^allowed/.test(text)), [false, false, false, true, false, false]);
  await page.getByRole('link', { name: 'summarisation', exact: true }).click();
  await page.getByLabel('Description').fill('shorten a text');
  await page.getByRole('tab', { name: 'JSON' }).click();
  const json = page.getByLabel('The document as JSON');
  assert.equal(JSON.parse(await json.inputValue()).description, 'shorten a text');
  await json.fill(JSON.stringify({ ...JSON.parse(await json.inputValue()), 'my-own': { kept: true } }));
  await page.getByRole('tab', { name: 'Form' }).click();
  await page.getByText('Kept as it is, and not shown in the form').waitFor();
  await page.getByRole('button', { name: 'Save' }).click();
  await page.locator('.saved').waitFor();
  const stored = async () => JSON.parse((await house.api('/api/v1/configuration')).items.find(({ type, key }) => type === 'agent-task-type' && key === 'summarisation').value);
  assert.deepEqual([(await stored())['my-own'], (await stored()).description], [{ kept: true }, 'shorten a text']);

  // What the server refuses stands at its field, and nothing is stored.
  await page.getByRole('tab', { name: 'JSON' }).click();
  await json.fill('{"valid_patterns": 3}');
  await page.getByRole('button', { name: 'Save' }).click();
  const faults = page.getByRole('alert').filter({ hasText: 'Nothing was saved' });
  await faults.waitFor();
  assert.match(await faults.innerText(), /valid_patterns: expected a list of texts/);
  assert.equal((await stored()).description, 'shorten a text');
  await page.getByRole('button', { name: 'Discard changes' }).click();

  // Somebody else is quicker: both changes are shown, and put together.
  await page.getByRole('tab', { name: 'Form' }).click();
  await page.getByLabel('Description').fill('mine');
  await house.api('/api/v1/configuration', { items: [{ type: 'agent-task-type', key: 'summarisation', value: JSON.stringify({ ...(await stored()), termination: 'theirs' }) }] });
  await page.getByRole('button', { name: 'Save' }).click();
  const conflict = page.getByRole('alertdialog');
  await conflict.waitFor();
  assert.match(await conflict.innerText(), /theirs[\s\S]*mine/);
  assert.equal((await stored()).description, 'shorten a text');
  await conflict.getByRole('button', { name: 'Put both together and look at it' }).click();
  assert.equal(await page.getByLabel('When to stop').inputValue(), 'theirs');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.locator('.saved').waitFor();
  assert.deepEqual([(await stored()).description, (await stored()).termination], ['mine', 'theirs']);

  await page.getByRole('tab', { name: 'History' }).click();
  // Who made it is said in one sentence: nobody is known by name here, and it came over the API.
  assert.match(await page.getByRole('tabpanel').locator('li').first().innerText(), /Version \d+\s+(just now|\d+ s ago) over the API/);
  await page.getByRole('button', { name: 'What changed' }).first().click();
  await page.getByText('"description": "mine"').waitFor();
  await page.getByRole('button', { name: 'Restore as a new version' }).last().click();
  await page.locator('.saved').waitFor();
  assert.equal((await stored())['my-own'], undefined);
  await page.done();
});

test('the configuration is shown as it was when a run began', async () => {
  const run = await house.ask('Which configuration was that?', { pattern: 'react' });
  const { version } = run.configured;
  const value = (await house.api('/api/v1/configuration')).items.find(({ type, key }) => type === 'agent-task-type' && key === 'general').value;
  await house.api('/api/v1/configuration', { items: [{ type: 'agent-task-type', key: 'general', value: JSON.stringify({ ...JSON.parse(value), description: 'changed after the run' }) }] });
  const page = await house.page({ bypassCSP: true });
  await page.at(`/runs/${run.run_id}`);
  await page.getByRole('link', { name: `version ${version}` }).click();
  await page.getByRole('heading', { name: `Configuration at version ${version}` }).waitFor();
  await page.getByText(`This is version ${version}, as it was.`).waitFor();
  assert.equal(await page.getByRole('button', { name: 'Decide' }).count(), 0, 'it can only be looked at');
  await page.getByRole('link', { name: 'general', exact: true }).click();
  await page.getByText('What has changed since').waitFor();
  assert.ok(page.url().endsWith(`/configuration/agent-task-type/general?version=${version}`), page.url());
  assert.ok(!(await page.getByRole('region', { name: `The document at version ${version}` }).innerText()).includes('changed after the run'));
  assert.match(await page.getByRole('region', { name: new RegExp(`From version ${version}`) }).innerText(), /changed after the run/);
  assert.equal(await page.getByRole('button', { name: 'Save' }).count(), 0);
  await accessible(page, 'an earlier version');
  await page.getByRole('link', { name: 'The configuration as it is now' }).click();
  await page.getByRole('button', { name: 'Save' }).waitFor();
  await page.at('/configuration?version=999999');
  await page.getByText('must be a version; the newest is').waitFor();
  await house.api('/api/v1/configuration', { items: [{ type: 'agent-task-type', key: 'general', value }] });
  await page.done();
});

test('the router is tried on a question, and the run is stopped as soon as it has decided', async () => {
  const set = (decision, options, excluded = []) => ({ decision, options, chosen: options.slice(0, 1), excluded, decided_by: 'model', enforcement: 'validated', source: 'urn:trellis:config:default:agent-task-type', config_version: 3, signals: ['complexity: high'], rationale: 'Four dimensions' });
  const base = (seq, name) => ({ seq, session_id: 'tried', step_id: `urn:trustgraph:agent:tried/${name}`, at: new Date().toISOString() });
  const events = [
    { ...base(1, 'session'), type: 'run.started', schema: 1, run_id: 'tried', question: 'q' },
    { ...base(2, 'route'), type: 'step.completed', kind: 'choice', chosen: 'risk-assessment', option_sets: [set('task-type', ['risk-assessment', 'general'])] },
    { ...base(3, 'pattern-decision'), type: 'step.completed', kind: 'routing', task_type: 'risk-assessment', pattern: 'supervisor', option_sets: [set('pattern', ['supervisor', 'react', 'plan-then-execute'], [{ id: 'debate', why_excluded: 'not a valid pattern' }])] },
  ];
  const page = await house.page({ bypassCSP: true });
  let asked;
  let stopped = 0;
  await page.route('**/api/v1/runs', (route) => { asked = route.request().postDataJSON(); return route.fulfill({ json: { run_id: 'tried', attached: false, links: {} } }); });
  await page.route('**/api/v1/runs/tried/events*', (route) => route.fulfill({ contentType: 'text/event-stream', body: events.map((event) => `id: ${event.seq}\nevent: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join('') }));
  await page.route('**/api/v1/runs/tried/cancel', (route) => { stopped += 1; return route.fulfill({ json: { state: 'cancelled' } }); });
  await page.at('/configuration');
  await page.getByLabel('Question').fill('Assess the risk profile of Company X');
  await page.getByRole('button', { name: 'Decide' }).click();
  await page.getByText('risk-assessment → supervisor').waitFor();
  assert.match(await page.getByRole('region', { name: 'Pattern: decision' }).innerText(), /3 options, 1 chosen[\s\S]*not offered, with reasons/);
  // Nothing could have been called meanwhile.
  assert.deepEqual([asked.tools, asked.group, asked.limits], [[], [], { 'max-model-calls': 3 }]);
  await until('the run is stopped', () => stopped === 1);
  assert.deepEqual(await faultsInBoth(page), []);
  await page.done();
});

test('what is needed elsewhere is not deleted unseen', async () => {
  const page = await house.page();
  await page.at('/configuration/agent-pattern/react');
  await page.getByRole('button', { name: 'Delete…' }).click();
  const dialog = page.getByRole('dialog', { name: /Delete the pattern/ });
  await dialog.getByText('summarisation').first().waitFor();
  assert.match(await dialog.innerText(), /would be left with no pattern/);
  assert.ok(await dialog.getByRole('button', { name: 'Delete', exact: true }).isDisabled());
  await page.done();
});

test('a tool is called once, an unsafe one only when that is said', async () => {
  const { item } = await house.api('/api/v1/tools/search-notes');
  await house.api('/api/v1/tools/search-notes', { ...item, effect: 'unsafe' }, 'PUT');
  const page = await house.page();
  await page.at('/configuration/tool/search-notes?view=test');
  await page.getByLabel('query').fill('wells');
  await page.getByRole('button', { name: 'Call it once' }).click();
  await page.getByText('changes something more').waitFor();
  assert.equal(await page.getByText('What a model would be shown').count(), 0);
  await page.getByRole('button', { name: 'Call it', exact: true }).click();
  await page.getByText('Asked for: wells').waitFor();
  await house.api('/api/v1/tools/search-notes', item, 'PUT');
  await page.done();
});

test('files are loaded, wrong ones say where, and passages lead to their document', async () => {
  const page = await house.page();
  await page.at('/knowledge/load?collection=towers');
  await page.locator('input[type=file]').setInputFiles([
    await file('wrong.ttl', '@prefix ex: <http://example.org/> .\nex:a ex:b ex:c .\nex:a ex:b oops .\n'),
    await file('towers.csv', 'Name,Height\nBell Rock,36\nCordouan,67\n'),
    await file('towers.md', '# Towers\n\nAbout towers.\n\n## Bell Rock\n\nIt stands in the sea.\n'),
    await file('towers.nt', '<http://example.org/bell-rock> <http://www.w3.org/2000/01/rdf-schema#label> "Bell Rock" .\n'),
    await file('towers.exe', 'x'),
  ]);
  await page.getByText('Nothing here reads this file').waitFor();
  assert.equal(await page.getByLabel('Type of height').inputValue(), 'integer');
  await page.getByRole('button', { name: 'Load 4 files' }).click();
  await page.getByText('2 rows read, 2 new').waitFor();
  await page.getByText('1 statement read, 1 new').waitFor();
  await page.getByText(/passages? can be found/).waitFor();
  assert.match(await page.getByLabel('The lines of the file').innerText(), /3 ▸ ex:a ex:b oops/);
  await page.getByRole('tab', { name: 'Collections' }).click();
  await page.getByText('unfinished', { exact: true }).waitFor();
  await page.getByRole('tab', { name: /Tables 1/ }).click();
  await page.getByRole('row', { name: /towers towers 2/ }).waitFor();

  await page.at('/knowledge/search?collection=towers&search=Bell+Rock');
  await page.getByRole('link', { name: 'Bell Rock', exact: true }).click();
  await page.getByRole('heading', { name: 'Said of http://example.org/bell-rock' }).waitFor();
  await page.getByRole('link', { name: /Lines \d+ to \d+ in the document/ }).first().click();
  await until('the passage is marked', async () => (await page.locator('mark').allInnerTexts()).some((text) => text.includes('It stands in the sea')));

  await page.at('/knowledge/sparql');
  await page.getByLabel('Query').fill('SELECT ?name { <http://example.org/bell-rock> ?p ?name }');
  await page.keyboard.press('Control+Enter');
  await page.getByRole('cell', { name: 'Bell Rock' }).waitFor();
  await page.getByLabel('Query').fill('SELECT nonsense');
  await page.getByRole('button', { name: 'Ask the graph' }).click();
  await page.getByText('this is not a SPARQL query').waitFor();

  await page.at('/knowledge/documents');
  await page.getByRole('button', { name: 'Remove Towers' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click();
  await page.getByRole('heading', { name: 'No document is loaded' }).waitFor();
  await page.done();
});

test('who works and what waits is shown where the server tells it', async () => {
  const turn = (name, run_id) => ({ workspace: 'default', run_id, session_id: run_id, turn: name, until: new Date(Date.now() + 600_000).toISOString() });
  const status = {
    processes: [{ command: 'serve', id: '12@one', since: new Date(Date.now() - 60_000).toISOString() }, { command: 'worker', id: '7@two <img src=x onerror=alert(1)>', since: new Date().toISOString() }],
    open_runs: 2, waiting: { agents: 5, aggregators: 1 }, in_hand: Array.from({ length: 14 }, (_, place) => turn(`i${place}`, 'run-a')), fan_ins: [turn('fanout/1', 'run-b')], questions: [], later: 3,
  };
  const page = await house.page({ bypassCSP: true });
  await page.route('**/api/v1/status*', (route) => route.fulfill({ json: status }));
  await page.at('/system');
  const work = page.getByRole('region', { name: 'Processes and queues, of all workspaces' });
  await work.getByText('2 processes').waitFor();
  const text = await work.innerText();
  for (const part of ['Turns that wait for an agent', '5', '7@two <img src=x', '2 more', 'fanout/1', 'in 10 min']) assert.ok(text.includes(part), `${part} is missing: ${text}`);
  assert.deepEqual(await faultsInBoth(page), []);
  await page.setViewportSize({ width: 320, height: 900 });
  assert.ok((await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)) <= 0);
  await page.done();
});

test('nothing of what a document says runs or is fetched', async () => {
  const evil = '<script>alert(1)</script><img src=https://evil.example/x.png onerror=alert(2)> ![x](https://evil.example/y.png) [here](javascript:alert(3))';
  const passage = { title: evil, document: 'urn:evil', source: 'urn:evil', headings: [evil], lines: [2, 3], text: `Lanterns ${evil}`, score: 1 };
  const statement = { subject: 'http://example.org/a', predicate: 'http://example.org/b', object: evil, graph: null };
  const page = await house.page();
  await page.route('**/mcp', (route) => route.fulfill({ json: { jsonrpc: '2.0', id: 1, result: { structuredContent: { passages: [passage], statements: [statement], notes: [evil] } } } }));
  await page.route('**/api/v1/document-stream*', (route) => route.fulfill({ contentType: 'text/markdown', body: `# ${evil}\n\nLanterns ${evil}\n` }));
  const nothing = async () => assert.equal(await page.locator('main script, main img, main [onerror], main a[href^="javascript"]').count(), 0, page.url());
  await page.at('/knowledge/search?collection=evil&search=Lanterns');
  const link = page.getByRole('link', { name: 'Lines 2 to 3 in the document' });
  await link.waitFor();
  await nothing();
  await link.click();
  await until('the passage is marked', async () => (await page.locator('mark').allInnerTexts()).some((text) => text.includes('<script>alert(1)')));
  await nothing();
  await page.done();
});

test('what waits for a person is seen and answered', async () => {
  const { item } = await house.api('/api/v1/tools/search-notes');
  await house.api('/api/v1/tools/search-notes', { ...item, 'requires-approval': true }, 'PUT');
  const run = await house.ask('What do the notes say of wells?', { pattern: 'react' });
  assert.equal(run.state, 'waiting');
  const fan = await house.ask('Weigh financial and legal risks of Company Q, and its operations', { pattern: 'supervisor' });
  assert.equal(fan.state, 'waiting');
  await house.api('/api/v1/tools/search-notes', item, 'PUT');
  const page = await house.page();
  await page.at('/system');
  const question = page.locator('li', { hasText: 'What do the notes say of wells?' }).filter({ hasText: 'then: deny' });
  await question.getByText(/^in .*, then: deny/).waitFor();
  await page.getByRole('region', { name: 'Runs that wait for their agents', exact: true }).last().getByText(/\d of 2/).waitFor({ timeout: 40_000 });
  await question.getByRole('button', { name: 'Deny' }).click();
  await question.waitFor({ state: 'detached' });
  await until('the run goes on', async () => !['waiting'].includes((await house.api(`/api/v1/runs/${run.run_id}`)).state));

  const { checkpoint } = await house.api('/api/v1/log');
  await page.getByText('Hold the log against a checkpoint').click();
  await page.getByLabel('Checkpoint', { exact: true }).fill(checkpoint);
  await page.getByRole('button', { name: 'Check', exact: true }).click();
  await page.getByText('It holds').waitFor();
  await page.getByLabel('Checkpoint', { exact: true }).fill(checkpoint.replace(/^(.*\n\d+\n)./, '$1_'));
  await page.getByRole('button', { name: 'Check', exact: true }).click();
  await page.getByText('It was not checked').or(page.getByText('It does not hold')).first().waitFor();
  await page.done();
});

test('full pages can be used by everybody', () => everywhere('full'));
