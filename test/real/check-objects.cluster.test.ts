/** The requests that `ndots check` sends to a real API server, for replica addresses and temporary services. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { systemClock } from '../../src/server/base/clock.ts';
import { apiClient } from '../../src/server/kube/api/client.ts';
import { clusterAccess } from '../../src/tools/pods/cluster-access.ts';
import {
  findServers,
  type FoundServers,
  type ServiceChoice,
} from '../../src/tools/probe/replicas.ts';
import type { KubeJson } from '../kit/apiserver/store.ts';
import { printed, start, type Child } from '../kit/child.ts';
import { Cluster, type User } from '../kit/cluster/cluster.ts';
import { noApiServer } from '../kit/cluster/programs.ts';
import { freePorts } from '../kit/free-ports.ts';

const subjects = [{ kind: 'ServiceAccount', name: 'kuberhealthy', namespace: 'kuberhealthy' }];

type Rule = { apiGroups: string[]; resources: string[]; verbs: string[] };

const role = (namespace: string, rules: readonly Rule[]): KubeJson[] =>
  [
    {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'Role',
      metadata: { name: 'check', namespace },
      rules,
    },
    {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'RoleBinding',
      metadata: { name: 'check', namespace },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'check' },
      subjects,
    },
  ] as unknown as KubeJson[];

const rule = (group: string, resource: string, ...verbs: string[]): Rule => ({
  apiGroups: [group],
  resources: [resource],
  verbs,
});

/** The value in docs/check.md. */
const makingRules: readonly Rule[] = [
  rule('', 'services', 'list', 'create', 'delete'),
  rule('discovery.k8s.io', 'endpointslices', 'create', 'delete'),
];

