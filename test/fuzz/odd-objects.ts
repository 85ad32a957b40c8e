/** Malformed and unusual Kubernetes objects. */
import type { Random } from '../../src/server/base/random.ts';
import type { KubeJson } from '../kit/apiserver/store.ts';
import { pick } from '../kit/pick.ts';

/**
 * Normal and malformed Kubernetes objects. They share a few names and addresses, so they collide, move, and replace
 * each other. Every second one is well-formed.
 */
export interface OddObject {
  readonly plural: 'namespaces' | 'services' | 'endpointslices' | 'endpoints' | 'pods';
  readonly object: KubeJson;
}

export const spaces = ['n0', 'n1', 'n2'] as const;
export const serviceNames = ['s0', 's1', 's2', 's3', 's4', 's5', 's.6', 'S7'] as const;
export const hostNames = ['web-0', 'web-1'] as const;

/** 10.1.0.0–7 and a few IPv6 addresses. */
function endpointAddress(random: Random): string {
  return random.integer(4) === 0 ? `fd00::${random.integer(4)}` : `10.1.0.${random.integer(8)}`;
}

const ports = [
  [{ name: 'http', port: 80, protocol: 'TCP' }],
  [
    { name: 'http', port: 8080, protocol: 'TCP' },
    { name: 'dns', port: 53, protocol: 'UDP' },
  ],
  [{ port: 9000 }],
  [],
] as const;

const oddPorts = [
  null,
  [null],
  'http',
  [{ name: 7, port: '80' }],
  [{ name: '', port: null }],
  [{ name: 'x'.repeat(80), port: 70_000, protocol: 'tcp' }],
  [{ name: 'HTTP', port: 80, protocol: 'TCP' }],
] as const;

const oddSpecs: readonly unknown[] = [
  null,
  {},
  { clusterIP: null, clusterIPs: null },
  { clusterIP: '' },
  { clusterIP: '', clusterIPs: [] },
  { clusterIP: 'None' },
  { clusterIP: 'None', ports: null },
  { clusterIP: 'None', clusterIPs: ['None', 'None'], ports: [] },
  { clusterIP: '10.0.0.300' },
  { clusterIP: 'fd00:10::1' },
  { clusterIP: '10.0.0.1', clusterIPs: ['10.0.0.1', 'fd00:10::2'] },
  { clusterIPs: ['fd00:10::3', '10.0.0.3'], ports: [{ name: 'http', port: 80 }] },
  { clusterIPs: 'none' },
  { type: 'Odd', clusterIP: '10.0.0.4' },
  { type: 'ExternalName' },
  { type: 'ExternalName', externalName: '' },
  { type: 'ExternalName', externalName: '.' },
  { type: 'ExternalName', externalName: 'a..b' },
  { type: 'ExternalName', externalName: 'x'.repeat(64) },
  { type: 'ExternalName', externalName: `${'abcdefg.'.repeat(40)}com` },
  { type: 'ExternalName', externalName: '10.1.2.3' },
  { type: 'ExternalName', externalName: 'fd00::9' },
  { type: 'ExternalName', externalName: 'Ünicode.example' },
  { type: 'ExternalName', externalName: 'two words.example' },
  { type: 'ExternalName', externalName: 'back\\slash.example' },
  { type: 'ExternalName', externalName: 's0.n0.svc.cluster.local.' },
  { type: 'ExternalName', externalName: 's1.n1.svc.cluster.local', clusterIP: '10.0.0.5' },
  { type: 'ExternalName', externalName: 42 },
];

function metadata(name: string, namespace: string, labels?: object): KubeJson['metadata'] {
  return { name, namespace, ...(labels === undefined ? {} : { labels }) } as KubeJson['metadata'];
}

export function oddObject(random: Random): OddObject {
  const namespace = pick(random, spaces);
  const name = pick(random, serviceNames);
  const odd = random.integer(2) === 0;
  switch (random.integer(8)) {
    case 0:
      return { plural: 'namespaces', object: { metadata: { name: namespace } } };
    case 1:
    case 2:
    case 3:
      return {
        plural: 'services',
        object: {
          metadata: metadata(name, namespace, odd ? { app: 'x' } : undefined),
          ...(random.integer(20) === 0 ? {} : { spec: odd ? oddSpec(random) : spec(random) }),
        },
      };
    case 4:
    case 5:
      return { plural: 'endpointslices', object: slice(random, name, namespace, odd) };
    case 6:
      return { plural: 'endpoints', object: endpoints(random, name, namespace, odd) };
    default:
      return { plural: 'pods', object: pod(random, namespace, odd) };
  }
}

