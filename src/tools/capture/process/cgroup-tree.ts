/** Maps a cgroup's kernel number (v2) to its path and processes. */
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';

/** Limit on directories read per scan. A large node has a few thousand. */
const DIRECTORIES_MAX = 20_000;
/** A scan that took 1 ms is repeated after 20 ms at the earliest. */
const PAUSE_PER_COST = 20;
/** The number of paths to remember after their cgroups are removed. */
const REMEMBERED_MAX = 50_000;

export class CgroupTree {
  readonly #root: string;
  readonly #paths = new Map<bigint, string>();
  #walkAfterMs = -Infinity;

  /** @param root where cgroup v2 is mounted (`mountedCgroups`) */
  constructor(root: string) {
    this.#root = root;
  }

  /** A cgroup's path under the mount, such as `/kubepods.slice/…`, or null if it is not in the tree. */
  pathOf(id: bigint): string | null {
    const known = this.#paths.get(id);
    if (known !== undefined) return known;
    this.#walk();
    return this.#paths.get(id) ?? null;
  }

  /** A cgroup's processes, without those in nested cgroups. */
  processesIn(path: string): readonly number[] {
    try {
      const text = readFileSync(join(this.#root, path, 'cgroup.procs'), 'utf8');
      // 0 means a process in another PID namespace, which has no PID here.
      return text
        .split('\n')
        .map(Number)
        .filter((pid) => pid > 0);
    } catch {
      return [];
    }
  }

  #walk(): void {
    const beganMs = performance.now();
    if (beganMs < this.#walkAfterMs) return;
    if (this.#paths.size > REMEMBERED_MAX) this.#paths.clear();
    const open = ['/'];
    for (let seen = 0; open.length > 0 && seen < DIRECTORIES_MAX; seen++) {
      const path = open.pop()!;
      try {
        this.#paths.set(statSync(join(this.#root, path), { bigint: true }).ino, path);
        for (const entry of readdirSync(join(this.#root, path), { withFileTypes: true }))
          if (entry.isDirectory()) open.push(join(path, entry.name));
      } catch {
        // It has been removed.
      }
    }
    const endedMs = performance.now();
    this.#walkAfterMs = endedMs + (endedMs - beganMs) * PAUSE_PER_COST;
  }
}

/**
 * The mount point of cgroup v2, either as the only hierarchy (`/sys/fs/cgroup`) or next to v1
 * (`/sys/fs/cgroup/unified`). Null if it is not mounted.
 */
export function mountedCgroups(mounts: string): string | null {
  const places = mounts
    .split('\n')
    .filter((line) => / - cgroup2 /.test(line))
    .map((line) => line.split(' ')[4] ?? '')
    .filter((place) => place !== '');
  return places[0] ?? null;
}
