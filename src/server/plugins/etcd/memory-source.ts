/** Finds records in this worker's copy of the etcd data. */
import type { Dependency } from '../../engine/contract/reply-cache.ts';
import type { RecordsOfQuery, AnswerSource } from './etcd-answerer.ts';
import type { KeyStretch } from './lookup.ts';
import type { EtcdReplica } from './replica.ts';

/** Answers from this worker's copy of the etcd data, without waiting. */
export class MemorySource implements AnswerSource, RecordsOfQuery {
  readonly #replica: EtcdReplica;
  readonly #maxSearch: number;

  /** @param maxSearch maximum number of keys per query; collecting stops once it is exceeded */
  constructor(replica: EtcdReplica, maxSearch: number) {
    this.#replica = replica;
    this.#maxSearch = maxSearch;
  }

  get lasting(): Dependency {
    return this.#replica;
  }

  get listed(): boolean {
    return this.#replica.contents.listed;
  }

  get serial(): number {
    return this.#replica.contents.serial;
  }

  open(): RecordsOfQuery {
    return this;
  }

  below(path: string): KeyStretch {
    // `0` follows `/` in byte order.
    return this.#replica.contents.table.range(`${path}/`, `${path}0`, this.#maxSearch);
  }

  at(path: string): KeyStretch {
    // No string sorts between a text and that text followed by a zero byte.
    return this.#replica.contents.table.range(path, `${path}\0`, 1);
  }

  leaseEnd(id: string): number {
    return this.#replica.contents.leases.get(id) ?? 0;
  }

  wait(): null {
    return null;
  }
}