function spec(random: Random): unknown {
  const chosen = pick(random, ports);
  return random.integer(3) === 0
    ? { type: 'ClusterIP', clusterIP: 'None', clusterIPs: ['None'], ports: chosen }
    : clusterSpec(`10.0.0.${1 + random.integer(8)}`, chosen);
}

function clusterSpec(clusterIP: string, chosen: unknown): unknown {
  return { type: 'ClusterIP', clusterIP, clusterIPs: [clusterIP], ports: chosen };
}

function oddSpec(random: Random): unknown {
  const one = pick(random, oddSpecs);
  if (one === null || random.integer(3) > 0) return one;
  return { ...(one as object), ports: pick(random, oddPorts) };
}

function slice(random: Random, service: string, namespace: string, odd: boolean): KubeJson {
  const labels =
    odd && random.integer(5) === 0
      ? pick(random, [undefined, {}, { 'kubernetes.io/service-name': '' }, { other: 'label' }])
      : { 'kubernetes.io/service-name': service };
  const many: unknown = Array.from({ length: random.integer(4) }, () => endpoint(random, odd));
  return {
    metadata: metadata(`${service.toLowerCase()}-${random.integer(3)}`, namespace, labels),
    addressType: pick(random, ['IPv4', 'IPv6', 'FQDN', 'IPv4']),
    endpoints: odd && random.integer(6) === 0 ? pick(random, [null, 'none', {}, [null, 7]]) : many,
    ports: odd && random.integer(3) === 0 ? pick(random, oddPorts) : pick(random, ports),
    ...(odd && random.integer(10) === 0 ? { padding: 'x'.repeat(200_000) } : {}),
    ...(odd ? { unheardOf: { deep: [1, { items: [] }] } } : {}),
  };
}

function endpoint(random: Random, odd: boolean): unknown {
  const address = endpointAddress(random);
  const good = {
    addresses: [address],
    conditions: { ready: random.integer(4) > 0 },
    ...(random.integer(3) === 0 ? { hostname: pick(random, hostNames) } : {}),
  };
  if (!odd) return good;
  return {
    ...good,
    ...pick<object>(random, [
      {},
      { addresses: null },
      { addresses: [] },
      { addresses: ['db.example.com'] },
      { addresses: [address, address, endpointAddress(random)] },
      { addresses: ['10.1.0.300', 7, ''] },
      { conditions: null },
      { conditions: { ready: null } },
      { conditions: { ready: 'false' } },
      { conditions: {} },
      { conditions: { ready: false, serving: true, terminating: true } },
      { hostname: 'x'.repeat(64) },
      { hostname: 'dotted.name' },
      { hostname: null, nodeName: null, targetRef: null, zone: null },
      { targetRef: { kind: 'Pod' } },
    ]),
  };
}

function endpoints(random: Random, service: string, namespace: string, odd: boolean): KubeJson {
  const address = (): unknown =>
    odd && random.integer(4) === 0
      ? pick<unknown>(random, [
          null,
          {},
          { ip: null },
          { ip: 'x' },
          { ip: '10.1.0.3', hostname: 7 },
        ])
      : {
          ip: endpointAddress(random),
          ...(random.integer(3) === 0 ? { hostname: pick(random, hostNames) } : {}),
        };
  const many = (): unknown[] => Array.from({ length: random.integer(3) }, address);
  const subset = (): object => ({
    addresses: many(),
    notReadyAddresses: many(),
    ports: odd && random.integer(3) === 0 ? pick(random, oddPorts) : pick(random, ports),
  });
  return {
    metadata: metadata(service, namespace),
    ...(odd && random.integer(4) === 0
      ? pick<object>(random, [{}, { subsets: null }, { subsets: [null, {}] }, { subsets: 'none' }])
      : { subsets: Array.from({ length: random.integer(3) }, subset) }),
  };
}

function pod(random: Random, namespace: string, odd: boolean): KubeJson {
  const ip = endpointAddress(random);
  const phase = pick(random, ['Running', 'Pending', 'Succeeded', 'Failed']);
  const name = `p${random.integer(6)}`;
  if (!odd) {
    return { metadata: metadata(name, namespace), spec: {}, status: { phase, podIP: ip } };
  }
  return {
    metadata: {
      ...metadata(name, namespace),
      ...(random.integer(3) === 0 ? { deletionTimestamp: '2026-01-01T00:00:00Z' } : {}),
    },
    spec: random.integer(3) === 0 ? { hostNetwork: true } : {},
    ...pick<object>(random, [
      {},
      { status: null },
      { status: { phase } },
      { status: { phase: null, podIP: ip } },
      { status: { phase, podIP: ip, podIPs: [{ ip }, { ip: 'fd00::1' }, null, {}] } },
      { status: { phase, podIP: '', podIPs: null } },
    ]),
  };
}
