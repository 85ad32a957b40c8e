/**
 * Measures how the cost of work grows, as a ratio of two CPU times of the same process. A slow or
 * busy machine changes both sides alike.
 *
 * This is the only file of the plain tests that compares measured times (`test/tidy.test.ts`).
 */
import assert from 'node:assert/strict';

type Work = () => unknown;

/**
 * Microseconds; the least CPU time of one measurement of a side: the clock of the kernel is
 * accurate to a few.
 */
const ENOUGH_US = 2000;

/**
 * Limit of pairs of measurements. Garbage collections and cold caches only add time, so further pairs
 * approximate the work better.
 */
const ROUNDS_MAX = 15;

/** CPU time of this thread so far, user and system, microseconds. */
function threadCpuUs(): number {
  const { user, system } = process.threadCpuUsage();
  return user + system;
}

/** Repeats the work until it can be measured; returns microseconds of CPU time per run. */
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
 * The least CPU time of some runs, microseconds: for work that takes much longer than the resolution, and
 * another input each run.
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
 * Fails unless `work` costs at most `times` the CPU time of `base`. For linear growth give both sides the same work,
 * eight times as large in `work`, and a limit of 24: linear work costs 8 times as much, quadratic work 64 times.
 */
export async function costsAtMost(times: number, work: Work, base: Work): Promise<void> {
  let [least, leastBase] = [Infinity, Infinity];
  for (let round = 0; round < ROUNDS_MAX; round++) {
    leastBase = Math.min(leastBase, await perRun(base));
    least = Math.min(least, await perRun(work));
    // The first round warms both up.
    if (round > 0 && least <= times * leastBase) return;
  }
  assert.fail(
    `${Math.round(least)} µs of CPU time are ${(least / leastBase).toFixed(1)} × ` +
      `the ${Math.round(leastBase)} µs of the base, more than ${times} ×`,
  );
}

/**
 * Fails unless the longest step of some work takes at most a share of the CPU time of all its steps. The best
 * of several runs counts, because a garbage collection may happen in any step.
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
