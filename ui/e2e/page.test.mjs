/** The page against the real server, whose model plays a script. */

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { faultsInBoth, House, madeUp, madeUpIn, serveMadeUp, until } from './house.mjs';
import { AIMS, fastEnough, firstPaint, longestStall, typedWhileLive, usable, withLargeRun } from './speed.mjs';

const PARTNER = 'Assess the risk profile of Company X as a potential partner';
const TRACE = 'Trace how Company X came to its present owners, step by step';

let house;
let partner;
let partial;
before(async () => {
  house = await House.open();
});
after(() => house?.close());

const address = (run, query = '') => `/runs/${encodeURIComponent(run.run_id)}${query}`;

test('a question is asked, four agents write at once, each in its own card, and the answer leads to its sources', async () => {
  const page = await house.page();
  // As on a page that comes over plain HTTP from another machine: there browsers leave these out.
  await page.addInitScript(() => { delete Crypto.prototype.randomUUID; Object.defineProperty(navigator, 'clipboard', { value: undefined }); });
  await page.at('/');
  await page.getByLabel('Question').fill(PARTNER);
  await page.getByRole('button', { name: 'Ask', exact: true }).click();
  await page.locator('[data-session]').nth(3).waitFor();
  const places = async () => page.locator('[data-session]').evaluateAll((cards) => cards.map((card) => [card.dataset.session, Math.round(card.getBoundingClientRect().left)]));
  const first = await places();
  assert.equal(first.length, 4);
  // Whatever is written under a message of an agent stands in the card of that agent and nowhere else.
  const strangers = new Set();
  let atOnce = 0;
  await until('the run ends', async () => {
    // What was taken off the page between finding it and looking at it is in no card any more.
    const writing = await page.locator('[data-message]').evaluateAll((all) => all.filter((text) => text.isConnected).map((text) => [text.dataset.message, text.closest('[data-session]')?.dataset.session]));
    atOnce = Math.max(atOnce, new Set(writing.map(([, session]) => session)).size);
    for (const [message, session] of writing) if (!message.includes(session)) strangers.add(`${message} in ${session}`);
    assert.deepEqual(await places(), first, 'a card moved');
    return (await page.getByRole('link', { name: 'What is each sentence based on?' }).count()) > 0;
  }, 40_000);
  assert.deepEqual([...strangers], []);
  assert.ok(atOnce > 1, `${atOnce} agents were seen writing at once`);
  assert.match(await page.title(), /^Answered · Assess/);

  const id = new URL(page.url()).searchParams.get('run');
  partner = await house.api(`/api/v1/runs/${id}`);
  await page.getByRole('link', { name: 'Open the run' }).click();
  await page.getByRole('region', { name: 'Provenance' }).getByRole('button', { name: /^Routing ?, Routing, ok/ }).click();
  assert.match(page.url(), /step=.*route/);
  const decision = page.getByRole('region', { name: 'Task type: decision' });
  await decision.waitFor();
  const text = await decision.innerText();
  for (const part of ['general', 'research', 'risk-assessment', 'summarisation', '4 options, 1 chosen', 'agent-task-type', 'configuration version', 'the model', 'checked afterwards', 'a claim, not checked']) {
    assert.ok(text.includes(part), `the option set lacks ${part}: ${text}`);
  }
  assert.match(await page.getByRole('region', { name: 'Pattern: decision' }).innerText(), /3 not offered, with reasons/);

  await page.getByRole('tab', { name: 'Answer' }).click();
  await page.getByText('Net debt: 1.4 times').click({ clickCount: 3 });
  const support = page.getByLabel('What the answer rests on');
  await support.getByText('What is this based on?').waitFor();
  const found = await support.innerText();
  assert.match(found, /finding 0/, found);
  assert.match(found, /financial-data[\s\S]*Net debt: 1\.4 times the yearly operating result/, found);
  await page.done();
});

