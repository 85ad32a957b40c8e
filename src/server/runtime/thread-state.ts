import { readFileSync } from 'node:fs';

/** The kernel's view of a thread in this process. */
export interface ThreadState {
  /** CPU time used, user and kernel, in milliseconds (in steps of 10). */
  readonly cpuMs: number;
  /** True if it is running or ready to run; false if it is waiting in the kernel. */
  readonly runnable: boolean;
  /** Number of waits in the kernel so far. If unchanged, it is still in the same wait. -1: unknown. */
  readonly waits: number;
}

/** The unit of times in /proc, the same on all architectures supported by Node, whatever the kernel's tick. */
const TICK_MS = 10;

/**
 * @param thread the system's thread id
 * @returns null if there is no /proc or no such thread
 */
export function threadState(thread: number): ThreadState | null {
  if (thread <= 0) return null;
  try {
    const stat = readFileSync(`/proc/self/task/${thread}/stat`, 'latin1');
    // The second field is the thread's name in parentheses and may contain anything. The third begins after the last
    // parenthesis.
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
