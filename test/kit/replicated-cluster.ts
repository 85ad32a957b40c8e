/** A worker's view of a cluster, built from objects without an API server. */
import type { Clock } from '../../src/server/base/clock.ts';
import { VirtualClock } from '../../src/server/base/virtual-clock.ts';
import type { KubeObject } from '../../src/server/kube/store/objects.ts';
import type { Source, SourceEvents } from '../../src/server/kube/store/object-source.ts';
import { SharedRegistry } from '../../src/server/metrics/shared-registry.ts';
import {
  KubernetesAnswerer,
  type KubernetesAnswererParts,
} from '../../src/server/plugins/kubernetes/worker/answer.ts';
import type { Cluster } from '../../src/server/plugins/kubernetes/worker/cluster.ts';
import {
  clusterRecords,
  type ClusterRecord,
} from '../../src/server/plugins/kubernetes/control/cluster-records.ts';
import { ClusterPublisher } from '../../src/server/plugins/kubernetes/control/publisher.ts';
import { ClusterReplica } from '../../src/server/plugins/kubernetes/worker/replica.ts';
import type { OpenDataSet, ReplicaAck } from '../../src/server/engine/contract/data-set.ts';
import {
  ReplicatedSet,
  type ReplicaLinks,
} from '../../src/server/engine/control/replicated-set.ts';
import { followDataSet, type AnyReplica } from '../../src/server/engine/worker/follow-data-set.ts';
import { RCODE } from '../../src/server/wire/iana.ts';
import { parseName } from '../../src/server/wire/name.ts';
import { failure } from '../../src/server/wire/reply.ts';
import { MessageWriter } from '../../src/server/wire/writer.ts';
import { namespaceOf } from './whole-records.ts';

/** A source with the given objects, which tests can change. */
export class StaticSource implements Source<ClusterRecord> {
  readonly #objects = new Map<string, KubeObject>();
  readonly #podNames: boolean;
  #events: SourceEvents<ClusterRecord> | null = null;
  synced = false;

  constructor(objects: Iterable<KubeObject> = [], podNames = false) {
    this.#podNames = podNames;
    for (const object of objects) this.#objects.set(keyOf(object), object);
  }

  start(events: SourceEvents<ClusterRecord>): void {
    this.#events = events;
    const batch = this.#records(this.#objects.values());
    if (batch.length > 0) events.changes(batch);
  }

  /** Marks the first listing as complete. */
  complete(): void {
    this.synced = true;
    this.#events?.synced('Service');
  }

  put(...objects: readonly KubeObject[]): void {
    for (const object of objects) this.#objects.set(keyOf(object), object);
    this.#events?.changes(this.#records(objects));
  }

  remove(object: KubeObject): void {
    this.#objects.delete(keyOf(object));
    const namespace = namespaceOf(object);
    this.#events?.changes([{ kind: 'Gone', of: object.kind, namespace, name: object.name }]);
  }

  stop(): Promise<void> {
    return Promise.resolve();
  }

  get objects(): Iterable<KubeObject> {
    return this.#objects.values();
  }

  snapshot(): Iterable<ClusterRecord> {
    return this.#records(this.#objects.values());
  }

