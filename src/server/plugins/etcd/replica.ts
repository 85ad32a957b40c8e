/** A worker's copy of the etcd data. */
import type { Replica } from '../../engine/contract/data-set.ts';
import type { Dependency } from '../../engine/contract/reply-cache.ts';
import { KeyTable } from './key-table.ts';

export type EtcdChange =
  /**
   * A changed key (relative to `path`) and its value, which is null if the key was deleted and empty if the value is
   * invalid.
   */
  | { readonly about: 'key'; readonly key: string; readonly packed: string | null }
  /** Expiry of a lease, in milliseconds since 1970, or null if it is no longer needed. */
  | { readonly about: 'lease'; readonly id: string; readonly until: number | null }
  /** Set once everything has been listed, along with the time of the last change in Unix seconds. */
  | { readonly about: 'state'; readonly listed: boolean; readonly serial: number };

/** Returns the approximate size in bytes of a change on its way to a worker. */
export function sizeOf(change: EtcdChange): number {
  return change.about === 'key' ? 48 + change.key.length + (change.packed?.length ?? 0) : 48;
}

/** The replicated etcd data: keys, leases, and when they were read. */
export interface Contents {
  readonly table: KeyTable;
  /** Lease expiries in milliseconds since 1970. */
  readonly leases: Map<string, number>;
  listed: boolean;
  /** Unix time of the last change, used as the serial in the zones' SOA. */
  serial: number;
}

function empty(): Contents {
  return { table: new KeyTable(), leases: new Map(), listed: false, serial: 0 };
}

export class EtcdReplica implements Replica<EtcdChange>, Dependency {
  version = 0;
  #contents = empty();
  /** Contents built from a snapshot that is not complete yet, or null. */
  #next: Contents | null = null;

  get contents(): Contents {
    return this.#contents;
  }

  begin(): void {
    this.#next = empty();
  }

  apply(changes: readonly EtcdChange[]): void {
    const contents = this.#next ?? this.#contents;
    this.version = (this.version + 1) | 0;
    for (const change of changes) {
      if (change.about === 'key') {
        if (change.packed === null) contents.table.delete(change.key);
        else contents.table.set(change.key, change.packed);
      } else if (change.about === 'lease') {
        if (change.until === null) contents.leases.delete(change.id);
        else contents.leases.set(change.id, change.until);
      } else {
        contents.listed = change.listed;
        contents.serial = change.serial;
      }
    }
  }

  complete(): void {
    if (this.#next !== null) this.#contents = this.#next;
    this.#next = null;
    this.version = (this.version + 1) | 0;
  }
}
