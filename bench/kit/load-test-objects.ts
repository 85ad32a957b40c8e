/**
 * The objects from Kubernetes' scalability test (ClusterLoader2's load test), in which CoreDNS was killed when the API
 * server restarted (kubernetes #139117). For every 100 nodes, there is a namespace with 3 000 pods in groups of 5, 30
 * and 250, half of which have a Service. 5 000 nodes therefore have 8 250 Services, 8 450 slices and 82 000 endpoints.
 */
import type { KubeJson } from '../../test/kit/apiserver/store.ts';

const NODES_PER_NAMESPACE = 100;
/** The number of pods per group, and of Services for such groups in each namespace. */
const GROUPS = [
  { name: 'small', pods: 5, services: 150 },
  { name: 'medium', pods: 30, services: 13 },
  { name: 'big', pods: 250, services: 2 },
] as const;
const SLICE_MAX = 100;
/** Pod addresses per node. */
const PODS_PER_NODE = 30;

/** An object, and the path of the collection where it is created. */
export interface CreatedObject {
  readonly path: string;
  readonly object: KubeJson;
}

/** Name and address of the first Service. */
export const FIRST = { name: 'small-service-0.load-0.svc.cluster.local.', address: '10.0.16.0' };

/** @param nodes a multiple of 100 */
export function* loadTestObjects(nodes: number): Generator<CreatedObject> {
  for (let node = 0; node < nodes; node++)
    yield { path: '/api/v1/nodes', object: nodeObject(node) };
  let services = 0;
  for (let n = 0; n < nodes / NODES_PER_NAMESPACE; n++) {
    const namespace = `load-${n}`;
    yield {
      path: '/api/v1/namespaces',
      object: { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } },
    };
    let pods = 0;
    for (const { name, pods: size, services: count } of GROUPS) {
      for (let i = 0; i < count; i++) {
        const service = `${name}-service-${i}`;
        const path = `/api/v1/namespaces/${namespace}/services`;
        yield { path, object: serviceObject(namespace, service, services++) };
        for (let from = 0; from < size; from += SLICE_MAX) {
          const length = Math.min(SLICE_MAX, size - from);
          yield {
            path: `/apis/discovery.k8s.io/v1/namespaces/${namespace}/endpointslices`,
            object: sliceObject(namespace, service, from / SLICE_MAX, n, pods + from, length),
          };
        }
        pods += size;
      }
    }
  }
}

function serviceObject(namespace: string, name: string, index: number): KubeJson {
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name, namespace, labels: { group: 'load', svc: name } },
    spec: {
      selector: { svc: name },
      clusterIP: `10.0.${16 + (index >> 8)}.${index & 255}`,
      ports: [{ port: 80, protocol: 'TCP', targetPort: 80 }],
    },
  };
}

function sliceObject(
  namespace: string,
  service: string,
  number: number,
  group: number,
  firstPod: number,
  count: number,
): KubeJson {
  const endpoints = Array.from({ length: count }, (_, i) => {
    const pod = firstPod + i;
    const node = group * NODES_PER_NAMESPACE + (pod % NODES_PER_NAMESPACE);
    const host = 2 + (Math.floor(pod / NODES_PER_NAMESPACE) % PODS_PER_NODE);
    return {
      addresses: [`10.${64 + (node >> 8)}.${node & 255}.${host}`],
      conditions: { ready: true, serving: true, terminating: false },
      nodeName: nodeName(node),
      zone: `zone-${'abc'[node % 3]}`,
      targetRef: {
        kind: 'Pod',
        namespace,
        name: `${service.replace('service', 'deployment')}-7d9f8c6b5-${pod.toString(36).padStart(5, 'x')}`,
        uid: `00000000-0000-4000-8000-${pod.toString(16).padStart(12, '0')}`,
      },
    };
  });
  return {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: {
      name: `${service}-${number}`,
      namespace,
      labels: {
        group: 'load',
        svc: service,
        'kubernetes.io/service-name': service,
        'endpointslice.kubernetes.io/managed-by': 'endpointslice-controller.k8s.io',
      },
      annotations: { 'endpoints.kubernetes.io/last-change-trigger-time': '2026-05-16T17:20:47Z' },
    },
    addressType: 'IPv4',
    ports: [{ name: '', port: 80, protocol: 'TCP' }],
    endpoints,
  };
}

const nodeName = (node: number): string => `nodes-us-east1-b-${node.toString(36).padStart(4, '0')}`;

function nodeObject(node: number): KubeJson {
  const range = `10.${64 + (node >> 8)}.${node & 255}.0/24`;
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: {
      name: nodeName(node),
      labels: { 'topology.kubernetes.io/zone': `zone-${'abc'[node % 3]}` },
    },
    spec: { podCIDR: range, podCIDRs: [range] },
  };
}
