/** `ndots size --follow` against a real API server. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { parseAllDocuments } from 'yaml';
import type { KubeJson } from '../kit/apiserver/store.ts';
import { printed, start, type Child } from '../kit/child.ts';
import { Cluster } from '../kit/cluster/cluster.ts';
import { noApiServer } from '../kit/cluster/programs.ts';
import { helmTemplate } from '../kit/helm.ts';
import { freePorts } from '../kit/free-ports.ts';

const node = (name: string): KubeJson =>
  ({
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name },
    spec: {},
  }) as KubeJson;

describe('ndots size --follow on a real API server', { skip: noApiServer() ?? false }, () => {
  let cluster: Cluster;
  let autoscaler: Child | null = null;
  let port: number;

  before(async () => {
    cluster = await Cluster.start();
    const yaml = helmTemplate({
      autoscaler: { enabled: true, nodesPerReplica: 2, coresPerReplica: 8 },
      serviceAccount: { name: 'dns-ndots' },
    });
    const objects = parseAllDocuments(yaml).map((document) => document.toJS() as KubeJson);
    // The test kit's token belongs to the account "coredns", which is given the chart's permissions.
    const renamed = objects.map((object) => {
      const subjects = (object as { subjects?: { name: string }[] }).subjects;
      if (/autoscaler/.test(object.metadata.name) && subjects !== undefined)
        subjects[0]!.name = 'coredns';
      return object;
    });
    assert.deepEqual(await cluster.put(renamed), []);
    await addNode('a', '4');
    [port] = await freePorts(1);
    autoscaler = start('ndots', [
      ...[
        'bin/ndots',
        'size',
        '--follow',
        '--poll-period-seconds',
        '1',
        '--namespace',
        'kube-system',
      ],
      ...[
        '--configmap',
        'dns-ndots-autoscaler',
        '--target',
        'Deployment/dns-ndots',
        '--logtostderr=true',
      ],
      ...['--v=2', '--listen', `127.0.0.1:${port}`, '--kubeconfig', cluster.kubeconfig('dns')],
    ]);
    await printed(autoscaler, /following the nodes/, 20_000);
  });
  after(async () => {
    autoscaler?.signal('SIGKILL');
    await autoscaler?.exitCode;
    await cluster?.[Symbol.asyncDispose]();
  });

  async function addNode(name: string, cpu: string): Promise<void> {
    await cluster.put([node(name)]);
    const status = {
      allocatable: { cpu },
      conditions: [
        { type: 'Ready', status: 'True', lastHeartbeatTime: null, lastTransitionTime: null },
      ],
    };
    const patch = ['--subresource=status', '--type=merge', '-p', JSON.stringify({ status })];
    await cluster.kubectl('patch', 'node', name, ...patch);
  }

  async function becomes(wanted: number): Promise<void> {
    const end = Date.now() + 20_000;
    for (let found = ''; found !== String(wanted); await pause(200)) {
      const what = [
        'get',
        'deployment',
        'dns-ndots',
        '-n',
        'kube-system',
        '-o',
        'jsonpath={.spec.replicas}',
      ];
      found = await cluster.kubectl(...what);
      assert.ok(
        Date.now() < end,
        `${found} replicas, should be ${wanted}\n${autoscaler!.output()}`,
      );
    }
  }

  test("replicas follow nodes and their CPUs, with the chart's permissions", async () => {
    await becomes(1);
    await addNode('b', '4');
    await becomes(2);
    await addNode('c', '15900m');
    await becomes(3);
    assert.match(autoscaler!.output(), /deployment kube-system\/dns-ndots: 2 → 3 replicas/);
  });

  test('its liveness probe succeeds, as the chart configures it', async () => {
    const { livenessProbe } = (
      parseAllDocuments(helmTemplate({ autoscaler: { enabled: true } })).map((document) =>
        document.toJS(),
      ) as readonly KubeJson[]
    )
      .filter(({ kind, metadata }) => kind === 'Deployment' && /autoscaler/.test(metadata.name))
      .map((deployment) => deployment as unknown as AutoscalerDeployment)[0]!.spec.template.spec
      .containers[0];
    const { httpGet } = livenessProbe;
    assert.equal(httpGet.port, 8080);
    const { status } = await fetch(`http://127.0.0.1:${port}${httpGet.path}`);
    assert.equal(status, 200);
  });

  test('a cordoned node no longer counts', async () => {
    await cluster.kubectl('cordon', 'c');
    await becomes(2);
  });

  test('a changed ConfigMap is applied; an invalid one changes nothing and is reported', async () => {
    const set = (linear: string): Promise<string> =>
      cluster.kubectl(
        ...['patch', 'configmap', 'dns-ndots-autoscaler', '-n', 'kube-system', '--type=merge'],
        ...['-p', JSON.stringify({ data: { linear } })],
      );
    await set('{"nodesPerReplica": 1, "min": 5}');
    await becomes(5);
    await set('{"nodesPerReplica": "one"}');
    await printed(
      autoscaler!,
      /nodesPerReplica "one", which is not a number.*replicas stay unchanged/,
      10_000,
    );
    await becomes(5);
    await set('{"nodesPerReplica": 1}');
    await becomes(2);
  });

  test('while the API server is away nothing changes, and afterwards it continues', async () => {
    await cluster.killApiServer();
    await pause(3000);
    await cluster.startApiServer();
    await cluster.kubectl('uncordon', 'c');
    await becomes(3);
  });

  test('a missing permission is named', async () => {
    await cluster.kubectl('delete', 'rolebinding', 'dns-ndots-autoscaler', '-n', 'kube-system');
    await printed(autoscaler!, /Forbidden.*configmaps/i, 10_000);
  });
});

interface AutoscalerDeployment {
  readonly spec: {
    readonly template: {
      readonly spec: {
        readonly containers: readonly [
          { readonly livenessProbe: { readonly httpGet: { path: string; port: number } } },
        ];
      };
    };
  };
}
