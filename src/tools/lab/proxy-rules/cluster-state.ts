/**
 * Reads the services and endpoints that the rules are based on, from a directory of manifests or from the API server.
 */
import { child, text, type JsonObject } from '../../../server/base/json-object.ts';
import type { Problem } from '../../../server/base/problem.ts';
import type { ApiClient } from '../../../server/kube/api/client.ts';
import { ApiFailure } from '../../../server/kube/api/failure.ts';
import { listWhole } from '../../pods/list.ts';
import { clusterNotAsked } from '../../pods/not-asked.ts';
import { ImpliedCluster } from '../../../server/kube/manifests/cluster.ts';
import type { Manifest } from '../../../server/kube/manifests/manifest.ts';
import { readManifestsOnce } from '../../../server/kube/manifests/read-once.ts';
import type { EndpointSlice, Service } from '../../../server/kube/store/objects.ts';
import { serviceNameLabel } from '../../../server/kube/store/transform.ts';
import { endpointsOf } from './endpoints.ts';
import { servicePorts } from './service-port.ts';
import type { IpFamily } from '../../../server/kube/manifests/slices.ts';
import type { ClusterState } from './traffic.ts';

/** Services and endpoint slices in API form. */
export interface ProxyObjects {
  readonly services: readonly JsonObject[];
  readonly slices: readonly JsonObject[];
}

/** The view of a single proxier, for one address family. */
export function clusterState({ services, slices }: ProxyObjects, family: IpFamily): ClusterState {
  return {
    ports: services.flatMap((raw) => servicePorts(raw, family)),
    endpoints: endpointsOf(slices, family),
  };
}

/** Names ports like old kube-proxies, which wrote a colon after a service even if its port is unnamed. */
export function withColons({ ports, endpoints }: ClusterState): ClusterState {
  const named = ports.map((port) =>
    port.portName === '' ? { ...port, name: `${port.name}:` } : port,
  );
  return { ports: named, endpoints };
}

/**
 * Reads the cluster from manifests. Missing parts, such as service addresses and pod endpoints, are filled in as in
 * `ndots serve`.
 * @throws Problem if the path cannot be read; errors in a file are passed to `problem`
 */
export async function manifestObjects(
  path: string,
  problem: (problem: Problem) => void,
): Promise<ProxyObjects> {
  return manifestsState(await readManifestsOnce(path, problem), problem);
}

/** Does the same for parsed objects. */
export function manifestsState(
  manifests: readonly Manifest[],
  problem: (problem: Problem) => void,
): ProxyObjects {
  const wanted = {
    endpoints: true,
    pods: false,
    multicluster: false,
    zones: true,
    labels: '',
    namespaceLabels: '',
  };
  const built = new ImpliedCluster(wanted).build(manifests);
  for (const each of built.problems) problem(each);

  const written = manifests.filter(({ kind }) => kind === 'EndpointSlice');
  const names = new Set(written.map(({ namespace, name }) => `${namespace}/${name}`));
  const slices = (built.entries.get('EndpointSlice') ?? [])
    .filter(({ namespace, name }) => !names.has(`${namespace}/${name}`))
    .flatMap(({ objects }) => objects as readonly EndpointSlice[])
    .flatMap(spelledSlices);
  const implied = new Map(
    (built.entries.get('Service') ?? []).map(({ namespace, name, objects }) => [
      `${namespace}/${name}`,
      objects[0] as Service,
    ]),
  );
  const services = manifests
    .filter(({ kind }) => kind === 'Service')
    .map(({ namespace, name, raw }) =>
      withAddresses(raw, implied.get(`${namespace}/${name}`)?.clusterIPs ?? []),
    );
  return { services, slices: [...written.map(({ raw }) => raw), ...slices] };
}

function withAddresses(raw: JsonObject, clusterIPs: readonly string[]): JsonObject {
  const spec = child(raw, 'spec');
  if (text(spec, 'clusterIP') !== '' || clusterIPs.length === 0) return raw;
  return {
    ...raw,
    spec: {
      ...spec,
      clusterIP: clusterIPs[0],
      clusterIPs,
      ipFamilies: clusterIPs.map((ip) => (ip.includes(':') ? 'IPv6' : 'IPv4')),
    },
  };
}

/** Returns a derived slice in API form, one for each address family. */
function spelledSlices(slice: EndpointSlice): JsonObject[] {
  const byFamily = Map.groupBy(slice.endpoints, ({ addresses: [first = ''] }) =>
    first.includes(':') ? 'IPv6' : 'IPv4',
  );
  return [...byFamily].map(([addressType, endpoints]) => ({
    metadata: {
      namespace: slice.namespace,
      name: slice.name,
      labels: { [serviceNameLabel]: slice.service },
    },
    addressType,
    ports: slice.ports,
    endpoints: endpoints.map(({ addresses, ready, hostname, nodeName, pod }) => ({
      addresses,
      conditions: { ready, serving: ready, terminating: false },
      ...(hostname !== '' && { hostname }),
      ...(pod !== '' && { targetRef: { kind: 'Pod', namespace: slice.namespace, name: pod } }),
      nodeName,
    })),
  }));
}

/** In milliseconds. A server that is silent for longer counts as unavailable. */
const WAIT_MS = 15_000;

/**
 * Lists the objects in a live cluster once.
 * @throws Problem
 */
export async function apiObjects(client: ApiClient, signal: AbortSignal): Promise<ProxyObjects> {
  const list = async (path: string): Promise<JsonObject[]> => {
    const found: JsonObject[] = [];
    await listWhole(client, { path, waitMs: WAIT_MS, signal }, (item) => found.push(item));
    return found;
  };
  try {
    return {
      services: await list('/api/v1/services'),
      slices: await list('/apis/discovery.k8s.io/v1/endpointslices'),
    };
  } catch (error) {
    if (!(error instanceof ApiFailure)) throw error;
    throw clusterNotAsked(error, {
      remedy:
        'Check that this works: kubectl get services,endpointslices -A. Without a cluster, use --manifests DIR',
    });
  }
}
