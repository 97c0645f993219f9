/** Fails if a browser has to load more script than it may. */

import { ALL, atFirst, FIRST, first, inAll, scripts, size } from './sizes.mjs';

console.log(`script: ${atFirst} bytes at first (at most ${FIRST}), ${inAll} in all (at most ${ALL})`);
if (atFirst > FIRST || inAll > ALL) {
  for (const name of scripts) console.error(`${size(name)}\t${name}${first.has(name) ? '\tat first' : ''}`);
  process.exit(1);
}
