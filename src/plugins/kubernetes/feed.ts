import type { Clock, Timer } from '../../base/clock.ts';
import type {
  Change,
  EndpointSlice,
  KubeObject,
  Service,
  ServiceImport,
} from '../../kube/store/objects.ts';
import type { Source } from '../../kube/store/source.ts';
import { programmingBuckets } from '../../metrics/buckets.ts';
import type { Histogram, Registry } from '../../metrics/registry.ts';
import type { ControlChannel, Kept } from '../../server/contract/control-context.ts';
import type { Ack, Fact, FeedMessage, Form } from './facts.ts';
import { packAddresses, packEndpoints, printPorts } from './packed.ts';
import { PodTable } from './pods.ts';

export interface FeedParts {
  readonly source: Source;
  readonly channel: ControlChannel;
  readonly clock: Clock;
  readonly metrics: Registry;
  /** Endpoints without a host name go by the name of their pod. */
  readonly podNames: boolean;
  /** Workers are told names and labels of client pods (metadata). */
  readonly clientNames: boolean;
}

/** What one message may cost a worker: a fact counts 1, and its packed endpoints 1 for each 64 bytes. */
const MESSAGE_WEIGHT = 150;
const WEIGHT_BYTES = 64;
/** A worker that has not answered after this long is not waited for (it may be gone). */
const PATIENCE_MS = 50;

/**
 * Carries a source's objects to all workers, as facts, and outlives reloads. Never more than one bounded message is under
 * way: the next goes out when every worker has taken the last one in. However much a relist brings, between two messages a
 * worker answers the queries that have come.
 */
export class Feed implements Kept {
  readonly #parts: FeedParts;
  readonly #pods: PodTable;
  readonly #queue: Fact[] = [];
  /** Index of the first fact not sent yet. */
  #head = 0;
  #seq = 0;
  /** Workers that answer. */
  readonly #workers = new Set<number>();
  /** Workers that have yet to answer the message under way; null: none is under way. */
  #awaited: Set<number> | null = null;
  #ack: Ack | null = null;
  #timer: Timer | null = null;
  #sending = false;
  #started = false;
  #listed = false;
  #synced = false;
  #serial = 0;
  #importedSerial = 0;
  #waiting: (() => void)[] = [];
  readonly #cluster: Histogram;
  readonly #headless: Histogram;

