/**
 * A small cluster made of network namespaces. It has nodes, pods with the kubelet's files, services using kube-proxy's
 * rules, and a DNS server.
 */
import { child, text } from '../../server/base/json-object.ts';
import { Problem, nearest } from '../../server/base/problem.ts';
import { manifestObjects, type ProxyObjects } from './proxy-rules/cluster-state.ts';
import { ImpliedCluster } from '../../server/kube/manifests/cluster.ts';
import type { Manifest } from '../../server/kube/manifests/manifest.ts';
import { impliedNodes, type ImpliedPod } from '../../server/kube/manifests/pods.ts';
import { readGoodManifests } from '../../server/kube/manifests/read-once.ts';
import { inNetworkNamespace } from '../../server/runtime/network-namespace.ts';
import type { ProgramResult } from '../../server/runtime/programs.ts';
import type { Script } from '../resolver/answers-file.ts';
import { LabApi } from './api-server.ts';
import { checkCluster } from './cluster-check.ts';
import { endpointAddresses } from './endpoints.ts';
import { writeFiles } from './files.ts';
import { listenIn, serveHttp } from './listeners.ts';
import { LabNetwork, type Machine } from './network.ts';
import { NodeCaches } from './node-caches.ts';
import { keyOf } from './objects.ts';
import {
  API_HOST,
  DNS_SERVICE,
  type ClusterPlan,
  type LabPod,
  type LabPrograms,
} from './cluster-plan.ts';
import { podFiles } from './pod-files.ts';
import { Processes } from './processes.ts';
import { serveScript, type ScriptedServer } from './scripted-server.ts';
import { dnsKey, startDnsServer } from './servers.ts';
import { applyRules, prepareNode, rulesText } from './service-rules.ts';

/** Limit on pods in a lab, because each one has a separate network namespace. */
const PODS_MAX = 64;
/** A name that any cluster DNS server can resolve. */
const KNOWN = 'kubernetes.default.svc.cluster.local.';

/** A running cluster. It ends together with the process that created it, while `close` ends its programs earlier. */
export class LabCluster {
  readonly network: LabNetwork = new LabNetwork();
  readonly api: LabApi = new LabApi();
  readonly processes: Processes;
  readonly caches: NodeCaches;
  readonly plan: ClusterPlan;
  readonly #programs: LabPrograms;
  /** True if DNS servers run ndots from now on, even if the lab was given another program. */
  #byNdots = false;
  readonly #nodes = new Map<string, Machine>();
  readonly #pods = new Map<string, LabPod>();
  readonly #closers: (() => void)[] = [];
  #objects: ProxyObjects = { services: [], slices: [] };
  #internet: ScriptedServer | null = null;

  private constructor(plan: ClusterPlan, programs: LabPrograms) {
    this.plan = plan;
    this.processes = new Processes(programs.env);
    this.#programs = programs;
    this.caches = new NodeCaches(programs, this.processes, this.network);
  }

  /** Builds the cluster and waits for the DNS servers to answer. Throws a `Problem`. */
  static async start(plan: ClusterPlan, programs: LabPrograms): Promise<LabCluster> {
    const manifests = await readGoodManifests(plan.manifests);
    const pods = podsOf(manifests, plan.manifests);
    const [problem] = checkCluster(manifests, pods, plan.internet.addresses);
    if (problem !== undefined) throw problem;
    const lab = new LabCluster(plan, programs);
    try {
      await lab.#build(manifests, pods);
    } catch (error) {
      await lab.close();
      throw error;
    }
    return lab;
  }

  get pods(): ReadonlyMap<string, LabPod> {
    return this.#pods;
  }

  get nodes(): ReadonlyMap<string, Machine> {
    return this.#nodes;
  }

  /** Derived from the current objects. */
  get dnsPods(): readonly LabPod[] {
    return [...this.#pods.values()].filter(({ addresses }) =>
      this.endpointsOf(DNS_SERVICE).some((address) => addresses.includes(address)),
    );
  }

  /** Finds a pod by `namespace/name`, or just by `name` if that is unique. Throws a `Problem`. */
  pod(name: string): LabPod {
    return findPod([...this.#pods.values()], name);
  }

  exec(pod: string, words: readonly string[], limitMs?: number): Promise<ProgramResult> {
    return this.processes.run(this.pod(pod), words, limitMs);
  }

  answerOutside(script: Script): void {
    this.#internet?.follow(script);
  }

  /** Looks up a service by `namespace/name`. Returns `''` if it has no address. */
  serviceAddress(name: string): string {
    const found = this.#objects.services.find((raw) => keyOf(raw) === name);
    const address = text(child(found ?? {}, 'spec'), 'clusterIP');
    return address === 'None' ? '' : address;
  }

  /** Lists `namespace/name address` for all services that have an address. */
  serviceNames(): readonly string[] {
    return this.#objects.services.flatMap((raw) => {
      const address = this.serviceAddress(keyOf(raw));
      return address === '' ? [] : [`${keyOf(raw)} ${address}`];
    });
  }

