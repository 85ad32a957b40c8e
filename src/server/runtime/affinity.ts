/** The CPUs that the threads of this process may run on. */
import { readdirSync, readFileSync } from 'node:fs';
import { libc } from './libc.ts';
import { withMemory } from './memory.ts';

/** <asm/unistd.h> */
const CALLS = process.arch === 'arm64' ? { set: 122, get: 123 } : { set: 203, get: 204 };
/** Bytes of a mask: 1024 CPUs, as in the C library's `cpu_set_t`. */
const MASK_SIZE = 128;

/** CPUs by number, a bit each, as in `sched_setaffinity(2)`. */
export type Processors = Uint8Array;

/**
 * The CPUs that the calling thread may run on.
 * @returns null where the system does not tell
 */
export function allowedProcessors(): Processors | null {
  return withMemory(MASK_SIZE, (mask) => {
    const length = libc().syscall(CALLS.get, 0, MASK_SIZE, mask.address);
    return length > 0 ? mask.bytes.slice(0, MASK_SIZE) : null;
  });
}

/**
 * Lets a thread run on these CPUs and no others, and those that it starts from now on.
 * Nothing changes where the system does not allow it.
 * @param thread the system's id of the thread; 0: the calling one
 */
export function runOn(processors: Processors, thread = 0): void {
  withMemory(MASK_SIZE, (mask) => {
    mask.bytes.set(processors);
    libc().syscall(CALLS.set, thread, MASK_SIZE, mask.address);
  });
}

/**
 * Keeps the threads of this process off the first `count` of its CPUs, except those of a name,
 * which stay unchanged. With no more CPUs than that they may run on all.
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

/** null: the thread has ended. */
function nameOf(thread: string): string | null {
  try {
    return readFileSync(`/proc/self/task/${thread}/comm`, 'latin1').trimEnd();
  } catch {
    return null;
  }
}
