/** Finds a DNS service's replicas in its EndpointSlices, or in its Endpoints if access to slices is denied. */
import {
  asObject,
  child,
  children,
  text,
  texts,
  type JsonObject,
} from '../../server/base/json-object.ts';
import { Problem } from '../../server/base/problem.ts';
import type { ApiClient } from '../../server/kube/api/client.ts';
import { ApiFailure } from '../../server/kube/api/failure.ts';
import { getJson } from '../../server/kube/api/get-json.ts';
import { serviceAddresses } from '../pods/dns-service.ts';
import { uniqueServers } from './probe-queries.ts';
import type { ProbeServer } from './network.ts';
import { clusterNotAsked } from '../pods/not-asked.ts';

export interface ServiceChoice {
  /** `''`: all namespaces. */
  readonly namespace: string;
  /** Null: the services selected by `labels`. */
  readonly name: string | null;
  /** A label selector in the API's syntax. If null, the service is found by `name`. */
  readonly labels: string | null;
}

/** The addresses of a service and of the servers behind it. */
export interface FoundServers {
  readonly vip: readonly ProbeServer[];
  readonly replicas: readonly ProbeServer[];
  /** Why the service's own address is unknown, or null if it is known or was not requested. */
  readonly missing: string | null;
}

/** Time-out for the API server, in milliseconds. */
const WAIT_MS = 8000;

/**
 * Queries the API server.
 * @throws Problem that mentions the missing permission
 */
export async function findServers(
  client: ApiClient,
  choice: ServiceChoice,
  signal: AbortSignal,
): Promise<FoundServers> {
  const { namespace, name, labels } = choice;
  const scope = namespace === '' ? '' : `/namespaces/${namespace}`;
  const get = async (
    task: string,
    path: string,
    labelSelector: string | null,
  ): Promise<JsonObject> => {
    const query = labelSelector === null ? {} : { labelSelector };
    return asObject(await getJson(client, { path, query, task, waitMs: WAIT_MS, signal }));
  };
  const selector = labels ?? `kubernetes.io/service-name=${name ?? ''}`;
  const named = async (kind: 'services' | 'endpoints'): Promise<readonly JsonObject[]> => {
    const one = name === null ? '' : `/${name}`;
    const found = await get(`get ${kind}`, `/api/v1${scope}/${kind}${one}`, labels);
    return name === null ? children(found, 'items') : [found];
  };
  try {
    const replicas = await get(
      'list endpointslices',
      `/apis/discovery.k8s.io/v1${scope}/endpointslices`,
      selector,
    )
      .then((list) => children(list, 'items').flatMap(ofSlice))
      .catch(async (error: unknown) => {
        if (!mayNot(error)) throw error;
        return (await named('endpoints')).flatMap(ofEndpoints);
      });
    // The service's own address is useful but optional, while the replicas are required.
    let missing: string | null = null;
    const services = await named('services').catch((error: unknown) => {
      if (!(error instanceof ApiFailure)) throw error;
      if (error.kind === 'missing' && name !== null && replicas.length === 0)
        throw notThere(`${namespace}/${name}`);
      missing = [error.message, error.advice].filter((text) => text !== '').join('; ');
      return [];
    });
    return { vip: services.flatMap(serviceServers), replicas: uniqueServers(replicas), missing };
  } catch (error) {
    if (!(error instanceof ApiFailure)) throw error;
    throw clusterNotAsked(error, {
      hint: mayNot(error)
        ? `A ClusterRole that allows get and list on endpointslices (discovery.k8s.io) or endpoints is required${namespace === '' ? '' : ` in ${namespace}`}.`
        : undefined,
      remedy: 'To run without the API server, use --replica IP, or replicas: in the file.',
    });
  }
}

/** Builds the problem for a missing service, because otherwise the wrong servers would be checked. */
function notThere(service: string): Problem {
  return new Problem({
    code: 'not-found',
    text: `there is no service ${service} in this cluster`,
    hint: 'Specify another one with --service NAMESPACE/NAME, or service: in the file.',
    remedy:
      'kubectl get services -A lists them all; the DNS service usually has the label k8s-app=kube-dns.',
  });
}

function mayNot(error: unknown): boolean {
  return error instanceof ApiFailure && (error.kind === 'forbidden' || error.kind === 'missing');
}

/** Returns the addresses that clients query, with the port named dns. */
export function serviceServers(service: JsonObject): readonly ProbeServer[] {
  const port = dnsPort(children(child(service, 'spec'), 'ports'));
  return serviceAddresses(service).map((host) => ({ host, port }));
}

/** An address in an EndpointSlice, with the DNS port. */
export interface DnsEndpoint extends ProbeServer {
  readonly ready: boolean;
  /** The pod that has this address. Empty if the slice does not include it. */
  readonly pod: string;
}

/** Returns the endpoints in one of the service's slices. */
export function endpointsIn(slice: JsonObject): readonly DnsEndpoint[] {
  const port = dnsPort(children(slice, 'ports'));
  return children(slice, 'endpoints').flatMap((endpoint) =>
    texts(endpoint, 'addresses')
      .slice(0, 1)
      .map((host) => ({
        host,
        port,
        ready: child(endpoint, 'conditions')['ready'] !== false,
        pod: text(child(endpoint, 'targetRef'), 'name'),
      })),
  );
}

/** Returns the port named dns, else the one named dns-tcp, else the first one. */
function dnsPort(ports: readonly JsonObject[]): number {
  const named = (name: string): JsonObject | undefined =>
    ports.find((port) => text(port, 'name') === name);
  const port = (named('dns') ?? named('dns-tcp') ?? ports[0] ?? {})['port'];
  return typeof port === 'number' ? port : 53;
}

function ofSlice(slice: JsonObject): readonly ProbeServer[] {
  return endpointsIn(slice)
    .filter(({ ready }) => ready)
    .map(({ host, port }) => ({ host, port }));
}

function ofEndpoints(endpoints: JsonObject): ProbeServer[] {
  return children(endpoints, 'subsets').flatMap((subset) => {
    const port = dnsPort(children(subset, 'ports'));
    return children(subset, 'addresses').map((each) => ({ host: text(each, 'ip'), port }));
  });
}
