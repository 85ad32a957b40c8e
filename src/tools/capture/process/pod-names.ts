/** Finds the names of this node's pods by UID, in the kubelet's log directory. This needs no access to the API server. */
import { readdirSync } from 'node:fs';

/** The kubelet's default, as seen by a process on the node and by a pod with the node's process IDs. */
const DIRECTORIES = ['/var/log/pods', '/proc/1/root/var/log/pods'] as const;
/** Milliseconds until the directory is read again for a UID that it did not have. */
const PAUSE_MS = 2000;

export class PodNames {
  readonly #directories: readonly string[];
  #names: ReadonlyMap<string, string> = new Map();
  #readAfterMs = -Infinity;

  /** @param directories the first one that can be read counts */
  constructor(directories: readonly string[] = DIRECTORIES) {
    this.#directories = directories;
  }

  /** `NAMESPACE/NAME`, or null if it is unknown. */
  nameOf(uid: string): string | null {
    const known = this.#names.get(uid);
    if (known !== undefined) return known;
    const nowMs = performance.now();
    if (nowMs < this.#readAfterMs) return null;
    this.#readAfterMs = nowMs + PAUSE_MS;
    this.#names = this.#read();
    return this.#names.get(uid) ?? null;
  }

  #read(): ReadonlyMap<string, string> {
    for (const directory of this.#directories)
      try {
        // The kubelet names a pod's directory NAMESPACE_NAME_UID. None of the three may contain an underscore.
        const parts = readdirSync(directory).map((entry) => entry.split('_'));
        return new Map(
          parts
            .filter(({ length }) => length === 3)
            .map(([namespace, name, uid]) => [uid!, `${namespace}/${name}`]),
        );
      } catch {
        // This machine is not a node, or access is denied.
      }
    return new Map();
  }
}
