/**
 * Sets which CPUs this process's threads may use, and their time slices.
 *
 * Gain: docs/decisions/scheduling.md. To disable it, use `taskset` with as many CPUs as workers; without koffi, nothing
 * here happens. Tested on Linux 6.12 to 6.18.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { libc } from './libc.ts';
import { withMemory } from './memory.ts';

/** Numbers of sched_setaffinity(2), sched_getaffinity(2) and sched_setattr(2), <asm/unistd.h>. */
const CALLS =
  process.arch === 'arm64'
    ? { set: 122, get: 123, attributes: 274 }
    : { set: 203, get: 204, attributes: 314 };
/** Mask size in bytes: 1024 CPUs, like the C library's `cpu_set_t`. */
const MASK_SIZE = 128;
/** Size of the first version of struct sched_attr, in bytes. */
const ATTRIBUTES_SIZE = 48;
/** `sched_flags`: threads started by this one get the default slice. */
const RESET_ON_FORK = 1;
/** Nanoseconds; longer than any system's default (0.7 to 5.6 ms). */
const LONG_SLICE = 20_000_000;
/** Nanoseconds; the shortest slice that the kernel accepts. */
const SHORT_SLICE = 100_000;

/** A set of CPUs, one bit each, as in `sched_setaffinity(2)`. */
export type Processors = Uint8Array;

/** Returns the CPUs that the calling thread may run on, or null if unknown. */
export function allowedCpus(): Processors | null {
  return withMemory(MASK_SIZE, (mask) => {
    const length = libc().syscall(CALLS.get, 0, MASK_SIZE, mask.address);
    return length > 0 ? mask.bytes.slice(0, MASK_SIZE) : null;
  });
}

/**
 * Restricts a thread, and threads it starts later, to these CPUs. Does nothing if the system forbids it.
 * @param thread the system's thread id; 0: the calling thread
 */
export function runOn(processors: Processors, thread = 0): void {
  withMemory(MASK_SIZE, (mask) => {
    mask.bytes.set(processors);
    libc().syscall(CALLS.set, thread, MASK_SIZE, mask.address);
  });
}

/**
 * Keeps this process's threads off the first `count` of its CPUs. Threads named `except` are unchanged. With `count`
 * CPUs or fewer, all threads may run on all of them.
 */
export function keepOff(processors: Processors, count: number, except: string): void {
  const others = withoutFirst(processors, count);
  for (const thread of readdirSync('/proc/self/task')) {
    if (nameOf(thread) !== except) runOn(others, Number(thread));
  }
}

function withoutFirst(processors: Processors, count: number): Processors {
  const others = processors.slice();
  let left = count;
  for (const [i, byte] of processors.entries()) {
    for (let bit = 1; bit <= 0x80 && left > 0; bit <<= 1) {
      if ((byte & bit) === 0) continue;
      others[i]! &= ~bit;
      left--;
    }
  }
  return others.some((byte) => byte !== 0) ? others : processors;
}

/** Returns null if the thread has ended. */
function nameOf(thread: string): string | null {
  try {
    return readFileSync(`/proc/self/task/${thread}/comm`, 'latin1').trimEnd();
  } catch {
    return null;
  }
}

/**
 * Gives the calling thread a longer time slice (Linux 6.12 and later). Its share of the CPU stays the same. However,
 * threads with the default slice preempt it as soon as they wake up, rather than at the next scheduler tick. Needs no
 * privileges.
 */
export function takeLongTurns(): void {
  setSlice(LONG_SLICE, 0, RESET_ON_FORK);
}

/**
 * Lets the calling thread run soon after waking, and briefly, on a busy machine. Kernels before 6.12 use only the nice
 * value.
 * @param nice lower runs sooner; below 0 needs CAP_SYS_NICE
 * @returns false if not permitted, or not on Linux
 */
export function runInShortSlices(nice: number): boolean {
  return setSlice(SHORT_SLICE, nice, 0);
}

function setSlice(nanoseconds: number, nice: number, flags: number): boolean {
  const done = withMemory(ATTRIBUTES_SIZE, ({ words, address }) => {
    // Size, policy (SCHED_OTHER), flags (64 bits), nice, priority, runtime (64 bits), which is the slice.
    words.set([ATTRIBUTES_SIZE, 0, flags, 0, nice, 0, nanoseconds, 0]);
    return libc().syscall(CALLS.attributes, 0, address, 0) >= 0;
  });
  return done ?? false;
}
