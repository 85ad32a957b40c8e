import { readFileSync } from 'node:fs';

/** The state of a thread of this process, according to the kernel. */
export interface ThreadState {
  /** CPU time it has used, user and kernel, in milliseconds (steps of 10). */
  readonly cpuMs: number;
  /** True if it runs or would run if a CPU were free; false: it waits in the kernel. */
  readonly runnable: boolean;
  /**
   * The number of waits in the kernel that it has begun; unchanged: it is still in the same wait.
   * -1: unknown.
   */
  readonly waits: number;
}

/** The unit of times in /proc; the same on all of Node's architectures, for any tick of the kernel. */
const TICK_MS = 10;

/**
 * @param thread the system's id of the thread
 * @returns null if there is no /proc or no such thread
 */
export function threadState(thread: number): ThreadState | null {
  if (thread <= 0) return null;
  try {
    const stat = readFileSync(`/proc/self/task/${thread}/stat`, 'latin1');
    // The second field is the thread's name in parentheses and may hold anything; the third begins
    // after the last one.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return {
      cpuMs: (Number(fields[11]) + Number(fields[12])) * TICK_MS,
      runnable: fields[0] === 'R',
      waits: waitsOf(thread),
    };
  } catch {
    return null;
  }
}

function waitsOf(thread: number): number {
  const status = readFileSync(`/proc/self/task/${thread}/status`, 'latin1');
  const line = status.split('\n').find((text) => text.startsWith('voluntary_ctxt_switches:'));
  return Number(line?.split(':')[1] ?? -1);
}
