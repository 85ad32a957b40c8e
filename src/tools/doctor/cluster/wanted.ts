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
    wanted('v1', 'ConfigMap', namespace, 'the Corefile'),
    wanted('v1', 'Service', namespace, 'the address that pods query'),
    wanted('apps/v1', 'Deployment', namespace, 'how the DNS pods are deployed'),
    wanted('apps/v1', 'DaemonSet', namespace, 'the node-local cache'),
    wanted('policy/v1', 'PodDisruptionBudget', namespace, 'whether a drain can evict all DNS pods'),
    wanted('networking.k8s.io/v1', 'NetworkPolicy', null, 'which pods may query DNS'),
    ...['Mutating', 'Validating'].map((what) =>
      wanted(
        'admissionregistration.k8s.io/v1',
        `${what}WebhookConfiguration`,
        null,
        START_WITHOUT_WEBHOOK,
      ),
    ),
  ];
}

/** Objects that serve DNS: pods, their addresses, nodes. @param namespace of the DNS pods */
export function running(namespace: string): readonly WantedResource[] {
  const everywhere = [
    wanted('v1', 'Pod', null, 'workloads and their pods’ DNS settings'),
    wanted('v1', 'Service', null, 'Service names to query'),
    wanted('discovery.k8s.io/v1', 'EndpointSlice', null, 'the endpoints behind the Service'),
  ];
  const scaling = 'whether there may be more DNS pods';
  return [
    ...everywhere.map((each) => ({ ...each, within: namespace })),
    wanted('v1', 'Node', null, 'which nodes the DNS pods run on'),
    wanted('autoscaling/v2', 'HorizontalPodAutoscaler', namespace, scaling),
  ];
}

/** The path of the list at the API server. */
export function pathOf({ group, version, plural, namespace }: WantedResource): string {
  const root = group === '' ? '/api' : `/apis/${group}`;
  return `${root}/${version}${namespace === null ? '' : `/namespaces/${namespace}`}/${plural}`;
}

/** @param api the group and version, or only the version for the core API */
function wanted(api: string, kind: string, namespace: string | null, what: string): WantedResource {
  const [version = '', group = ''] = api.split('/').toReversed();
  const plural = `${kind.toLowerCase()}s`.replace(/ys$/, 'ies');
  return { kind, group, version, plural, namespace, within: null, for: what };
}
