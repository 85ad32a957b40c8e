/** Rules about the number of servers, their placement and resources, and the owner of the Corefile. */
import { asObject, child, children, text, textMap } from '../../../server/base/json-object.ts';
import { nearest } from '../../../server/base/problem.ts';
import { corefileRule, objectRule, type LintRule } from '../lint-rule.ts';
import { dnsServerIn, podSpecOf, selects } from '../workload.ts';

/** The keys that the CoreDNS chart (1.46) reads from its values. */
const chartKeys: ReadonlySet<string> = new Set(
  (
    'affinity automountServiceAccountToken autoscaler clusterRole customAnnotations customLabels deployment env extraConfig ' +
    'extraContainers extraSecrets extraVolumeMounts extraVolumes fullnameOverride global hpa image initContainers isClusterService ' +
    'k8sAppLabelOverride livenessProbe nameOverride nodeSelector podAnnotations podDisruptionBudget podLabels podSecurityContext ' +
    'priorityClassName prometheus rbac readinessProbe replicaCount resources rollingUpdate securityContext servers service ' +
    'serviceAccount serviceType terminationGracePeriodSeconds tolerations topologySpreadConstraints zoneFiles'
  ).split(' '),
);

/** Keys that only the ndots chart reads. */
const ndotsKeys = ['networkPolicy', 'webhook'] as const;

/** Wrong keys that differ from the correct one by more than a typo. */
const chartSynonyms: Readonly<Record<string, string>> = {
  pdb: 'podDisruptionBudget',
  replicas: 'replicaCount',
  spread: 'topologySpreadConstraints',
  priorityClass: 'priorityClassName',
  hpaAutoscaler: 'hpa',
  autoscaling: 'hpa',
};

const evicted: LintRule = objectRule({
  code: 'CF39',
  severity: 'warning',
  summary: 'DNS servers that may all be evicted at once, and chart values that have no effect',
  kinds: ['HelmValues', 'Deployment'],
  find(object, tell, { objects, target }) {
    if (object.kind === 'HelmValues') {
      // A chart with subcharts may have any keys in its values.
      if (!Array.isArray(object.value['servers'])) return;
      // Other servers' charts accept the same `servers` along with other keys. The ndots chart rejects unknown keys
      // itself.
      const image = text(child(object.value, 'image'), 'repository');
      if (image !== '' && !image.includes('coredns')) return;
      if (target?.kind === 'ndots' || ndotsKeys.some((key) => key in object.value)) return;
      for (const key of Object.keys(object.value)) {
        if (chartKeys.has(key)) continue;
        const meant = chartSynonyms[key] ?? nearest(key, chartKeys);
        tell({
          at: { object, path: [key] },
          text: `the CoreDNS chart has no value '${key}'`,
          hint: meant === null ? null : `Did you mean '${meant}'?`,
          remedy: 'Helm ignores unknown values silently.',
        });
      }
      return;
    }
    if (dnsServerIn(object)?.role !== 'server') return;
    const { spec, path, labels } = podSpecOf(object)!;
    const at = { object, path: [...path, 'containers'] };
    if (text(spec, 'priorityClassName') === '')
      tell({
        at,
        text: `${object.name} has no priorityClassName`,
        hint: 'On a full node, DNS is evicted before its clients.',
        remedy: 'Add: priorityClassName: system-cluster-critical',
      });
    const replicas = child(object.value, 'spec')['replicas'];
    if (typeof replicas !== 'number' || replicas < 2) return;
    const spread =
      children(spec, 'topologySpreadConstraints').length > 0 ||
      Object.keys(child(child(spec, 'affinity'), 'podAntiAffinity')).length > 0;
    if (!spread)
      tell({
        at,
        text: `nothing spreads the ${replicas} replicas of ${object.name} over different nodes`,
        hint: 'Losing one node may take down all of them.',
        remedy: 'Add topologySpreadConstraints over kubernetes.io/hostname, or podAntiAffinity.',
      });
    const budgets = objects.filter(({ kind }) => kind === 'PodDisruptionBudget');
    const guarded = budgets.some(({ value }) =>
      selects(child(child(value, 'spec'), 'selector'), labels),
    );
    if (budgets.length > 0 && !guarded)
      tell({
        at,
        text: `no PodDisruptionBudget covers ${object.name}`,
        severity: 'note',
        hint: 'Draining several nodes may evict all replicas at once.',
        remedy: 'Add one with maxUnavailable: 1.',
      });
  },
});

