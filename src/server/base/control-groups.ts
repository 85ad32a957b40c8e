/** Finds the control groups of this process (cgroups(7)), of both versions, and so their limits. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** The paths of control groups, and of those of this process; tests use other paths. */
export interface ControlGroupFiles {
  /** The mount of control groups. */
  readonly root: string;
  /** The file that names this process's groups. */
  readonly own: string;
}

/** The places on Linux. */
export const CONTROL_GROUPS: ControlGroupFiles = {
  root: '/sys/fs/cgroup',
  own: '/proc/self/cgroup',
};

/**
 * The directories that may contain this process's limits for a controller, of both versions: its
 * own group and all groups around it, each of which may have the tightest limit.
 */
export function groupFolders(
  { root, own }: ControlGroupFiles,
  controller: string,
): readonly string[] {
  return groupLines(own).flatMap((line) => {
    const [, controllers = '', path = ''] = /^\d+:([^:]*):(.*)$/.exec(line) ?? [];
    if (controllers !== '' && !controllers.split(',').includes(controller)) return [];
    const top = controllers === '' ? root : join(root, controller);
    // Within a container the path of the own group may be the host's, while the mount shows the
    // container's group at its root.
    return [...parents(path), ''].map((each) => join(top, each));
  });
}

/** The lines of such a file; none if it cannot be read. */
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
