/** Builds Kubernetes objects in one line each. */
import type {
  Endpoint,
  EndpointSlice,
  Namespace,
  Pod,
  Service,
} from '../../src/server/kube/store/objects.ts';

/**
 * Builds Kubernetes objects for tests, as a source returns them, from short names: `service('web.shop', '10.0.0.1')`.
 */

export const namespace = (name: string): Namespace => ({ kind: 'Namespace', name });

function place(text: string): { name: string; namespace: string } {
  const [name = '', of = ''] = text.split('.');
  return { name, namespace: of };
}

const http = { name: 'http', protocol: 'TCP', port: 80 };

/** A service, `NAME.NAMESPACE`, with these cluster addresses. */
export function service(
  at: string,
  ips: string | readonly string[],
  more: Partial<Service> = {},
): Service {
  return {
    kind: 'Service',
    ...place(at),
    type: 'ClusterIP',
    clusterIPs: typeof ips === 'string' ? [ips] : ips,
    externalName: '',
    externalIPs: [],
    loadBalancer: [],
    ports: [http],
    ...more,
  };
}

export function external(at: string, externalName: string): Service {
  return service(at, [], { type: 'ExternalName', externalName, ports: [] });
}

export function endpoint(address: string, more: Partial<Endpoint> = {}): Endpoint {
  return {
    addresses: [address],
    ready: true,
    hostname: '',
    nodeName: '',
    pod: '',
    zone: '',
    ...more,
  };
}

/** A slice for the service `at`. Its name consists of the service's name and a number. */
export function slice(
  at: string,
  endpoints: readonly (string | Endpoint)[],
  more: Partial<EndpointSlice> = {},
): EndpointSlice {
  const { name, namespace: of } = place(at);
  return {
    kind: 'EndpointSlice',
    namespace: of,
    name: `${name}-1`,
    service: name,
    ports: [http],
    endpoints: endpoints.map((one) => (typeof one === 'string' ? endpoint(one) : one)),
    triggeredAt: 0,
    ...more,
  };
}

/** A running pod, `NAME.NAMESPACE`. */
export function pod(at: string, ips: string | readonly string[], more: Partial<Pod> = {}): Pod {
  return {
    kind: 'Pod',
    ...place(at),
    ips: typeof ips === 'string' ? [ips] : ips,
    phase: 'Running',
    hostNetwork: false,
    terminating: false,
    ...more,
  };
}
