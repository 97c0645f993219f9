/** What people are asked: by tools with forms, and about calls of which nobody knows whether they were made. */

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { faultsInBoth, House, serveMadeUp, until } from './house.mjs';

const EVIL = '<img src=x onerror=alert(1)>';
let house;
before(async () => {
  house = await House.open();
});
after(() => house?.close());

const set = (decision, options, chosen, more = {}) => ({ decision, options, chosen: chosen ? [chosen] : [], excluded: [], decided_by: 'model', enforcement: 'validated', source: 'urn:trellis:config:default:tool', config_version: 1, signals: [], rationale: null, ...more });
const soon = () => new Date(Date.now() + 600_000).toISOString();

/** A run of one agent that calls a tool; `later` are the events that follow. */
function called(id, state, tool, later, answer = null) {
  const base = (seq, name) => ({ seq, session_id: id, step_id: `urn:trustgraph:agent:${id}/${name}`, at: new Date(Date.now() - 60_000 + seq * 500).toISOString() });
  const begun = [
    { ...base(1, 'session'), type: 'run.started', schema: 1, run_id: id, question: `Please: ${tool}` },
    { ...base(2, 'pattern-decision'), type: 'step.completed', kind: 'routing', task_type: 'general', pattern: 'react', option_sets: [] },
    { ...base(3, 'i1'), type: 'step.completed', kind: 'analysis', tool, arguments: { place: 'the inn' }, thought: 'I do it.', option_sets: [set('tool', ['book', 'send-letter'], tool)], message_id: 'm1', ms: 20 },
  ];
  const events = [...begun, ...later.map(([name, event], place) => ({ ...base(4 + place, name), ...event }))];
  const run = { run_id: id, session_id: id, state, question: `Please: ${tool}`, pattern: 'react', task_type: 'general', conversation_id: null, started: events[0].at, ms: 5000, in_token: 1, out_token: 1, seq: events.length, reason: null, answer, error: null, model: 'm', model_calls: 2, tool_calls: 1 };
  return { run, events };
}

const form = {
  name: 'q', message: `For how many, and when? ${EVIL}`,
  schema: { type: 'object', required: ['people', 'when'], properties: { people: { type: 'integer', minimum: 1, title: 'Guests' }, when: { type: 'string', oneOf: [{ const: 'noon', title: 'At noon' }, { const: 'night', title: 'At night' }] }, extras: { type: 'array', items: { enum: ['wine', 'bread'] } }, notes: { type: 'string', title: EVIL } } },
};
const asks = [
  ['i1/observation/input/1', { type: 'input.required', tool: 'book', forms: 1 }],
  ['park/1', { type: 'decision.requested', park: 'park/1', question: `The tool book asks. ${EVIL}`, options: ['answer', 'decline'], tool: 'book', arguments: { place: 'the inn' }, forms: [form], expires: soon(), otherwise: 'decline' }],
];
const parked = (page) => page.getByRole('region', { name: 'Question to a person' });

/** What is decided is kept; the first answer may be refused. */
async function deciding(page, id, refusal = null) {
  const bodies = [];
  await page.route(`**/api/v1/runs/${id}/decide`, (route) => {
    bodies.push(route.request().postDataJSON());
    return refusal && bodies.length === 1 ? route.fulfill({ status: 400, json: { error: { message: refusal, type: 'invalid-request' } } }) : route.fulfill({ json: {} });
  });
  return bodies;
}

test('what a tool asks for is filled in and checked, and what it says is text', async () => {
  const page = await house.page({ bypassCSP: true });
  await serveMadeUp(page, called('inn', 'waiting', 'book', asks));
  const bodies = await deciding(page, 'inn', 'this is not what the tool asks for: `people` must be at least 1');
  for (const path of ['/ask?run=inn', '/runs/inn']) {
    await page.at(path);
    await parked(page).getByRole('heading', { name: 'A tool asks for something' }).waitFor();
    assert.ok((await parked(page).innerText()).includes(EVIL));
    assert.equal(await page.locator('img[src="x"]').count(), 0);
    assert.deepEqual(await faultsInBoth(page), [], path);
    await page.setViewportSize({ width: 320, height: 900 });
    assert.ok((await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)) <= 0, `${path} is too wide`);
    await page.setViewportSize({ width: 1600, height: 1000 });
  }
  // What is missing is said at its field, and nothing is sent; what the server refuses is told in its words.
  const send = parked(page).getByRole('button', { name: 'Send' });
  await send.click();
  await parked(page).getByText('Fill this in.').waitFor();
  await until('the focus is at the field', async () => (await page.evaluate(() => document.activeElement?.getAttribute('aria-invalid'))) === 'true');
  assert.equal(bodies.length, 0);
  await parked(page).getByLabel('Guests').fill('0');
  await parked(page).getByLabel('when').selectOption({ label: 'At night' });
  await parked(page).getByLabel('wine').check();
  await send.click();
  await parked(page).getByText('must be at least 1').waitFor();
  await parked(page).getByLabel('Guests').fill('4');
  await parked(page).getByLabel('Reason').fill('A birthday');
  await send.click();
  await parked(page).getByText('Answered:').waitFor();
  assert.deepEqual(bodies[1], { choice: 'answer', session_id: 'inn', park: 'park/1', reason: 'A birthday', content: { people: 4, when: 'night', extras: ['wine'] } });
  await page.done();
});

