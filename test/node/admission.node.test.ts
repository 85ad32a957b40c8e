/**
 * The parts that change pods at admission (the webhook and the policy) and the pods for Kuberhealthy's checks, tested
 * on a real node.
 */
import assert from 'node:assert/strict';
import { resolve } from 'node:path';
import { after, afterEach, before, describe, test } from 'node:test';
import { helmTemplate } from '../kit/helm.ts';
import { NodeCluster } from './node-cluster.ts';
import { CLIENT_IMAGE, TOOLS_IMAGE } from './node-images.ts';
import { noNode } from './node-programs.ts';
import { until } from './progress.ts';

const deploy = (name: string): string => resolve(import.meta.dirname, '../../deploy', name);

describe('pods changed or created by ndots', { skip: noNode() ?? false }, () => {
  let node: NodeCluster;
  before(async () => {
    node = await NodeCluster.start();
  });
  after(() => node?.[Symbol.asyncDispose]());

  const pod = (name: string, annotations: object): object => ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'shop', labels: { app: 'asked' }, annotations },
    spec: {
      terminationGracePeriodSeconds: 0,
      containers: [{ name: 'main', image: CLIENT_IMAGE, imagePullPolicy: 'IfNotPresent' }],
    },
  });

  /** The options line that the kubelet wrote for a pod with these annotations. */
  async function optionsOf(name: string, annotations: object): Promise<string> {
    await node.kubectlWith(JSON.stringify(pod(name, annotations)), 'apply', '-f', '-');
    await node.kubectl(
      '-n',
      'shop',
      'wait',
      '--for=condition=Ready',
      `pod/${name}`,
      '--timeout=90s',
    );
    const file = await node.kubectl('-n', 'shop', 'exec', name, '--', 'cat', '/etc/resolv.conf');
    return /^options (.*)$/m.exec(file)?.[1] ?? '';
  }

  afterEach(async () => {
    await node.kubectl(
      '-n',
      'shop',
      'delete',
      'pods',
      '-l',
      'app=asked',
      '--force',
      '--grace-period=0',
    );
  });

  async function answersAll(): Promise<void> {
    assert.equal(await optionsOf('plain', {}), 'ndots:2');
    assert.equal(await optionsOf('three', { 'ndots.dev/dns-ndots': '3' }), 'ndots:3');
    assert.equal(await optionsOf('off', { 'ndots.dev/dns': 'off' }), 'ndots:5');
    assert.equal(await optionsOf('wrong', { 'ndots.dev/dns-ndots': 'abc' }), 'ndots:5');
  }

  test('the policy: the kubelet writes the requested annotations', async () => {
    const { code, out, err } = await node.ndots(['webhook', 'policy', '--ndots', '2']);
    assert.equal(code, 0, err);
    await node.kubectlWith(out, 'apply', '-f', '-');
    try {
      // The API server takes a moment to apply a policy.
      await until('the policy to be in force', async () => {
        const { out: made } = await dryRun();
        return made === '2' ? null : made;
      });
      await answersAll();
    } finally {
      await node.kubectlWith(out, 'delete', '-f', '-');
    }
    await until('the policy to be gone', async () =>
      (await dryRun()).out === '' ? null : 'there',
    );
  });

  const dryRun = (): ReturnType<NodeCluster['space']['run']> =>
    node.tryKubectl(
      ...['-n', 'shop', 'run', 'tried', `--image=${CLIENT_IMAGE}`, '--dry-run=server'],
      ...['-o', 'jsonpath={.spec.dnsConfig.options[0].value}'],
    );

  test('the webhook of the chart: the same', async () => {
    const yaml = helmTemplate({
      image: { repository: 'ndots' },
      service: { create: false },
      k8sAppLabelOverride: 'ndots-dns',
      webhook: { enabled: true, mode: 'enforce', ndots: 2 },
    });
    await node.kubectlWith(yaml, 'apply', '--server-side', '-f', '-');
    try {
      await node.rolledOut('kube-system', 'deployment/dns-ndots-webhook');
      await until('the webhook to be in force', async () => {
        const { out, err } = await dryRun();
        return out === '2' ? null : out + err;
      });
      await answersAll();
      const words = ['-n', 'shop', 'apply', '--dry-run=server', '-f', '-'];
      const warned = await node.space.run(
        ['sh', '-c', 'exec "$@" 2>&1', 'sh', ...node.kubectlWords(...words)],
        { input: JSON.stringify(pod('warned', { 'ndots.dev/dns-ndots': 'abc' })) },
      );
      assert.match(warned.out, /Warning: ndots: .*"abc"/);
    } finally {
      await node.kubectlWith(yaml, 'delete', '--ignore-not-found', '-f', '-');
    }
  });

  /** A check's state, in the terms that both versions use. */
  interface CheckStatus {
    readonly ok?: boolean;
    readonly OK?: boolean;
    readonly errors?: readonly string[] | null;
    readonly Errors?: readonly string[] | null;
  }

  const kinds = [
    {
      ...{ apiVersion: 'kuberhealthy.github.io/v2', kind: 'HealthCheck', resource: 'healthcheck' },
      ...{ stateIn: ['healthcheck', '{.status}'], podSpec: (spec: object): object => ({ spec }) },
    },
    {
      ...{ apiVersion: 'comcast.github.io/v1', kind: 'KuberhealthyCheck', resource: 'khcheck' },
      ...{ stateIn: ['khstate', '{.spec}'], podSpec: (spec: object): object => spec },
    },
  ] as const;

  for (const { apiVersion, kind, resource, stateIn, podSpec } of kinds)
    test(`the pod of a ${kind} reports a name that does not exist, and its success once it does`, async () => {
      await node.kubectl('apply', '--server-side', '-k', deploy('check'));
      await node.rolledOut('kuberhealthy', 'deployment/kuberhealthy');
      const name = `dns-${resource}`;
      const spec = {
        restartPolicy: 'Never',
        containers: [
          {
            name: 'dns',
            image: TOOLS_IMAGE,
            imagePullPolicy: 'IfNotPresent',
            args: ['check', 'run'],
            env: [{ name: 'HOSTNAME', value: `${name}.shop` }],
          },
        ],
      };
      const check = {
        ...{ apiVersion, kind, metadata: { name, namespace: 'kuberhealthy' } },
        spec: { runInterval: '10s', timeout: '1m', podSpec: podSpec(spec) },
      };
      await node.kubectlWith(JSON.stringify(check), 'apply', '-f', '-');
      const [object = '', path = ''] = stateIn;
      const status = async (): Promise<CheckStatus> => {
        const words = ['get', object, name, '-o', `jsonpath=${path}`];
        const { out } = await node.tryKubectl('-n', 'kuberhealthy', ...words);
        return out === '' ? {} : (JSON.parse(out) as CheckStatus);
      };
      const reports = (wanted: boolean): Promise<void> =>
        until(`the check to report ${wanted ? 'success' : 'a failure'}`, async () => {
          const { ok, OK, errors, Errors } = await status();
          const given = (errors ?? Errors ?? []).join(', ');
          const isWanted = wanted ? given === '' : given.startsWith('DNS failed:');
          return (ok ?? OK) === wanted && isWanted ? null : JSON.stringify(await status());
        });
      await reports(false);
      await node.kubectl('-n', 'shop', 'create', 'service', 'clusterip', name, '--tcp=80');
      await reports(true);
      const service = '/api/v1/namespaces/kuberhealthy/services/kuberhealthy:80/proxy';
      const metrics = await node.kubectl('get', '--raw', `${service}/metrics`);
      const series = `^kuberhealthy_check\\{[^}]*check="(?:kuberhealthy/)?${name}"[^}]*\\} 1$`;
      assert.match(metrics, new RegExp(series, 'm'));
      await node.kubectl('-n', 'kuberhealthy', 'delete', resource, name);
      await until('the pods of the deleted check to be gone', async () => {
        const pods = await node.kubectl('-n', 'kuberhealthy', 'get', 'pods', '-o', 'name');
        return pods.includes(`/${name}`) ? pods : null;
      });
    });
});
