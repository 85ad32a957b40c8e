import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { Worker } from 'node:worker_threads';
import { takeLongTurns } from './long-turns.ts';
import { batchedUdp } from './packet-loop.ts';

/** Threads of this process and the lengths of their turns, nanoseconds. */
const turns = (): Map<string, number> =>
  new Map(
    readdirSync('/proc/self/task').map((thread) => [
      thread,
      Number(
        /^se\.slice +: +(\d+)$/m.exec(
          readFileSync(`/proc/self/task/${thread}/sched`, 'latin1'),
        )?.[1],
      ),
    ]),
  );

const found = batchedUdp();
const isShown = existsSync('/proc/self/sched') && !Number.isNaN(turns().get(`${process.pid}`));
const skip = !found.available
  ? found.reason
  : isShown
    ? false
    : 'this kernel does not show the length of turns (Linux 6.12, CONFIG_SCHED_DEBUG)';

test(
  'a thread with long turns keeps them to itself: threads it starts have the ordinary ones',
  { skip },
  async () => {
    const before = turns();
    const ordinary = before.get(`${process.pid}`)!;
    takeLongTurns();
    const worker = new Worker('setInterval(() => {}, 1000)', { eval: true });
    await new Promise((resolve) => worker.once('online', resolve));
    const after = turns();
    await worker.terminate();
    assert.ok(after.get(`${process.pid}`)! > 2 * ordinary);
    const others = [...after].filter(([thread]) => thread !== `${process.pid}`);
    assert.ok(others.length > before.size - 1, 'the worker is a thread more');
    for (const [thread, turn] of others) assert.equal(turn, ordinary, `thread ${thread}`);
  },
);
