import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { after, describe, test } from 'node:test';
import { Worker } from 'node:worker_threads';
import { allowedProcessors, keepOff, runOn, type Processors } from './affinity.ts';
import { batchedUdp } from './packet-loop.ts';

const found = batchedUdp();
const all = found.available ? allowedProcessors() : null;

/** Numbers of CPUs. */
function numbers(processors: Processors): number[] {
  return Array.from({ length: 8 * processors.length }, (_, i) => i).filter(
    (i) => ((processors[i >> 3]! >> (i & 7)) & 1) === 1,
  );
}

/** As the system shows them: `0-2,5`. */
function shown(text: string): number[] {
  return text.split(',').flatMap((range) => {
    const [first, last = first] = range.split('-').map(Number);
    return Array.from({ length: last! - first! + 1 }, (_, i) => first! + i);
  });
}

/** The CPUs that the threads of this process may run on, by name. */
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

  test('the CPUs of a thread are those that the system shows', () => {
    const own = readFileSync('/proc/thread-self/status', 'latin1');
    assert.deepEqual(processors, shown(/^Cpus_allowed_list:\s*(.*)$/m.exec(own)![1]!));
  });

  test('all threads keep off the first CPUs but those of a name, and but those that say otherwise', async (t) => {
    const worker = new Worker('setInterval(() => {}, 1000)', { eval: true, name: 'answers' });
    t.after(() => worker.terminate());
    await new Promise((resolve) => worker.once('online', resolve));
    keepOff(all!, 1, 'answers');
    const before = threads();
    assert.ok(before.some(([name]) => name === 'answers'));
    for (const [name, list] of before)
      assert.deepEqual(list, name === 'answers' ? processors : processors.slice(1), name);
    runOn(all!);
    assert.deepEqual(allowedProcessors(), all);
  });

  test('with as many threads as CPUs all may run anywhere', () => {
    keepOff(all!, 1, '');
    keepOff(all!, processors.length, '');
    for (const [name, list] of threads()) assert.deepEqual(list, processors, name);
  });
});