  constructor(parts: FeedParts) {
    this.#parts = parts;
    this.#pods = new PodTable(parts.clientNames);
    const latency = parts.metrics.histogram(
      'coredns_kubernetes_dns_programming_duration_seconds',
      'Histogram of the time (in seconds) it took to program a dns instance.',
      ['service_kind'],
      programmingBuckets,
    );
    this.#cluster = latency.with('cluster_ip');
    this.#headless = latency.with('headless_with_selector');
    parts.channel.onJoin(() => this.#state());
    parts.channel.onMessage((message, worker) => this.#acknowledge(message as Ack, worker));
  }

  /** Everything listed at first has been told to the workers there are. */
  get synced(): boolean {
    return this.#synced;
  }

  /** Starts the source, once. */
  start(): void {
    if (this.#started) return;
    this.#started = true;
    this.#parts.source.start({
      changes: (batch) => this.#take(batch),
      synced: () => this.#check(),
    });
    this.#check();
  }

  /** Calls `run` when the feed is synced; at once if it is. */
  whenSynced(run: () => void): void {
    if (this.#synced) run();
    else this.#waiting.push(run);
  }

  async close(): Promise<void> {
    this.#timer?.cancel();
    await this.#parts.source.stop();
  }

  #take(batch: readonly Change[]): void {
    for (const change of batch) {
      for (const fact of this.#factsOf(change)) this.#queue.push(fact);
    }
    this.#send();
  }

  #factsOf(change: Change): readonly Fact[] {
    if (change.verb === 'put') {
      if (change.object.kind === 'Pod') return this.#pods.put(change.object);
      return [this.#factOf(change.object, this.#listed)];
    }
    const { namespace, name } = change;
    switch (change.kind) {
      case 'Namespace':
        return [{ about: 'namespace', name, there: false }];
      case 'Service':
        return [
          { about: 'service', namespace, name, form: null, addresses: '', ports: '', external: '' },
        ];
      case 'ServiceImport':
        return [{ about: 'import', namespace, name, form: null, addresses: '', ports: '' }];
      case 'EndpointSlice':
        return [goneSlice(namespace, name)];
      case 'Pod':
        return this.#pods.remove(namespace, name);
    }
  }

  #factOf(object: Exclude<KubeObject, { kind: 'Pod' }>, timed: boolean): Fact {
    switch (object.kind) {
      case 'Namespace':
        return { about: 'namespace', name: object.name, there: true };
      case 'Service':
        return serviceFact(object);
      case 'ServiceImport':
        return importFact(object);
      case 'EndpointSlice':
        return sliceFact(object, this.#parts.podNames, timed);
    }
  }

  /** Publishes the next part of the queue, if no other is under way. */
  #send(): void {
    if (this.#sending) return;
    this.#sending = true;
    while (this.#awaited === null && this.#head < this.#queue.length) {
      const facts = this.#nextFacts();
      const at = Math.floor(this.#parts.clock.wall() / 1000);
      for (const fact of facts) {
        if (fact.about === 'import' || (fact.about === 'slice' && fact.imported !== ''))
          this.#importedSerial = at;
        else if (fact.about !== 'namespace') this.#serial = at;
      }
      this.#seq++;
      this.#ack = null;
      if (this.#workers.size > 0) {
        this.#awaited = new Set(this.#workers);
        this.#timer = this.#parts.clock.after(PATIENCE_MS, () => this.#giveUp());
      }
      this.#publish({ kind: 'facts', seq: this.#seq, facts, at });
    }
    this.#sending = false;
    this.#check();
  }

  #nextFacts(): Fact[] {
    const facts: Fact[] = [];
    for (let weight = 0; weight < MESSAGE_WEIGHT && this.#head < this.#queue.length;) {
      const fact = this.#queue[this.#head++]!;
      weight += weightOf(fact);
      facts.push(fact);
    }
    if (this.#head === this.#queue.length) {
      this.#queue.length = 0;
      this.#head = 0;
    } else if (this.#head > 10_000) {
      this.#queue.splice(0, this.#head);
      this.#head = 0;
    }
    return facts;
  }

  #acknowledge(ack: Ack, worker: number): void {
    this.#workers.add(worker);
    if (this.#awaited === null || ack.seq !== this.#seq) return;
    this.#ack ??= ack;
    this.#awaited.delete(worker);
    if (this.#awaited.size > 0) return;
    this.#record();
    this.#proceed();
  }

  /** Whoever has not answered is not waited for until it does. */
  #giveUp(): void {
    for (const worker of this.#awaited ?? []) this.#workers.delete(worker);
    this.#proceed();
  }

  #proceed(): void {
    this.#timer?.cancel();
    this.#timer = null;
    this.#awaited = null;
    this.#send();
  }

  /** The change is answered by every worker now: how long did that take since it happened? */
  #record(): void {
    const now = this.#parts.clock.wall();
    for (const time of this.#ack?.cluster ?? [])
      this.#cluster.observe(Math.max(0, now - time) / 1000);
    for (const time of this.#ack?.headless ?? [])
      this.#headless.observe(Math.max(0, now - time) / 1000);
  }

  #check(): void {
    this.#listed ||= this.#parts.source.synced;
    if (this.#synced || !this.#listed || this.#awaited !== null || this.#queue.length > 0) return;
    this.#synced = true;
    this.#publish({ kind: 'synced' });
    for (const run of this.#waiting.splice(0)) run();
  }

  #publish(message: FeedMessage): void {
    this.#parts.channel.publish(message);
  }

  /** All that a newcomer has to know. What is still queued comes to it once more, which changes nothing. */
  *#state(): Generator<FeedMessage> {
    let facts: Fact[] = [];
    let weight = 0;
    for (const fact of this.#allFacts()) {
      facts.push(fact);
      weight += weightOf(fact);
      if (weight < MESSAGE_WEIGHT) continue;
      yield { kind: 'facts', seq: 0, facts, at: 0 };
      facts = [];
      weight = 0;
    }
    yield { kind: 'facts', seq: 0, facts, at: 0 };
    yield { kind: 'serials', own: this.#serial, imported: this.#importedSerial };
    if (this.#synced) yield { kind: 'synced' };
  }

  *#allFacts(): Generator<Fact> {
    if (!this.#started) return;
    for (const object of this.#parts.source.snapshot()) {
      if (object.kind !== 'Pod') yield this.#factOf(object, false);
    }
    yield* this.#pods.facts();
  }
}

function weightOf(fact: Fact): number {
  return fact.about === 'slice' ? 1 + (fact.endpoints?.length ?? 0) / WEIGHT_BYTES : 1;
}

function serviceFact({ namespace, name, type, clusterIPs, externalName, ports }: Service): Fact {
  const form: Form =
    type === 'ExternalName' ? 'external' : clusterIPs[0] === 'None' ? 'headless' : 'cluster';
  return {
    about: 'service',
    namespace,
    name,
    form,
    addresses: form === 'cluster' ? packAddresses(clusterIPs) : '',
    ports: printPorts(ports),
    external: externalName,
  };
}

function importFact({ namespace, name, type, ips, ports }: ServiceImport): Fact {
  return {
    about: 'import',
    namespace,
    name,
    form: type === 'Headless' ? 'headless' : 'cluster',
    addresses: type === 'Headless' ? '' : packAddresses(ips),
    ports: printPorts(ports),
  };
}

function sliceFact(slice: EndpointSlice, podNames: boolean, timed: boolean): Fact {
  return {
    about: 'slice',
    namespace: slice.namespace,
    name: slice.name,
    service: slice.service,
    imported: slice.importedService ?? '',
    cluster: slice.cluster ?? '',
    ports: printPorts(slice.ports),
    endpoints: packEndpoints(slice.endpoints, podNames),
    triggeredAt: timed ? slice.triggeredAt : 0,
  };
}

function goneSlice(namespace: string, name: string): Fact {
  return {
    about: 'slice',
    namespace,
    name,
    service: '',
    imported: '',
    cluster: '',
    ports: '',
    endpoints: null,
    triggeredAt: 0,
  };
}
