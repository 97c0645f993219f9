/** Figures of the page, taken in a browser, of the program that TRELLIS_BIN names: a row each, with what is aimed at. */

import { House } from '../e2e/house.mjs';
import { AIMS, firstPaint, longestStall, typedWhileLive, usable, withLargeRun } from '../e2e/speed.mjs';
import { ALL, atFirst, FIRST, inAll } from './sizes.mjs';

const ROUNDS = 9;

const MEASUREMENTS = [
  ['first paint of the page that asks, first visit', AIMS.paint, (page) => firstPaint(page, '/')],
  ['first paint of a run of 1,000 steps, first visit', AIMS.paint, async (page) => firstPaint(await withLargeRun(page), '/runs/large-run?records=all')],
  ['a run of 1,000 steps can be used after, first visit', AIMS.usable, async (page) => usable(await withLargeRun(page))],
  ['longest time without a frame while 1,000 steps are scrolled', AIMS.stall, async (page) => {
    await usable(await withLargeRun(page));
    return longestStall(page);
  }],
  ['longest time until a key is seen, at 200 events a second', AIMS.key, async (page) => (await typedWhileLive(page)).key],
];

/** The same several times, each time by somebody who was never here, in order of time. */
async function rounds(house, measure) {
  const taken = [];
  for (let round = 0; round <= ROUNDS; round++) {
    const page = await house.page();
    const ms = await measure(page);
    await page.done();
    // The first round warms up.
    if (round > 0) taken.push(ms);
  }
  return taken.sort((one, other) => one - other);
}

const row = (...cells) => console.log(`| ${cells.join(' | ')} |`);
const kilobytes = (bytes) => `${(bytes / 1000).toFixed(1)} KB`;

const house = await House.open();
try {
  row('the page in a browser', `median of ${ROUNDS}`, 'worst', 'aim');
  row('---', '---', '---', '---');
  for (const [what, aim, measure] of MEASUREMENTS) {
    const taken = await rounds(house, measure);
    const ms = (figure) => `${Math.round(figure)} ms`;
    row(what, ms(taken[(ROUNDS - 1) / 2]), ms(taken.at(-1)), ms(aim));
  }
  row('script at first load, gz', kilobytes(atFirst), '', kilobytes(FIRST));
  row('script in all, gz', kilobytes(inAll), '', kilobytes(ALL));
} finally {
  await house.close();
}
