/** Runs processes with a CPU limit. */
import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** A control group with a CPU limit, like a container's `resources.limits.cpu`. */
export interface LimitedGroup {
  /** Moves a process and all its threads into the group. */
  take(pid: number): void;
  /** The number of times the group was throttled. */
  throttled(): number;
  /** Removes the group after its processes have ended. */
  remove(): void;
}

const PERIOD_US = 100_000;

/**
 * Creates a group, or returns null if that is not supported or not permitted (without root).
 * @param cpus the limit, e.g. 0.5
 */
export function limitedGroup(cpus: number): LimitedGroup | null {
  const quota = String(cpus * PERIOD_US);
  const unified = existsSync('/sys/fs/cgroup/cgroup.controllers');
  // In version 2, only the root may have processes next to groups. In version 1, the new group is created inside this
  // process's group.
  const own = /^\d+:(?:[^:]*,)?cpu(?:,[^:]*)?:(.*)$/m.exec(
    readFileSync('/proc/self/cgroup', 'latin1'),
  );
  const parent = unified ? '/sys/fs/cgroup' : join('/sys/fs/cgroup/cpu', own?.[1] ?? '');
  const directory = join(parent, `ndots-${process.pid}`);
  try {
    mkdirSync(directory, { recursive: true });
    if (unified) writeFileSync(join(directory, 'cpu.max'), `${quota} ${PERIOD_US}`);
    else {
      writeFileSync(join(directory, 'cpu.cfs_period_us'), String(PERIOD_US));
      writeFileSync(join(directory, 'cpu.cfs_quota_us'), quota);
    }
  } catch {
    return null;
  }
  return {
    take: (pid) => writeFileSync(join(directory, 'cgroup.procs'), String(pid)),
    throttled: () => {
      const found = /^nr_throttled (\d+)$/m.exec(
        readFileSync(join(directory, 'cpu.stat'), 'latin1'),
      );
      return Number(found?.[1] ?? 0);
    },
    remove: () => rmdirSync(directory),
  };
}
