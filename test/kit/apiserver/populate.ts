/** Fills the fake API server with a cluster. */
import type { ApiServer } from './server.ts';
import { namespace } from './server.ts';
import type { KubeJson } from './store.ts';

export interface Population {
  readonly services: number;
  /** Pods are spread evenly across the services. */
  readonly endpoints: number;
  readonly pods: number;
  /** Bytes of padding per object, because the fields that DNS does not need are missing. 1000 by default. */
  readonly padding?: number;
}

/** Fills a server with a cluster of the given size, spread across 100 namespaces and 500 nodes. */
export function populate(server: ApiServer, size: Population): void {
  const padding = 'x'.repeat(size.padding ?? 1000);
  for (let i = 0; i < Math.min(100, size.services); i++) {
    server.put('namespaces', namespace(namespaceName(i)));
  }
  const perService = size.services === 0 ? 0 : Math.ceil(size.endpoints / size.services);
  let left = size.endpoints;
  for (let i = 0; i < size.services; i++) {
    server.put('services', service(i, padding));
    const count = Math.min(perService, left);
    left -= count;
    if (count > 0) server.put('endpointslices', slice(i, i * perService, count, padding));
  }
  for (let i = 0; i < size.pods; i++) server.put('pods', pod(i, perService || 10, padding));
}

function namespaceName(service: number): string {
  return `team-${service % 100}`;
}

function serviceName(service: number): string {
  return `service-${service}`;
}

function podName(pod: number, perService: number): string {
  const service = Math.floor(pod / perService);
  const mixed = (pod * 2654435761) >>> 0;
  return `${serviceName(service)}-${(service * 40503 + 1048576).toString(16)}-${mixed.toString(36).slice(0, 5)}`;
}

function podIp(pod: number): string {
  return `10.${128 + (pod >> 16)}.${(pod >> 8) & 255}.${pod & 255}`;
}

export function service(index: number, padding = ''): KubeJson {
  return {
    metadata: {
      name: serviceName(index),
      namespace: namespaceName(index),
      labels: { app: serviceName(index) },
      annotations: { padding },
    },
    spec: {
      type: 'ClusterIP',
      clusterIP: `10.${96 + (index >> 16)}.${(index >> 8) & 255}.${index & 255}`,
      clusterIPs: [`10.${96 + (index >> 16)}.${(index >> 8) & 255}.${index & 255}`],
      selector: { app: serviceName(index) },
      ports: [{ name: 'http', protocol: 'TCP', port: 80, targetPort: 8080 }],
    },
    status: { loadBalancer: {} },
  };
}

/** Builds the nth service's endpoint slice, with `count` pods starting at `firstPod`. */
export function slice(index: number, firstPod: number, count: number, padding = ''): KubeJson {
  return {
    metadata: {
      name: `${serviceName(index)}-abcde`,
      namespace: namespaceName(index),
      labels: { 'kubernetes.io/service-name': serviceName(index) },
      annotations: {
        'endpoints.kubernetes.io/last-change-trigger-time': '2026-01-01T00:00:00Z',
        padding,
      },
    },
    addressType: 'IPv4',
    ports: [{ name: 'http', protocol: 'TCP', port: 8080 }],
    endpoints: Array.from({ length: count }, (_, i) => ({
      addresses: [podIp(firstPod + i)],
      conditions: { ready: true, serving: true, terminating: false },
      nodeName: `node-${(firstPod + i) % 500}.eu-central-1.compute.internal`,
      zone: `eu-central-1${'abc'[(firstPod + i) % 3]}`,
      targetRef: {
        kind: 'Pod',
        name: podName(firstPod + i, count),
        namespace: namespaceName(index),
        uid: '00000000-0000-0000-0000-000000000000',
      },
    })),
  };
}

/** Builds the nth pod, where each service has `perService` pods. */
export function pod(index: number, perService: number, padding = ''): KubeJson {
  const service = Math.floor(index / perService);
  return {
    metadata: {
      name: podName(index, perService),
      namespace: namespaceName(service),
      labels: { app: serviceName(service), 'pod-template-hash': '5d4f8c7b9' },
      annotations: { padding },
    },
    spec: { nodeName: `node-${index % 500}.eu-central-1.compute.internal`, containers: [] },
    status: {
      phase: 'Running',
      podIP: podIp(index),
      podIPs: [{ ip: podIp(index) }],
      conditions: [{ type: 'Ready', status: 'True' }],
    },
  };
}
