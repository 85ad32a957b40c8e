/** deploy/ applied to a real API server, as `helm install`, `kubectl apply -f` and `-k` do. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { parseAllDocuments } from 'yaml';
import type { KubeJson } from '../kit/apiserver/store.ts';
import { Cluster } from '../kit/cluster/cluster.ts';
import { noApiServer } from '../kit/cluster/programs.ts';
import { helmTemplate } from '../kit/helm.ts';
import { serveProcess } from '../kit/serve-process.ts';

/** Objects of a chart or a file that the API server knows: it has no CRDs of Prometheus' operator. */
const objectsOf = (yaml: string): readonly KubeJson[] =>
  parseAllDocuments(yaml)
    .map((document) => document.toJS() as KubeJson | null)
    .filter((object) => object !== null && object.kind !== 'ServiceMonitor') as KubeJson[];

const everything = {
  autoscaler: { enabled: true, min: 2, configmap: { annotations: { a: 'b' } } },
  prometheus: { service: { enabled: true }, monitor: { enabled: true, interval: '15s' } },
  webhook: { enabled: true, mode: 'enforce', ndots: 2, namespaceLabels: { team: 'web' } },
  networkPolicy: { enabled: true, metricsFrom: [{ namespaceSelector: {} }] },
  service: { clusterIP: '10.0.0.10', annotations: { x: 'y' } },
  customLabels: { team: 'dns' },
  customAnnotations: { owner: 'dns' },
  podLabels: { pod: 'label' },
  extraSecrets: [{ name: 'keys', mountPath: '/etc/keys' }],
  zoneFiles: [{ filename: 'example.db', domain: 'example.com', contents: 'a\n b\n' }],
  env: [{ name: 'A', value: 'b' }],
  deployment: { dnsPolicy: 'None', dnsConfig: { nameservers: ['10.0.0.53'] } },
};

const withServers = (kubernetes: string, more: readonly object[] = []): object => ({
  servers: [
    {
      zones: [
        { zone: '.', use_tcp: true },
        { zone: 'example.org', scheme: 'tls://' },
      ],
      port: 53,
      plugins: [
        { name: 'kubernetes', parameters: 'cluster.local', configBlock: kubernetes },
        ...more,
      ],
    },
  ],
});

describe('deploy/, applied to a real API server', { skip: noApiServer() ?? false }, () => {
  let cluster: Cluster;
  before(async () => {
    cluster = await Cluster.start();
  });
  after(async () => cluster?.[Symbol.asyncDispose]());

  for (const [what, values] of [
    ['its own values', {}],
    ['everything switched on', everything],
    ['a horizontal autoscaler', { hpa: { enabled: true, metrics: [] } }],
    [
      'a release of the coredns chart',
      { nameOverride: 'coredns', k8sAppLabelOverride: 'kube-dns' },
    ],
    ['two blocks', withServers('pods verified', [{ name: 'prometheus', parameters: ':9253' }])],
  ] as const)
    test(`the chart is taken with ${what}, each field known`, async () => {
      const objects = objectsOf(helmTemplate(values, what.replaceAll(' ', '-')));
      assert.ok(objects.length >= 5);
      assert.deepEqual(await cluster.put(objects), []);
      const list = JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects });
      await cluster.kubectlWith(list, 'apply', '--validate=strict', '--dry-run=server', '-f', '-');
    });

  for (const [what, values, wanted] of [
    ['an unknown key', { replicaCuont: 3 }, /'replicaCuont' not allowed/],
    [
      'an unknown key further in',
      { service: { clusterip: '10.0.0.10' } },
      /'\/service'.*'clusterip'/,
    ],
    ['a word for a number', { replicaCount: 'three' }, /\/replicaCount.*want number/],
    ['dnsPolicy None alone', { deployment: { dnsPolicy: 'None' } }, /needs deployment\.dnsConfig/],
  ] as const)
    test(`${what} among the values is refused by name`, () => {
      assert.throws(() => helmTemplate(values), wanted);
    });

  test("kubeadm's addon and the one with its Service are taken", async () => {
    await cluster.kubectl('apply', '--validate=strict', '-f', 'deploy/kubeadm/ndots.yaml');
    await cluster.kubectl('apply', '--dry-run=server', '-k', 'deploy/kubeadm');
    const rendered = await cluster.kubectl('kustomize', 'deploy/cluster-dns');
    const objects = objectsOf(rendered.replace('10.96.0.10', '10.0.0.11'));
    assert.deepEqual(await cluster.put(objects), []);
    // Its rights are those of the same account as the chart's below.
    await cluster.kubectl('delete', 'clusterrolebinding', 'system:coredns');
    assert.match(
      await cluster.kubectl('get', 'cm', 'coredns', '-n', 'kube-system', '-o', 'yaml'),
      /lameduck/,
    );
  });

  describe('the rights of the chart', () => {
    type Rule = { apiGroups: string[]; resources: string[]; verbs: string[] };
    type Role = KubeJson & { rules: Rule[] };

    const roleOf = (values: object): { role: Role; binding: KubeJson } => {
      const objects = objectsOf(helmTemplate(values));
      return {
        role: objects.find(({ kind }) => kind === 'ClusterRole') as Role,
        binding: objects.find(({ kind }) => kind === 'ClusterRoleBinding')!,
      };
    };

    /** What the log says while it serves as the chart's account. */
    async function logAs(kubernetes: string): Promise<string> {
      const server = await serveProcess(
        `errors\nkubernetes cluster.local {\n kubeconfig ${cluster.kubeconfig('dns')}\n startup_timeout 1s\n ${kubernetes}\n}`,
      );
      await pause(500);
      await server.stop();
      return server.child.output();
    }

    for (const directives of ['pods insecure', 'pods verified'])
      test(`are enough for "${directives}", and each of them is needed`, async () => {
        const { role, binding } = roleOf({
          ...withServers(directives),
          serviceAccount: { name: 'coredns' },
        });
        await cluster.put([role, binding]);
        assert.doesNotMatch(await logAs(directives), /forbidden|unsynced/i);
        const resources = role.rules.flatMap((rule) => rule.resources);
        assert.equal(resources.includes('pods'), directives === 'pods verified');
        for (const missing of resources) {
          const rules = role.rules
            .map((rule) => ({
              ...rule,
              resources: rule.resources.filter((one) => one !== missing),
            }))
            .filter((rule) => rule.resources.length > 0);
          await cluster.put([{ ...role, rules } as KubeJson]);
          const log = await logAs(directives);
          assert.match(
            log,
            new RegExp(`Forbidden.*ClusterRole must allow list and watch of ${missing}`, 'i'),
          );
        }
        await cluster.put([role]);
      });
  });
});
