/** Checks the contents of deploy/ as far as possible without a cluster. `real/deploy.cluster.test.ts` applies them. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import { parse, parseAllDocuments } from 'yaml';
import { parseCorefileText } from '../src/faces/cli/parse-corefile.ts';
import { usualNodeCorefile } from '../src/tools/lab/defaults.ts';
import { deriveTemplate } from '../src/server/nodelocal/cluster-corefile.ts';
import { emptyConfig } from '../src/server/nodelocal/kube-dns-config.ts';
import { renderTemplate } from '../src/server/nodelocal/template.ts';
import { waitingLimit } from '../src/server/plugins/forward/forward-options.ts';
import { checkKinds } from '../src/tools/probe/kinds.ts';
import { chartKeys, chartKeysFile } from '../tools/chart-keys.ts';

const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string };
const readYaml = (path: string): Record<string, unknown> =>
  parse(readFileSync(path, 'utf8')) as Record<string, unknown>;

/** The keys in the values of coredns/helm 1.46.2, including related keys such as `nameOverride`. */
const corednsKeys = `
nameOverride fullnameOverride k8sAppLabelOverride replicaCount resources rollingUpdate terminationGracePeriodSeconds podAnnotations
podLabels serviceType isClusterService priorityClassName podSecurityContext securityContext servers extraConfig affinity
topologySpreadConstraints nodeSelector tolerations podDisruptionBudget zoneFiles extraContainers extraVolumes extraVolumeMounts
extraSecrets env customLabels customAnnotations initContainers automountServiceAccountToken
image.repository image.tag image.pullPolicy image.pullSecrets prometheus.service.enabled prometheus.service.annotations
prometheus.service.selector prometheus.monitor.enabled prometheus.monitor.additionalLabels prometheus.monitor.namespace
prometheus.monitor.interval prometheus.monitor.scrapeTimeout prometheus.monitor.scheme prometheus.monitor.honorLabels
prometheus.monitor.tlsConfig prometheus.monitor.relabelings prometheus.monitor.metricRelabelings prometheus.monitor.selector
service.name service.annotations service.selector service.clusterIP service.clusterIPs service.loadBalancerIP
service.loadBalancerClass service.externalIPs service.externalTrafficPolicy service.ipFamilyPolicy service.trafficDistribution
serviceAccount.create serviceAccount.name serviceAccount.annotations rbac.create rbac.pspEnable rbac.multiclusterEnable
clusterRole.nameOverride livenessProbe.enabled livenessProbe.initialDelaySeconds livenessProbe.periodSeconds
livenessProbe.timeoutSeconds livenessProbe.failureThreshold livenessProbe.successThreshold readinessProbe.enabled
readinessProbe.initialDelaySeconds readinessProbe.periodSeconds readinessProbe.timeoutSeconds readinessProbe.failureThreshold
readinessProbe.successThreshold hpa.enabled hpa.minReplicas hpa.maxReplicas hpa.metrics hpa.behavior autoscaler.enabled
autoscaler.coresPerReplica autoscaler.nodesPerReplica autoscaler.min autoscaler.max autoscaler.includeUnschedulableNodes
autoscaler.preventSinglePointFailure autoscaler.podAnnotations autoscaler.podSecurityContext autoscaler.securityContext
autoscaler.customFlags autoscaler.image.repository autoscaler.image.tag autoscaler.image.pullPolicy autoscaler.image.pullSecrets
autoscaler.priorityClassName autoscaler.affinity autoscaler.nodeSelector autoscaler.tolerations autoscaler.resources
autoscaler.configmap.annotations autoscaler.livenessProbe.enabled autoscaler.livenessProbe.initialDelaySeconds
autoscaler.livenessProbe.periodSeconds autoscaler.livenessProbe.timeoutSeconds autoscaler.livenessProbe.failureThreshold
autoscaler.livenessProbe.successThreshold autoscaler.extraContainers deployment.skipConfig deployment.enabled deployment.name
deployment.annotations deployment.selector deployment.dnsPolicy deployment.dnsConfig`
  .trim()
  .split(/\s+/);

