import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** Where the system shows control groups, and what it says of this process; other places in tests. */
export interface ControlGroupFiles {
  /** Where control groups are mounted. */
  readonly root: string;
  /** The file that names this process's groups. */
  readonly own: string;
}

const SYSTEM: ControlGroupFiles = { root: '/sys/fs/cgroup', own: '/proc/self/cgroup' };

/**
 * How many processors this process may use at most (`resources.limits.cpu` of a container), with fractions; Infinity without a
 * limit. Read anew at each call, since a limit may be changed while the container runs. Control groups of both versions
 * (cgroups(7): `cpu.max`; `cpu.cfs_quota_us` and `cpu.cfs_period_us`); of nested groups the tightest counts.
 */
export function processorLimit(files: ControlGroupFiles = SYSTEM): number {
  let limit = Infinity;
  for (const folder of groupFolders(files, 'cpu'))
    limit = Math.min(limit, limitOfVersion2(folder), limitOfVersion1(folder));
  return limit;
}

/**
 * How many threads more the process's groups allow (`pids.max` of both versions); Infinity without a limit. A container's groups are those
 * of all its processes.
 */
export function threadRoom(files: ControlGroupFiles = SYSTEM): number {
  let room = Infinity;
  for (const folder of groupFolders(files, 'pids')) {
    const [most] = lines(join(folder, 'pids.max'));
    const [present] = lines(join(folder, 'pids.current'));
    const left = Number(most) - Number(present);
    if (!Number.isNaN(left)) room = Math.min(room, left);
  }
  return room;
}

/** Where the limits of this process's groups may be found that this controller sets, of both versions. */
function groupFolders({ root, own }: ControlGroupFiles, controller: string): readonly string[] {
  return lines(own).flatMap((line) => {
    const [, controllers = '', path = ''] = /^\d+:([^:]*):(.*)$/.exec(line) ?? [];
    if (controllers !== '' && !controllers.split(',').includes(controller)) return [];
    const top = controllers === '' ? root : join(root, controller);
    // Within a container the group's own path may be that of the host; the mount then shows the container's group at its top.
    return [...parents(path), ''].map((each) => join(top, each));
  });
}

function limitOfVersion2(folder: string): number {
  const [quota, period] = (lines(join(folder, 'cpu.max'))[0] ?? '').split(' ');
  return ratio(quota, period);
}

function limitOfVersion1(folder: string): number {
  const [quota] = lines(join(folder, 'cpu.cfs_quota_us'));
  const [period] = lines(join(folder, 'cpu.cfs_period_us'));
  return ratio(quota, period);
}

/** `max` and -1 stand for no limit. */
function ratio(quota: string | undefined, period: string | undefined): number {
  const limit = Number(quota) / Number(period);
  return limit > 0 ? limit : Infinity;
}

/** `/a/b` → `/a/b`, `/a`. */
function parents(path: string): readonly string[] {
  const parts = path.split('/').filter((part) => part !== '' && part !== '..');
  return parts.map((_, index) => parts.slice(0, parts.length - index).join('/'));
}

/** None if the file cannot be read. */
function lines(file: string): readonly string[] {
  try {
    return readFileSync(file, 'latin1').trimEnd().split('\n');
  } catch {
    return [];
  }
}
