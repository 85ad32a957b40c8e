/** Chooses which of a cluster's DNS pods or node agents a live view follows. */
import { child, text } from '../../../server/base/json-object.ts';
import { nearest, Problem } from '../../../server/base/problem.ts';
import type { ApiClient } from '../../../server/kube/api/client.ts';
import type { ClusterAccess } from '../../../tools/pods/cluster-access.ts';
import { ApiFailure } from '../../../server/kube/api/failure.ts';
import { listWhole } from '../../../tools/pods/list.ts';
import { clusterNotAsked } from '../../../tools/pods/not-asked.ts';
import { listed } from '../../../tools/doctor/texts.ts';
import { dnsPods, type DnsPodChoice, type RequestBounds, type RunningDnsPod } from '../dns-pods.ts';

/** Followed pods of a cluster. Each has a connection through the API server. */
export const REPLICAS = { default: 64, max: 1000 } as const;

/** Nodes that a message names. If there are more, it counts the rest. */
const NODES_NAMED = 3;

export interface ReplicaChoice extends DnsPodChoice {
  /** Names of nodes. If empty and there is no `nodeSelector`, the pods of all nodes. */
  readonly nodes: readonly string[];
  /** Label selector for further nodes. */
  readonly nodeSelector: string | null;
  /** Limit of followed pods. */
  readonly podsMax: number;
}

/** A cluster's running DNS pods, divided by the choice of nodes. */
export interface ListedReplicas {
  /** The pods to choose from, before `podsMax` applies. */
  readonly chosen: readonly RunningDnsPod[];
  /** Pods on nodes that are not chosen. */
  readonly others: readonly RunningDnsPod[];
  /** Parts of the choice that select no pod, although others do, as a text. Empty if there are none. */
  readonly unmatched: string;
  /** The reason why no pod is chosen. Null if one is. */
  readonly none: Problem | null;
}

/** @throws Problem if the API server rejects a request */
export async function listReplicas(
  client: ApiClient,
  choice: ReplicaChoice,
  access: ClusterAccess,
  bounds: RequestBounds,
): Promise<ListedReplicas> {
  let pods: readonly RunningDnsPod[];
  try {
    pods = await dnsPods(client, choice, access, bounds);
  } catch (error) {
    if (!(error instanceof Problem) || error.code !== 'no-replicas') throw error;
    return { chosen: [], others: [], unmatched: '', none: error };
  }
  const { nodes, nodeSelector } = choice;
  if (nodes.length === 0 && nodeSelector === null)
    return { chosen: pods, others: [], unmatched: '', none: null };
  const selected = nodeSelector === null ? null : await nodesWith(client, nodeSelector, bounds);
  const wanted = new Set([...nodes, ...(selected ?? [])]);
  const chosen = pods.filter(({ node }) => wanted.has(node));
  const others = pods.filter(({ node }) => !wanted.has(node));
  const isNone = chosen.length === 0;
  const used = new Set(chosen.map(({ node }) => node));
  const unused = nodes.filter((node) => !used.has(node));
  const found = selected?.size === 0 ? ', which selects none' : '';
  const places = [
    ...(unused.length === 0 ? [] : [listed(unused, NODES_NAMED)]),
    ...(selected !== null && (isNone || selected.size === 0)
      ? [`a node with ${nodeSelector}${found}`]
      : []),
  ].join(' or ');
  return {
    chosen,
    others,
    unmatched: isNone || places === '' ? '' : `no pod runs on ${places}`,
    none: isNone ? noneOn(places, choice, pods) : null,
  };
}

async function nodesWith(
  client: ApiClient,
  labelSelector: string,
  bounds: RequestBounds,
): Promise<ReadonlySet<string>> {
  const names = new Set<string>();
  try {
    await listWhole(client, { path: '/api/v1/nodes', labelSelector, ...bounds }, (node) =>
      names.add(text(child(node, 'metadata'), 'name')),
    );
    return names;
  } catch (error) {
    if (!(error instanceof ApiFailure)) throw error;
    throw clusterNotAsked(
      error,
      error.kind === 'forbidden'
        ? {
            hint: '--replica-node-selector needs permission to list nodes (kubectl auth can-i list nodes)',
            remedy: 'Name the nodes with --replica-node NAME, which does not need it.',
          }
        : { remedy: `kubectl get nodes -l '${labelSelector}'` },
    );
  }
}

/** @param places `node1, node2 or a node with zone=a` */
function noneOn(
  places: string,
  { namespace, nodes }: ReplicaChoice,
  pods: readonly RunningDnsPod[],
): Problem {
  const known = new Set(pods.map(({ node }) => node));
  const [close] = [...new Set(nodes)]
    .slice(0, NODES_NAMED)
    .flatMap((node) => nearest(node, known) ?? []);
  return new Problem({
    code: 'no-replicas',
    text:
      pods.length === 1
        ? `the only pod in ${namespace} does not run on ${places}`
        : `none of the ${pods.length} pods in ${namespace} runs on ${places}`,
    hint: close === undefined ? undefined : `did you mean ${close}?`,
    remedy: `Their nodes: kubectl -n ${namespace} get pods -o wide`,
  });
}
