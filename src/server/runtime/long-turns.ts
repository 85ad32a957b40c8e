/** Sets how long a thread may run before the scheduler checks whether another one is due. */
import { libc } from './libc.ts';
import { withMemory } from './memory.ts';

/** Of `sched_setattr(2)`; <asm/unistd.h> */
const SCHED_SETATTR = process.arch === 'arm64' ? 274 : 314;
/** struct sched_attr, the form that all versions know. */
const ATTRIBUTES_SIZE = 48;
/** `sched_flags`: threads started by this one get the default slice. */
const SCHED_FLAG_RESET_ON_FORK = 1;
/** The slice in nanoseconds: longer than any system's default (0.7 to 5.6 ms). */
const LONG_TURN = 20_000_000;

/**
 * Gives the calling thread a longer time slice than others (Linux 6.12 and later; elsewhere nothing
 * changes). Its share of the processor stays the same, but a thread with the default slice that
 * wakes up runs at once instead of waiting for a scheduler tick. Needs no privileges.
 */
export function takeLongTurns(): void {
  withMemory(ATTRIBUTES_SIZE, ({ words, address }) => {
    // size, policy 0 (SCHED_OTHER), flags (64 bit), nice 0, priority, runtime (64 bit): the length
    // of a turn.
    words.set([ATTRIBUTES_SIZE, 0, SCHED_FLAG_RESET_ON_FORK, 0, 0, 0, LONG_TURN, 0]);
    libc().syscall(SCHED_SETATTR, 0, address, 0);
  });
}
