/**
 * A cluster whose DNS can be examined. It consists of the fake API server and of DNS pods on loopback, each of which is
 * a whole server in memory.
 */
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer as createHttp } from 'node:http';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { VirtualClock } from '../../src/server/base/virtual-clock.ts';
import { doctor } from '../../src/faces/cli/doctor/doctor.ts';
import { ApiServer } from './apiserver/server.ts';
import type { KubeJson } from './apiserver/store.ts';
import { namespaceObject, serviceObject, sliceObject } from './cluster-objects.ts';
import { runCommand, type Ran } from './trace-command.ts';
import { scriptedNetwork, type Answer } from './upstream.ts';
import { makeWorld, type World } from './world.ts';

/** The port used by the DNS pods and their service, which needs no privileges. */
const PORT = 10_053;
const UPSTREAM_PORT = 10_054;
const METRICS_PORT = 19_153;
/** The DNS service's address. */
export const VIP = '127.96.0.10';
/** The DNS pods' addresses. */
export const REPLICAS: readonly string[] = ['127.44.0.5', '127.44.1.5'];
/** Their upstreams' addresses. */
export const UPSTREAMS: readonly string[] = ['127.53.0.2', '127.53.0.3'];

/** Like kubeadm's, plus what the linter requires. */
export const usualCorefile: string = `.:${PORT} {
    errors
    health {
        lameduck 5s
    }
    ready
    kubernetes cluster.local in-addr.arpa ip6.arpa {
        pods insecure
        fallthrough in-addr.arpa ip6.arpa
        ttl 30
    }
    prometheus :${METRICS_PORT}
    forward . ${UPSTREAMS.map((host) => `${host}:${UPSTREAM_PORT}`).join(' ')} {
        max_concurrent 1000
    }
    cache 30 {
        disable success cluster.local
        disable denial cluster.local
    }
    loop
    reload
    loadbalance
}
`;

/** A fault in a DNS server on loopback. */
export interface Wrong {
  /** Nothing is listening. */
  readonly closed?: boolean;
  /** It accepts queries but does not answer. */
  readonly mute?: boolean;
  readonly tcp?: 'closed' | 'mute';
  /** Replaces the correct reply, or suppresses it if null. `question` is `NAME TYPE`, in lower case. */
  reply?(reply: Buffer, query: Buffer, protocol: 'udp' | 'tcp'): Buffer | null;
  /** Added to its metrics at the `nth` scrape, counted from 0. */
  metrics?(nth: number): string;
  /** Its metrics cannot be reached. */
  readonly hidden?: boolean;
  /** Sends endless bytes instead of its metrics. */
  readonly endless?: boolean;
}

export interface ClusterFault {
  readonly corefile?: string;
  /** Maps the address of a replica, the service, or an upstream to its fault. */
  readonly servers?: Readonly<Record<string, Wrong>>;
  /** The upstreams' answers. By default, all names under example.com and corp.test exist. */
  upstream?(name: string, at: string): Answer;
  /** Changes or adds objects before they are stored. */
  objects?(objects: Map<string, KubeJson[]>): void;
}

export class LivingCluster implements AsyncDisposable {
  readonly api: ApiServer;
  readonly #directory: string;
  readonly #world: World;
  readonly #close: (() => void)[] = [];

  private constructor(api: ApiServer, directory: string, world: World) {
    this.api = api;
    this.#directory = directory;
    this.#world = world;
  }

  static async start(fault: ClusterFault = {}): Promise<LivingCluster> {
    const api = await ApiServer.start();
    const directory = mkdtempSync(join(tmpdir(), 'ndots-living-'));
    const objects = usualObjects(fault.corefile ?? usualCorefile);
    const served = [...(objects.get('services') ?? []), ...(objects.get('endpointslices') ?? [])];
    fault.objects?.(objects);
    for (const [plural, list] of objects) for (const object of list) api.put(plural, object);
    const kinds = { services: 'Service', endpointslices: 'EndpointSlice' };
    const items = [
      { apiVersion: 'v1', kind: 'Namespace', ...namespaceObject('shop') },
      { apiVersion: 'v1', kind: 'Namespace', ...namespaceObject('default') },
      { apiVersion: 'v1', kind: 'Namespace', ...namespaceObject('kube-system') },
      ...served.map((object) => ({
        apiVersion: 'spec' in object ? 'v1' : 'discovery.k8s.io/v1',
        kind: 'spec' in object ? kinds.services : kinds.endpointslices,
        ...object,
      })),
    ];
    writeFileSync(
      join(directory, 'all.json'),
      JSON.stringify({ kind: 'List', apiVersion: 'v1', items }),
    );
    const clock = new VirtualClock();
    // Port 9153 may be in use.
    const world = await makeWorld(
      `.:53 {\nprometheus 127.0.0.1:0\nkubernetes cluster.local {\nmanifests ${directory}\n}\ncache 30\nforward . 192.0.2.53\n}`,
      { clock, network: scriptedNetwork(clock, ({ name }) => usualAnswer(name)) },
    ).catch(async (error: unknown) => {
      // An API server that keeps listening would prevent the process from exiting.
      await api.stop();
      rmSync(directory, { recursive: true, force: true });
      throw error;
    });
    const cluster = new LivingCluster(api, directory, world);
    try {
      await cluster.#begin(fault);
    } catch (error) {
      // Another cluster is running, and this one would prevent the process from exiting.
      await cluster[Symbol.asyncDispose]();
      throw error;
    }
    return cluster;
  }