test('what was filled in, and by whom, is on the page of the run, and the answer leads to what came of it', async () => {
  const answer = `There is a table for four [1]. Not this [7]. ${EVIL}`;
  const page = await house.page({ bypassCSP: true });
  await serveMadeUp(page, called('inn', 'answered', 'book', [
    ...asks,
    ['park/1/decision', { type: 'decision.made', park: 'park/1', content: { q: { people: 4, when: 'night' } }, decided_by: { surface: 'api' }, option_sets: [set('tool-input', ['answer', 'decline'], 'answer', { decided_by: 'caller', rationale: 'A birthday' })] }],
    ['i1/observation', { type: 'step.completed', kind: 'observation', content: 'booked for 4 at night\n(p1) House rules (lines 3–4 of urn:rules)', ms: 20 }],
    ['i2', { type: 'step.completed', kind: 'answer', content: answer, cites: [{ index: 1 }], ms: 20, message_id: 'm2', answer_message_id: 'm3' }],
    ['end', { type: 'run.completed', run_id: 'inn', state: 'answered', reason: 'final-answer', answer, model_calls: 2, tool_calls: 1, model_ms: 1, tool_ms: 1 }],
  ], answer));
  await page.at('/ask?run=inn');
  await page.getByText('There is a table for four').waitFor();
  assert.equal(await page.locator('img[src="x"]').count(), 0);
  // A number that is not on record stays text.
  assert.equal(await page.getByRole('button', { name: '7', exact: true }).count(), 0);
  await page.getByRole('button', { name: '1', exact: true }).click();
  const support = page.getByLabel('What the answer rests on');
  await support.getByText('booked for 4 at night').waitFor();
  assert.match(page.url(), /view=answer&cite=1/);
  assert.equal(await support.getByRole('link', { name: /lines 3–4/ }).getAttribute('href'), '/knowledge/document?id=urn%3Arules&lines=3-4');
  assert.deepEqual(await faultsInBoth(page), []);
  await support.getByRole('button', { name: 'Open in the trace' }).click();
  await page.getByRole('region', { name: 'Timeline' }).getByRole('button', { name: /book asks ?, Person/ }).click();
  const decision = page.getByRole('region', { name: 'What a tool asked for: decision' });
  assert.match(await decision.innerText(), /answer[\s\S]*chosen[\s\S]*a person: over the API[\s\S]*A birthday/);
  await page.getByRole('tab', { name: 'In / Out' }).click();
  await page.getByText('What was filled in').waitFor();
  assert.deepEqual(await faultsInBoth(page), []);
  await page.getByRole('tab', { name: 'Log' }).click();
  await page.getByText('book asks for input: 1 form').waitFor();
  await page.done();
});

test('of a call that was cut off a person says what became of it', async () => {
  const page = await house.page({ bypassCSP: true });
  await serveMadeUp(page, called('post', 'waiting', 'send-letter', [
    ['i1/observation/intent/1', { type: 'call.intended', tool: 'send-letter' }],
    ['park/1', { type: 'decision.requested', park: 'park/1', question: 'Was the letter sent?', options: ['continue', 'retry', 'result'], tool: 'send-letter', arguments: { to: 'the mayor' }, expires: soon(), otherwise: 'continue' }],
  ]));
  const bodies = await deciding(page, 'post');
  await page.at('/runs/post');
  await parked(page).getByRole('heading', { name: 'A person has to say what became of a call' }).waitFor();
  assert.deepEqual(await faultsInBoth(page), []);
  const text = await parked(page).innerText();
  for (const words of ['Call it again', 'Go on without it', 'the mayor', 'send-letter', 'then: go on without it']) assert.ok(text.includes(words), `${words} is missing: ${text}`);
  await parked(page).getByText('Or say what the call has brought').click();
  await parked(page).getByLabel('Result').fill('It lay in the tray');
  await parked(page).getByRole('button', { name: 'It was made: use this result' }).click();
  await parked(page).getByText('Answered:').waitFor();
  assert.deepEqual(bodies, [{ choice: 'result', session_id: 'post', park: 'park/1', result: 'It lay in the tray' }]);
  await page.getByRole('region', { name: 'Timeline' }).getByRole('button', { name: /Was send-letter called\? ?, Person/ }).waitFor();
  await page.done();
});