test('one selection in timeline, graph and details, and in the address', async () => {
  const page = await house.page();
  await page.at(address(partner, `?step=${partner.run_id}/decompose`));
  const timeline = page.getByRole('region', { name: 'Timeline' });
  const graph = page.getByRole('region', { name: 'Provenance' });
  await graph.locator('[aria-pressed=true]', { hasText: 'Split into agents' }).waitFor();
  assert.match(await timeline.locator('[aria-current=true]').innerText(), /Split/);
  await timeline.getByRole('button', { name: /news-search/ }).click();
  assert.match(await graph.locator('[aria-pressed=true]').first().innerText(), /news-search/);
  assert.match(await page.locator('#step-title').innerText(), /news-search/);
  assert.match(page.url(), /step=[^&]*i1/);
  await page.getByRole('button', { name: 'Trace back' }).click();
  await page.getByText(/“news-search” rests on/).waitFor();
  await page.getByLabel('Critical path').check();
  await page.getByLabel('Show').selectOption('all');
  assert.match(page.url(), /records=all/);
  assert.ok((await graph.locator('[data-step]').count()) >= 30);
  await page.done();
});

test('log, decisions and records tell the whole run', async () => {
  const page = await house.page();
  await page.at(address(partner, '?view=log'));
  await page.locator('ol li .seq').first().waitFor();
  assert.equal(await page.locator('ol li .seq').count(), partner.seq);
  await page.getByRole('tab', { name: 'Decisions' }).click();
  await page.getByText(/none lies outside its set/).waitFor();
  await page.getByRole('tab', { name: 'Records' }).click();
  await page.locator('pre', { hasText: 'urn:trustgraph:agent' }).waitFor();
  await page.done();
});

test('the journal is read to its last record, in however many pages it comes', async () => {
  const page = await house.page();
  const { records } = await house.api(`/api/v1/runs/${partner.run_id}/records?limit=1000`);
  // As with runs of many records, or of long ones.
  let pages = 0;
  await page.route('**/records?*', (route) => { pages += 1; return route.continue({ url: route.request().url().replace('limit=1000', 'limit=20') }); });
  await page.at(address(partner, '?view=records'));
  await page.getByRole('tab', { name: 'Journal' }).click();
  await page.getByText(`${records.length} records`).waitFor();
  assert.equal(pages, Math.ceil(records.length / 20));
  await page.done();
});

test('an auditor keeps one file that needs nothing else', async () => {
  const page = await house.page();
  await page.at(address(partner));
  await page.locator('summary', { hasText: 'Export' }).click();
  const [file] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: /Report, one HTML file/ }).click()]);
  const html = readFileSync(await file.path(), 'utf8');
  assert.ok(html.includes('Net debt: 1.4 times') && html.includes('risk-assessment') && html.includes('not offered') && html.includes('prov#'));
  assert.ok(!/<script|src=|href="http/i.test(html));
  for (const [name, part] of [['Turtle', '@prefix'], ['N-Quads', '<urn:'], ['JSON-LD', '@id']]) {
    await page.locator('summary', { hasText: 'Export' }).click();
    const [saved] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name }).click()]);
    assert.ok(readFileSync(await saved.path(), 'utf8').includes(part), name);
  }
  await page.done();
});

test('a step that failed is named in one line, with whether it mattered', async () => {
  partial = await house.ask(TRACE);
  assert.equal(partial.state, 'answered-partial');
  const page = await house.page();
  await page.at(address(partial));
  const line = page.locator('.verdict');
  await line.getByText(/archive/).waitFor();
  assert.match(await line.innerText(), /It mattered: it does without step/);
  await page.getByRole('region', { name: 'Provenance' }).locator('.o-failed').first().waitFor();
  await line.getByRole('button', { name: 'Show it' }).click();
  await page.locator('.fault', { hasText: 'the archive is closed' }).waitFor();
  await page.done();
});

