import type { Dependency } from '../../server/contract/reply-cache.ts';
import type { RecordsOfQuery, Source } from './answer.ts';
import type { Stretch } from './lookup.ts';
import type { EtcdReplica } from './replica.ts';

/** Answers from this worker's copy of what etcd holds: nothing is ever waited for. */
export class MemorySource implements Source, RecordsOfQuery {
  readonly #replica: EtcdReplica;

  constructor(replica: EtcdReplica) {
    this.#replica = replica;
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

  below(path: string): Stretch {
    const { table } = this.#replica.contents;
    const { keys, values } = table;
    // `0` follows `/` in the order of bytes.
    return { keys, values, from: table.lowerBound(`${path}/`), to: table.lowerBound(`${path}0`) };
  }

  at(path: string): Stretch {
    const { table } = this.#replica.contents;
    const { keys, values } = table;
    const from = table.lowerBound(path);
    return { keys, values, from, to: keys[from] === path ? from + 1 : from };
  }

  leaseEnd(id: string): number {
    return this.#replica.contents.leases.get(id) ?? 0;
  }

  wait(): null {
    return null;
  }
}
