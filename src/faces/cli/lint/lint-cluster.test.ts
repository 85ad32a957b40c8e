import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { runCommand, type Ran } from '../../../../test/kit/trace-command.ts';
import { lint } from './lint.ts';

const directory = mkdtempSync(join(tmpdir(), 'ndots-lint-cluster-'));
after(() => rmSync(directory, { recursive: true, force: true }));

const corefile =
  '.:53 {\n    errors\n    ready\n    health {\n        lameduck 5s\n    }\n    prometheus\n    loop\n    cache 30\n    kubernetes cluster.local\n    forward . 10.96.0.10 {\n        max_concurrent 1000\n    }\n}\n';

/** API server lists by path. Any other path is forbidden. */
const lists: Readonly<Record<string, readonly object[]>> = {
  '/api/v1/namespaces/kube-system/configmaps': [
    { metadata: { name: 'coredns', namespace: 'kube-system' }, data: { Corefile: corefile } },
    { metadata: { name: 'other', namespace: 'kube-system' }, data: { key: 'x' } },
  ],
  '/api/v1/namespaces/kube-system/services': [
    {
      metadata: { name: 'kube-dns', namespace: 'kube-system' },
      spec: { clusterIP: '10.96.0.10', clusterIPs: ['10.96.0.10'] },
    },
  ],
  '/apis/apps/v1/namespaces/kube-system/deployments': [
    {
      metadata: { name: 'coredns', namespace: 'kube-system' },
      spec: {
        replicas: 1,
        template: {
          spec: {
            dnsPolicy: 'Default',
            priorityClassName: 'system-cluster-critical',
            containers: [
              {
                name: 'coredns',
                image: 'registry.k8s.io/coredns/coredns:v1.11.3',
                readinessProbe: { httpGet: { path: '/ready', port: 8181 } },
              },
            ],
          },
        },
      },
    },
  ],
  '/apis/networking.k8s.io/v1/networkpolicies': [],
  '/api/v1/pods': [
    {
      metadata: { name: 'web-1', namespace: 'shop' },
      spec: { dnsPolicy: 'None', containers: [{ name: 'c', image: 'debian' }] },
    },
    {
      metadata: { name: 'web-2', namespace: 'shop' },
      spec: { dnsPolicy: 'ClusterFirst', containers: [{ name: 'c', image: 'debian' }] },
    },
  ],
  '/api/v1/namespaces/openshift-dns/configmaps': [
    {
      metadata: { name: 'dns-default', namespace: 'openshift-dns' },
      data: { Corefile: '.:5353 {\n    forward . 127.0.0.1:5353\n}\n' },
    },
  ],
};

describe('ndots lint --cluster', () => {
  let url: string;
  const server = createServer((request, reply) => {
    const items = lists[request.url!.split('?')[0]!];
    reply.setHeader('content-type', 'application/json');
    reply.statusCode = items === undefined ? 403 : 200;
    const status = {
      kind: 'Status',
      status: 'Failure',
      reason: 'Forbidden',
      code: 403,
      message: 'no',
    };
    reply.end(JSON.stringify(items === undefined ? status : { kind: 'List', metadata: {}, items }));
  });
  before(async () => {
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  after(() => {
    server.close();
    server.closeAllConnections();
  });

  const run = (at: string, ...words: string[]): Promise<Ran> => {
    const config = join(directory, 'config');
    writeFileSync(
      config,
      JSON.stringify({
        apiVersion: 'v1',
        kind: 'Config',
        'current-context': 'prod',
        contexts: [{ name: 'prod', context: { cluster: 'c', user: 'u' } }],
        clusters: [{ name: 'c', cluster: { server: at } }],
        users: [{ name: 'u', user: {} }],
      }),
    );
    return runCommand(lint, ['--cluster', '--kubeconfig', config, ...words]);
  };

  test('judges all objects of the cluster together, for the release of its image', async () => {
    const { code, out } = await run(url);
    assert.equal(code, 1);
    assert.match(
      out,
      /^context prod: ConfigMap:\d+:\d+ data\["Corefile"\]: error CF03: 10\.96\.0\.10 is the Service in front of this server$/m,
    );
    assert.match(out, /^ +\d+ │ {5}forward \. 10\.96\.0\.10 \{$/m);
    assert.match(out, /warning CF40: there is only one DNS server/);
    assert.match(out, /\(for coredns@1\.11\.3\)/);
  });

  test('reports forbidden lists, and checks the rest', async () => {
    const { err } = await run(url);
    assert.match(err, /webhookconfigurations.*skipped/);
  });

  test('checks pods with their own dnsConfig, and accepts those without', async () => {
    const { out } = await run(url);
    assert.match(
      out,
      /^context prod: Pod:\d+:\d+: error CF45: dnsPolicy None without nameservers is rejected$/m,
    );
    assert.doesNotMatch(out, /web-2/);
  });

  test('the servers may be in another namespace', async () => {
    const { out } = await run(url, '-n', 'openshift-dns');
    assert.match(out, /error CF03: 127\.0\.0\.1:5353 is this server itself/);
    assert.doesNotMatch(out, /CF40|coredns@/);
  });

  test('an unreachable cluster is an error, not a finding', async () => {
    const { code, err } = await run('http://127.0.0.1:1');
    assert.equal(code, 2);
    assert.match(err, /ndots lint FILE/);
  });
});