test('after the server was cut off and is back, nothing is lost and nothing is there twice', async () => {
  const page = await house.page();
  await page.at('/ask');
  await page.getByLabel('Question').fill(PARTNER);
  await page.keyboard.press('Control+Enter');
  await page.locator('[data-session]').nth(3).waitFor();
  const id = new URL(page.url()).searchParams.get('run');
  await house.kill();
  await page.getByText('No connection, trying again').waitFor();
  await house.start();
  await page.getByText('Connected').waitFor();
  await page.getByRole('link', { name: 'What is each sentence based on?' }).waitFor({ timeout: 60_000 });
  const run = await house.api(`/api/v1/runs/${id}`);
  await page.at(address(run, '?view=log'));
  await page.locator('ol li .seq').first().waitFor();
  const numbers = await page.locator('ol li .seq').evaluateAll((all) => all.map((one) => Number(one.textContent)));
  assert.deepEqual(numbers, Array.from({ length: run.seq }, (_, place) => place + 1));
  await page.done();
});

test('a person answers a parked question, and can change what a tool is called with', async () => {
  const { items } = await house.api('/api/v1/configuration');
  const tool = items.find((item) => item.type === 'tool' && item.key === 'financial-data');
  await house.api('/api/v1/configuration', { items: [{ ...tool, value: JSON.stringify({ ...JSON.parse(tool.value), 'requires-approval': true }) }] });
  const waiting = await house.ask(PARTNER);
  assert.equal(waiting.state, 'waiting');
  const page = await house.page();
  await page.at(address(waiting));
  const parked = page.getByRole('region', { name: 'Question to a person' });
  await parked.getByLabel('Change the arguments').check();
  await parked.getByLabel('Arguments instead').fill('{"company": "Company Y"}');
  await parked.getByLabel('Reason').fill('The other one');
  await parked.getByRole('button', { name: 'Approve' }).click();
  await page.getByText('Answered', { exact: true }).first().waitFor({ timeout: 30_000 });
  await page.getByRole('region', { name: 'Timeline' }).getByRole('button', { name: /, Person, / }).click();
  const decision = page.getByRole('region', { name: 'Approval by a person: decision' });
  assert.match(await decision.innerText(), /approve[\s\S]*chosen[\s\S]*The other one/);
  await house.api('/api/v1/configuration', { items: [tool] });
  await page.done();
});

test('a run is told something, stopped, and says so', async () => {
  const page = await house.page();
  await page.at('/ask');
  await page.getByLabel('Question').fill(PARTNER);
  await page.keyboard.press('Control+Enter');
  await page.locator('[data-session]').first().waitFor();
  await page.getByLabel('Tell the agents something').fill('Only the last two years');
  await page.getByRole('button', { name: 'Tell them' }).click();
  await page.getByText(/Told to \d/).waitFor();
  await page.getByRole('button', { name: 'Stop' }).click();
  await page.getByText('The run was cancelled', { exact: true }).first().waitFor();
  await page.done();
});

test('limits, failures and what is not there are told apart', async () => {
  const limited = await house.ask(PARTNER, { limits: { 'max-model-calls': 5 } });
  const page = await house.page();
  await page.at(address(limited));
  await page.getByText(/Stopped at a limit/).waitFor();
  await page.at('/runs/no-such-run');
  await page.getByText('There is no such run here').waitFor();
  const failed = madeUp('failed-run', { state: 'failed', error: 'the model was not reached' });
  await serveMadeUp(page, failed);
  await page.at('/runs/failed-run');
  await page.getByText(/It has no answer: the model was not reached/).waitFor();
  await page.at('/nowhere');
  await page.getByText('There is no such page').waitFor();
  await page.done();
});

