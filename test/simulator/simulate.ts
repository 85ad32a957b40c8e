/**
 * Simulates until a time is over or an answer is wrong: `node test/simulator/simulate.ts [--seed N] [--seconds N]`. It
 * prints each seed before it runs; `--seed N --seconds 0` repeats one.
 */
import { parseArgs } from 'node:util';
import { simulate } from './simulation.ts';

const { values } = parseArgs({
  options: { seed: { type: 'string' }, seconds: { type: 'string', default: '60' } },
});
const first = values.seed === undefined ? Math.floor(Math.random() * 2 ** 31) : Number(values.seed);
const endMs = performance.now() + 1000 * Number(values.seconds);
for (let seed = first; seed === first || performance.now() < endMs; seed++) {
  console.log(`seed ${seed}`);
  console.log(JSON.stringify(await simulate(seed, { storms: 3, steps: 60 })));
}
