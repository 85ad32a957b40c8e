/** Turns objects into facts on the control thread. */
import type { Clock } from '../../../base/clock.ts';
import type {
  ObjectChange,
  EndpointSlice,
  KubeObject,
  Node,
  Service,
  ServiceImport,
} from '../../../kube/store/objects.ts';
import type { Source } from '../../../kube/store/object-source.ts';
import { programmingBuckets } from '../../../metrics/buckets.ts';
import type { Histogram, Registry } from '../../../metrics/registry.ts';
import type { KeptAcrossReloads } from '../../../engine/contract/control-context.ts';
import type { DataSet, OpenDataSet } from '../../../engine/contract/data-set.ts';
import type { ClusterFact, ServiceForm, TriggerTimes } from '../contract/cluster-facts.ts';
import {
  encodeAddresses,
  encodeEndpoints,
  encodePrefixes,
  printPorts,
} from '../contract/endpoint-encoding.ts';
import { placeHash } from '../contract/place-hash.ts';
import type { SourcePlan } from './source-plan.ts';
import { PodTable } from '../contract/pods.ts';

export interface PublisherParts extends Pick<SourcePlan, 'podNames' | 'clientNames' | 'outside'> {
  readonly source: Source;
  readonly open: OpenDataSet;
  readonly clock: Clock;
  readonly metrics: Registry;
}

/** Facts that do not change the zone's content. */
const SERIALLESS: ReadonlySet<ClusterFact['about']> = new Set(['namespace', 'node', 'time']);

/** Size in bytes of a fact in transit, excluding any endpoints. */
const FACT_BYTES = 64;

/**
 * The control thread's end of the replication to workers. It turns a source's objects into facts that contain only the
 * fields DNS needs, and publishes them. It survives reloads that do not change the source.
 */
export class ClusterPublisher implements KeptAcrossReloads {
  readonly #parts: PublisherParts;
  readonly #pods: PodTable;
  readonly #facts: DataSet<ClusterFact>;
  #started = false;
  #listed = false;
  #synced = false;
  /** Time of the most recently published facts, in Unix seconds. */
  #at = 0;
  #serial = 0;
  #importedSerial = 0;
  #waiting: (() => void)[] = [];
  readonly #cluster: Histogram;
  readonly #headless: Histogram;

