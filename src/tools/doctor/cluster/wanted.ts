/**
 * The objects of a cluster that matter for DNS: the lists to read, and so the rights that are
 * needed.
 */

/** One kind of object, where it is listed, and what it is good for. */
export interface WantedResource {
  readonly kind: string;
  /** `''`: the core API. */
  readonly group: string;
  readonly version: string;
  readonly plural: string;
  /** Null: those of the whole cluster. */
  readonly namespace: string | null;
  /** The namespace to list where the whole cluster is forbidden. Null: there is none. */
  readonly within: string | null;
  /** Verdicts that are impossible without it. */
  readonly for: string;
}

/** The purpose of reading webhooks. */
export const START_WITHOUT_WEBHOOK = 'whether DNS pods can start without a webhook';

/** Objects that configure DNS. @param namespace of the DNS pods */
export function configured(namespace: string): readonly WantedResource[] {
  return [
    wanted('ConfigMap', '', 'v1', 'configmaps', namespace, 'the Corefile'),
    wanted('Service', '', 'v1', 'services', namespace, 'the address that pods query'),
    wanted('Deployment', 'apps', 'v1', 'deployments', namespace, 'how the DNS pods are deployed'),
    wanted('DaemonSet', 'apps', 'v1', 'daemonsets', namespace, 'the node-local cache'),
    wanted(
      'PodDisruptionBudget',
      'policy',
      'v1',
      'poddisruptionbudgets',
      namespace,
      'whether a drain can evict all DNS pods',
    ),
    wanted(
      'NetworkPolicy',
      'networking.k8s.io',
      'v1',
      'networkpolicies',
      null,
      'which pods may query DNS',
    ),
    ...(['Mutating', 'Validating'] as const).map((what) =>
      wanted(
        `${what}WebhookConfiguration`,
        'admissionregistration.k8s.io',
        'v1',
        `${what.toLowerCase()}webhookconfigurations`,
        null,
        START_WITHOUT_WEBHOOK,
      ),
    ),
  ];
}

/** Objects that serve DNS: pods, their addresses, nodes. @param namespace of the DNS pods */
export function running(namespace: string): readonly WantedResource[] {
  const everywhere = [
    wanted('Pod', '', 'v1', 'pods', null, 'workloads and their pods’ DNS settings'),
    wanted('Service', '', 'v1', 'services', null, 'Service names to query'),
    wanted(
      'EndpointSlice',
      'discovery.k8s.io',
      'v1',
      'endpointslices',
      null,
      'the endpoints behind the Service',
    ),
  ];
  return [
    ...everywhere.map((each) => ({ ...each, within: namespace })),
    wanted('Node', '', 'v1', 'nodes', null, 'which nodes the DNS pods run on'),
    wanted(
      'HorizontalPodAutoscaler',
      'autoscaling',
      'v2',
      'horizontalpodautoscalers',
      namespace,
      'whether there may be more DNS pods',
    ),
  ];
}

/** The path of the list at the API server. */
export function pathOf({ group, version, plural, namespace }: WantedResource): string {
  const root = group === '' ? '/api' : `/apis/${group}`;
  return `${root}/${version}${namespace === null ? '' : `/namespaces/${namespace}`}/${plural}`;
}

function wanted(
  kind: string,
  group: string,
  version: string,
  plural: string,
  namespace: string | null,
  what: string,
): WantedResource {
  return { kind, group, version, plural, namespace, within: null, for: what };
}
