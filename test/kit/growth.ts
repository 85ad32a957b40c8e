/**
 * Measures how the cost of work grows, as the ratio of two CPU times in the same process. A slow or busy machine
 * affects both equally. This is the only file in the ordinary tests that compares measured times (`test/tidy.test.ts`).
 */
import assert from 'node:assert/strict';

type Work = () => unknown;

/** The minimum CPU time of a measurement in microseconds. The kernel's clock is accurate to a few of them. */
const ENOUGH_US = 2000;

/**
 * The maximum number of measurement pairs. Garbage collection and cold caches only add time, so more pairs get closer
 * to the actual cost.
 */
const ROUNDS_MAX = 15;

/** The CPU time, user and system, that this thread has used so far, in microseconds. */
function threadCpuUs(): number {
  const { user, system } = process.threadCpuUsage();
  return user + system;
}

/** Repeats the work until its time can be measured. Returns the CPU time per run in microseconds. */
async function perRun(work: Work): Promise<number> {
  const began = threadCpuUs();
  for (let runs = 1; ; runs++) {
    const result = work();
    if (result instanceof Promise) await result;
    const spent = threadCpuUs() - began;
    if (spent >= ENOUGH_US) return spent / runs;
  }
}

/**
 * The minimum CPU time of several runs in microseconds. Use it for work that takes far longer than the clock's
 * resolution and needs new input for each run.
 */
export async function leastCpuUs(
  rounds: number,
  work: (round: number) => unknown,
): Promise<number> {
  let least = Infinity;
  for (let round = 0; round < rounds; round++) {
    const began = threadCpuUs();
    await work(round);
    least = Math.min(least, threadCpuUs() - began);
  }
  return least;
}

/**
 * Fails unless `work` costs at most `times` the CPU time of `base`. To check for linear growth, let `work` do eight
 * times as much as `base`, with a limit of 24. Linear work then costs 8 times as much, and quadratic work 64 times.
 */
export async function costsAtMost(times: number, work: Work, base: Work): Promise<void> {
  let [least, leastBase] = [Infinity, Infinity];
  for (let round = 0; round < ROUNDS_MAX; round++) {
    leastBase = Math.min(leastBase, await perRun(base));
    least = Math.min(least, await perRun(work));
    // The first round warms up both.
    if (round > 0 && least <= times * leastBase) return;
  }
  assert.fail(
    `${Math.round(least)} µs of CPU time are ${(least / leastBase).toFixed(1)} × ` +
      `the ${Math.round(leastBase)} µs of the base, more than ${times} ×`,
  );
}

/**
 * Fails if the longest step takes more than a given share of the CPU time of all steps. The best of several runs
 * counts, because garbage collection can happen during any step.
 */
export function stepsAtMost(share: number, begin: () => Iterator<unknown>): void {
  let best = Infinity;
  for (let round = 0; round < 6 && best > share; round++) {
    const work = begin();
    let [longest, whole] = [0, 0];
    for (let isDone = false; !isDone;) {
      const before = threadCpuUs();
      isDone = work.next().done === true;
      const spent = threadCpuUs() - before;
      longest = Math.max(longest, spent);
      whole += spent;
    }
    best = Math.min(best, longest / whole);
  }
  assert.ok(best <= share, `the longest step takes ${best.toFixed(2)} of the whole`);
}
