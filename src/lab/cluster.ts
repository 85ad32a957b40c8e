/** A small cluster of network namespaces: nodes, pods with the files that kubelet gives them, services by kube-proxy's rules, a DNS server. */
import { spawn, type ChildProcess } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { Problem } from '../base/problem.ts';
import { clusterState, manifestObjects, type ProxyObjects } from '../dataplane/cluster-state.ts';
import { iptablesJumps, iptablesRules } from '../dataplane/iptables.ts';
import { nftablesRules } from '../dataplane/nftables.ts';
import { defaultProxy } from '../dataplane/traffic.ts';
import { child, children, text, textMap, texts, type JsonObject } from '../kube/api/json-object.ts';
import { defaultRanges, ImpliedCluster } from '../kube/manifests/cluster.ts';
import { ManifestFolder } from '../kube/manifests/folder.ts';
import type { ImpliedPod } from '../kube/manifests/pods.ts';
import { impliedNodes } from '../kube/manifests/pods.ts';
import { serviceNameLabel } from '../kube/store/transform.ts';
import { inNetworkNamespace } from '../linux/network-namespace.ts';
import { podResolvConf, type DnsPolicy, type PodDns } from '../resolver/dns-policy.ts';
import type { Script } from '../resolver/answers-file.ts';
import { LabApi } from './api-server.ts';
import { LAB_FOLDER, wordsBehind, writeFiles, type OwnFiles } from './files.ts';
import { LabNetwork, type Machine } from './network.ts';
import { call, type Said } from './programs.ts';
import { serveScript, type ScriptedServer, type ServedQuery } from './scripted-server.ts';

/** What a lab is made of. */
export interface ClusterPlan {
  /** Kubernetes objects: a file, or a folder. */
  readonly manifests: string;
  /** Of the DNS pods, those behind the service kube-system/kube-dns. `@API@` stands for the API server's URL. */
  readonly corefile: string;
  /** What kubelet finds on its node: its search domains go to all pods. */
  readonly nodeResolvConf: string;
  readonly mode: 'iptables' | 'nftables';
  /** Whether pods have an IPv6 address besides: clients then ask for AAAA, too. */
  readonly ipv6: boolean;
  /** Addresses outside of the cluster that answer DNS, and what they answer. */
  readonly internet: { readonly addresses: readonly string[]; readonly script: Script };
  /** More files that a pod has of its own, by `namespace/name`. */
  readonly files?: Readonly<Record<string, OwnFiles>>;
}

/** Programs that a lab starts. */
export interface LabPrograms {
  /** The words that begin `ndots serve`. */
  readonly ndots: readonly string[];
  /** A CoreDNS to take in its place; null: ndots serves. */
  readonly coredns: string | null;
}

/** A pod that runs in the lab. */
export interface LabPod extends Machine {
  readonly namespace: string;
  readonly pod: string;
  readonly node: string;
  readonly files: OwnFiles;
}

/** The most pods of a lab: each is a network namespace. */
const PODS_MAX = 64;
const DNS_SERVICE = 'kube-system/kube-dns';
const API_HOST = '172.18.255.250';
/** A DNS server that does not answer after this time is broken, milliseconds. */
const START_MS = 60_000;

/** A cluster that runs. It ends with the process that made it; `close` ends what runs in it before that. */
export class LabCluster {
  readonly network: LabNetwork = new LabNetwork();
  readonly api: LabApi = new LabApi();
  /** Queries that reached the internet, in order. */
  readonly outside: ServedQuery[] = [];
  readonly #plan: ClusterPlan;
  readonly #programs: LabPrograms;
  readonly #nodes = new Map<string, Machine>();
  readonly #pods = new Map<string, LabPod>();
  readonly #children = new Map<string, ChildProcess>();
  readonly #closers: (() => void)[] = [];
  #objects: ProxyObjects = { services: [], slices: [] };
  #internet: ScriptedServer | null = null;

