/** The parts that fuzzers share: the command line, and the check that memory stays bounded. */
import { parseArgs } from 'node:util';
import { settledMemory } from '../kit/settled-memory.ts';

/** Runs until `count` inputs or `seconds` have passed, and returns what the run did. */
type Fuzzer = (seed: number, count: number, seconds: number) => Promise<object>;

/** Runs a fuzzer with the command line's options: `[--count N] [--seconds N] [--seed N]`, by default for a minute. */
export async function runFuzzer(fuzz: Fuzzer): Promise<void> {
  const { values } = parseArgs({
    options: { count: { type: 'string' }, seconds: { type: 'string' }, seed: { type: 'string' } },
  });
  const seed = Number(values.seed ?? Math.floor(Math.random() * 2 ** 31));
  console.log(`seed ${seed}`);
  const seconds = Number(values.seconds ?? (values.count === undefined ? 60 : Infinity));
  console.log(JSON.stringify(await fuzz(seed, Number(values.count ?? Infinity), seconds)));
}

/**
 * Returns how many bytes memory has grown since `early`, which is null if the run ended during its warm-up.
 * @throws Error if it has grown by `most` bytes
 */
export async function checkGrowth(early: number | null, most: number): Promise<number> {
  if (early === null) return 0;
  const grown = (await settledMemory()) - early;
  if (grown >= most) throw new Error(`memory grew by ${grown} bytes`);
  return grown;
}
