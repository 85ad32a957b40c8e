import { join } from 'node:path';
import {
  CONTROL_GROUPS,
  groupDirectories,
  groupLines,
  type ControlGroupFiles,
} from '../base/control-groups.ts';

/**
 * Returns the number of CPUs that this process may use (`resources.limits.cpu` of a container), possibly fractional, or
 * Infinity without a limit. Read on each call, because the limit may change while the container runs. Supports both
 * versions of control groups (cgroups(7): `cpu.max`; `cpu.cfs_quota_us` and `cpu.cfs_period_us`). Among nested groups
 * the tightest limit applies.
 */
export function cpuLimit(files: ControlGroupFiles = CONTROL_GROUPS): number {
  let limit = Infinity;
  for (const directory of groupDirectories(files, 'cpu'))
    limit = Math.min(limit, limitOfVersion2(directory), limitOfVersion1(directory));
  return limit;
}

/**
 * Returns how many more threads the process's groups allow (`pids.max`, both versions), or Infinity without a limit. A
 * container's group includes all its processes.
 */
export function threadRoom(files: ControlGroupFiles = CONTROL_GROUPS): number {
  let room = Infinity;
  for (const directory of groupDirectories(files, 'pids')) {
    const [most] = groupLines(join(directory, 'pids.max'));
    const [present] = groupLines(join(directory, 'pids.current'));
    const left = Number(most) - Number(present);
    if (!Number.isNaN(left)) room = Math.min(room, left);
  }
  return room;
}

function limitOfVersion2(directory: string): number {
  const [quota, period] = (groupLines(join(directory, 'cpu.max'))[0] ?? '').split(' ');
  return ratio(quota, period);
}

function limitOfVersion1(directory: string): number {
  const [quota] = groupLines(join(directory, 'cpu.cfs_quota_us'));
  const [period] = groupLines(join(directory, 'cpu.cfs_period_us'));
  return ratio(quota, period);
}

/** `max` and -1 mean no limit. */
function ratio(quota: string | undefined, period: string | undefined): number {
  const limit = Number(quota) / Number(period);
  return limit > 0 ? limit : Infinity;
}