const tooFew: LintRule = objectRule({
  code: 'CF40',
  severity: 'warning',
  summary: 'a single replica, or a CPU limit that throttles DNS',
  kinds: ['HelmValues', 'Deployment', 'DaemonSet'],
  find(object, tell) {
    if (object.kind === 'HelmValues') {
      const hasMore =
        child(object.value, 'hpa')['enabled'] === true ||
        child(object.value, 'autoscaler')['enabled'] === true;
      if (object.value['replicaCount'] === 1 && !hasMore)
        tell({ at: { object, path: ['replicaCount'] }, ...oneReplica });
      if (child(child(object.value, 'resources'), 'limits')['cpu'] !== undefined)
        tell({ at: { object, path: ['resources', 'limits', 'cpu'] }, ...throttled });
      return;
    }
    const server = dnsServerIn(object);
    if (server === null) return;
    const replicas = child(object.value, 'spec')['replicas'];
    if (object.kind === 'Deployment' && server.role === 'server') {
      if (replicas === 1) tell({ at: { object, path: ['spec', 'replicas'] }, ...oneReplica });
      else if (replicas === undefined)
        tell({
          at: { object, path: ['spec'] },
          ...oneReplica,
          text: 'replicas is not set, so there is one DNS server unless an autoscaler adds more',
          severity: 'note',
        });
    }
    const { path, value } = server.container;
    if (child(child(value, 'resources'), 'limits')['cpu'] !== undefined)
      tell({ at: { object, path: [...path, 'resources', 'limits', 'cpu'] }, ...throttled });
  },
});

const oneReplica = {
  text: 'there is only one DNS server: if it or its node fails, no name resolves',
  remedy: 'Run two or more, on different nodes.',
} as const;

const throttled = {
  text: 'a CPU limit can make DNS wait for the rest of each 100 ms period',
  hint: 'After a burst uses up the quota, all queries wait until the period ends. Clients see 5 s lookups.',
  remedy: 'Keep the request and remove the limit.',
} as const;

/** The labels, annotations and owners that platforms use to mark objects that they manage and overwrite. */
const reconcilers: readonly (readonly [
  key: RegExp,
  value: RegExp,
  who: string,
  instead: string,
])[] = [
  [
    /^addonmanager\.kubernetes\.io\/mode$/,
    /^Reconcile$/,
    'the add-on manager',
    'On AKS, use the coredns-custom ConfigMap with *.server and *.override keys.',
  ],
  [
    /^objectset\.rio\.cattle\.io\//,
    /^/,
    'k3s',
    'Use the coredns-custom ConfigMap with *.server and *.override keys.',
  ],
  [
    /^eks\.amazonaws\.com\/component$/,
    /^coredns$/,
    'the EKS add-on',
    'Set the Corefile in the add-on’s configuration values, or let the add-on preserve conflicts.',
  ],
  [
    /^dns\.operator\.openshift\.io\//,
    /^/,
    'OpenShift’s DNS operator',
    'Edit spec.servers and spec.upstreamResolvers in the dns.operator/default object.',
  ],
];

const reconciled: LintRule = corefileRule({
  code: 'CF35',
  severity: 'note',
  summary: 'a Corefile in an object that the platform overwrites',
  find({ object, fragment, tree }, tell) {
    if (object?.kind !== 'ConfigMap' || fragment) return;
    const metadata = asObject(object.value['metadata']);
    const marks = Object.entries({
      ...textMap(metadata, 'labels'),
      ...textMap(metadata, 'annotations'),
    });
    for (const [key, value, who, instead] of reconcilers) {
      if (!marks.some(([name, held]) => key.test(name) && value.test(held))) continue;
      tell({
        at: { file: tree.file, line: 1, column: 1 },
        text: `${who} manages this ConfigMap and reverts edits`,
        remedy: instead,
      });
      return;
    }
  },
});

export const replicaRules: readonly LintRule[] = [evicted, tooFew, reconciled];
