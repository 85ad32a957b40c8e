/** Maps addresses to pods (with their workloads) and services, for use in captures. */
import { systemClock } from '../../server/base/clock.ts';
import { plainAddress } from '../../server/base/ip.ts';
import { child, children, text, type JsonObject } from '../../server/base/json-object.ts';
import type { Problem } from '../../server/base/problem.ts';
import { apiClient, userAgent } from '../../server/kube/api/client.ts';
import type { ClusterAccess } from './cluster-access.ts';
import { ApiFailure } from '../../server/kube/api/failure.ts';
import { listWhole } from './list.ts';
import { readManifestsOnce } from '../../server/kube/manifests/read-once.ts';
import { serviceAddresses } from './dns-service.ts';
import { workloadOf } from './workload-name.ts';

export interface AddressOwner {
  readonly kind: 'pod' | 'service' | 'node';
  readonly namespace: string;
  readonly name: string;
  /** The pod's workload, e.g. `deploy/cart`, or empty if it has none. */
  readonly workload: string;
  /** The pod's node; empty if unknown. */
  readonly node: string;
}

export type AddressOwners = ReadonlyMap<string, AddressOwner>;

const WAIT_MS = 8000;

/** Returns the owners of addresses in a cluster. Objects that we may not list are skipped and reported. */
export async function clusterOwners(
  access: ClusterAccess,
  parts: { readonly version: string; readonly signal: AbortSignal },
  problem: (text: string) => void,
): Promise<AddressOwners> {
  const client = apiClient({
    connection: access.connection,
    clock: systemClock,
    userAgent: userAgent(parts.version),
  });
  const owners = new Map<string, AddressOwner>();
  try {
    for (const plural of ['nodes', 'services', 'pods'] as const) {
      const kind = { nodes: 'Node', services: 'Service', pods: 'Pod' }[plural];
      const { signal } = parts;
      await listWhole(client, { path: `/api/v1/${plural}`, waitMs: WAIT_MS, signal }, (item) =>
        add(owners, kind, item),
      );
    }
  } catch (error) {
    if (!(error instanceof ApiFailure)) throw error;
    problem(`${error.message}, so addresses have no names`);
  } finally {
    client.close();
  }
  return owners;
}

/**
 * Returns the owners of addresses in a directory of manifests or in a single file, e.g. the output of `kubectl get
 * pods,services -A -o yaml`.
 */
export async function manifestOwners(
  path: string,
  problem: (problem: Problem) => void,
): Promise<AddressOwners> {
  const owners = new Map<string, AddressOwner>();
  for (const { kind, raw } of await readManifestsOnce(path, problem)) add(owners, kind, raw);
  return owners;
}

function add(owners: Map<string, AddressOwner>, kind: string, object: JsonObject): void {
  const metadata = child(object, 'metadata');
  const name = text(metadata, 'name');
  const namespace = text(metadata, 'namespace') || (kind === 'Node' ? '' : 'default');
  const status = child(object, 'status');
  if (kind === 'Pod') {
    const spec = child(object, 'spec');
    // Pods on the host network share the node's address.
    if (spec['hostNetwork'] === true) return;
    const owner = { kind: 'pod', namespace, name, workload: workloadOf(metadata) } as const;
    const addresses = children(status, 'podIPs').map((each) => text(each, 'ip'));
    for (const address of addresses.length > 0 ? addresses : [text(status, 'podIP')])
      if (address !== '' && isThere(status, owners.get(plainAddress(address))))
        owners.set(plainAddress(address), { ...owner, node: text(spec, 'nodeName') });
  } else if (kind === 'Service') {
    for (const address of serviceAddresses(object))
      owners.set(plainAddress(address), {
        kind: 'service',
        namespace,
        name,
        workload: '',
        node: '',
      });
  } else if (kind === 'Node') {
    for (const each of children(status, 'addresses'))
      if (text(each, 'type').endsWith('IP'))
        owners.set(text(each, 'address'), {
          kind: 'node',
          namespace,
          name,
          workload: '',
          node: name,
        });
  }
}

/** Returns true if a pod's address counts. Once a pod has ended, its address may belong to another. */
function isThere(status: JsonObject, known: AddressOwner | undefined): boolean {
  return known === undefined || text(status, 'phase') === 'Running';
}
