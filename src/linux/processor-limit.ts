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
  for (const group of ownGroups(files.own)) {
    // Within a container the group's own path may be that of the host; the mount then shows the container's group at its top.
    const paths = [...parents(group.path), ''];
    for (const path of paths) limit = Math.min(limit, group.limit(files.root, path));
  }
  return limit;
}

interface Group {
  readonly path: string;
  limit(root: string, path: string): number;
}

function ownGroups(file: string): readonly Group[] {
  return lines(file).flatMap((line): readonly Group[] => {
    const [, controllers = '', path = ''] = /^\d+:([^:]*):(.*)$/.exec(line) ?? [];
    if (controllers === '') return [{ path, limit: limitOfVersion2 }];
    return controllers.split(',').includes('cpu') ? [{ path, limit: limitOfVersion1 }] : [];
  });
}

function limitOfVersion2(root: string, path: string): number {
  const [quota, period] = (lines(join(root, path, 'cpu.max'))[0] ?? '').split(' ');
  return ratio(quota, period);
}

function limitOfVersion1(root: string, path: string): number {
  const folder = join(root, 'cpu', path);
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