  #records(objects: Iterable<KubeObject>): ClusterRecord[] {
    return [...objects].map(clusterRecords({ podNames: this.#podNames, outside: false }).of);
  }
}

function keyOf(object: KubeObject): string {
  return `${object.kind}/${namespaceOf(object)}/${object.name}`;
}

/**
 * A worker's copy of a data set, on this thread. Batches are cloned, and are delivered and acknowledged immediately.
 */
export function replicateHere(
  replica: AnyReplica,
  clock: Clock,
): { readonly open: OpenDataSet; join(): void } {
  let take: ((message: unknown) => void) | null = null;
  let acknowledged: ((worker: number, ack: ReplicaAck) => void) | null = null;
  let joined: ((worker: number) => void) | null = null;
  followDataSet(replica, {
    onMessage: (handler) => {
      take = handler;
    },
    post: (message) => acknowledged?.(0, structuredClone(message) as ReplicaAck),
  });
  const links: ReplicaLinks = {
    send: (_worker, batch) => take?.(structuredClone(batch)),
    onJoin: (handler) => {
      joined = handler;
    },
    onLeave: () => undefined,
    onAck: (handler) => {
      acknowledged = handler;
    },
  };
  const metrics = new SharedRegistry(() => undefined);
  return {
    open: (set) => new ReplicatedSet({ name: 'test', links, clock, metrics }, set),
    join: () => joined?.(0),
  };
}

/** The parts that a cluster's objects pass through. */
export interface ReplicatedCluster {
  readonly source: StaticSource;
  readonly publisher: ClusterPublisher;
  readonly cluster: Cluster;
  readonly clock: VirtualClock;
}

/** A worker's view of these objects, built by the usual parts: source, publisher and replica. */
export function replicatedCluster(
  objects: Iterable<KubeObject>,
  options: {
    readonly podNames?: boolean;
    readonly clientNames?: boolean;
    readonly synced?: boolean;
  } = {},
): ReplicatedCluster {
  const source = new StaticSource(objects, options.podNames);
  const clock = new VirtualClock();
  const replica = new ClusterReplica();
  const { open, join } = replicateHere(replica, clock);
  const publisher = new ClusterPublisher({
    source,
    open,
    clock,
    metrics: new SharedRegistry(() => undefined),
    clientNames: options.clientNames ?? false,
  });
  join();
  publisher.start();
  if (options.synced ?? true) source.complete();
  return { source, publisher, cluster: replica.cluster, clock };
}

/** The part of the plugin that answers queries, configured as `kubernetes cluster.local in-addr.arpa ip6.arpa`. */
export function answererOf(
  cluster: Cluster,
  parts: Partial<KubernetesAnswererParts> = {},
): KubernetesAnswerer {
  return new KubernetesAnswerer({
    cluster,
    zones: ['cluster.local.', 'in-addr.arpa.', 'ip6.arpa.'].map((text) => ({
      text,
      wire: parseName(text),
      multicluster: false,
    })),
    primary: parseName('cluster.local.'),
    ttl: 5,
    pods: 'disabled',
    namespaces: null,
    ignoreEmpty: false,
    zonal: false,
    topology: null,
    fallthrough: null,
    writer: new MessageWriter(),
    own: [],
    ask: () => failure(RCODE.REFUSED, ''),
    ...parts,
  });
}

/** Services with one cluster address each, their endpoints, and one pod per endpoint. */
export function* manyObjects(
  services: number,
  endpoints: number,
  pods: boolean,
): Generator<KubeObject> {
  const namespaces = 50;
  for (let n = 0; n < namespaces; n++) yield { kind: 'Namespace', name: `team-${n}` };
  for (let i = 0; i < services; i++) {
    const namespace = `team-${i % namespaces}`;
    const name = `service-${i}`;
    const pod = (k: number): string => `${name}-7c9d8f6b5d-${k}xyzw`;
    const address = (k: number): string => addressOf(i * endpoints + k);
    yield {
      kind: 'Service',
      namespace,
      name,
      type: 'ClusterIP',
      clusterIPs: [`172.20.${i >> 8}.${i & 255}`],
      externalName: '',
      externalIPs: [],
      loadBalancer: [],
      ports: [{ name: 'http', protocol: 'TCP', port: 8000 + (i % 7) }],
    };
    yield {
      kind: 'EndpointSlice',
      namespace,
      name: `${name}-abcde`,
      service: name,
      ports: [{ name: 'http', protocol: 'TCP', port: 8080 }],
      triggeredAt: 0,
      endpoints: Array.from({ length: endpoints }, (_, k) => ({
        addresses: [address(k)],
        ready: true,
        hostname: '',
        nodeName: `node-${k}`,
        pod: pod(k),
        zone: '',
      })),
    };
    if (!pods) continue;
    for (let k = 0; k < endpoints; k++) {
      yield {
        kind: 'Pod',
        namespace,
        name: pod(k),
        ips: [address(k)],
        phase: 'Running',
        hostNetwork: false,
        terminating: false,
      };
    }
  }
}

function addressOf(n: number): string {
  return `10.${(n >> 16) & 255}.${(n >> 8) & 255}.${n & 255}`;
}
