/** Applies deploy/ to a real API server, with `helm install`, `kubectl apply -f` and `kubectl apply -k`. */
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative, resolve } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { parse, parseAllDocuments } from 'yaml';
import { policyObjects } from '../../src/addons/webhook/policy.ts';
import type { KubeJson } from '../kit/apiserver/store.ts';
import { Cluster } from '../kit/cluster/cluster.ts';
import { noApiServer } from '../kit/cluster/programs.ts';
import { helm, helmTemplate } from '../kit/helm.ts';

/** The objects in a chart or file whose kinds the API server knows. It does not have the Prometheus operator's CRDs. */
const objectsOf = (yaml: string): readonly KubeJson[] =>
  parseAllDocuments(yaml)
    .map((document) => document.toJS() as KubeJson | null)
    .filter(
      (object) => object !== null && !['ServiceMonitor', 'PrometheusRule'].includes(object.kind!),
    ) as KubeJson[];

const everything = {
  autoscaler: { enabled: true, min: 2, configmap: { annotations: { a: 'b' } } },
  prometheus: {
    service: { enabled: true },
    monitor: { enabled: true, interval: '15s' },
    rules: { enabled: true },
    dashboard: { enabled: true },
  },
  webhook: { enabled: true, mode: 'enforce', ndots: 2, namespaceLabels: { team: 'web' } },
  check: {
    enabled: true,
    kind: 'DaemonSet',
    hostNetwork: true,
    file: { checks: [{ check: 'tcp' }] },
  },
  kuberhealthy: { enabled: true, args: ['--report-by', 'name'] },
  nodeCache: { enabled: true, args: ['-rules', 'nftables'] },
  networkPolicy: { enabled: true, metricsFrom: [{ namespaceSelector: {} }] },
  service: { clusterIP: '10.0.0.10', annotations: { x: 'y' } },
  seccompDirectory: 'ndots',
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
    [
      'a node cache as NodeLocal DNSCache is, over another cluster DNS, and checks from one place',
      {
        deployment: { enabled: false },
        nodeCache: { enabled: true, takeover: false, kubeProxy: 'ipvs' },
        check: { enabled: true },
      },
    ],
    ['two blocks', withServers('pods verified', [{ name: 'prometheus', parameters: ':9253' }])],
  ] as const)
    test(`the chart is accepted with ${what}, each field known`, async () => {
      const objects = objectsOf(
        helmTemplate(values, what.split(' ').slice(0, 3).join('-').toLowerCase()),
      );
      assert.ok(objects.length >= 5);
      assert.deepEqual(await cluster.put(objects), []);
      const list = JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects });
      await cluster.kubectlWith(list, 'apply', '--validate=strict', '--dry-run=server', '-f', '-');
    });

  test('the chart has the alerts and the dashboard of deploy/monitoring, on request', () => {
    const kinds = (values: object): ReturnType<typeof JSON.parse>[] =>
      parseAllDocuments(helmTemplate(values))
        .map((document) => document.toJS() as ReturnType<typeof JSON.parse>)
        .filter((object) => object !== null);
    const without = kinds({}).map(({ kind, metadata }) => `${kind} ${metadata.name}`);
    assert.ok(!without.some((each) => /PrometheusRule|dashboard/.test(each)), without.join());
    const prometheus = {
      rules: {
        enabled: true,
        additionalLabels: { release: 'prometheus' },
        namespace: 'monitoring',
      },
      dashboard: { enabled: true, annotations: { directory: 'DNS' } },
    };
    const all = kinds({ prometheus });
    const rule = all.find(({ kind }) => kind === 'PrometheusRule');
    const read = (name: string): string => readFileSync(`deploy/monitoring/${name}`, 'utf8');
    assert.deepEqual(rule.spec, parse(read('rules.yaml')));
    assert.equal(rule.metadata.namespace, 'monitoring');
    assert.equal(rule.metadata.labels.release, 'prometheus');
    const shown = all.find(({ metadata }) => metadata.name === 'dns-ndots-dashboard');
    assert.equal(shown.metadata.labels['grafana_dashboard'], '1');
    assert.deepEqual(JSON.parse(shown.data['dns-ndots.json']), JSON.parse(read('dashboard.json')));
    const own = helmTemplate({
      prometheus: { rules: { enabled: true, runbookUrl: 'https://wiki.example/dns' } },
    });
    assert.match(own, /runbook_url: https:\/\/wiki\.example\/dns#dnsdown/);
    assert.doesNotMatch(own, /ndots\.dev\/alerts/);
  });

  test('the checks of the chart ask its own Service, and the cluster’s where it has none', () => {
    const asked = (values: object): string | undefined =>
      /--service=(\S+)/.exec(helmTemplate({ check: { enabled: true }, ...values }))?.[1];
    assert.equal(asked({}), 'kube-system/dns-ndots');
    assert.equal(asked({ service: { name: 'cluster-dns' } }), 'kube-system/cluster-dns');
    assert.equal(asked({ service: { create: false } }), 'kube-system/kube-dns');
    assert.equal(asked({ deployment: { enabled: false } }), 'kube-system/kube-dns');
    assert.equal(asked({ check: { enabled: true, service: 'a/b' } }), 'a/b');
  });

  test('the chart refuses the address of another Service, and replaces it by that Service’s selector', async () => {
    const env = { KUBECONFIG: cluster.kubeconfig('admin'), HOME: tmpdir() };
    const own = { 'k8s-app': 'kube-dns' };
    const ports = [
      { name: 'dns', port: 53, protocol: 'UDP' },
      { name: 'dns-tcp', port: 53, protocol: 'TCP' },
    ];
    const kubeDns = {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: 'kube-dns', namespace: 'kube-system' },
      spec: { clusterIP: '10.0.0.99', selector: own, ports },
    };
    assert.deepEqual(await cluster.put([kubeDns as unknown as KubeJson]), []);
    const install = (...more: readonly string[]): string =>
      helm(['install', 'beside', 'deploy/helm/ndots', '-n', 'kube-system', ...more], env);
    assert.throws(
      () => install('--set', 'service.clusterIP=10.0.0.99'),
      /10\.0\.0\.99 is the address of Service kube-system\/kube-dns[^]*service\.create=false/,
    );
    const notes = install(
      ...['--set', 'service.create=false', '--set', 'k8sAppLabelOverride=kube-dns'],
    );
    const [forth = '', back = ''] = [...notes.matchAll(/kubectl .* patch service (.*)$/gm)].map(
      ([, words]) => words!,
    );
    const selector = async (): Promise<unknown> =>
      (
        JSON.parse(
          await cluster.kubectl(
            ...['get', 'service', 'kube-dns', '-n', 'kube-system', '-o', 'json'],
          ),
        ) as { spec: { selector: unknown } }
      ).spec.selector;
    const patch = (command: string): Promise<string> =>
      cluster.kubectl(
        ...['-n', 'kube-system', 'patch', 'service'],
        ...command.split(' ').map((word) => word.replaceAll("'", '')),
      );
    const { spec } = JSON.parse(
      await cluster.kubectl(
        ...['get', 'deployment', 'beside-ndots', '-n', 'kube-system', '-o', 'json'],
      ),
    ) as { spec: { selector: { matchLabels: object } } };
    await patch(forth);
    assert.deepEqual(await selector(), spec.selector.matchLabels);
    await patch(back);
    assert.deepEqual(await selector(), own);
    helm(['uninstall', 'beside', '-n', 'kube-system'], env);
    await cluster.kubectl('delete', 'service', 'kube-dns', '-n', 'kube-system');
  });

  for (const [what, values] of [
    ['everything is switched on', everything],
    [
      'another server has the DNS, and a policy is all of the webhook',
      {
        deployment: { enabled: false },
        nodeCache: { enabled: true, clusterDns: '10.0.0.10' },
        webhook: { enabled: true, kind: 'MutatingAdmissionPolicy' },
      },
    ],
  ] as const)
    test(`the objects in the chart's notes exist, when ${what}`, () => {
      const shown = helm(
        ['install', 'dns', 'deploy/helm/ndots', '--namespace', 'default', '--dry-run=server']
          // Kinds that this API server does not define.
          .concat('--set', 'prometheus.monitor.enabled=false,prometheus.rules.enabled=false')
          .concat(
            Object.entries(values).flatMap(([key, value]) => [
              '--set-json',
              `${key}=${JSON.stringify(value)}`,
            ]),
          ),
        { KUBECONFIG: cluster.kubeconfig('admin'), HOME: tmpdir() },
      );
      const [manifest = '', notes = ''] = shown.split('\nNOTES:\n');
      const made = new Set(
        objectsOf(manifest.slice(manifest.indexOf('---'))).map(
          ({ kind, metadata }) => `${String(kind).toLowerCase()}/${metadata?.name}`,
        ),
      );
      const named = [
        ...notes.matchAll(
          /\b(deployment|daemonset|mutatingadmissionpolicy)[/ ]([\w-]+)|\b(Service) (dns-\w+)/g,
        ),
      ];
      assert.ok(named.length >= 2, notes);
      for (const [, kind, name, service, ofService] of named)
        assert.ok(
          made.has(`${String(kind ?? service).toLowerCase()}/${name ?? ofService}`),
          `${notes}\n${[...made].join(' ')}`,
        );
    });

  for (const [what, values, wanted] of [
    [
      'an unknown key',
      { replicaCuont: 3 },
      /there is no key replicaCuont; did you mean replicaCount\?/,
    ],
    [
      'an unknown key further in',
      { autoscaler: { livenessProbe: { enbled: true } } },
      /no key autoscaler\.livenessProbe\.enbled; did you mean autoscaler\.livenessProbe\.enabled\?/,
    ],
    [
      'a key in the wrong place',
      { clusterIP: '10.0.0.10' },
      /there is no key clusterIP; did you mean service\.clusterIP\?/,
    ],
    ['half of a key', { image: { repo: 'x' } }, /did you mean image\.repository\?/],
    [
      'a key that begins as another',
      { replicas: 3 },
      /there is no key replicas; did you mean replicaCount\?/,
    ],
    [
      'a key within a list',
      { servers: [{ zones: [{ zone: '.' }], plugins: [{ name: 'cache', parameter: 30 }] }] },
      /no key servers\[0\]\.plugins\[0\]\.parameter; did you mean servers\[0\]\.plugins\[0\]\.parameters\?/,
    ],
    ['a key like none', { colour: 'red' }, /there is no key colour$/m],
    [
      'a node cache that pods do not ask',
      { nodeCache: { enabled: true } },
      /answers at the address that pods query: set service\.clusterIP/,
    ],
    [
      'a policy on a Kubernetes that has none',
      { webhook: { enabled: true, kind: 'MutatingAdmissionPolicy' } },
      /needs Kubernetes 1\.36, but this is v1\.32: use MutatingWebhookConfiguration/,
    ],
    ['a word for a number', { replicaCount: 'three' }, /\/replicaCount.*want number/],
    ['dnsPolicy None alone', { deployment: { dnsPolicy: 'None' } }, /needs deployment\.dnsConfig/],
  ] as const)
    test(`${what} among the values is refused by name`, () => {
      assert.throws(() => helmTemplate(values), wanted);
    });

  test('the policy of the chart is the output of `ndots webhook policy`', async () => {
    const hook = { enabled: true, kind: 'MutatingAdmissionPolicy', ndots: 2 };
    const values = { webhook: { ...hook, namespaceLabels: { team: 'web' } } };
    const rendered = objectsOf(helmTemplate(values, 'dns', '1.36')).filter(({ kind }) =>
      kind!.startsWith('MutatingAdmission'),
    );
    assert.deepEqual(await cluster.put(rendered), []);
    const parts = { name: 'dns-ndots-dns', ndots: 2, namespaceLabels: { team: 'web' } };
    const plain = (objects: readonly object[]): unknown =>
      JSON.parse(JSON.stringify(objects).replaceAll(/\\n|\s+/g, ' '));
    assert.deepEqual(
      plain(rendered.map(({ spec }) => spec as object)),
      plain(policyObjects(parts).map((each) => (each as { spec: object }).spec)),
    );
  });

  for (const [directory, ofServer] of [
    ['', undefined],
    ['ndots', 'ndots/serve.json'],
  ] as const)
    test(`every pod has a seccomp profile, and with seccompDirectory "${directory}" each container of ndots its own`, () => {
      const found: Record<string, string | undefined> = {};
      for (const object of objectsOf(
        helmTemplate({ ...everything, seccompDirectory: directory }),
      )) {
        const { template } = (object['spec'] ?? {}) as { readonly template?: PodTemplate };
        if (template === undefined) continue;
        const { containers, securityContext } = template.spec;
        assert.equal(securityContext?.seccompProfile?.type, 'RuntimeDefault', object.metadata.name);
        const part = object.metadata.name.replace('dns-ndots', '').slice(1);
        const own = containers[0].securityContext?.seccompProfile;
        found[part] = own?.localhostProfile;
        if (own !== undefined) {
          assert.equal(own.type, 'Localhost');
          readFileSync(`deploy/seccomp/${own.localhostProfile!.replace('ndots/', '')}`);
        }
      }
      const profile = (verb: string): string | undefined =>
        directory === '' ? undefined : `${directory}/${verb}.json`;
      assert.deepEqual(found, {
        '': ofServer,
        autoscaler: profile('size'),
        check: profile('check'),
        kuberhealthy: profile('check'),
        'node-cache': profile('node-cache'),
        webhook: profile('webhook'),
      });
    });

  test('the rights of Kuberhealthy’s place are those of deploy/check', () => {
    const rulesOf = (yaml: string): readonly unknown[] =>
      objectsOf(yaml)
        .filter(
          ({ kind, metadata }) => kind!.endsWith('Role') && metadata.name.includes('kuberhealthy'),
        )
        .flatMap((role) => (role as { rules?: readonly unknown[] }).rules ?? [])
        .map((rule) => JSON.stringify(rule))
        .toSorted();
    assert.deepEqual(
      rulesOf(helmTemplate({ kuberhealthy: { enabled: true } })),
      rulesOf(readFileSync('deploy/check/rbac.yaml', 'utf8')),
    );
  });

  test("kubeadm's addon and the one with its Service are accepted", async () => {
    await cluster.kubectl('apply', '--validate=strict', '-f', 'deploy/kubeadm/ndots.yaml');
    await cluster.kubectl('apply', '--dry-run=server', '-k', 'deploy/kubeadm');
    const rendered = await cluster.kubectl('kustomize', 'deploy/cluster-dns');
    const objects = objectsOf(rendered.replace('10.96.0.10', '10.0.0.11'));
    assert.deepEqual(await cluster.put(objects), []);
    // It uses the same account, and thus the same permissions, as the chart below.
    await cluster.kubectl('delete', 'clusterrolebinding', 'system:coredns');
    assert.match(
      await cluster.kubectl('get', 'cm', 'coredns', '-n', 'kube-system', '-o', 'yaml'),
      /lameduck/,
    );
  });

  test('the cache of a node is accepted, at the address of an overlay', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'ndots-overlay-'));
    try {
      const page = readFileSync('docs/node-cache.md', 'utf8');
      const [, overlay = ''] = /^```yaml\n(# kustomization\.yaml\n[^]*?)^```/m.exec(page) ?? [];
      assert.ok(overlay.includes('clusterDns='), page);
      const base = relative(directory, resolve('deploy/node-cache'));
      const text = overlay.replace('path/to/deploy/node-cache', base);
      writeFileSync(join(directory, 'kustomization.yaml'), text);
      const rendered = await cluster.kubectl('kustomize', directory);
      const objects = objectsOf(rendered);
      assert.deepEqual(await cluster.put(objects), []);
      await cluster.kubectlWith(
        rendered,
        'apply',
        '--validate=strict',
        '--dry-run=server',
        '-f',
        '-',
      );
      // Placeholders that the program replaces at run time may remain in its Corefile, but nowhere else.
      for (const object of objects) {
        if (object.kind === 'ConfigMap' && object.metadata.name === 'node-local-dns') continue;
        assert.doesNotMatch(JSON.stringify(object), /__PILLAR__/);
      }
      const of = (kind: string, name: string): KubeJson =>
        objects.find((each) => each.kind === kind && each.metadata.name.startsWith(name))!;
      const address = of('ConfigMap', 'node-local-dns-address') as { data?: object } & KubeJson;
      assert.deepEqual(address.data, { clusterDns: '10.100.0.10' });
      const { template, updateStrategy } = of('DaemonSet', 'node-local-dns')['spec'] as {
        readonly updateStrategy: object;
        readonly template: {
          readonly spec: { readonly containers: readonly [NodeCacheContainer] };
        };
      };
      assert.deepEqual(updateStrategy, { rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } });
      const [{ args, env, ports }] = template.spec.containers;
      assert.ok(args.includes('169.254.20.10,$(CLUSTER_DNS)'), args.join(' '));
      assert.equal(env[0].valueFrom.configMapKeyRef.name, address.metadata.name);
      assert.equal(ports, undefined);
    } finally {
      rmSync(directory, { recursive: true });
    }
  });
});

interface NodeCacheContainer {
  readonly args: readonly string[];
  readonly env: readonly [
    { readonly valueFrom: { readonly configMapKeyRef: { readonly name: string } } },
  ];
  readonly ports?: readonly object[];
}

interface Secured {
  readonly securityContext?: {
    readonly seccompProfile?: { readonly type: string; readonly localhostProfile?: string };
  };
}

interface PodTemplate {
  readonly spec: Secured & { readonly containers: readonly [Secured] };
}