test('every state of a run is told, and can be used by everybody, while it is asked and afterwards', async () => {
  const said = {
    queued: /Queued/, running: /Under way; nothing has failed so far/, waiting: /Waits for a person: May search be called/, answered: /Nothing failed\. The answer rests on 4 findings/,
    'answered-partial': /It mattered: it does without finding 2/, limit: /Stopped at a limit \(max model calls\)/, failed: /It has no answer: the model was not reached/, cancelled: /Cancelled.*What was recorded until then stays/,
  };
  const title = { queued: 'Queued', running: 'Running', waiting: 'Waiting for a person', answered: 'Answered', 'answered-partial': 'Answered in part', limit: 'Limit reached', failed: 'Failed', cancelled: 'Cancelled' };
  const page = await house.page({ bypassCSP: true });
  for (const [state, words] of Object.entries(said)) {
    const made = madeUpIn(state);
    await serveMadeUp(page, made);
    for (const path of [`/runs/${made.run.run_id}?view=trace`, `/runs/${made.run.run_id}?view=answer`, `/ask?run=${made.run.run_id}`]) {
      await page.at(path);
      const place = path.startsWith('/ask') ? page.locator('.live') : page.locator('.run > .head');
      await place.getByText(title[state], { exact: true }).first().waitFor();
      if (!path.startsWith('/ask')) await until(`${state}: the summary`, async () => words.test(await place.innerText()));
      if (state !== 'queued' || !path.startsWith('/ask')) await until('the title says the state', async () => (await page.title()).startsWith(`${title[state]} · `));
      if (state === 'waiting') await page.getByRole('region', { name: 'Question to a person' }).getByRole('button', { name: 'Approve' }).waitFor();
      // Without an answer its tab only says so, in each state in the same way.
      if (!path.includes('view=answer') || state === 'failed') assert.deepEqual(await faultsInBoth(page), [], path);
      await page.setViewportSize({ width: 320, height: 900 });
      assert.ok((await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)) <= 0, `${path} is too wide`);
      await page.setViewportSize({ width: 1600, height: 1000 });
    }
  }
  await page.done();
});

test('24 cards are seen whole without scrolling, and 40 stand in order', async () => {
  const page = await house.page();
  const made = madeUp('sample-run');
  await serveMadeUp(page, made);
  for (const [address, least] of [['/runs/sample-run', 24], ['/runs/sample-run?records=all', 38]]) {
    await page.at(address);
    await page.locator('.drawing [data-step]', { hasText: 'Answer' }).or(page.locator('.drawing [data-step]', { hasText: 'End' })).first().waitFor();
    const boxes = await page.locator('.drawing [data-step]').evaluateAll((cards) => cards.map((card) => {
      const { left, top, right, bottom } = card.getBoundingClientRect();
      return { name: card.textContent.trim(), left, top, right, bottom };
    }));
    assert.ok(boxes.length >= least, `${boxes.length} cards`);
    for (const [place, one] of boxes.entries()) {
      for (const other of boxes.slice(place + 1)) {
        const apart = one.right <= other.left + 0.5 || other.right <= one.left + 0.5 || one.bottom <= other.top + 0.5 || other.bottom <= one.top + 0.5;
        assert.ok(apart, `${one.name} lies over ${other.name}`);
      }
    }
    const heads = boxes.filter(({ name }) => /^Part \d/.test(name)).map(({ name, left }) => [left, name.slice(0, 6)]);
    assert.deepEqual([...heads].sort((a, b) => a[0] - b[0]).map(([, name]) => name), ['Part 0', 'Part 1', 'Part 2', 'Part 3'], 'the order of the plan');
    if (least === 24) {
      assert.equal(boxes.length, 24);
      assert.ok(boxes.every(({ left, top, right, bottom }) => left >= 0 && top >= 0 && right <= 1600 && bottom <= 1000), 'not all of it is in sight');
    }
  }
  await page.done();
});

