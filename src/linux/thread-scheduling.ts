/**
 * When the system gives the threads of this process a processor: those that answer at once, those that work in the background when
 * nobody waits. See docs/decisions/scheduling.md.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { libc, LibcMissing } from './libc.ts';
import { Memory } from './memory.ts';

/** <linux/sched.h> */
const POLICY = { NORMAL: 0, BATCH: 3 } as const;
/** What a thread starts has the system's own terms. */
const RESET_ON_FORK = 1;
/** struct sched_attr as it was at first, and the places of its fields in 32-bit words: sched_setattr(2). */
const ATTR = { SIZE: 48, POLICY: 1, FLAGS: 2, RUNTIME: 6 } as const;
/** Numbers of the system calls, which not every C library has functions for. */
const CALLS = {
  x64: { SET: 314, GET: 315 },
  arm64: { SET: 274, GET: 275 },
} as const;

/**
 * The shortest slice that the kernel grants, nanoseconds. A thread that wakes takes the processor at once from one with a longer slice, if it
 * has not had more than its share; otherwise it waits until that one has used up its own: milliseconds.
 */
const SLICE_NS = 100_000;

/** Threads that the runtime starts for all others: they collect garbage and compile. */
const HELPERS = /^(?:node-V8Worker|V8Worker|DelayedTaskSche)/;

/**
 * This thread answers: it is woken at once (Linux 6.12 and later; before, nothing changes). It gets no more of the processor than it would, but
 * sooner, and in smaller pieces. Needs no rights.
 * @returns false: not available here, or somebody has given it terms that are better
 */
export function answerSoon(): boolean {
  return change(0, (words) => {
    words[ATTR.POLICY] = POLICY.NORMAL;
    words[ATTR.FLAGS]! |= RESET_ON_FORK;
    words[ATTR.RUNTIME] = SLICE_NS;
    words[ATTR.RUNTIME + 1] = 0;
  });
}

/**
 * This thread works in the background, with those that the runtime has for all threads: when one of them wakes it waits until who runs has had
 * its turn. Threads that it starts begin like this, too. Needs no rights.
 * @returns see `answerSoon`
 */
export function giveWay(): boolean {
  const batch = (words: Uint32Array): void => {
    words[ATTR.POLICY] = POLICY.BATCH;
    // 0: as long as the system finds right.
    words[ATTR.RUNTIME] = 0;
    words[ATTR.RUNTIME + 1] = 0;
  };
  for (const thread of helpers()) change(thread, batch);
  return change(0, batch);
}

function helpers(): readonly number[] {
  try {
    const folder = '/proc/self/task';
    return readdirSync(folder)
      .filter((thread) => HELPERS.test(readFileSync(`${folder}/${thread}/comm`, 'latin1')))
      .map(Number);
  } catch {
    return [];
  }
}

/** @param thread the system's id; 0: this one. One that somebody has given other terms, real time say, keeps them. */
function change(thread: number, edit: (words: Uint32Array) => void): boolean {
  const calls = CALLS[process.arch as keyof typeof CALLS];
  let memory: Memory | null = null;
  try {
    const { syscall } = libc();
    memory = new Memory(ATTR.SIZE);
    const { address, words } = memory;
    if (syscall(calls.GET, thread, address, ATTR.SIZE, 0) < 0) return false;
    const policy = words[ATTR.POLICY];
    if (policy !== POLICY.NORMAL && policy !== POLICY.BATCH) return false;
    edit(words);
    return syscall(calls.SET, thread, address, 0, 0) === 0;
  } catch (error) {
    if (error instanceof LibcMissing) return false;
    throw error;
  } finally {
    memory?.free();
  }
}
