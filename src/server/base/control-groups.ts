/** Finds this process's control groups, v1 and v2 (cgroups(7)), and thereby its limits. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** Paths of the control group files. Tests use other paths. */
export interface ControlGroupFiles {
  /** Mount point of the control group hierarchy. */
  readonly root: string;
  /** File that lists this process's groups. */
  readonly own: string;
}

/** Standard paths on Linux. */
export const CONTROL_GROUPS: ControlGroupFiles = {
  root: '/sys/fs/cgroup',
  own: '/proc/self/cgroup',
};

/**
 * Returns the directories, v1 and v2, that may contain this process's limits for a controller: its own group and all
 * ancestors. Any of them may set the tightest limit.
 */
export function groupDirectories(
  { root, own }: ControlGroupFiles,
  controller: string,
): readonly string[] {
  return groupLines(own).flatMap((line) => {
    const [, controllers = '', path = ''] = /^\d+:([^:]*):(.*)$/.exec(line) ?? [];
    if (controllers !== '' && !controllers.split(',').includes(controller)) return [];
    const top = controllers === '' ? root : join(root, controller);
    // In a container, the path may be the host's, while the mount has the container's group at its root.
    return [...parents(path), ''].map((each) => join(top, each));
  });
}

/** Reads the lines of such a file, or returns none if it is unreadable. */
export function groupLines(file: string): readonly string[] {
  try {
    return readFileSync(file, 'latin1').trimEnd().split('\n');
  } catch {
    return [];
  }
}

/** `/a/b` → `/a/b`, `/a`. */
function parents(path: string): readonly string[] {
  const parts = path.split('/').filter((part) => part !== '' && part !== '..');
  return parts.map((_, index) => parts.slice(0, parts.length - index).join('/'));
}
