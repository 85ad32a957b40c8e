/**
 * A day in a cluster with thousands of nodes: rollouts, scaling, failing and drained nodes, and short-lived Services.
 */
import type { Random } from '../../src/server/base/random.ts';
import type { VirtualClock } from '../../src/server/base/virtual-clock.ts';
import { ApiServer, namespace } from '../kit/apiserver/server.ts';
import type { KubeJson } from '../kit/apiserver/store.ts';
import { serviceObject } from '../kit/cluster-objects.ts';
import { Truth } from './truth.ts';

export interface LargeClusterSize {
  readonly nodes: number;
  readonly services: number;
}

/** The addresses in a Service's answer: its cluster IP, all endpoints, or the endpoints in the client's zone. */
type Form = 'cluster' | 'headless' | 'near';

interface Node {
  readonly index: number;
  readonly zone: string;
  readonly addresses: Set<number>;
  /** The ticks until it is back, or 0 if it is up. */
  down: number;
}

interface Endpoint {
  readonly node: Node;
  readonly address: string;
}

interface Workload {
  readonly namespace: string;
  name: string;
  readonly form: Form;
  readonly address: string;
  /** The number of times it has been deleted. */
  deleted: number;
  /** The number of replicas at the day's peak. */
  readonly most: number;
  endpoints: Endpoint[];
  /** Endpoints that still have the old version, until a rollout replaces them. */
  old: Endpoint[];
  slices: number;
  exists: boolean;
}

export const NAMESPACES = 40;
const ZONES = ['zone-a', 'zone-b', 'zone-c'] as const;
/** The number of endpoints per slice, which is the same as in the controller. */
const SLICE_MAX = 100;
/** Pod addresses per node. */
const PODS_MAX = 110;
/** The number of ticks for which a failed node is away. After the first, its pods are started elsewhere. */
const DOWN_TICKS = 4;

/** A node's zone by its number. */
export const zoneOf = (node: number): string => ZONES[node % ZONES.length]!;

/** The address of a node's nth pod. */
export const podAddress = (node: number, host: number): string =>
  `10.${128 + (node >> 8)}.${node & 255}.${host}`;

/** The name under which the oracle stores a Service for clients in a zone. */
export const truthName = (name: string, zone: string): string => `${name}@${zone}`;

/** Counts of a day's events. */
export interface ClusterEvents {
  rollouts: number;
  scalings: number;
  failures: number;
  drains: number;
  created: number;
  deleted: number;
}

export class LargeCluster {
  /**
   * Maps a name and zone (`truthName`) to addresses, sorted and comma-separated, or to null if the name does not exist.
   */
  readonly truth: Truth = new Truth();
  readonly events: ClusterEvents = {
    rollouts: 0,
    scalings: 0,
    failures: 0,
    drains: 0,
    created: 0,
    deleted: 0,
  };
  readonly server: ApiServer;
  readonly #clock: VirtualClock;
  readonly #random: Random;
  readonly #nodes: readonly Node[];
  readonly #workloads: Workload[];
  #tick = 0;

