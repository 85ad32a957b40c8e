/** A separate memory control group for a program, which shows the memory that the system charges to it. */
import { existsSync, mkdirSync, readFileSync, rmdirSync } from 'node:fs';
import { join } from 'node:path';

/** The groups' parent, or null if the memory controller is not available. */
function root(): string | null {
  if (existsSync('/sys/fs/cgroup/memory/memory.usage_in_bytes')) return '/sys/fs/cgroup/memory';
  const file = '/sys/fs/cgroup/cgroup.subtree_control';
  if (!existsSync(file)) return null;
  return /\bmemory\b/.test(readFileSync(file, 'utf8')) ? '/sys/fs/cgroup' : null;
}

/** The reason why a group cannot be created, or null if it can. */
export function noMemoryGroups(): string | null {
  if (process.platform !== 'linux') return 'needs Linux';
  if (process.getuid?.() !== 0) return 'needs root, for control groups';
  return root() === null ? 'needs the memory controller of control groups' : null;
}

/** MiB. */
export interface Charged {
  readonly usage: number;
  /** The memory without reclaimable files, as `kubectl top` shows it. */
  readonly workingSet: number;
}

let made = 0;

/** Creates a group like those that a container runtime creates for containers. */
export class MemoryGroup {
  readonly #directory = join(root()!, `ndots-${process.pid}-${made++}`);

  constructor() {
    mkdirSync(this.#directory);
  }

  /** Returns the command that runs a program in the group. */
  words(...program: readonly string[]): string[] {
    const script = 'echo $$ > "$0" && exec "$@"';
    return ['sh', '-c', script, join(this.#directory, 'cgroup.procs'), ...program];
  }

  charged(): Charged {
    const read = (file: string): string => readFileSync(join(this.#directory, file), 'utf8');
    const [usageFile, inactive] = existsSync(join(this.#directory, 'memory.current'))
      ? ['memory.current', /^inactive_file (\d+)$/m]
      : ['memory.usage_in_bytes', /^total_inactive_file (\d+)$/m];
    const usage = Number(read(usageFile));
    const taken = Number(inactive.exec(read('memory.stat'))?.[1]);
    return { usage: usage / 2 ** 20, workingSet: (usage - taken) / 2 ** 20 };
  }

  /** Call this after the program has exited. */
  close(): void {
    rmdirSync(this.#directory);
  }
}
