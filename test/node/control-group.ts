/**
 * A control group in each hierarchy on this machine, for a process and all its children: cgroup v1, v2, or both. The
 * groups of a run share a name, and everything in them can be killed.
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

/** A hierarchy as mounted here. */
export interface Hierarchy {
  /**
   * The mount point's name under `/sys/fs/cgroup`: `memory`, `unified`; `''`: the mount point itself, with only cgroup
   * v2.
   */
  readonly name: string;
  /** The name in the mount options: `memory`, `name=systemd`; null: cgroup v2. */
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

/** The groups with this name, one directory per hierarchy, under this process's own groups. */
export const groupsNamed = (name: string): readonly string[] =>
  hierarchies().map((each) => join(MOUNTED, each.name, each.own, name));

export function makeGroups(groups: readonly string[]): void {
  for (const group of groups) {
    mkdirSync(group, { recursive: true });
    // In the v1 hierarchy cpuset, a group accepts no process until both are set.
    for (const file of ['cpuset.cpus', 'cpuset.mems'])
      if (existsSync(join(group, file)) && existsSync(join(group, 'cgroup.clone_children')))
        writeFileSync(join(group, file), readFileSync(join(dirname(group), file)));
  }
}

/** The processes in these groups and in nested ones. */
export function processesIn(groups: readonly string[]): readonly number[] {
  const found = new Set<number>();
  const read = (group: string): void => {
    if (!existsSync(group)) return;
    try {
      for (const line of readFileSync(join(group, 'cgroup.procs'), 'utf8').split('\n'))
        if (line !== '' && line !== '0') found.add(Number(line));
    } catch {
      // A group that is being removed cannot be read.
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
 * @returns those that remain because the kernel still counts something in them
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
