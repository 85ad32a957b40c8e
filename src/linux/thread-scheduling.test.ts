import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { getPriority, release } from 'node:os';
import { describe, test } from 'node:test';
import { libc } from './libc.ts';
import { Memory } from './memory.ts';
import { batchedUdp } from './packet-loop.ts';
import { answerSoon, giveWay } from './thread-scheduling.ts';

const found = batchedUdp();
const [major = 0, minor = 0] = release().split('.').map(Number);

/** The policy of this thread: the 41st field of proc_pid_stat(5). */
function policy(): number {
  const stat = readFileSync('/proc/thread-self/stat', 'latin1');
  return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[38]);
}

/** This thread's slice, nanoseconds. */
function slice(): number {
  const memory = new Memory(48);
  try {
    const call = process.arch === 'x64' ? 315 : 275;
    assert.equal(libc().syscall(call, 0, memory.address, 48, 0), 0);
    return memory.words[6]!;
  } finally {
    memory.free();
  }
}

describe('threads', { skip: found.available ? false : found.reason }, () => {
  test('that answer have a short slice, and the policy and the nice value that they had', (t) => {
    const nice = getPriority();
    if (!answerSoon()) return t.skip('the system refuses it here');
    assert.deepEqual([policy(), getPriority()], [0, nice]);
    if (major > 6 || (major === 6 && minor >= 12)) assert.equal(slice(), 100_000);
  });

  test('that work in the background interrupt nobody, and come back from there without rights', (t) => {
    const nice = getPriority();
    if (!answerSoon()) return t.skip('the system refuses it here');
    const short = slice();
    assert.equal(giveWay(), true);
    assert.deepEqual([policy(), getPriority()], [3, nice]);
    assert.ok(short === 0 || slice() > short);
    assert.equal(answerSoon(), true);
    assert.equal(policy(), 0);
  });
});
