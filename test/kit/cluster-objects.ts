/** Objects for a small cluster. */
import type { KubeJson } from './apiserver/store.ts';

/** Objects by plural, in the format that the fake API server uses. */
export type ClusterObjects = Readonly<Record<string, readonly KubeJson[]>>;

/** A port in the notation for services and slices: `80`, `http:80` or `dns:53/UDP`. */
function port(text: string): { name?: string; port: number; protocol: string } {
  const [, name, number, protocol] = /^(?:([a-z0-9-]+):)?(\d+)(?:\/([A-Z]+))?$/.exec(text)!;
  return {
    ...(name === undefined ? {} : { name }),
    port: Number(number),
    protocol: protocol ?? 'TCP',
  };
}

export function namespaceObject(name: string): KubeJson {
  return {
    metadata: { name, labels: { 'kubernetes.io/metadata.name': name } },
    status: { phase: 'Active' },
  };
}

/** `clusterIp` is `None` for a headless service. */
export function serviceObject(
  namespace: string,
  name: string,
  clusterIp: string,
  ...ports: readonly string[]
): KubeJson {
  return {
    metadata: { name, namespace },
    spec: {
      type: 'ClusterIP',
      clusterIP: clusterIp,
      clusterIPs: [clusterIp],
      ports: ports.map(port),
    },
    status: { loadBalancer: {} },
  };
}

/** A service's only slice, with all endpoints ready. */
export function sliceObject(
  namespace: string,
  service: string,
  addresses: readonly string[],
  ...ports: readonly string[]
): KubeJson {
  return {
    metadata: {
      name: `${service}-abcde`,
      namespace,
      labels: { 'kubernetes.io/service-name': service },
      annotations: {
        'endpoints.kubernetes.io/last-change-trigger-time': new Date().toISOString(),
      },
    },
    addressType: 'IPv4',
    ports: ports.map(port),
    endpoints: addresses.map((address, i) => ({
      addresses: [address],
      conditions: { ready: true, serving: true, terminating: false },
      targetRef: { kind: 'Pod', namespace, name: `${service}-${i}` },
    })),
  };
}

export function podObject(
  namespace: string,
  name: string,
  ip: string,
  phase = 'Running',
): KubeJson {
  return {
    metadata: { name, namespace },
    spec: { hostNetwork: false },
    status: { phase, podIP: ip, podIPs: [{ ip }] },
  };
}

/** Objects that every cluster has: the services for the API server and the DNS server. */
export const everyCluster: ClusterObjects = {
  services: [
    serviceObject('default', 'kubernetes', '10.96.0.1', 'https:443'),
    serviceObject(
      'kube-system',
      'kube-dns',
      '10.96.0.10',
      'dns:53/UDP',
      'dns-tcp:53',
      'metrics:9153',
    ),
  ],
  endpointslices: [
    sliceObject('default', 'kubernetes', ['192.168.49.2'], 'https:8443'),
    sliceObject(
      'kube-system',
      'kube-dns',
      ['172.17.0.2', '172.17.0.3'],
      'dns:53/UDP',
      'dns-tcp:53',
      'metrics:9153',
    ),
  ],
};

/** Merges the objects of several clusters. */
export function joinObjects(...clusters: readonly ClusterObjects[]): ClusterObjects {
  const joined: Record<string, KubeJson[]> = {};
  for (const cluster of clusters) {
    for (const [plural, objects] of Object.entries(cluster))
      (joined[plural] ??= []).push(...objects);
  }
  return joined;
}