  async #begin(fault: ClusterFault): Promise<void> {
    const wrong = (address: string): Wrong => fault.servers?.[address] ?? {};
    for (const address of [...REPLICAS, VIP]) {
      await this.#serve(
        address,
        (bytes, proto) => this.#world.send(bytes, { proto }),
        wrong(address),
      );
    }
    for (const address of REPLICAS) await this.#expose(address, wrong(address));
    for (const address of UPSTREAMS) {
      const ownClock = new VirtualClock();
      const answer = fault.upstream ?? usualAnswer;
      const own = await makeWorld('.:53 {\nforward . 192.0.2.53\n}', {
        clock: ownClock,
        network: scriptedNetwork(ownClock, ({ name }) => answer(name, address)),
      });
      this.#close.push(() => void own.close());
      await this.#serve(
        address,
        (bytes, proto) => own.send(bytes, { proto }),
        wrong(address),
        UPSTREAM_PORT,
      );
    }
  }

  run(...words: string[]): Promise<Ran> {
    return runCommand(doctor, [...words, '--kubeconfig', this.kubeconfig(), '-q']);
  }

  /** Runs `ndots doctor cluster` briefly and returns the JSON document. */
  async examine(...words: string[]): Promise<Examined> {
    const ran = await this.run(
      'cluster',
      '-o',
      'json',
      '--for',
      '50ms',
      '--timeout',
      '400ms',
      ...words,
    );
    if (ran.out === '') throw new Error(ran.err);
    return { ...(JSON.parse(ran.out) as Omit<Examined, 'code'>), code: ran.code };
  }

  kubeconfig(): string {
    const file = join(this.#directory, 'config');
    const config = {
      apiVersion: 'v1',
      kind: 'Config',
      'current-context': 'prod',
      contexts: [{ name: 'prod', context: { cluster: 'c', user: 'u' } }],
      clusters: [{ name: 'c', cluster: { server: this.api.url } }],
      users: [{ name: 'u', user: {} }],
    };
    writeFileSync(file, JSON.stringify(config));
    return file;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    try {
      for (const close of this.#close) close();
      await this.#world.close();
    } finally {
      await this.api.stop();
      rmSync(this.#directory, { recursive: true, force: true });
    }
  }

  async #serve(
    address: string,
    answer: (bytes: Uint8Array, proto: 'udp' | 'tcp') => Promise<Uint8Array | null>,
    wrong: Wrong,
    port = PORT,
  ): Promise<void> {
    if (wrong.closed === true) return;
    const make = async (query: Buffer, proto: 'udp' | 'tcp'): Promise<Buffer | null> => {
      if (wrong.mute === true || (proto === 'tcp' && wrong.tcp === 'mute')) return null;
      const made = await answer(query, proto);
      if (made === null) return null;
      return wrong.reply === undefined
        ? Buffer.from(made)
        : wrong.reply(Buffer.from(made), query, proto);
    };
    const udp = createSocket('udp4');
    udp.on('message', (query, from) => {
      void make(query, 'udp').then((bytes) => {
        if (bytes !== null) udp.send(bytes, from.port, from.address, () => undefined);
      });
    });
    udp.bind(port, address);
    this.#close.push(() => udp.close());
    await once(udp, 'listening');
    if (wrong.tcp === 'closed') return;
    const tcp = createServer((socket) => {
      socket.on('error', () => undefined);
      socket.on('data', (data: Buffer) => {
        void make(data.subarray(2), 'tcp').then((bytes) => {
          if (bytes === null) return;
          const length = Buffer.alloc(2);
          length.writeUInt16BE(bytes.length);
          socket.write(Buffer.concat([length, bytes]));
        });
      });
    });
    tcp.listen(port, address);
    this.#close.push(() => tcp.close());
    await once(tcp, 'listening');
  }

  async #expose(address: string, wrong: Wrong): Promise<void> {
    if (wrong.hidden === true) return;
    let nth = 0;
    const http = createHttp((_request, reply) => {
      reply.on('error', () => undefined);
      if (wrong.endless === true) {
        const more = (): void => {
          while (!reply.destroyed && reply.write('x'.repeat(65_536)));
        };
        reply.on('drain', more);
        more();
        return;
      }
      reply.end(`${this.#world.metrics()}${wrong.metrics?.(nth++) ?? ''}`);
    });
    http.listen(METRICS_PORT, address);
    this.#close.push(() => {
      http.close();
      http.closeAllConnections();
    });
    await once(http, 'listening');
  }
}

