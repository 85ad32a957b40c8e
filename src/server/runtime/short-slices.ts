/**
 * Asks the scheduler to run this thread soon after it was woken, and briefly (sched_setattr(2)).
 *
 * Gain: on a busy machine a thread is woken within its own slice and not after those of others
 * (Linux 6.12 and later, EEVDF); older kernels take the nice value alone. Off: do not call it.
 * Tried on Linux 6.18.
 */
import { libc } from './libc.ts';
import { withMemory } from './memory.ts';

/** Number of the system call. */
const CALL = process.arch === 'arm64' ? 274 : 314;
/** struct sched_attr: its size, and where its parts are, in 32-bit words. */
const OF = { SIZE: 48, NICE: 4, RUNTIME: 6 };
/** The shortest slice that the kernel takes is 100 µs. */
const SLICE_NS = 100_000;

/**
 * @param nice lower is sooner; below 0 needs CAP_SYS_NICE
 * @returns false: not permitted, or not on Linux
 */
export function runInShortSlices(nice: number): boolean {
  const done = withMemory(OF.SIZE, ({ words, address }) => {
    words[0] = OF.SIZE;
    words[OF.NICE] = nice;
    words[OF.RUNTIME] = SLICE_NS;
    return libc().syscall(CALL, 0, address, 0) >= 0;
  });
  return done ?? false;
}
