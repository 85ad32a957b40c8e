import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { getPriority } from 'node:os';
import { after, describe, test } from 'node:test';
import { Worker } from 'node:worker_threads';
import { batchedUdp } from './packet-loop.ts';
import { allowedCpus, keepOff, runOn, takeLongTurns, type Processors } from './scheduling.ts';

const found = batchedUdp();
const all = found.available ? allowedCpus() : null;

/** Lists CPU numbers. */
function numbers(processors: Processors): number[] {
  return Array.from({ length: 8 * processors.length }, (_, i) => i).filter(
    (i) => ((processors[i >> 3]! >> (i & 7)) & 1) === 1,
  );
}

/** Parses the system's format: `0-2,5`. */
function shown(text: string): number[] {
  return text.split(',').flatMap((range) => {
    const [first, last = first] = range.split('-').map(Number);
    return Array.from({ length: last! - first! + 1 }, (_, i) => first! + i);
  });
}

/** Lists the CPUs that each thread of this process may run on, by thread name. */
function threads(): [name: string, processors: number[]][] {
  return readdirSync('/proc/self/task').map((thread) => {
    const status = readFileSync(`/proc/self/task/${thread}/status`, 'latin1');
    const field = (name: string): string => new RegExp(`^${name}:\\s*(.*)$`, 'm').exec(status)![1]!;
    return [field('Name'), shown(field('Cpus_allowed_list'))];
  });
}

const processors = all === null ? [] : numbers(all);
const skip = !found.available
  ? found.reason
  : processors.length > 1
    ? false
    : 'needs two processors';

describe('CPU affinity', { skip }, () => {
  after(() => keepOff(all!, processors.length, ''));

  test('the CPUs of a thread match those reported by the system', () => {
    const own = readFileSync('/proc/thread-self/status', 'latin1');
    assert.deepEqual(processors, shown(/^Cpus_allowed_list:\s*(.*)$/m.exec(own)![1]!));
  });

  test('all threads avoid the first CPUs, except those with a given name or an explicit setting', async (t) => {
    const worker = new Worker('setInterval(() => {}, 1000)', { eval: true, name: 'answers' });
    t.after(() => worker.terminate());
    await new Promise((resolve) => worker.once('online', resolve));
    keepOff(all!, 1, 'answers');
    const before = threads();
    assert.ok(before.some(([name]) => name === 'answers'));
    for (const [name, list] of before)
      assert.deepEqual(list, name === 'answers' ? processors : processors.slice(1), name);
    runOn(all!);
    assert.deepEqual(allowedCpus(), all);
  });

  test('with no more CPUs than reserved, all threads may run anywhere', () => {
    keepOff(all!, 1, '');
    keepOff(all!, processors.length, '');
    for (const [name, list] of threads()) assert.deepEqual(list, processors, name);
  });
});

/** Maps the names of this process's threads to their time slices, in nanoseconds. */
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

const isShown = existsSync('/proc/self/sched') && !Number.isNaN(turns().get(`${process.pid}`));
const skipTurns = !found.available
  ? found.reason
  : isShown
    ? false
    : 'this kernel does not show the length of turns (Linux 6.12, CONFIG_SCHED_DEBUG)';

test('a long time slice is not inherited by new threads', { skip: skipTurns }, async () => {
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
});

test('the thread gets the nice value, or keeps its own if that is not permitted', async (t) => {
  // Use a separate thread, because this one runs other tests afterwards.
  const code = `
    const { parentPort } = require('node:worker_threads');
    import(${JSON.stringify(new URL('./scheduling.ts', import.meta.url).href)}).then(({ runInShortSlices }) => {
      const done = runInShortSlices(-5);
      const stat = require('node:fs').readFileSync('/proc/thread-self/stat', 'latin1');
      parentPort.postMessage({ done, nice: Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[16]) });
    });`;
  if (process.platform !== 'linux') return t.skip('needs Linux');
  const worker = new Worker(code, { eval: true });
  const { done, nice } = await new Promise<{ done: boolean; nice: number }>((resolve, reject) => {
    worker.once('message', resolve);
    worker.once('error', reject);
  });
  await worker.terminate();
  assert.equal(nice, done ? -5 : getPriority());
});
