/**
 * A control group in each of this machine's hierarchies (cgroup v1, v2, or both), for a process and all its children.
 * The groups in a run share a name, and all their processes can be killed.
 */
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';

const MOUNTED = '/sys/fs/cgroup';

/** A hierarchy in the form in which it is mounted here. */
export interface Hierarchy {
  /**
   * The mount point's name under `/sys/fs/cgroup`, such as `memory` or `unified`. If only cgroup v2 exists, it is `''`,
   * the mount point itself.
   */
  readonly name: string;
  /** The hierarchy's name in the mount options, such as `memory` or `name=systemd`; null for cgroup v2. */
  readonly option: string | null;
  readonly own: string;
}

export function hierarchies(): readonly Hierarchy[] {
  const own = new Map<string, string>();
  for (const line of readFileSync('/proc/self/cgroup', 'utf8').trim().split('\n')) {
    const [, controllers = '', ...path] = line.split(':');
    own.set(controllers, path.join(':'));
  }
  return readFileSync('/proc/self/mountinfo', 'utf8')
    .trim()
    .split('\n')
    .flatMap((line): Hierarchy[] => {
      const [before = '', after = ''] = line.split(' - ');
      const at = before.split(' ')[4]!;
      const [type, , options = ''] = after.split(' ');
      if (!`${at}/`.startsWith(`${MOUNTED}/`)) return [];
      const name = at.slice(MOUNTED.length + 1);
      if (type === 'cgroup2') return [{ name, option: null, own: own.get('') ?? '/' }];
      if (type !== 'cgroup') return [];
      const option = [...own.keys()].find(
        (key) => key !== '' && key.split(',').every((each) => options.split(',').includes(each)),
      );
      return option === undefined ? [] : [{ name, option, own: own.get(option)! }];
    });
}

/** The groups with this name under this process's own groups, one directory per hierarchy. */
export const groupsNamed = (name: string): readonly string[] =>
  hierarchies().map((each) => join(MOUNTED, each.name, each.own, name));

/**
 * The cgroup v2 group among these groups.
 * @throws if this machine has only cgroup v1
 */
export function groupV2(groups: readonly string[]): string {
  const at = hierarchies().findIndex(({ option }) => option === null);
  if (at < 0) throw new Error('cgroup v2 is not mounted here');
  return groups[at]!;
}

export function makeGroups(groups: readonly string[]): void {
  for (const group of groups) {
    mkdirSync(group, { recursive: true });
    // In the v1 cpuset hierarchy, a group does not accept any process until both are set.
    for (const file of ['cpuset.cpus', 'cpuset.mems'])
      if (existsSync(join(group, file)) && existsSync(join(group, 'cgroup.clone_children')))
        writeFileSync(join(group, file), readFileSync(join(dirname(group), file)));
  }
}

/** The processes in these groups and in the groups nested in them. */
export function processesIn(groups: readonly string[]): readonly number[] {
  const found = new Set<number>();
  const read = (group: string): void => {
    if (!existsSync(group)) return;
    try {
      for (const line of readFileSync(join(group, 'cgroup.procs'), 'utf8').split('\n'))
        if (line !== '' && line !== '0') found.add(Number(line));
    } catch {
      // A group cannot be read while it is being removed.
    }
    for (const below of groupsBelow(group)) read(below);
  };
  for (const group of groups) read(group);
  return [...found];
}

function groupsBelow(group: string): readonly string[] {
  try {
    return readdirSync(group, { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map((entry) => join(group, entry.name));
  } catch {
    return [];
  }
}

/**
 * Removes the groups, nested ones first.
 * @returns those that could not be removed, because the kernel still charges something to them
 */
export function removeGroups(groups: readonly string[]): readonly string[] {
  return groups.flatMap((group) => {
    if (!existsSync(group)) return [];
    const left = removeGroups(groupsBelow(group));
    try {
      rmdirSync(group);
      return left;
    } catch {
      return [...left, group];
    }
  });
}