  private constructor(plan: ClusterPlan, programs: LabPrograms) {
    this.#plan = plan;
    this.#programs = programs;
  }

  /** Builds all of it and waits until the DNS servers answer. Throws a `Problem`. */
  static async start(plan: ClusterPlan, programs: LabPrograms): Promise<LabCluster> {
    const lab = new LabCluster(plan, programs);
    await lab.#build();
    return lab;
  }

  /** All pods by `namespace/name`. */
  get pods(): ReadonlyMap<string, LabPod> {
    return this.#pods;
  }

  /** Nodes by name. */
  get nodes(): ReadonlyMap<string, Machine> {
    return this.#nodes;
  }

  /** A pod by `namespace/name`, or by `name` if there is only one of it. Throws a `Problem`. */
  pod(name: string): LabPod {
    const found =
      this.#pods.get(name) ?? [...this.#pods.values()].filter(({ pod }) => pod === name);
    if (!Array.isArray(found)) return found as LabPod;
    if (found.length === 1) return found[0] as LabPod;
    throw new Problem({
      code: 'lab-pod',
      text:
        found.length === 0
          ? `there is no pod ${name} in this lab`
          : `${name} is the name of ${found.length} pods`,
      hint: `There are: ${[...this.#pods.keys()].join(', ')}`,
    });
  }

  /** Runs a program in a pod, to its end. */
  exec(pod: string, words: readonly string[], limitMs?: number): Said {
    const { name, files } = this.pod(pod);
    return call(wordsBehind(name, files, words), limitMs === undefined ? {} : { limitMs });
  }

  /** Runs a program in a pod while others go on. */
  async execLater(pod: string, words: readonly string[], limitMs = 60_000): Promise<Said> {
    const { name, files } = this.pod(pod);
    const [program = '', ...rest] = wordsBehind(name, files, words);
    const began = performance.now();
    const running = spawn(program, rest, { stdio: ['ignore', 'pipe', 'pipe'], timeout: limitMs });
    const said = { stdout: '', stderr: '' };
    running.stdout.on('data', (chunk: Buffer) => (said.stdout += chunk.toString()));
    running.stderr.on('data', (chunk: Buffer) => (said.stderr += chunk.toString()));
    const status = await new Promise<number>((resolve) => {
      running.on('close', (code) => resolve(code ?? -1));
    });
    return { status, ...said, tookMs: performance.now() - began };
  }

  /** Another script for the internet. */
  answerOutside(script: Script): void {
    this.#internet?.follow(script);
  }

  /** Addresses of a service, as `namespace/name`. */
  serviceAddress(name: string): string {
    const found = this.#objects.services.find((raw) => nameOf(raw) === name);
    return text(child(found ?? {}, 'spec'), 'clusterIP');
  }

