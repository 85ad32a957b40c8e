/** An in-memory etcd controlled by a test. */
import { EtcdFailure } from '../../src/server/etcd/etcd-failure.ts';
import type { EtcdClient, WatchCall } from '../../src/server/etcd/client.ts';
import type { GrpcStream } from '../../src/server/transport/grpc/grpc-stream.ts';
import type { KeyValue, RangeRequest, RangeResponse } from '../../src/server/etcd/messages.ts';
import { MessageBuilder, MessageReader } from '../../src/server/base/protobuf.ts';

interface Watched {
  readonly id: number;
  readonly from: string;
  readonly to: string;
}

/**
 * An in-memory etcd: a history of puts (`key=value`) and deletions (`key`), one revision each, starting at revision 2.
 */
export class FakeEtcd {
  readonly history: string[] = [];
  /** All revisions up to this one are compacted. */
  compacted = 0;
  cluster = 7n;
  away = false;
  pageMax = 1000;
  /** The start revisions of the requested watches. */
  readonly watched: number[] = [];
  /** The list page that starts with this key fails. */
  breakAt = '';
  /** The number of list pages requested. */
  ranges = 0;
  /** The remaining seconds of all leases. */
  leaseSeconds = 100;
  readonly #calls = new Map<WatchCall, Watched[]>();

  get revision(): number {
    return this.history.length + 1;
  }

  put(key: string, value: string): void {
    this.#add(`${key}=${value}`);
  }

  delete(key: string): void {
    this.#add(key);
  }

  /** Breaks all connections and refuses new ones until `away` is set to false again. */
  crash(): void {
    this.away = true;
    const calls = [...this.#calls.keys()];
    this.#calls.clear();
    for (const call of calls)
      call.onEnd(new EtcdFailure('unavailable', 'etcd:1: connection reset'));
  }

  /** Resends a revision to all watches. */
  sendAgain(revision: number): void {
    for (const [call, watches] of this.#calls)
      for (const watch of watches) this.#sendEvent(call, watch, revision);
  }

  cancel(reason: string): void {
    for (const [call, watches] of this.#calls)
      for (const { id } of watches)
        call.onMessage(this.#response(id).flag(4, true).bytes(6, reason).build());
  }

  readonly client: Pick<EtcdClient, 'range' | 'watch' | 'moveOn' | 'lease' | 'close'> = {
    range: (request) => {
      this.ranges++;
      if (this.away) return Promise.reject(new EtcdFailure('unavailable', 'etcd:1: refused'));
      if (this.breakAt !== '' && request.key.toString().startsWith(this.breakAt))
        return Promise.reject(new EtcdFailure('unavailable', 'etcd:1: reset'));
      return Promise.resolve(this.#range(request));
    },
    watch: (call) => {
      if (this.away) return Promise.reject(new EtcdFailure('unavailable', 'etcd:1: refused'));
      this.#calls.set(call, []);
      const stream = {
        write: (message: Uint8Array) => this.#watch(Buffer.from(message), call),
        cancel: () => void this.#calls.delete(call),
      };
      return Promise.resolve(stream as unknown as GrpcStream);
    },
    moveOn: () => undefined,
    lease: (id) => Promise.resolve({ id, ttl: this.leaseSeconds, granted: this.leaseSeconds }),
    close: () => undefined,
  };

  #add(change: string): void {
    this.history.push(change);
    for (const [call, watches] of this.#calls)
      for (const watch of watches) this.#sendEvent(call, watch, this.revision);
  }

  #range({ key, end, limit = 0, revision = 0 }: RangeRequest): RangeResponse {
    const state = new Map<string, { readonly value: string; readonly lease: bigint }>();
    for (const change of this.history.slice(0, (revision || this.revision) - 1)) {
      const { name, value, lease } = parts(change);
      if (value === null) state.delete(name);
      else state.set(name, { value, lease });
    }
    const covers = within(key.toString(), end);
    const all = [...state]
      .filter(([name]) => covers.from <= name && name < covers.to)
      .toSorted(([a], [b]) => (a < b ? -1 : 1));
    const most = limit === 0 ? this.pageMax : Math.min(limit, this.pageMax);
    const kvs = all.slice(0, most).map(([name, { value, lease }]): KeyValue => ({
      key: Buffer.from(name),
      value: Buffer.from(value),
      modRevision: 0,
      lease,
    }));
    const header = { cluster: this.cluster, revision: this.revision };
    return { header, kvs, more: all.length > most, bytes: Buffer.alloc(0) };
  }

  #watch(message: Buffer, call: WatchCall): void {
    const reader = new MessageReader();
    reader.over(message).next();
    const create = new MessageReader().over(reader.bytes());
    let start = 0;
    let id = 0;
    let from = '';
    let end: Buffer | null = null;
    while (create.next()) {
      if (create.field === 1) from = create.text();
      else if (create.field === 2) end = create.bytes();
      else if (create.field === 3) start = create.number();
      else if (create.field === 7) id = create.number();
    }
    this.watched.push(start);
    const watch = { id, ...within(from, end) };
    queueMicrotask(() => {
      if (start <= this.compacted) {
        const gone = this.#response(id)
          .flag(4, true)
          .number(5, this.compacted + 1);
        return call.onMessage(gone.build());
      }
      call.onMessage(this.#response(id).flag(3, true).build());
      for (let at = start; at <= this.revision; at++) this.#sendEvent(call, watch, at);
      this.#calls.get(call)?.push(watch);
    });
  }

  #response(watch: number): MessageBuilder {
    const header = new MessageBuilder().number(1, this.cluster).number(3, this.revision).build();
    return new MessageBuilder().message(1, header).number(2, watch);
  }

  #sendEvent(call: WatchCall, { id, from, to }: Watched, revision: number): void {
    const { name, value, lease } = parts(this.history[revision - 2]!);
    if (name < from || name >= to) return;
    const kv = new MessageBuilder()
      .bytes(1, name)
      .number(3, revision)
      .bytes(5, value ?? '');
    const event = new MessageBuilder().number(1, value === null ? 1 : 0);
    event.message(2, kv.number(6, lease).build());
    call.onMessage(this.#response(id).message(11, event.build()).build());
  }
}

function within(from: string, end: Buffer | null): { readonly from: string; readonly to: string } {
  if (end === null) return { from, to: `${from}\0` };
  return { from, to: end.equals(Buffer.of(0)) ? '\uffff' : end.toString() };
}

/** `key=value`, `key=value lease N`, or only `key` to delete it. */
function parts(change: string): {
  readonly name: string;
  readonly value: string | null;
  readonly lease: bigint;
} {
  const equals = change.indexOf('=');
  if (equals < 0) return { name: change, value: null, lease: 0n };
  const [, value = '', lease = '0'] = /^(.*?)(?: lease (\d+))?$/s.exec(change.slice(equals + 1))!;
  return { name: change.slice(0, equals), value, lease: BigInt(lease) };
}
