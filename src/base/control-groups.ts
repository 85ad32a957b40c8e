/** The control groups of this process (cgroups(7)), of both versions: where their limits stand. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** Where the system shows control groups, and what it says of this process; other places in tests. */
export interface ControlGroupFiles {
  /** Where control groups are mounted. */
  readonly root: string;
  /** The file that names this process's groups. */
  readonly own: string;
}

/** Where Linux has them. */
export const CONTROL_GROUPS: ControlGroupFiles = {
  root: '/sys/fs/cgroup',
  own: '/proc/self/cgroup',
};

/**
 * Where the limits of this process's groups may be found that this controller sets, of both versions: its own group and all that it is
 * nested in, each of which may have the tightest.
 */
export function groupFolders(
  { root, own }: ControlGroupFiles,
  controller: string,
): readonly string[] {
  return groupLines(own).flatMap((line) => {
    const [, controllers = '', path = ''] = /^\d+:([^:]*):(.*)$/.exec(line) ?? [];
    if (controllers !== '' && !controllers.split(',').includes(controller)) return [];
    const top = controllers === '' ? root : join(root, controller);
    // Within a container the group's own path may be that of the host; the mount then shows the container's group at its top.
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