test('decisions that are not usual are told as what they are', async () => {
  const page = await house.page();
  const made = madeUp('odd-run', { agents: 1, steps: 4 });
  const odd = [
    { decided_by: 'only-option', options: ['search'], chosen: ['search'] },
    { decided_by: 'caller', options: ['search', 'ask'], chosen: ['ask'] },
    { decided_by: 'fallback', options: ['search', 'ask'], chosen: ['search'] },
    { decided_by: 'model', options: [], chosen: ['search'] },
  ];
  made.events.filter((event) => event.kind === 'analysis').forEach((event, place) => Object.assign(event.option_sets[0] = { ...event.option_sets[0] }, odd[place]));
  const rejecting = made.events.find((event) => event.step_id.endsWith('/i3'));
  await serveMadeUp(page, made);
  await page.route('**/api/v1/runs/odd-run/trace*', (route) => route.fulfill({ json: {
    sessions: [{ session: rejecting.session_id, steps: [{ step: 'analysis', id: rejecting.step_id, decisions: [{ id: 'd', kind: 'tool', rejected: 'r', goal: null }] }] }], documents: { r: 'debate' },
  } }));
  const said = ['was the only option, so no model was asked', 'was set in the request', 'The model’s reply was outside the set', 'This was recorded without its options'];
  await page.at('/runs/odd-run');
  for (const [place, words] of said.entries()) {
    await page.locator('.scroll [data-step]', { hasText: 'search' }).nth(place).click();
    await page.getByText(words).waitFor();
  }
  await page.done();
});

test('nothing of what others wrote runs or is fetched', async () => {
  const evil = '<script>alert(1)</script><img src=https://evil.example/x.png onerror=alert(2)> ![x](https://evil.example/y.png) [click](javascript:alert(3)) <svg onload=alert(4)> \u202Eright to left\u202C \u001b[31mred \u0007' + 'w'.repeat(3000);
  const page = await house.page();
  const run = await house.ask(evil, { pattern: 'react' });
  const made = madeUp('evil-run', { text: evil });
  await serveMadeUp(page, made);
  await page.at('/ask');
  await page.getByLabel('Question').fill(evil);
  await page.keyboard.press('Control+Enter');
  await page.getByRole('link', { name: 'Open the run' }).waitFor();
  for (const id of [run.run_id, 'evil-run']) {
    for (const view of ['answer', 'trace', 'log', 'decisions', 'records']) {
      await page.at(`/runs/${id}?view=${view}`);
      await page.locator('#view-panel').waitFor();
      assert.equal(await page.locator('#view-panel script, #view-panel img, #view-panel [onerror], #view-panel a[href^="javascript"]').count(), 0);
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      assert.ok(wide <= 0, `${view} is ${wide} px too wide`);
    }
  }
  await page.done();
});

test('everything can be done by keyboard alone', async () => {
  const page = await house.page();
  await page.at('/runs');
  await page.locator('main').waitFor();
  await page.keyboard.press('?');
  await page.getByRole('dialog', { name: 'Keys' }).waitFor();
  await page.keyboard.press('Escape');
  await page.getByRole('dialog', { name: 'Keys' }).waitFor({ state: 'hidden' });
  // On a busy machine the dialog hears the first key before it is quite gone, and whoever types types again.
  const form = page.getByText('What do you want to know?');
  for (let tries = 0; tries < 5 && !(await form.isVisible()); tries += 1) {
    await page.keyboard.press('g');
    await page.keyboard.press('a');
    await form.waitFor({ timeout: 3_000 }).catch(() => {});
  }
  await form.waitFor();
  await page.keyboard.press('/');
  await page.keyboard.type(TRACE);
  await page.keyboard.press('Control+Enter');
  const link = page.getByRole('link', { name: 'Open the run' });
  await link.waitFor();
  await link.focus();
  await page.keyboard.press('Enter');
  await page.getByText('Answered in part', { exact: true }).waitFor({ timeout: 30_000 });
  // The graph is one stop; arrows follow the edges to the failed step.
  const focused = () => page.evaluate(() => document.activeElement?.textContent.replace(/\s+/g, ' ').trim() ?? '');
  assert.equal(await page.locator('.drawing [data-step][tabindex="0"]').count(), 1);
  await page.locator('.drawing [data-step][tabindex="0"]').focus();
  const seen = [];
  for (let steps = 0; steps < 12; steps++) {
    seen.push(await focused());
    if (/archive-search.*failed/s.test(seen.at(-1))) break;
    await page.keyboard.press(steps === 3 ? 'ArrowRight' : 'ArrowDown');
    await page.waitForTimeout(80);
    if (/archive-search.*failed/s.test(await focused())) break;
    await page.keyboard.press('ArrowLeft');
    await page.waitForTimeout(80);
  }
  assert.match(await focused(), /archive-search.*failed.*the archive is closed/, seen.join('\n'));
  await page.keyboard.press('Enter');
  await until('the details have the focus', async () => (await page.evaluate(() => document.activeElement?.id)) === 'step-title');
  await page.getByRole('region', { name: 'Tool: decision' }).waitFor();
  await page.keyboard.press('Escape');
  await until('the focus is back at the step', () => page.evaluate(() => document.activeElement?.hasAttribute('data-step') && document.activeElement.textContent.includes('archive-search')));
  await page.keyboard.press('Home');
  await until('the focus is at the question', async () => /^Question/.test(await focused()));
  await page.keyboard.press('End');
  await until('the focus is at the answer', async () => /^Answer/.test(await focused()));
  await page.done();
});