  constructor(parts: PublisherParts) {
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
    this.#facts = parts.open<ClusterFact, TriggerTimes>({
      snapshot: () => this.#snapshot(),
      size: (fact) => FACT_BYTES + (fact.about === 'slice' ? (fact.endpoints?.length ?? 0) : 0),
      applied: (times) => this.#observe(times),
    });
  }

  get synced(): boolean {
    return this.#synced;
  }

  start(): void {
    if (this.#started) return;
    this.#started = true;
    this.#parts.source.start({
      changes: (batch) => this.#publish(batch),
      synced: () => this.#check(),
      away: () => this.#settle(),
    });
    this.#check();
  }

  /**
   * Calls `run` once the workers have the complete first list, which may be immediately. It is also called if the
   * source is unavailable, or when this is closed.
   */
  whenSettled(run: () => void): void {
    if (this.#synced) run();
    else this.#waiting.push(run);
  }

  async close(): Promise<void> {
    this.#settle();
    this.#facts.close();
    await this.#parts.source.stop();
  }

  #publish(batch: readonly ObjectChange[]): void {
    const facts: ClusterFact[] = [];
    const at = Math.floor(this.#parts.clock.wall() / 1000);
    if (at !== this.#at) facts.push({ about: 'time', at });
    this.#at = at;
    for (const change of batch) facts.push(...this.#factsOf(change));
    for (const fact of facts) {
      if (fact.about === 'import' || (fact.about === 'slice' && fact.imported !== ''))
        this.#importedSerial = at;
      else if (!SERIALLESS.has(fact.about)) this.#serial = at;
    }
    this.#facts.publish(facts);
  }

  #factsOf(change: ObjectChange): readonly ClusterFact[] {
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
      case 'Node':
        return [{ about: 'node', node: placeHash(name), zone: '', prefixes: null }];
    }
  }

  #factOf(object: Exclude<KubeObject, { kind: 'Pod' }>, timed: boolean): ClusterFact {
    switch (object.kind) {
      case 'Namespace':
        return { about: 'namespace', name: object.name, there: true };
      case 'Service':
        return serviceFact(object, this.#parts.outside);
      case 'ServiceImport':
        return importFact(object);
      case 'EndpointSlice':
        return sliceFact(object, this.#parts.podNames, timed);
      case 'Node':
        return nodeFact(object);
    }
  }

  /** Records how long it took from a change until every worker answers with it. */
  #observe(times: TriggerTimes): void {
    if (times === undefined) return;
    const now = this.#parts.clock.wall();
    for (const time of times.cluster) this.#cluster.observe(Math.max(0, now - time) / 1000);
    for (const time of times.headless) this.#headless.observe(Math.max(0, now - time) / 1000);
  }

  /**
   * Notifies workers that the first listing is complete and, once they have acknowledged it, everyone who waits for it.
   */
  #check(): void {
    if (this.#listed || !this.#parts.source.synced) return;
    this.#listed = true;
    this.#facts.publish([{ about: 'listed' }]);
    this.#facts.whenApplied(() => {
      this.#synced = true;
      this.#settle();
    });
  }

  #settle(): void {
    for (const run of this.#waiting.splice(0)) run();
  }

  *#snapshot(): Generator<ClusterFact> {
    yield { about: 'time', at: this.#at };
    if (this.#started) {
      for (const object of this.#parts.source.snapshot()) {
        if (object.kind !== 'Pod') yield this.#factOf(object, false);
      }
      yield* this.#pods.facts();
    }
    yield { about: 'serials', own: this.#serial, imported: this.#importedSerial };
    if (this.#listed) yield { about: 'listed' };
  }
}

function serviceFact(service: Service, withOutside: boolean): ClusterFact {
  const { namespace, name, type, clusterIPs, externalName, ports } = service;
  const outside = withOutside ? [...service.externalIPs, ...service.loadBalancer].join(' ') : '';
  const form: ServiceForm =
    type === 'ExternalName' ? 'external' : clusterIPs[0] === 'None' ? 'headless' : 'cluster';
  return {
    about: 'service',
    namespace,
    name,
    form,
    addresses: form === 'cluster' ? encodeAddresses(clusterIPs) : '',
    ports: printPorts(ports),
    external: externalName,
    ...(outside === '' ? {} : { outside }),
  };
}

function importFact({ namespace, name, type, ips, ports }: ServiceImport): ClusterFact {
  return {
    about: 'import',
    namespace,
    name,
    form: type === 'Headless' ? 'headless' : 'cluster',
    addresses: type === 'Headless' ? '' : encodeAddresses(ips),
    ports: printPorts(ports),
  };
}

function nodeFact({ name, place }: Node): ClusterFact {
  const { zone = '', prefixes = [] } = place ?? {};
  return {
    about: 'node',
    node: placeHash(name),
    zone: placeHash(zone),
    prefixes: encodePrefixes(prefixes),
  };
}

function sliceFact(slice: EndpointSlice, podNames: boolean, timed: boolean): ClusterFact {
  return {
    about: 'slice',
    namespace: slice.namespace,
    name: slice.name,
    service: slice.service,
    imported: slice.importedService ?? '',
    cluster: slice.cluster ?? '',
    ports: printPorts(slice.ports),
    endpoints: encodeEndpoints(slice.endpoints, podNames),
    triggeredAt: timed ? slice.triggeredAt : 0,
  };
}

function goneSlice(namespace: string, name: string): ClusterFact {
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