describe('ndots check, with a real API server', { skip: noApiServer() ?? false }, () => {
  let cluster: Cluster;
  const directory = mkdtempSync(join(tmpdir(), 'ndots-check-objects-'));
  const children: Child[] = [];
  before(async () => {
    cluster = await Cluster.start();
    await cluster.kubectl('create', 'namespace', 'probe');
    await cluster.put([
      {
        apiVersion: 'v1',
        kind: 'Service',
        metadata: { name: 'kube-dns', namespace: 'kube-system', labels: { 'k8s-app': 'kube-dns' } },
        spec: {
          clusterIP: '10.0.0.10',
          ipFamilies: ['IPv4'],
          ports: [{ name: 'dns', port: 53, protocol: 'UDP' }],
        },
      } as unknown as KubeJson,
      {
        apiVersion: 'discovery.k8s.io/v1',
        kind: 'EndpointSlice',
        metadata: {
          name: 'kube-dns-1',
          namespace: 'kube-system',
          labels: { 'kubernetes.io/service-name': 'kube-dns', 'k8s-app': 'kube-dns' },
        },
        addressType: 'IPv4',
        ports: [
          { name: 'metrics', port: 9153, protocol: 'TCP' },
          { name: 'dns', port: 1053, protocol: 'UDP' },
        ],
        endpoints: [
          { addresses: ['10.244.1.5'], conditions: { ready: true } },
          { addresses: ['10.244.2.7'] },
          { addresses: ['10.244.3.9'], conditions: { ready: false } },
        ],
      } as unknown as KubeJson,
      {
        apiVersion: 'v1',
        kind: 'Endpoints',
        metadata: { name: 'kube-dns', namespace: 'kube-system' },
        subsets: [
          {
            addresses: [{ ip: '10.244.1.6' }],
            ports: [{ name: 'dns', port: 53, protocol: 'UDP' }],
          },
        ],
      } as unknown as KubeJson,
    ]);
  });
  after(async () => {
    for (const child of children) child.signal('SIGKILL');
    await Promise.all(children.map((child) => child.exitCode));
    await cluster?.[Symbol.asyncDispose]();
    rmSync(directory, { recursive: true, force: true });
  });

  const find = async (choice: Partial<ServiceChoice>, user: User): Promise<FoundServers> => {
    const { connection } = clusterAccess({
      kubeconfig: cluster.kubeconfig(user),
      context: null,
      env: {},
    });
    const client = apiClient({ connection, clock: systemClock, userAgent: 'test' });
    try {
      const usual = { namespace: 'kube-system', name: 'kube-dns', labels: null };
      return await findServers(client, { ...usual, ...choice }, AbortSignal.timeout(20_000));
    } finally {
      client.close();
    }
  };

  test('replicas are the ready endpoints of the service’s slices, at the port called dns', async () => {
    const wanted = [
      { host: '10.244.1.5', port: 1053 },
      { host: '10.244.2.7', port: 1053 },
    ];
    for (const choice of [
      {},
      { name: null, labels: 'k8s-app=kube-dns' },
      { namespace: '', name: null, labels: 'k8s-app=kube-dns' },
    ]) {
      const { vip, replicas } = await find(choice, 'admin');
      assert.deepEqual(replicas, wanted);
      assert.deepEqual(vip, [{ host: '10.0.0.10', port: 53 }]);
    }
  });

  test('without access to slices Endpoints are read; without access to either, the missing right is reported', async () => {
    await cluster.put(role('kube-system', [rule('', 'endpoints', 'get')]));
    const { vip, replicas } = await find({}, 'kuberhealthy');
    assert.deepEqual(replicas, [{ host: '10.244.1.6', port: 53 }]);
    assert.deepEqual(vip, []);
    await cluster.kubectl('delete', 'rolebinding', 'check', '-n', 'kube-system');
    await assert.rejects(find({}, 'kuberhealthy'), /endpoints/);
  });

  describe('new-object-visibility', () => {
    let ports: number[] = [];
    before(async () => {
      ports = await freePorts(3);
      const sources = [
        `kubeconfig ${cluster.kubeconfig('admin')}`,
        `kubeconfig ${cluster.kubeconfig('admin')}`,
        `manifests ${resolve('examples/cluster')}`,
      ];
      for (const [index, source] of sources.entries()) {
        const corefile = join(directory, `Corefile-${index}`);
        writeFileSync(
          corefile,
          `.:${ports[index]} {\n  bind 127.0.0.1\n  kubernetes cluster.local {\n    ${source}\n  }\n  cache\n}\n`,
        );
        const child = start('ndots', ['bin/ndots', 'serve', '-conf', corefile]);
        children.push(child);
        await printed(child, /ndots-\d/, 30_000);
      }
    });

    const check = async (
      servers: readonly number[],
      user: User = 'kuberhealthy',
    ): Promise<{ code: number | null; text: string }> => {
      const file = join(directory, 'check.yaml');
      const replicas = servers.map((port) => `127.0.0.1:${port}`);
      writeFileSync(
        file,
        `vip: ${replicas[0]}\nreplicas: [${replicas.map((each) => `'${each}'`).join(', ')}]\nchecks: [{check: new-object-visibility, namespace: probe, within: 6s}]\n`,
      );
      const words = ['check', 'run', '-f', file, '--kubeconfig', cluster.kubeconfig(user)];
      const child = start('ndots', ['bin/ndots', ...words]);
      const code = await child.exitCode;
      return { code, text: child.output() };
    };
    const left = async (): Promise<string> =>
      cluster.kubectl('get', 'services,endpointslices', '-n', 'probe', '-o', 'name');

    test('servers that follow the API know a new service soon; one that does not is found', async () => {
      await cluster.put(role('probe', makingRules));
      const fine = await check(ports.slice(0, 2));
      assert.equal(fine.code, 0, fine.text);
      assert.equal(fine.text.match(/served after \d+ ms/g)?.length, 2, fine.text);
      const bad = await check(ports);
      assert.equal(bad.code, 1, bad.text);
      assert.match(
        bad.text,
        new RegExp(`127\\.0\\.0\\.1:${ports[2]} .*a new service is still not served after 6000 ms`),
      );
      assert.equal(await left(), '', 'nothing is left');
    });

    test('each right is needed, and one that is missing is named', async () => {
      for (const [index, { resources, verbs }] of makingRules.entries())
        for (const verb of verbs.filter((each) => each !== 'delete')) {
          const rules = makingRules.map((each, at) =>
            at === index ? { ...each, verbs: verbs.filter((other) => other !== verb) } : each,
          );
          await cluster.put(role('probe', rules));
          const { code, text } = await check(ports.slice(0, 1));
          assert.equal(code, 2, text);
          const rights = verb === 'list' ? 'list and watch' : verb;
          assert.match(text, new RegExp(`must allow ${rights} of ${resources[0]}`));
          assert.equal(await left(), '', `without ${verb} of ${resources[0]}`);
        }
    });
  });
});