  /** Derived from the current objects. */
  endpointsOf(service: string): readonly string[] {
    return endpointAddresses(this.#objects.slices, service);
  }

  get objects(): ProxyObjects {
    return this.#objects;
  }

  /** Replaces services and endpoints. The API server announces them, and rules are updated on all nodes. */
  change(objects: Partial<ProxyObjects>): void {
    const before = this.#objects;
    this.#objects = { ...before, ...objects };
    for (const [kind, of] of [
      ['Service', 'services'],
      ['EndpointSlice', 'slices'],
    ] as const) {
      const gone = before[of].filter(
        (raw) => !this.#objects[of].some((now) => keyOf(now) === keyOf(raw)),
      );
      for (const raw of gone) this.api.delete(kind, raw);
      for (const raw of this.#objects[of]) if (!before[of].includes(raw)) this.api.put(kind, raw);
    }
    this.#writeRules();
  }

  /** Writes the service rules for the current objects on all nodes. */
  #writeRules(): void {
    const { mode } = this.plan;
    for (const [name, node] of this.#nodes)
      applyRules(this.network, mode, name, rulesText(mode, this.#objects, node));
  }

  /** Starts the DNS server in a pod and waits until it answers a query for a name. */
  async startDns(
    pod: string,
    corefile: string = this.plan.corefile,
    known: string = KNOWN,
  ): Promise<void> {
    const found = this.pod(pod);
    await this.stopDns(pod);
    const programs = this.#byNdots ? { ...this.#programs, coredns: null } : this.#programs;
    const namespace = this.network.path(found.name);
    await startDnsServer(this.processes, programs, found, corefile, { namespace, known });
  }

  /** Chooses the program for DNS servers started from now on, either ndots or the lab's configured program. */
  serveBy(program: 'ndots' | 'given'): void {
    this.#byNdots = program === 'ndots';
  }

  stopApi(): void {
    this.api.close();
  }

  startApi(): Promise<void> {
    return this.api.listen((server, port) => listenIn(this.network.path('internet'), server, port));
  }

  stopDns(pod: string, signal: 'SIGTERM' | 'SIGKILL' = 'SIGKILL'): Promise<void> {
    return this.processes.stop(dnsKey(this.pod(pod)), signal);
  }

  /** Returns without waiting. */
  signalDns(pod: string, signal: NodeJS.Signals): void {
    this.processes.find(dnsKey(this.pod(pod)))?.program.signal(signal);
  }

  async dnsEnded(pod: string): Promise<void> {
    await this.processes.find(dnsKey(this.pod(pod)))?.program.ended;
  }

  /** Ends its programs. The namespaces disappear when the process ends. */
  async close(): Promise<void> {
    await this.processes.close();
    for (const close of this.#closers) close();
    this.#internet?.close();
    this.api.close();
  }

  async #build(manifests: readonly Manifest[], pods: readonly ImpliedPod[]): Promise<void> {
    const { plan } = this;
    this.#objects = await manifestObjects(plan.manifests, (problem) => {
      throw problem;
    });
    const internet = this.network.addHost('internet', [...plan.internet.addresses, API_HOST]);
    this.#addNodes(manifests, pods);
    pods.forEach((pod, index) => this.#addPod(pod, index));
    for (const node of this.#nodes.keys())
      prepareNode(this.network, plan.mode, node, internet.addresses);
    this.#writeRules();
    this.#fillApi(manifests, pods);
    await this.#listen(pods);
    await Promise.all(
      this.dnsPods.map(({ namespace, pod }) => this.startDns(`${namespace}/${pod}`)),
    );
  }

  #addNodes(manifests: readonly Manifest[], pods: readonly ImpliedPod[]): void {
    const stated = impliedNodes([...manifests]);
    const names = new Set([
      ...stated.map(({ name }) => name),
      ...pods.map(({ nodeName }) => nodeName),
    ]);
    [...names].forEach((name, index) => {
      const own = stated.find((node) => node.name === name)?.ips ?? [];
      const ips = own.length > 0 ? own : [`172.18.0.${index + 2}`];
      const addresses = this.plan.ipv6 ? [...ips, `fd00:18::${index + 2}`] : ips;
      this.#nodes.set(name, this.network.addNode(name, addresses));
    });
  }

  #addPod(pod: ImpliedPod, index: number): void {
    const { namespace, name, nodeName, ips } = pod;
    const { ipv6, nodeResolvConf } = this.plan;
    const key = `${namespace}/${name}`;
    const machine = `pod-${index + 1}-${name}`.slice(0, 60);
    const addresses =
      ipv6 && !ips.some((ip) => ip.includes(':')) ? [...ips, `fd00:244::${index + 2}`] : ips;
    const files = {
      ...podFiles(pod, { clusterDns: this.serviceAddress(DNS_SERVICE), nodeResolvConf }),
      ...this.plan.files?.[key],
    };
    writeFiles(machine, files);
    this.network.addPod(machine, addresses, this.#nodes.get(nodeName)!);
    this.#pods.set(key, { name: machine, addresses, namespace, pod: name, node: nodeName, files });
  }

  #fillApi(manifests: readonly Manifest[], pods: readonly ImpliedPod[]): void {
    const names = new Set([
      ...['default', 'kube-system'],
      ...manifests.filter(({ kind }) => kind === 'Namespace').map(({ name }) => name),
      ...manifests.map(({ namespace }) => namespace).filter((name) => name !== ''),
      ...pods.map(({ namespace }) => namespace),
    ]);
    for (const name of names) this.api.put('Namespace', { metadata: { name } });
    for (const raw of this.#objects.services) this.api.put('Service', raw);
    for (const raw of this.#objects.slices) this.api.put('EndpointSlice', raw);
    for (const { namespace, name, ips, labels, nodeName } of pods) {
      this.api.put('Pod', {
        metadata: { namespace, name, labels },
        spec: { nodeName },
        status: { phase: 'Running', podIP: ips[0], podIPs: ips.map((ip) => ({ ip })) },
      });
    }
  }

  async #listen(pods: readonly ImpliedPod[]): Promise<void> {
    const { script, addresses } = this.plan.internet;
    this.#internet = await inNetworkNamespace(this.network.path('internet'), () =>
      serveScript(script, addresses),
    );
    await this.startApi();
    const dns = new Set(this.dnsPods.map(({ name }) => name));
    for (const pod of pods) {
      const { name } = this.#pods.get(`${pod.namespace}/${pod.name}`)!;
      if (dns.has(name)) continue;
      for (const server of await serveHttp(this.network.path(name), pod))
        this.#closers.push(() => server.close());
    }
  }
}

/** Finds a pod by `namespace/name`, or just by `name` if that is unique. Throws a `Problem`. */
export function findPod<P extends Pick<LabPod, 'namespace' | 'pod'>>(
  pods: readonly P[],
  name: string,
): P {
  const found = pods.filter(({ namespace, pod }) => pod === name || `${namespace}/${pod}` === name);
  if (found.length === 1) return found[0]!;
  const known = pods.map(({ namespace, pod }) => `${namespace}/${pod}`);
  // The names that Deployments generate are hard to remember, so a name without its generated suffix is tried before
  // similar spellings.
  const stem = name.replace(/-[^-/]*$/, '');
  const alike = known.filter((each) => each.startsWith(`${name}-`) || each.startsWith(`${stem}-`));
  const meant = alike[0] ?? nearest(name, [...known, ...pods.map(({ pod }) => pod)]);
  throw new Problem({
    code: 'lab-pod',
    text:
      found.length === 0
        ? `there is no pod ${name} in this lab`
        : `${found.length} pods are named ${name}`,
    hint: meant === null ? `Known: ${known.join(', ')}` : `Did you mean ${meant}?`,
  });
}

/** Returns the pods that need a machine. Throws a `Problem` if there are too many. */
export function podsOf(manifests: readonly Manifest[], file: string): readonly ImpliedPod[] {
  const wanted = {
    endpoints: true,
    pods: true,
    multicluster: false,
    zones: false,
    labels: '',
    namespaceLabels: '',
  };
  const implied = new ImpliedCluster(wanted);
  implied.build([...manifests]);
  const pods = implied
    .pods([...manifests])
    .filter(({ hostNetwork, ips }) => !hostNetwork && ips.length > 0);
  if (pods.length <= PODS_MAX) return pods;
  throw new Problem({
    code: 'lab-too-large',
    text: `${file} has ${pods.length} pods; a lab has at most ${PODS_MAX}`,
    remedy: 'use fewer replicas',
  });
}