  private constructor(
    clock: VirtualClock,
    random: Random,
    server: ApiServer,
    size: LargeClusterSize,
  ) {
    this.#clock = clock;
    this.#random = random;
    this.server = server;
    this.#nodes = Array.from({ length: size.nodes }, (_, index) => ({
      index,
      zone: zoneOf(index),
      addresses: new Set<number>(),
      down: 0,
    }));
    for (const node of this.#nodes) server.put('nodes', nodeObject(node));
    for (let n = 0; n < NAMESPACES; n++) server.put('namespaces', namespace(`team-${n}`));
    this.#workloads = Array.from({ length: size.services }, (_, index) => this.#workload(index));
    for (const workload of this.#workloads) this.#create(workload);
  }

  static async start(
    clock: VirtualClock,
    random: Random,
    size: LargeClusterSize,
  ): Promise<LargeCluster> {
    return new LargeCluster(clock, random, await ApiServer.start({ clock }), size);
  }

  /**
   * Picks a Service name relative to the cluster domain (`NAME.NAMESPACE`), which may or may not exist. A few names are
   * popular.
   */
  drawName(): string {
    const share = (this.#random.integer(1000) / 1000) ** 3;
    const { name, namespace } = this.#workloads[Math.floor(share * this.#workloads.length)]!;
    return `${name}.${namespace}`;
  }

  drawNode(): number {
    return this.#random.integer(this.#nodes.length);
  }

  /**
   * Simulates one tick of the day's events.
   * @param load the fraction of the peak rate, 0 to 1
   */
  tick(load: number): void {
    this.#tick++;
    const changed = new Set<Workload>();
    const some = (share: number): number => Math.ceil(share * this.#random.integer(100) * 0.01);
    for (const node of this.#nodes) {
      if (node.down === 0) continue;
      if (node.down === DOWN_TICKS) this.#evict(node, changed);
      node.down--;
    }
    for (let n = some(this.#nodes.length / 400); n > 0; n--) {
      const node = this.#pick(this.#nodes);
      if (node.down > 0) continue;
      // A drained node's pods are replaced at once, and a failed node's pods once the failure has been detected.
      const isDrain = this.#random.integer(2) === 0;
      node.down = isDrain ? DOWN_TICKS - 1 : DOWN_TICKS;
      if (isDrain) this.#evict(node, changed);
      else for (const workload of this.#on(node)) changed.add(workload);
      this.events[isDrain ? 'drains' : 'failures']++;
    }
    for (let n = some(this.#workloads.length / 20); n > 0; n--) {
      const workload = this.#pick(this.#workloads);
      if (!workload.exists || workload.old.length > 0) continue;
      workload.old = [...workload.endpoints];
      this.events.rollouts++;
    }
    for (const workload of this.#workloads)
      if (this.#advance(workload, load)) changed.add(workload);
    for (let n = some(this.#workloads.length / 50); n > 0; n--) this.#toggle(changed);
    for (const workload of changed) if (workload.exists) this.#write(workload);
    this.#mark();
  }

  /** The names of a Service and of endpoints that have only existed since the last tick. */
  get marks(): readonly [string, string] {
    return [`mark-${this.#tick}.team-0`, `mark-${this.#tick}-h.team-0`];
  }

  async stop(): Promise<void> {
    await this.server.stop();
  }

  #mark(): void {
    const { server } = this;
    for (const suffix of ['', '-h']) {
      const name = `mark-${this.#tick}${suffix}`;
      server.put(
        'services',
        serviceObject('team-0', name, suffix === '' ? '10.111.0.1' : 'None', 'http:80'),
      );
      server.delete('services', 'team-0', `mark-${this.#tick - 1}${suffix}`);
    }
    // Comes after all other slices of this tick.
    const slice = sliceObject(
      { namespace: 'team-0', name: `mark-${this.#tick}-h`, form: 'headless' },
      0,
      // It is on a node that never fails.
      [{ node: { ...this.#nodes[0]!, down: 0 }, address: '10.127.0.1' }],
    );
    server.put('endpointslices', slice);
    server.delete('endpointslices', 'team-0', `mark-${this.#tick - 1}-h-0`);
  }

  /**
   * Scales a Service, and replaces a quarter of the endpoints that a rollout still has to replace.
   * @returns true if anything changed
   */
  #advance(workload: Workload, load: number): boolean {
    if (!workload.exists) return false;
    const wanted = Math.max(1, Math.round(workload.most * (0.3 + 0.7 * load)));
    let changed = false;
    // Autoscalers ignore small differences.
    if (Math.abs(wanted - workload.endpoints.length) > 0.1 * workload.most) {
      this.events.scalings++;
      while (workload.endpoints.length > wanted) this.#free(workload, workload.endpoints.at(-1)!);
      changed = true;
    }
    const batch = workload.old.slice(0, Math.max(1, Math.ceil(workload.most / 4)));
    for (const endpoint of batch) {
      workload.old.shift();
      if (!workload.endpoints.includes(endpoint)) continue;
      this.#free(workload, endpoint);
      changed = true;
    }
    while (changed && workload.endpoints.length < wanted) this.#add(workload);
    return changed;
  }

  /** Deletes a Service, or creates one with a deleted Service's address. */
  #toggle(changed: Set<Workload>): void {
    const workload = this.#pick(this.#workloads);
    changed.delete(workload);
    if (!workload.exists) {
      this.events.created++;
      workload.name = `${workload.name.split('-')[0]}-${workload.deleted}`;
      return this.#create(workload);
    }
    this.events.deleted++;
    workload.deleted++;
    workload.exists = false;
    workload.old = [];
    for (const endpoint of [...workload.endpoints]) this.#free(workload, endpoint);
    this.server.delete('services', workload.namespace, workload.name);
    this.#cutSlices(workload, 0);
    this.#tell(workload);
  }

  #create(workload: Workload): void {
    workload.exists = true;
    const { namespace, name, form, address } = workload;
    const clusterIp = form === 'cluster' ? address : 'None';
    this.server.put('services', serviceObject(namespace, name, clusterIp, 'http:80'));
    for (let n = Math.ceil(workload.most / 2); n > 0; n--) this.#add(workload);
    this.#write(workload);
  }

  #evict(node: Node, changed: Set<Workload>): void {
    for (const workload of this.#on(node)) {
      for (const endpoint of workload.endpoints.filter((each) => each.node === node)) {
        this.#free(workload, endpoint);
        this.#add(workload);
      }
      changed.add(workload);
    }
  }

  #on(node: Node): Workload[] {
    return this.#workloads.filter(({ endpoints }) => endpoints.some((each) => each.node === node));
  }

  /** The lowest free address is immediately reused, as in most network plugins. */
  #add(workload: Workload): void {
    for (;;) {
      const node = this.#pick(this.#nodes);
      if (node.down > 0 || node.addresses.size >= PODS_MAX) continue;
      let host = 2;
      while (node.addresses.has(host)) host++;
      node.addresses.add(host);
      workload.endpoints.push({ node, address: podAddress(node.index, host) });
      return;
    }
  }

  #free(workload: Workload, endpoint: Endpoint): void {
    workload.endpoints = workload.endpoints.filter((each) => each !== endpoint);
    endpoint.node.addresses.delete(Number(endpoint.address.split('.').at(-1)));
  }

  /** Writes a Service's slices and records the truth. */
  #write(workload: Workload): void {
    const { endpoints } = workload;
    const count = Math.max(1, Math.ceil(endpoints.length / SLICE_MAX));
    for (let n = 0; n < count; n++) {
      const part = endpoints.slice(n * SLICE_MAX, (n + 1) * SLICE_MAX);
      this.server.put('endpointslices', sliceObject(workload, n, part));
    }
    this.#cutSlices(workload, count);
    this.#tell(workload);
  }

  #cutSlices(workload: Workload, count: number): void {
    for (let n = count; n < workload.slices; n++)
      this.server.delete('endpointslices', workload.namespace, `${workload.name}-${n}`);
    workload.slices = count;
  }

  #tell({ namespace, name, form, address, endpoints, exists }: Workload): void {
    const ready = endpoints.filter(isReady);
    const text = (some: readonly Endpoint[]): string | null =>
      some.length === 0
        ? null
        : some
            .map((each) => each.address)
            .toSorted()
            .join(',');
    for (const zone of ZONES) {
      const near = ready.filter((each) => each.node.zone === zone);
      const value =
        form === 'cluster' ? address : text(form === 'near' && near.length > 0 ? near : ready);
      const key = truthName(`${name}.${namespace}.svc.cluster.local.`, zone);
      this.truth.set(this.#clock.now(), key, exists ? value : null);
    }
  }

  #workload(index: number): Workload {
    // Most Services are small, but a few are large.
    const most = Math.min(400, Math.ceil(3 / (1 - this.#random.integer(1000) / 1001)));
    return {
      namespace: `team-${index % NAMESPACES}`,
      name: `s${index}`,
      form: (['cluster', 'cluster', 'headless', 'near'] as const)[index % 4]!,
      address: `10.96.${index >> 8}.${index & 255}`,
      most,
      deleted: 0,
      endpoints: [],
      old: [],
      slices: 0,
      exists: false,
    };
  }

  #pick<T>(list: readonly T[]): T {
    return list[this.#random.integer(list.length)]!;
  }
}

const isReady = ({ node }: Endpoint): boolean => node.down !== DOWN_TICKS;

function nodeObject({ index, zone }: Node): KubeJson {
  const range = podAddress(index, 0).replace(/\.0$/, '.0/24');
  return {
    metadata: { name: `node-${index}`, labels: { 'topology.kubernetes.io/zone': zone } },
    spec: { podCIDR: range, podCIDRs: [range] },
    status: { addresses: [{ type: 'InternalIP', address: nodeAddress(index) }] },
  };
}

/** The address of the node itself. */
export const nodeAddress = (node: number): string => `172.16.${node >> 8}.${node & 255}`;

function sliceObject(
  { namespace, name, form }: Pick<Workload, 'namespace' | 'name' | 'form'>,
  number: number,
  endpoints: readonly Endpoint[],
): KubeJson {
  return {
    metadata: {
      name: `${name}-${number}`,
      namespace,
      labels: { 'kubernetes.io/service-name': name },
    },
    addressType: 'IPv4',
    ports: [{ name: 'http', port: 80, protocol: 'TCP' }],
    endpoints: endpoints.map((endpoint) => ({
      addresses: [endpoint.address],
      conditions: { ready: isReady(endpoint) },
      nodeName: `node-${endpoint.node.index}`,
      zone: endpoint.node.zone,
      ...(form === 'near' ? { hints: { forZones: [{ name: endpoint.node.zone }] } } : {}),
    })),
  };
}
