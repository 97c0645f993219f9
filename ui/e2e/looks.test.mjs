/**
 * The drawings of two runs, folded and with every record, are those that were looked at and found good: of one that the scripted model
 * plays, and of one of four agents with three steps each (24 cards, folded).
 *
 * Kept is what makes the picture and what no font changes: where each card, lane and edge is, how large, of which kind, in which
 * colours, and what stands on it. `LOOKS=new npm run e2e` writes down the picture as it is now: look at it before that.
 */

import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { House, madeUp, serveMadeUp } from './house.mjs';

const PARTNER = 'Assess the risk profile of Company X as a potential partner';

let house;
let run;
before(async () => {
  house = await House.open();
  run = await house.ask(PARTNER);
});
after(() => house?.close());

/** In the browser: the drawing as lines of text, from top to bottom. */
function drawn() {
  const drawing = document.querySelector('.drawing');
  const number = (text) => Math.round(Number.parseFloat(text));
  const placed = (element) => ['left', 'top', 'width', 'height'].map((side) => number(element.style[side] || getComputedStyle(element)[side]));
  const ink = (element) => {
    const { backgroundColor, borderTopColor, borderTopStyle, color } = getComputedStyle(element);
    return [backgroundColor, `${borderTopStyle} ${borderTopColor}`, color];
  };
  const one = (element, kind, words) => ({ at: placed(element), kind, words });
  const text = (element, selector) => element.querySelector(selector)?.textContent.trim() ?? '';
  const cards = [...drawing.querySelectorAll('.card-step')].map((card) => one(card, [...card.classList].filter((name) => /^[ko]-/.test(name)).join(' '), text(card, '.title')));
  const lanes = [...drawing.querySelectorAll('.lane-head')].map((lane) => one(lane, 'lane', `${text(lane, '.lane-name')} | ${text(lane, '.lane-goal')}`));
  const bands = [...drawing.querySelectorAll('.band')].map((band) => one(band, band.classList.contains('failed') ? 'band failed' : 'band', ''));
  const all = [...cards, ...lanes, ...bands].sort((a, b) => a.at[1] - b.at[1] || a.at[0] - b.at[0] || a.kind.localeCompare(b.kind));
  const looks = {};
  for (const card of drawing.querySelectorAll('.card-step:not(.selected), .band')) looks[[...card.classList].filter((name) => /^(band|failed|o-)/.test(name)).join(' ')] ??= ink(card);
  return {
    size: [drawing.style.width, drawing.style.height].map(number),
    drawn: all.map(({ at, kind, words }) => `${at.join(' ')} ${kind}${words ? `: ${words}` : ''}`),
    edges: [...drawing.querySelectorAll('.edges > path')].map((path) => path.getAttribute('d')).sort(),
    looks: Object.fromEntries(Object.entries(looks).sort()),
  };
}

const samples = ['played', 'made-up'].flatMap((which) => [[`${which}-folded`, ''], [`${which}-every-record`, '&records=all']]);
for (const [name, query] of samples) {
  test(`a run is drawn as it was found good: ${name}`, async () => {
    const page = await house.page({ colorScheme: 'light' });
    const made = madeUp('looks', { agents: 4, steps: 3 });
    await serveMadeUp(page, made);
    await page.at(`/runs/${name.startsWith('played') ? run.run_id : made.run.run_id}?view=trace${query}`);
    await page.locator('.drawing .card-step').first().waitFor();
    await page.waitForLoadState('networkidle');
    const now = await page.evaluate(drawn);
    const file = new URL(`./looks/${name}.json`, import.meta.url);
    if (process.env.LOOKS === 'new') writeFileSync(file, `${JSON.stringify(now, null, 1)}\n`);
    assert.deepEqual(now, JSON.parse(readFileSync(file, 'utf8')));
    await page.done();
  });
}
