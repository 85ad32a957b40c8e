/** A worker's copy of the etcd data. */
import type { Replica } from '../../engine/contract/data-set.ts';
import type { EtcdChange } from './change.ts';
import type { Dependency } from '../../engine/contract/reply-cache.ts';
import { KeyTable } from './key-table.ts';

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
