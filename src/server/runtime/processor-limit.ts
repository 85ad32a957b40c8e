import { join } from 'node:path';
import {
  CONTROL_GROUPS,
  groupFolders,
  groupLines,
  type ControlGroupFiles,
} from '../base/control-groups.ts';

/**
 * Returns the number of CPUs that this process may use (`resources.limits.cpu` of a container), possibly fractional, or
 * Infinity without a limit. Read on each call, because the limit may change while the container runs. Supports both
 * versions of control groups (cgroups(7): `cpu.max`; `cpu.cfs_quota_us` and `cpu.cfs_period_us`). Among nested groups
 * the tightest limit applies.
 */
export function processorLimit(files: ControlGroupFiles = CONTROL_GROUPS): number {
  let limit = Infinity;
  for (const folder of groupFolders(files, 'cpu'))
    limit = Math.min(limit, limitOfVersion2(folder), limitOfVersion1(folder));
  return limit;
}

/**
 * Returns how many more threads the process's groups allow (`pids.max`, both versions), or Infinity without a limit. A
 * container's group includes all its processes.
 */
export function threadRoom(files: ControlGroupFiles = CONTROL_GROUPS): number {
  let room = Infinity;
  for (const folder of groupFolders(files, 'pids')) {
    const [most] = groupLines(join(folder, 'pids.max'));
    const [present] = groupLines(join(folder, 'pids.current'));
    const left = Number(most) - Number(present);
    if (!Number.isNaN(left)) room = Math.min(room, left);
  }
  return room;
}

function limitOfVersion2(folder: string): number {
  const [quota, period] = (groupLines(join(folder, 'cpu.max'))[0] ?? '').split(' ');
  return ratio(quota, period);
}

function limitOfVersion1(folder: string): number {
  const [quota] = groupLines(join(folder, 'cpu.cfs_quota_us'));
  const [period] = groupLines(join(folder, 'cpu.cfs_period_us'));
  return ratio(quota, period);
}

/** `max` and -1 mean no limit. */
function ratio(quota: string | undefined, period: string | undefined): number {
  const limit = Number(quota) / Number(period);
  return limit > 0 ? limit : Infinity;
}
