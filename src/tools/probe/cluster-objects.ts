/**
 * Temporary objects that checks create in the cluster, namely a service and its endpoints. Labels identify those left
 * behind after a crash.
 */
import type { Clock } from '../../server/base/clock.ts';
import { asObject, child, children, text } from '../../server/base/json-object.ts';
import type { ApiClient } from '../../server/kube/api/client.ts';
import { getJson } from '../../server/kube/api/get-json.ts';
import {
  createObject,
  deleteObject,
  type ObjectRequest,
} from '../../server/kube/api/one-object.ts';

/**
 * Creates objects for checks.
 * @throws ApiFailure, or Problem if there is no cluster
 */
export interface ProbeObjects {
  /** Creates a headless service whose endpoints have these host names, all with the same address. */
  make(service: MadeService): Promise<void>;
  remove(namespace: string, name: string): Promise<void>;
  /** Returns the names of services that were created by checks more than `olderMs` milliseconds ago. */
  leftBehind(namespace: string, olderMs: number): Promise<readonly string[]>;
}

const refused = (): Promise<never> =>
  Promise.reject(new Error('this check does not create objects in the cluster'));

/** For checks that must not create anything. */
export const noObjects: ProbeObjects = { make: refused, remove: refused, leftBehind: refused };

export interface MadeService {
  readonly namespace: string;
  readonly name: string;
  readonly address: string;
  readonly hostnames: readonly string[];
}

/** The label on everything that checks create. */
const LABEL = 'ndots.dev/made-by-check';
const WAIT_MS = 8000;

/** Creates objects in a cluster. `use` opens a client and closes it again. */
export function clusterObjects(
  use: <T>(run: (client: ApiClient) => Promise<T>) => Promise<T>,
  clock: Pick<Clock, 'wall'>,
  signal: AbortSignal,
): ProbeObjects {
  const asked = (path: string, task: string): ObjectRequest => ({
    path,
    task,
    waitMs: WAIT_MS,
    signal,
  });
  const pathOf = (kind: 'services' | 'endpointslices', namespace: string): string =>
    `${kind === 'services' ? '/api/v1' : '/apis/discovery.k8s.io/v1'}/namespaces/${namespace}/${kind}`;
  const remove = (namespace: string, name: string): Promise<void> =>
    use(async (client) => {
      for (const kind of ['endpointslices', 'services'] as const)
        await deleteObject(client, asked(`${pathOf(kind, namespace)}/${name}`, `delete ${kind}`));
    });
  return {
    remove,
    make: ({ namespace, name, address, hostnames }) =>
      use(async (client) => {
        const labels = { [LABEL]: 'true' };
        const ports = [{ name: 'none', port: 9, protocol: 'TCP' }];
        const service = {
          apiVersion: 'v1',
          kind: 'Service',
          metadata: { name, namespace, labels },
          spec: { clusterIP: 'None', ports },
        };
        await createObject(
          client,
          asked(pathOf('services', namespace), 'create services'),
          service,
        );
        const slice = {
          apiVersion: 'discovery.k8s.io/v1',
          kind: 'EndpointSlice',
          metadata: {
            name,
            namespace,
            labels: { ...labels, 'kubernetes.io/service-name': name },
          },
          addressType: address.includes(':') ? 'IPv6' : 'IPv4',
          ports,
          endpoints: hostnames.map((hostname) => ({
            addresses: [address],
            hostname,
            conditions: { ready: true },
          })),
        };
        const path = pathOf('endpointslices', namespace);
        await createObject(client, asked(path, 'create endpointslices'), slice);
      }),
    leftBehind: (namespace, olderMs) =>
      use(async (client) => {
        const path = pathOf('services', namespace);
        const query = { labelSelector: LABEL };
        const request = { ...asked(path, 'list services'), query };
        return children(asObject(await getJson(client, request)), 'items')
          .map((item) => child(item, 'metadata'))
          .filter((made) => clock.wall() - Date.parse(text(made, 'creationTimestamp')) > olderMs)
          .map((made) => text(made, 'name'));
      }),
  };
}
