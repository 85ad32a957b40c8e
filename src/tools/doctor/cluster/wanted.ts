/**
 * Which objects of a cluster have their say in DNS: what is listed, and so which rights it takes.
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
  /**
   * What to list in place of the whole cluster where that is forbidden: one namespace. Null: there
   * is no such thing.
   */
  readonly within: string | null;
  /** What cannot be judged without it. */
  readonly for: string;
}

/** What the webhooks are read for. */
export const START_WITHOUT_WEBHOOK = 'whether DNS pods start without a webhook';

/** What DNS is configured by. @param namespace where the DNS pods are */
export function configured(namespace: string): readonly WantedResource[] {
  return [
    wanted('ConfigMap', '', 'v1', 'configmaps', namespace, 'the Corefile'),
    wanted('Service', '', 'v1', 'services', namespace, 'the address that pods ask'),
    wanted('Deployment', 'apps', 'v1', 'deployments', namespace, 'how the DNS pods are made'),
    wanted('DaemonSet', 'apps', 'v1', 'daemonsets', namespace, 'the node-local cache'),
    wanted(
      'PodDisruptionBudget',
      'policy',
      'v1',
      'poddisruptionbudgets',
      namespace,
      'whether a drain takes all DNS pods',
    ),
    wanted(
      'NetworkPolicy',
      'networking.k8s.io',
      'v1',
      'networkpolicies',
      null,
      'which pods may ask DNS',
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

/** What DNS does: pods, their addresses, nodes. @param namespace where the DNS pods are */
export function running(namespace: string): readonly WantedResource[] {
  const everywhere = [
    wanted('Pod', '', 'v1', 'pods', null, 'what runs, and how pods are told to ask'),
    wanted('Service', '', 'v1', 'services', null, 'names to ask for'),
    wanted(
      'EndpointSlice',
      'discovery.k8s.io',
      'v1',
      'endpointslices',
      null,
      'who is behind the service',
    ),
  ];
  return [
    ...everywhere.map((each) => ({ ...each, within: namespace })),
    wanted('Node', '', 'v1', 'nodes', null, 'where DNS pods run'),
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

/** Where the API server lists it. */
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
