/** A cluster whose objects change behind a failing API server. */
import type { Random } from '../../src/server/base/random.ts';
import type { VirtualClock } from '../../src/server/base/virtual-clock.ts';
import type { Fault, Verb } from '../kit/apiserver/faults.ts';
import { ApiServer, namespace } from '../kit/apiserver/server.ts';
import type { Backup } from '../kit/apiserver/store.ts';
import { sliceObject, serviceObject } from '../kit/cluster-objects.ts';
import { Truth } from './truth.ts';

const SERVICES = 30;
/** The number of revisions that a restored database skips. */
const BUMPED_BY = 1_000_000;
const suffix = 'shop.svc.cluster.local.';
/** A Service that never changes. */
export const PINNED = { name: `pinned.${suffix}`, address: '10.96.255.1' };

/** Services in the `shop` namespace, with and without a cluster IP, and their API server. */
export class FaultyCluster {
  /** Maps a name to its addresses, sorted and comma-separated, or to null if the name does not exist. */
  readonly truth: Truth = new Truth();
  readonly names: readonly string[];
  readonly #clock: VirtualClock;
  readonly #random: Random;
  readonly #port: number;
  #server: ApiServer | null;
  readonly #store: ApiServer['store'];
  #version = 0;
  /** A copy of the database, and the names at that time. */
  #backup: { readonly store: Backup; readonly names: ReadonlyMap<string, string | null> };

  private constructor(clock: VirtualClock, random: Random, server: ApiServer) {
    this.#clock = clock;
    this.#random = random;
    this.#server = server;
    this.#port = server.port;
    this.#store = server.store;
    this.names = Array.from({ length: SERVICES }, (_, index) => nameOf(index));
    server.put('namespaces', namespace('shop'));
    server.put('services', serviceObject('shop', 'pinned', PINNED.address, 'http:80'));
    for (let index = 0; index < SERVICES; index++) this.change(index);
    this.#backup = this.#copy();
  }

  static async start(clock: VirtualClock, random: Random): Promise<FaultyCluster> {
    return new FaultyCluster(clock, random, await ApiServer.start({ clock }));
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  /** Creates, changes or deletes a Service. The database accepts the change even while the API server is down. */
  change(index: number = this.#random.integer(SERVICES)): void {
    const plain = `s${index}`;
    this.#version++;
    const value = this.#random.integer(5) === 0 ? null : this.#put(index, plain);
    if (value === null) {
      this.#store.delete('services', 'shop', plain);
      this.#store.delete(SLICES, 'shop', `${plain}-abcde`);
    }
    this.truth.set(this.#clock.now(), nameOf(index), value);
  }

  #put(index: number, plain: string): string {
    const [high, low] = [this.#version >> 8, this.#version & 255];
    if (!isHeadless(index)) {
      const address = `10.96.${high}.${low}`;
      this.#store.put('services', serviceObject('shop', plain, address, 'http:80'));
      return address;
    }
    const count = 1 + this.#random.integer(4);
    const addresses = Array.from({ length: count }, (_, at) => `10.${at + 1}.${high}.${low}`);
    // A different controller creates the slices, so they may exist before the Service.
    this.#store.put(SLICES, sliceObject('shop', plain, addresses, 'http:80'));
    this.#store.put('services', serviceObject('shop', plain, 'None', 'http:80'));
    return addresses.toSorted().join(',');
  }

  /** Makes the API server fail in one of its ways. @returns a description for the trace */
  async fail(): Promise<string> {
    const server = this.#server;
    if (server === null) return this.#restart();
    const plural = this.#pick(['services', 'endpointslices', undefined]);
    switch (this.#random.integer(9)) {
      case 0:
        server.dropWatches(plural);
        return `the API server drops watches of ${plural}`;
      case 1:
        server.freezeWatches(plural);
        return `the API server freezes watches of ${plural}`;
      case 2:
        server.failWatches(this.#pick([410, 500, 429]), 'injected');
        return 'the API server ends watches with an error';
      case 3:
        server.compact();
        return 'etcd is compacted';
      case 4:
        await server.stop();
        this.#server = null;
        return 'the API server stops';
      case 5:
        this.#backup = this.#copy();
        return 'etcd is backed up';
      case 6:
        return this.#restore(server);
      default: {
        const rule = {
          fault: this.#fault(),
          ...(plural === undefined ? {} : { resource: plural }),
          verb: this.#pick<Verb>(['list', 'watch', 'get']),
          times: 1 + this.#random.integer(6),
        };
        server.faults.add(rule);
        return `the API server has the fault ${JSON.stringify(rule)}`;
      }
    }
  }

  #copy(): { readonly store: Backup; readonly names: ReadonlyMap<string, string | null> } {
    return { store: this.#store.backup(), names: this.truth.current() };
  }

  /**
   * Goes back in time: etcd is restored from the last backup, for which the API server has to be stopped. Revisions
   * are bumped beyond all earlier ones, because clients cannot notice that a revision is used again.
   */
  async #restore(server: ApiServer): Promise<string> {
    await server.stop();
    const { store } = this.#backup;
    this.#store.restore(store, this.#store.revision - store.revision + BUMPED_BY);
    for (const [name, value] of this.#backup.names) this.truth.set(this.#clock.now(), name, value);
    return `etcd is restored from a backup. ${await this.#restart()}`;
  }

  #fault(): Fault {
    const afterBytes = this.#random.integer(2000);
    const status = this.#pick([403, 410, 429, 500, 503]);
    return this.#pick<Fault>([
      { kind: 'status', status },
      { kind: 'drop' },
      { kind: 'drop', afterBytes },
      { kind: 'hang' },
      { kind: 'stall', afterBytes },
      { kind: 'garbage' },
    ]);
  }

  /** Ends all faults. */
  async heal(): Promise<void> {
    if (this.#server === null) await this.#restart();
    this.#server!.faults.clear();
  }

  async #restart(): Promise<string> {
    this.#server = await ApiServer.start({
      clock: this.#clock,
      store: this.#store,
      port: this.#port,
    });
    return 'the API server starts';
  }

  async stop(): Promise<void> {
    await this.#server?.stop();
  }

  #pick<T>(list: readonly T[]): T {
    return list[this.#random.integer(list.length)]!;
  }
}

const SLICES = 'endpointslices.discovery.k8s.io';
const isHeadless = (index: number): boolean => index % 3 === 0;
const nameOf = (index: number): string => `s${index}.${suffix}`;
