/** A cluster's DNS pods, reached through the API server. */
import { child, children, text } from '../../server/base/json-object.ts';
import { Problem } from '../../server/base/problem.ts';
import type { ApiClient } from '../../server/kube/api/client.ts';
import type { ClusterAccess } from '../../tools/pods/cluster-access.ts';
import { ApiFailure } from '../../server/kube/api/failure.ts';
import { listWhole } from '../../tools/pods/list.ts';
import { clusterNotAsked } from '../../tools/pods/not-asked.ts';
import { getObject } from '../../server/kube/api/one-object.ts';
import { dnsServiceIn, selectorOf, usualDnsSelector } from '../../tools/pods/dns-service.ts';
import type { ClusterOptions } from './cluster-options.ts';

export interface DnsPodChoice {
  readonly namespace: string;
  /** Null: the selector of the cluster's DNS service. */
  readonly selector: string | null;
  readonly port: number;
  readonly access: ClusterOptions;
}

export interface RunningDnsPod {
  readonly name: string;
  /** IP address, or empty if not assigned yet. */
  readonly address: string;
  readonly node: string;
}

/** Limits of requests to the API server. */
export interface RequestBounds {
  readonly waitMs: number;
  readonly signal: AbortSignal;
}

/**
 * The selected pods that are running.
 * @throws Problem if there are none or the API server rejects the request
 */
export async function dnsPods(
  client: ApiClient,
  { namespace, selector: given }: Pick<DnsPodChoice, 'namespace' | 'selector'>,
  access: ClusterAccess,
  bounds: RequestBounds,
): Promise<readonly RunningDnsPod[]> {
  let selector = given ?? usualDnsSelector;
  try {
    selector = given ?? (await dnsSelectorIn(client, namespace, bounds));
    const pods = await runningPods(client, namespace, selector, bounds);
    if (pods.length > 0) return pods;
  } catch (error) {
    if (!(error instanceof ApiFailure)) throw error;
    throw clusterNotAsked(error, { remedy: `kubectl -n ${namespace} get pods -l '${selector}'` });
  }
  throw new Problem({
    code: 'no-replicas',
    text: `no pod with ${selector} runs in ${namespace} on ${access.name}`,
    remedy: `Find them with kubectl get pods -A -l '${usualDnsSelector}', then specify their namespace and labels.`,
  });
}

export function podProxyPath(
  { namespace, port }: Pick<DnsPodChoice, 'namespace' | 'port'>,
  pod: string,
  path: string,
  scheme: '' | 'https:' = '',
): string {
  return `/api/v1/namespaces/${namespace}/pods/${scheme}${pod}:${port}/proxy${path}`;
}

/** The selector of the namespace's DNS service, or the default if the service does not exist or cannot be read. */
async function dnsSelectorIn(
  client: ApiClient,
  namespace: string,
  bounds: RequestBounds,
): Promise<string> {
  const path = `/api/v1/namespaces/${namespace}/services`;
  try {
    const found = await getObject(client, { path, task: 'list services', ...bounds });
    const service = dnsServiceIn(children(found, 'items'));
    const selector = service === null ? '' : selectorOf(service);
    return selector === '' ? usualDnsSelector : selector;
  } catch (error) {
    if (error instanceof ApiFailure && error.kind === 'forbidden') return usualDnsSelector;
    throw error;
  }
}

async function runningPods(
  client: ApiClient,
  namespace: string,
  labelSelector: string,
  bounds: RequestBounds,
): Promise<readonly RunningDnsPod[]> {
  const path = `/api/v1/namespaces/${namespace}/pods`;
  const fieldSelector = 'status.phase=Running';
  const pods: RunningDnsPod[] = [];
  await listWhole(client, { path, labelSelector, fieldSelector, ...bounds }, (pod) =>
    pods.push({
      name: text(child(pod, 'metadata'), 'name'),
      address: text(child(pod, 'status'), 'podIP'),
      node: text(child(pod, 'spec'), 'nodeName'),
    }),
  );
  return pods;
}
