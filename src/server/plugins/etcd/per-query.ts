/** Reads records from etcd for each query (`per_query`). */
import type { Clock } from '../../base/clock.ts';
import { EtcdClient } from '../../etcd/client.ts';
import { EtcdFailure } from '../../etcd/etcd-failure.ts';
import { prefixRange, type KeyRange, type KeyValue } from '../../etcd/messages.ts';
import type { Counter } from '../../metrics/registry.ts';
import type { ControlChannel, KeptAcrossReloads } from '../../engine/contract/control-context.ts';
import type { WorkerChannel } from '../../engine/contract/plugin.ts';
import type { RecordsOfQuery, AnswerSource } from './etcd-answerer.ts';
import type { KeyStretch } from './lookup.ts';
import type { EtcdPlan } from './etcd-plan.ts';
import { leaseOf, packService } from './skydns-service.ts';

interface KeyRequest {
  readonly id: number;
  readonly from: number;
  readonly path: string;
  readonly below: boolean;
}

/** The reply; if there is no result, `failure` explains why. */
interface KeyReply {
  readonly id: number;
  readonly from: number;
  readonly keys: readonly string[];
  readonly values: readonly string[];
  readonly leases: readonly (readonly [id: string, until: number])[];
  readonly failure: string | null;
}

interface ReaderParts {
  readonly plan: EtcdPlan;
  readonly maxSearch: number;
  readonly clock: Clock;
}

/** The control thread's part of `per_query`, which reads from etcd and sends the results to the worker. */
export class EtcdReader implements KeptAcrossReloads {
  readonly #parts: ReaderParts;
  readonly #client: EtcdClient;

  constructor(parts: ReaderParts) {
    this.#parts = parts;
    this.#client = new EtcdClient({ ...parts.plan, clock: parts.clock });
  }

  serve(channel: ControlChannel): void {
    channel.onMessage((message) => {
      const question = message as KeyRequest;
      const { id, from } = question;
      const nothing = { keys: [], values: [], leases: [], failure: null };
      const answer = (found: Partial<KeyReply>): void =>
        void channel.publish({ id, from, ...nothing, ...found } satisfies KeyReply);
      this.#read(question).then(answer, (error: unknown) => {
        if (!(error instanceof EtcdFailure)) throw error;
        answer({ failure: error.message });
      });
    });
  }

  close(): void {
    this.#client.close();
  }

  async #read({ path, below }: KeyRequest): Promise<Pick<KeyReply, 'keys' | 'values' | 'leases'>> {
    const { plan, maxSearch, clock } = this.#parts;
    const key = Buffer.from(plan.prefix + path, 'latin1');
    const range: KeyRange = below
      ? prefixRange(Buffer.concat([key, Buffer.from('/')]))
      : { key, end: null };
    const { kvs } = await this.#client.range({ ...range, limit: maxSearch + 1 });
    const values = kvs.map((kv) => packed(kv, plan.maxValueBytes));
    const leases = [...new Set(values.map(leaseOf).filter((lease) => lease !== ''))];
    const ends = leases.map(async (lease): Promise<readonly [string, number]> => {
      const { ttl } = await this.#client.lease(Buffer.from(lease, 'latin1').readBigUInt64BE());
      return [lease, clock.wall() + Math.max(0, ttl) * 1000 + HALF_SECOND];
    });
    return {
      keys: kvs.map(({ key: bytes }) => bytes.toString('latin1').slice(plan.prefix.length)),
      values,
      leases: await Promise.all(ends),
    };
  }
}

/** etcd rounds the remaining time down, so half a second is added to keep the TTL from falling below it. */
const HALF_SECOND = 500;

function packed({ value, lease }: KeyValue, maxBytes: number): string {
  const read = value.length > maxBytes ? null : packService(value, lease);
  return typeof read === 'string' ? read : '';
}

interface WaitingRequest {
  readonly resolve: (reply: KeyReply) => void;
  readonly reject: (error: Error) => void;
}

/** A worker's part of `per_query`, which reads each query's records when they are needed. */
export class QuerySource implements AnswerSource {
  readonly listed = true;
  readonly lasting = null;
  readonly #channel: WorkerChannel;
  readonly #clock: Clock;
  readonly #from: number;
  readonly #waiting = new Map<number, WaitingRequest>();
  readonly #waitingMax: number;
  readonly #failures: Counter;
  #ids = 0;
  #stopped = false;

  /**
   * @param from a number that is unique to this worker
   * @param waitingMax maximum number of reads that wait for etcd
   */
  constructor(
    channel: WorkerChannel,
    clock: Clock,
    { from, waitingMax, failures }: { from: number; waitingMax: number; failures: Counter },
  ) {
    this.#channel = channel;
    this.#clock = clock;
    this.#from = from;
    this.#waitingMax = waitingMax;
    this.#failures = failures;
    channel.onMessage((message) => {
      const reply = message as KeyReply;
      if (reply.from !== from) return;
      const waiting = this.#waiting.get(reply.id);
      this.#waiting.delete(reply.id);
      if (reply.failure === null) waiting?.resolve(reply);
      else {
        failures.add(1);
        waiting?.reject(new Error(reply.failure));
      }
    });
  }

  /** The current time, as in CoreDNS, because it is not known when the data last changed. */
  get serial(): number {
    return Math.floor(this.#clock.wall() / 1000);
  }

  /** Stops after the configuration was replaced. Queries that are still waiting fail as if etcd had not answered. */
  stop(): void {
    this.#stopped = true;
    this.#failures.add(this.#waiting.size);
    for (const { reject } of this.#waiting.values()) reject(new Error('the configuration ended'));
    this.#waiting.clear();
  }

  open(): ReadRecords {
    return new ReadRecords((path, below) => this.#read(path, below));
  }

  #read(path: string, below: boolean): Promise<KeyReply> {
    if (this.#stopped) return Promise.reject(new Error('the configuration ended'));
    if (this.#waiting.size >= this.#waitingMax) {
      this.#failures.add(1);
      return Promise.reject(new Error('too many reads wait for etcd (max_waiting)'));
    }
    const { promise, resolve, reject } = Promise.withResolvers<KeyReply>();
    const id = this.#ids++;
    this.#waiting.set(id, { resolve, reject });
    this.#channel.post({ id, from: this.#from, path, below } satisfies KeyRequest);
    return promise;
  }
}

class ReadRecords implements RecordsOfQuery {
  readonly #read: (path: string, below: boolean) => Promise<KeyReply>;
  readonly #known = new Map<string, KeyStretch | null>();
  readonly #leases = new Map<string, number>();
  #pending: Promise<void>[] = [];

  constructor(read: (path: string, below: boolean) => Promise<KeyReply>) {
    this.#read = read;
  }

  below(path: string): KeyStretch | null {
    return this.#find(path, true);
  }

  at(path: string): KeyStretch | null {
    return this.#find(path, false);
  }

  leaseEnd(id: string): number {
    return this.#leases.get(id) ?? 0;
  }

  wait(): Promise<void> | null {
    const pending = this.#pending;
    this.#pending = [];
    return pending.length === 0 ? null : Promise.all(pending).then(() => undefined);
  }

  #find(path: string, below: boolean): KeyStretch | null {
    const key = below ? `${path}/` : path;
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    this.#known.set(key, null);
    const read = this.#read(path, below).then(({ keys, values, leases }) => {
      this.#known.set(key, { keys, values, from: 0, to: keys.length });
      for (const [id, until] of leases) this.#leases.set(id, until);
    });
    // The query may be abandoned before this is done.
    read.catch(() => undefined);
    this.#pending.push(read);
    return null;
  }
}