/** The fields in the JSON document that tests read. */
export interface Examined {
  readonly code: number;
  readonly cluster: {
    readonly pods: number;
    readonly lacking: readonly { why: string; so: string }[];
    readonly asked: boolean;
  };
  readonly findings: readonly {
    readonly code: string;
    readonly severity: string;
    readonly seen: readonly string[];
    readonly affected: readonly string[];
  }[];
  readonly not: readonly { readonly code: string; readonly reason: string }[];
  readonly unknown: readonly { readonly code: string; readonly reason: string }[];
}

/** Names in example.com exist, and all others do not. */
export function usualAnswer(name: string): Answer {
  if (name === '.') return { answer: [`@ 300 NS a.root-servers.net.`] };
  if (name === 'www.example.com.' || name === 'api.example.com.')
    return { answer: ['@ 300 A 192.0.2.1'] };
  return { rcode: 'NXDOMAIN', authority: ['. 300 SOA a.test. b.test. 1 2 3 4 300'] };
}

function usualObjects(corefile: string): Map<string, KubeJson[]> {
  const labels = { 'k8s-app': 'kube-dns' };
  const nodes = ['node-a', 'node-b'];
  const template = {
    priorityClassName: 'system-cluster-critical',
    dnsPolicy: 'Default',
    topologySpreadConstraints: [{ topologyKey: 'kubernetes.io/hostname' }],
    containers: [
      {
        name: 'coredns',
        image: 'registry.k8s.io/coredns/coredns:v1.14.7',
        ports: [{ name: 'metrics', containerPort: METRICS_PORT, protocol: 'TCP' }],
        readinessProbe: {
          httpGet: { path: '/ready', port: 8181 },
          periodSeconds: 2,
          failureThreshold: 1,
        },
        livenessProbe: { httpGet: { path: '/health', port: 8080 } },
        resources: { limits: { memory: '512Mi' } },
      },
    ],
    terminationGracePeriodSeconds: 30,
  };
  const dns = serviceObject('kube-system', 'kube-dns', VIP, `dns:${PORT}/UDP`, `dns-tcp:${PORT}`);
  const headless = Array.from({ length: 45 }, (_, nth) => `10.245.0.${nth + 1}`);
  const slice = sliceObject(
    'kube-system',
    'kube-dns',
    REPLICAS,
    `dns:${PORT}/UDP`,
    `dns-tcp:${PORT}`,
  );
  return new Map<string, KubeJson[]>([
    [
      'configmaps',
      [{ metadata: { name: 'coredns', namespace: 'kube-system' }, data: { Corefile: corefile } }],
    ],
    [
      'services',
      [
        {
          ...dns,
          metadata: { ...dns.metadata, labels },
          spec: { ...(dns['spec'] as object), selector: labels },
        },
        serviceObject('default', 'kubernetes', '10.96.0.1', 'https:443'),
        serviceObject('shop', 'cart', '10.96.0.20', 'http:80'),
        serviceObject('shop', 'db', 'None', 'pg:5432'),
        {
          metadata: { name: 'payments', namespace: 'shop' },
          spec: { type: 'ExternalName', externalName: 'api.example.com' },
        },
      ],
    ],
    ['endpointslices', [slice, sliceObject('shop', 'db', headless, 'pg:5432')]],
    [
      'deployments',
      [
        {
          metadata: { name: 'coredns', namespace: 'kube-system' },
          spec: { replicas: 2, template: { metadata: { labels }, spec: template } },
        },
      ],
    ],
    [
      'nodes',
      nodes.map((name) => ({
        metadata: { name },
        status: { conditions: [{ type: 'Ready', status: 'True' }] },
      })),
    ],
    [
      'pods',
      [
        ...REPLICAS.map((ip, nth) =>
          dnsPodObject(`coredns-${nth}`, nodes[nth]!, ip, template, labels),
        ),
        clientPod('shop', 'cart', 0),
        clientPod('shop', 'cart', 1),
      ],
    ],
  ]);
}

function dnsPodObject(
  name: string,
  nodeName: string,
  ip: string,
  template: object,
  labels: Readonly<Record<string, string>>,
): KubeJson {
  return {
    metadata: { name, namespace: 'kube-system', labels },
    spec: { ...template, nodeName },
    status: {
      phase: 'Running',
      podIP: ip,
      podIPs: [{ ip }],
      conditions: [{ type: 'Ready', status: 'True' }],
      containerStatuses: [{ name: 'coredns', restartCount: 0, state: { running: {} } }],
    },
  };
}

export function clientPod(
  namespace: string,
  deployment: string,
  nth: number,
  spec: object = {},
): KubeJson {
  return {
    metadata: {
      name: `${deployment}-7d4b9c-${nth}`,
      namespace,
      labels: { app: deployment, 'pod-template-hash': '7d4b9c' },
      ownerReferences: [{ kind: 'ReplicaSet', name: `${deployment}-7d4b9c`, controller: true }],
    },
    spec: { dnsPolicy: 'ClusterFirst', containers: [{ name: 'a', image: 'shop/a:1' }], ...spec },
    status: { phase: 'Running', podIP: `10.244.9.${nth + 1}` },
  };
}