/** Every page, as it is with something in it. */
const everywhere = () => [
  '/ask', `/ask?run=${partner.run_id}`, '/runs', address(partner), address(partner, `?step=${partner.run_id}/pattern-decision`), address(partner, '?view=answer'), address(partner, '?view=log'),
  address(partner, '?view=decisions'), address(partner, '?view=records'), address(partial), '/compare', `/compare?a=${partner.run_id}&b=${partial.run_id}`,
  '/configuration', '/configuration/agent-task-type/risk-assessment', '/knowledge', '/system', '/nowhere',
];

test('no fault of accessibility on any page, in both colour schemes', async () => {
  // The checker is put into the page as a script, which the page itself never allows.
  const page = await house.page({ bypassCSP: true });
  for (const path of everywhere()) {
    await page.at(path);
    await page.locator('main h1, main h2').first().waitFor();
    await page.waitForTimeout(200);
    assert.deepEqual(await faultsInBoth(page), [], path);
  }
  await page.done();
});

test('nothing is cut off or scrolls in two directions from 320 to 1600 pixels', async () => {
  const page = await house.page();
  for (const path of everywhere()) {
    await page.at(path);
    await page.locator('main h1, main h2').first().waitFor();
    for (const width of [1600, 1024, 640, 320]) {
      await page.setViewportSize({ width, height: 900 });
      const wide = await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(document.documentElement.scrollWidth - innerWidth)))));
      assert.ok(wide <= 0, `${path} is ${wide} px too wide at ${width}`);
    }
  }
  await page.done();
});

test('forced colours and reduced motion change nothing that can be done', async () => {
  const page = await house.page({ forcedColors: 'active', reducedMotion: 'reduce' });
  await page.at(address(partial));
  await page.locator('.o-failed').first().waitFor();
  assert.equal(await page.evaluate(() => document.getAnimations().length), 0);
  await page.done();
});

test('a run of 1,000 steps can soon be used, and scrolls without stalls', async () => {
  const page = await withLargeRun(await house.page());
  await fastEnough('first paint', AIMS.paint, () => firstPaint(page, '/runs'));
  await fastEnough('1,000 steps usable', AIMS.usable, () => usable(page));
  await fastEnough('longest stall while 1,000 steps are scrolled', AIMS.stall, () => longestStall(page));
  await page.done();
});

test('200 events a second are drawn while somebody types', async () => {
  await fastEnough('longest time until a key is seen, at 200 events a second', AIMS.key, async () => {
    const page = await house.page();
    const { key } = await typedWhileLive(page);
    await page.done();
    return key;
  });
});
