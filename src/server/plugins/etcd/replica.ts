/** A worker's copy of the etcd data. */
import type { Replica } from '../../engine/contract/data-set.ts';
import type { Dependency } from '../../engine/contract/reply-cache.ts';
import type { AnswerSource, RecordsOfQuery } from './etcd-answerer.ts';
import { KeyTable } from './key-table.ts';
import type { KeyStretch } from './lookup.ts';

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
export class Contents implements RecordsOfQuery {
  readonly table: KeyTable;
  /** Lease expiries in milliseconds since 1970. */
  readonly leases: Map<string, number>;
  listed = false;
  /** Unix time of the last change, used as the serial in the zones' SOA. */
  serial = 0;

  constructor(table: KeyTable = new KeyTable(), leases: Map<string, number> = new Map()) {
    this.table = table;
    this.leases = leases;
  }

  below(path: string, most: number): KeyStretch {
    // `0` follows `/` in byte order.
    return this.table.range(`${path}/`, `${path}0`, most);
  }

  at(path: string): KeyStretch {
    // No string sorts between a text and that text followed by a zero byte.
    return this.table.range(path, `${path}\0`, 1);
  }

  leaseEnd(id: string): number {
    return this.leases.get(id) ?? 0;
  }

  wait(): null {
    return null;
  }
}

/** A worker's copy of the etcd data, which answers without waiting. */
export class EtcdReplica implements Replica<EtcdChange>, Dependency, AnswerSource {
  version = 0;
  readonly lasting: Dependency = this;
  #contents = new Contents();
  /** Contents built from a snapshot that is not complete yet, or null. */
  #next: Contents | null = null;

  get contents(): Contents {
    return this.#contents;
  }

  get listed(): boolean {
    return this.#contents.listed;
  }

  get serial(): number {
    return this.#contents.serial;
  }

  open(): RecordsOfQuery {
    return this.#contents;
  }

  begin(): void {
    this.#next = new Contents();
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
