/** Chooses which of a cluster's DNS pods or node agents a live view follows. */
import { child, text } from '../../../server/base/json-object.ts';
import { nearest, Problem } from '../../../server/base/problem.ts';
import type { ApiClient } from '../../../server/kube/api/client.ts';
import type { ClusterAccess } from '../../../server/kube/api/cluster-access.ts';
import { ApiFailure } from '../../../server/kube/api/failure.ts';
import { listWhole } from '../../../server/kube/api/list.ts';
import { clusterNotAsked } from '../../../server/kube/api/not-asked.ts';
import { dnsPods, type DnsPodChoice, type RequestBounds, type RunningDnsPod } from '../dns-pods.ts';

export interface ReplicaChoice extends DnsPodChoice {
  /** Names of nodes. If empty and there is no `nodeSelector`, the pods of all nodes. */
  readonly nodes: readonly string[];
  /** Label selector for further nodes. */
  readonly nodeSelector: string | null;
  /** Limit of followed pods. */
  readonly podsMax: number;
}

/**
 * The pods to choose from, before `podsMax` applies.
 * @throws Problem if there are none or the API server rejects the request
 */
export async function replicaPods(
  client: ApiClient,
  choice: ReplicaChoice,
  access: ClusterAccess,
  bounds: RequestBounds,
): Promise<readonly RunningDnsPod[]> {
  const pods = await dnsPods(client, choice, access, bounds);
  const { nodes, nodeSelector } = choice;
  if (nodes.length === 0 && nodeSelector === null) return pods;
  const chosen = new Set(nodes);
  if (nodeSelector !== null) await addSelected(client, nodeSelector, chosen, bounds);
  const own = pods.filter(({ node }) => chosen.has(node));
  if (own.length > 0) return own;
  const close = nearest(nodes[0] ?? '', new Set(pods.map(({ node }) => node)));
  throw new Problem({
    code: 'no-replicas',
    text: `none of the ${pods.length} pods in ${choice.namespace} runs on ${nodesIn(choice, chosen)}`,
    hint: close === null ? undefined : `did you mean ${close}?`,
    remedy: `Their nodes: kubectl -n ${choice.namespace} get pods -o wide`,
  });
}

async function addSelected(
  client: ApiClient,
  labelSelector: string,
  into: Set<string>,
  bounds: RequestBounds,
): Promise<void> {
  try {
    await listWhole(client, { path: '/api/v1/nodes', labelSelector, ...bounds }, (node) =>
      into.add(text(child(node, 'metadata'), 'name')),
    );
  } catch (error) {
    if (!(error instanceof ApiFailure)) throw error;
    const remedy =
      error.kind === 'forbidden'
        ? 'It needs permission to list nodes (kubectl auth can-i list nodes); --replica-node does not.'
        : `kubectl get nodes -l '${labelSelector}'`;
    throw clusterNotAsked(error, { remedy });
  }
}

function nodesIn({ nodes, nodeSelector }: ReplicaChoice, chosen: ReadonlySet<string>): string {
  const selected = nodeSelector === null ? [] : [`a node with ${nodeSelector}`];
  const found = chosen.size === nodes.length && nodeSelector !== null ? ', which selects none' : '';
  return [...nodes, ...selected].join(' or ') + found;
}