interface Schema {
  readonly properties?: Readonly<Record<string, Schema>>;
}

describe('the Helm chart', () => {
  const schema = JSON.parse(readFileSync('deploy/helm/ndots/values.schema.json', 'utf8')) as Schema;
  const at = (key: string): Schema | undefined =>
    key.split('.').reduce<Schema | undefined>((inner, part) => inner?.properties?.[part], schema);

  test('accepts every value of the coredns chart', () => {
    assert.deepEqual(
      corednsKeys.filter((key) => at(key) === undefined),
      [],
    );
  });

  test('documents each value that it accepts', () => {
    const values = readYaml('deploy/helm/ndots/values.yaml');
    assert.deepEqual(Object.keys(schema.properties!).toSorted(), Object.keys(values).toSorted());
  });

  test('knows its keys by the schema of today (node tools/chart-keys.ts writes them)', () => {
    assert.equal(readFileSync(chartKeysFile, 'utf8'), chartKeys());
  });

  test('refuses a check of no kind that there is', () => {
    const { items } = at('check.file.checks') as { items: { properties: { check: object } } };
    assert.deepEqual(items.properties.check, { enum: checkKinds.map(({ name }) => name) });
  });

  test('is of the version of the program', () => {
    const chart = readYaml('deploy/helm/ndots/Chart.yaml');
    assert.deepEqual([chart['version'], chart['appVersion']], [version, version]);
  });
});

test('the manifests name the image of this version', () => {
  const text = readFileSync('deploy/kubeadm/ndots.yaml', 'utf8');
  assert.equal(parseAllDocuments(text).length, 4);
  assert.match(text, new RegExp(`image: ndots:${version.replaceAll('.', '\\.')}$`, 'm'));
  for (const [directory, name] of [
    ['kubeadm', 'ndots'],
    ['node-cache', 'ndots-node-cache'],
  ] as const) {
    const { images } = readYaml(`deploy/${directory}/kustomization.yaml`);
    assert.deepEqual(images, [{ name, newTag: version }]);
  }
});

describe('the node cache forwards alike, with a documented limit,', () => {
  const { corefile: cluster } = parseCorefileText({
    file: 'Corefile',
    text: '.:53 {\n kubernetes cluster.local\n file zone example.org\n}\n',
    dnsPort: 53,
    env: {},
  });
  const stubs = {
    localAddresses: ['169.254.20.10'],
    port: 53,
    service: 's',
    clusterDns: '10.0.0.1',
  };
  const corefiles: Readonly<Record<string, string>> = {
    'deploy/node-cache': readFileSync('deploy/node-cache/Corefile', 'utf8'),
    'deploy/node-cache, without Kustomize': readFileSync(
      'deploy/node-cache/node-local-dns.yaml',
      'utf8',
    ),
    // In the chart's template, each line is a word in a list.
    'the Helm chart': readFileSync(
      'deploy/helm/ndots/templates/node-cache.yaml',
      'utf8',
    ).replaceAll('\\n', '\n'),
    'what is derived of the cluster’s Corefile': deriveTemplate(cluster, {
      health: '169.254.20.10:8080',
      metrics: ':9253',
      port: 53,
    }),
    'stub domains': renderTemplate('', {
      ...stubs,
      config: { ...emptyConfig, stubDomains: new Map([['acme.local', ['192.0.2.1']]]) },
    }),
    'the lab': usualNodeCorefile,
  };

  for (const [where, text] of Object.entries(corefiles))
    test(where, () => {
      const forwards = [...text.matchAll(/forward \. (\S+?)(?:\s*\{([^}]*)\}|["\n])/g)];
      assert.ok(forwards.length > 0);
      for (const [, to = '', body = ''] of forwards)
        assert.deepEqual(body.trim().split(/\s*\n\s*/), [
          ...(to === '__PILLAR__CLUSTER__DNS__' ? ['force_tcp'] : []),
          `max_concurrent ${waitingLimit.default}`,
        ]);
    });
});