  /** `namespace/name address` of all services that have an address. */
  serviceNames(): readonly string[] {
    return this.#objects.services.flatMap((raw) => {
      const address = text(child(raw, 'spec'), 'clusterIP');
      return address === '' || address === 'None' ? [] : [`${nameOf(raw)} ${address}`];
    });
  }

  /** The objects that the rules are made of. */
  get objects(): ProxyObjects {
    return this.#objects;
  }

  /** Services and endpoints are others from now on: the API server tells of them, and all nodes get new rules. */
  change(objects: Partial<ProxyObjects>): void {
    const before = this.#objects;
    this.#objects = { ...before, ...objects };
    for (const [kind, of] of [
      ['Service', 'services'],
      ['EndpointSlice', 'slices'],
    ] as const) {
      const gone = before[of].filter(
        (raw) => !this.#objects[of].some((now) => nameOf(now) === nameOf(raw)),
      );
      for (const raw of gone) this.api.delete(kind, raw);
      for (const raw of this.#objects[of]) if (!before[of].includes(raw)) this.api.put(kind, raw);
    }
    this.writeRules();
  }

  /** The rules of services on every node, or on one, as they follow from the objects. */
  writeRules(only?: string): void {
    for (const node of this.#nodes.keys()) {
      if (only !== undefined && only !== node) continue;
      const text = this.rules(node);
      if (this.#plan.mode === 'nftables') this.network.run(node, ['nft', '-f', '-'], text);
      else this.network.run(node, ['iptables-restore', '--noflush'], text);
    }
  }

  /** The rules of a node as text. */
  rules(node: string): string {
    const nodeIP =
      this.#nodes.get(node)?.addresses.find((address) => !address.includes(':')) ?? null;
    const state = clusterState(this.#objects, 'IPv4');
    const options = { ...defaultProxy, node, nodeIP };
    return this.#plan.mode === 'nftables'
      ? nftablesRules(state, options)
      : iptablesRules(state, options);
  }

  /** Starts the DNS server in a pod, and waits until it answers. */
  async startDns(
    pod: string,
    corefile: string = this.#plan.corefile,
    /** A name that it must answer before it counts as started. */
    known = 'kubernetes.default.svc.cluster.local.',
  ): Promise<void> {
    const { name, files, addresses } = this.pod(pod);
    const folder = join(LAB_FOLDER, name);
    mkdirSync(folder, { recursive: true });
    const path = join(folder, 'Corefile');
    writeFileSync(path, corefile.replaceAll('@API@', `http://${API_HOST}:8080`));
    const { ndots, coredns } = this.#programs;
    const words = coredns === null ? [...ndots, 'serve', '-conf', path] : [coredns, '-conf', path];
    const [program = '', ...rest] = wordsBehind(name, files, words);
    const running = spawn(program, rest, { stdio: ['ignore', 'pipe', 'pipe'] });
    this.#children.set(`${name}/dns`, running);
    let said = '';
    for (const stream of [running.stdout, running.stderr]) {
      stream.on('data', (chunk: Buffer) => {
        said = `${said}${chunk.toString()}`.slice(-4000);
      });
    }
    const { dnsAnswers } = await import('./udp-client.ts');
    const until = performance.now() + START_MS;
    while (!(await dnsAnswers(this.network.path(name), addresses[0] ?? '', known))) {
      if (running.exitCode === null && performance.now() < until) continue;
      throw new Problem({
        code: 'lab-dns',
        text: `the DNS server in ${pod} ${running.exitCode === null ? 'does not answer' : 'has ended'}`,
        hint: said.trim().split('\n').slice(-6).join('\n  ') || 'it said nothing',
        remedy:
          coredns === null
            ? 'ndots serve -conf with this Corefile says more'
            : 'look at the Corefile of the story: this CoreDNS may not know all of it',
      });
    }
  }

  /** Starts a program in a pod that goes on until the lab ends, or until `stop` is called. */
  background(pod: string, words: readonly string[]): { stop(): Promise<void> } {
    const { name, files } = this.pod(pod);
    const [program = '', ...rest] = wordsBehind(name, files, words);
    const running = spawn(program, rest, { stdio: 'ignore' });
    const key = `${name}/${words[0] ?? ''}/${this.#children.size}`;
    this.#children.set(key, running);
    return {
      stop: async () => {
        this.#children.delete(key);
        await ended(running, 'SIGKILL');
      },
    };
  }

  /** The API server goes away: connections are closed, and new ones refused. */
  stopApi(): void {
    this.api.close();
  }

  /** Ends the DNS server in a pod. */
  async stopDns(pod: string, signal: 'SIGTERM' | 'SIGKILL' = 'SIGKILL'): Promise<void> {
    const { name } = this.pod(pod);
    const running = this.#children.get(`${name}/dns`);
    if (running === undefined) return;
    this.#children.delete(`${name}/dns`);
    await ended(running, signal);
  }

  /** Sends a signal to the DNS server in a pod, and does not wait. */
  signalDns(pod: string, signal: NodeJS.Signals): void {
    this.#children.get(`${this.pod(pod).name}/dns`)?.kill(signal);
  }

  /** Ends everything that runs in it. Its namespaces go with the process. */
  async close(): Promise<void> {
    await Promise.all([...this.#children.values()].map((running) => ended(running, 'SIGKILL')));
    for (const close of this.#closers) close();
    this.#internet?.close();
    this.api.close();
  }

  async #build(): Promise<void> {
    const folder = new ManifestFolder(this.#plan.manifests);
    const { problems } = await folder.look();
    if (problems.length > 0) throw problems[0]!;
    const { manifests } = folder;
    const wanted = {
      ...{ endpoints: true, pods: true, multicluster: false, zones: false },
      ...{ labels: '', namespaceLabels: '' },
    };
    const implied = new ImpliedCluster(wanted, defaultRanges);
    implied.build(manifests);
    const pods = implied
      .pods(manifests)
      .filter(({ hostNetwork, ips }) => !hostNetwork && ips.length > 0);
    if (pods.length > PODS_MAX) {
      throw new Problem({
        code: 'lab-too-large',
        text: `${this.#plan.manifests} has ${pods.length} pods, and a lab has ${PODS_MAX} at most`,
        remedy: 'take fewer replicas',
      });
    }
    this.#objects = await manifestObjects(this.#plan.manifests, (problem) => {
      throw problem;
    });
    const { addresses, script } = this.#plan.internet;
    const internet = this.network.addHost('internet', [...addresses, API_HOST]);
    const nodes = impliedNodes(manifests).map(({ name, ips }) => ({ name, ips }));
    const names = [
      ...new Set([...nodes.map(({ name }) => name), ...pods.map(({ nodeName }) => nodeName)]),
    ];
    names.forEach((name, index) => {
      const stated = nodes.find((node) => node.name === name)?.ips ?? [];
      const ips = stated.length > 0 ? stated : [`172.18.0.${index + 2}`];
      const own = this.#plan.ipv6 ? [...ips, `fd00:18::${index + 2}`] : ips;
      this.#nodes.set(name, this.network.addNode(name, own));
    });
    pods.forEach((pod, index) => this.#addPod(pod, index));
    for (const node of this.#nodes.keys()) this.#prepareNode(node, internet);
    this.writeRules();
    this.#fillApi(
      pods,
      manifests.filter(({ kind }) => kind === 'Namespace').map(({ name }) => name),
    );
    await this.#listen(pods, script, addresses);
    const dns = [...this.#pods.values()].filter((pod) => this.#isDns(pod));
    await Promise.all(dns.map(({ namespace, pod }) => this.startDns(`${namespace}/${pod}`)));
  }

  #addPod(pod: ImpliedPod, index: number): void {
    const { namespace, name, nodeName, ips, spec } = pod;
    const key = `${namespace}/${name}`;
    const machine = `pod-${index + 1}-${name}`.slice(0, 60);
    const addresses =
      this.#plan.ipv6 && !ips.some((ip) => ip.includes(':'))
        ? [...ips, `fd00:244::${index + 2}`]
        : ips;
    const dns: PodDns = {
      namespace,
      policy: (text(spec, 'dnsPolicy') || 'ClusterFirst') as DnsPolicy,
      config: dnsConfig(spec),
      hostNetwork: false,
    };
    const conf = podResolvConf(dns, {
      clusterDns: [this.serviceAddress(DNS_SERVICE)].filter((ip) => ip !== ''),
      clusterDomain: 'cluster.local',
      nodeResolvConf: this.#plan.nodeResolvConf,
    });
    const files: OwnFiles = {
      '/etc/resolv.conf': conf.text,
      '/etc/hosts': [
        '127.0.0.1\tlocalhost',
        '::1\tlocalhost ip6-localhost',
        ...ips.map((ip) => `${ip}\t${name}`),
        '',
      ].join('\n'),
      ...this.#plan.files?.[key],
    };
    writeFiles(machine, files);
    this.network.addPod(machine, addresses, this.#nodes.get(nodeName)!);
    this.#pods.set(key, { name: machine, addresses, namespace, pod: name, node: nodeName, files });
  }

  /** Jumps into kube-proxy's chains, and what a CNI plugin does for pods that leave the cluster. */
  #prepareNode(node: string, internet: Machine): void {
    const lines = internet.addresses
      .filter((address) => !address.includes(':'))
      .map((address) => `-A POSTROUTING -d ${address} -j MASQUERADE`);
    const rules = `*nat\n${lines.join('\n')}\nCOMMIT\n`;
    this.network.run(node, ['iptables-restore', '--noflush'], rules);
    if (this.#plan.mode === 'nftables') return;
    this.network.run(
      node,
      ['iptables-restore', '--noflush'],
      `${iptablesRules(clusterState({ services: [], slices: [] }, 'IPv4'), defaultProxy)}${iptablesJumps()}`,
    );
  }

  #fillApi(pods: readonly ImpliedPod[], namespaces: readonly string[]): void {
    const names = new Set([
      'default',
      'kube-system',
      ...namespaces,
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

  /** The internet, the API server, and what pods answer over HTTP on the ports of their containers. */
  async #listen(
    pods: readonly ImpliedPod[],
    script: Script,
    addresses: readonly string[],
  ): Promise<void> {
    const outside = this.network.path('internet');
    this.#internet = await inNetworkNamespace(outside, () =>
      serveScript(script, addresses, (query) => void this.outside.push(query)),
    );
    const waiting: Promise<unknown>[] = [];
    inNetworkNamespace(outside, () =>
      waiting.push(new Promise<void>((resolve) => this.api.server.listen(8080, resolve))),
    );
    for (const pod of pods) {
      const machine = this.#pods.get(`${pod.namespace}/${pod.name}`)!;
      if (this.#isDns(machine)) continue;
      for (const { port, protocol } of pod.ports) {
        if (protocol !== 'TCP' || port === 0) continue;
        const server = createServer((_request, reply) => {
          reply.setHeader('connection', 'close');
          reply.end(`${pod.name} ${pod.ips[0]}\n`);
        });
        inNetworkNamespace(this.network.path(machine.name), () =>
          waiting.push(new Promise<void>((resolve) => server.listen(port, resolve))),
        );
        this.#closers.push(() => server.close());
      }
    }
    await Promise.all(waiting);
  }

  #isDns({ addresses }: LabPod): boolean {
    return this.#objects.slices
      .filter((slice) => {
        const metadata = child(slice, 'metadata');
        return (
          `${text(metadata, 'namespace')}/${textMap(metadata, 'labels')[serviceNameLabel]}` ===
          DNS_SERVICE
        );
      })
      .some((slice) =>
        children(slice, 'endpoints').some((one) =>
          addresses.includes(texts(one, 'addresses')[0] ?? ''),
        ),
      );
  }
}

function nameOf(raw: JsonObject): string {
  const metadata = child(raw, 'metadata');
  return `${text(metadata, 'namespace') || 'default'}/${text(metadata, 'name')}`;
}

function dnsConfig(spec: JsonObject): PodDns['config'] {
  const config = child(spec, 'dnsConfig');
  if (Object.keys(config).length === 0) return null;
  return {
    nameservers: texts(config, 'nameservers'),
    searches: texts(config, 'searches'),
    options: children(config, 'options').map((one) => ({
      name: text(one, 'name'),
      value: text(one, 'value') || undefined,
    })),
  };
}

async function ended(running: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (running.exitCode !== null || running.signalCode !== null) return;
  const gone = new Promise((resolve) => running.once('exit', resolve));
  running.kill(signal);
  await gone;
}
