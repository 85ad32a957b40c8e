/** Processes with a limit of processor time. */
import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** A control group with a limit of processor time, as `resources.limits.cpu` of a container makes one. */
export interface LimitedGroup {
  /** Puts a process with all its threads there. */
  take(pid: number): void;
  /** How often the group has been stopped for having used up its limit. */
  throttled(): number;
  /** To be called when its processes have ended. */
  remove(): void;
}

const PERIOD_US = 100_000;

/** Null where this process may make none: not root, or not on this system. @param processors the limit, e.g. 0.5 */
export function limitedGroup(processors: number): LimitedGroup | null {
  const quota = String(processors * PERIOD_US);
  const unified = existsSync('/sys/fs/cgroup/cgroup.controllers');
  // Version 2 allows no processes beside groups but at the top; with version 1 it is made within the one this process is in.
  const own = /^\d+:(?:[^:]*,)?cpu(?:,[^:]*)?:(.*)$/m.exec(
    readFileSync('/proc/self/cgroup', 'latin1'),
  );
  const parent = unified ? '/sys/fs/cgroup' : join('/sys/fs/cgroup/cpu', own?.[1] ?? '');
  const folder = join(parent, `ndots-${process.pid}`);
  try {
    mkdirSync(folder, { recursive: true });
    if (unified) writeFileSync(join(folder, 'cpu.max'), `${quota} ${PERIOD_US}`);
    else {
      writeFileSync(join(folder, 'cpu.cfs_period_us'), String(PERIOD_US));
      writeFileSync(join(folder, 'cpu.cfs_quota_us'), quota);
    }
  } catch {
    return null;
  }
  return {
    take: (pid) => writeFileSync(join(folder, 'cgroup.procs'), String(pid)),
    throttled: () => {
      const found = /^nr_throttled (\d+)$/m.exec(readFileSync(join(folder, 'cpu.stat'), 'latin1'));
      return Number(found?.[1] ?? 0);
    },
    remove: () => rmdirSync(folder),
  };
}
