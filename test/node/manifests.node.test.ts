/** All manifest directories and all parts of the chart, started as containerd would start them. */
import assert from 'node:assert/strict';
import { resolve } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { parseAllDocuments } from 'yaml';
import { helmTemplate } from '../kit/helm.ts';
import { NodeCluster } from './node-cluster.ts';
import { noNode } from './node-programs.ts';
import { say } from './progress.ts';
import { pause } from './stream.ts';

const deploy = (name: string): string => resolve(import.meta.dirname, '../../deploy', name);

/** Workloads must stay ready for this long, which is enough for a wrong probe to fail a few times. */
const STAYS_MS = 12_000;

interface Workload {
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string };
  readonly spec: { readonly selector: { readonly matchLabels: Readonly<Record<string, string>> } };
}

/** Deployments and DaemonSets in a YAML stream. */
const workloadsIn = (yaml: string): readonly Workload[] =>
  parseAllDocuments(yaml)
    .map((document) => document.toJS() as Workload | null)
    .filter((object) => object?.kind === 'Deployment' || object?.kind === 'DaemonSet')
    .map((object) => object!);

describe('everything in deploy/ starts on a real node', { skip: noNode() ?? false }, () => {
  let node: NodeCluster;
  before(async () => {
    node = await NodeCluster.start();
  });
  after(() => node?.[Symbol.asyncDispose]());

  /** Applies objects and checks the pods of all workloads among them. */
  async function starts(name: string, yaml: string): Promise<void> {
    const workloads = workloadsIn(yaml);
    assert.ok(workloads.length > 0, `${name} has no workload`);
    await node.kubectlWith(yaml, 'apply', '--server-side', '--force-conflicts', '-f', '-');
    for (const { kind, metadata } of workloads)
      await node.rolledOut(
        metadata.namespace ?? 'default',
        `${kind.toLowerCase()}/${metadata.name}`,
        120_000,
      );
    await pause(STAYS_MS);
    for (const { metadata, spec } of workloads) {
      const labels = Object.entries(spec.selector.matchLabels).map((pair) => pair.join('='));
      const pods = await node.pods(metadata.namespace ?? 'default', labels.join(','));
      assert.ok(pods.length > 0, `${metadata.name} has no pod`);
      for (const pod of pods)
        for (const { ready, restartCount, state } of pod.status.containerStatuses ?? [])
          assert.deepEqual(
            { pod: pod.metadata.name, ready, restartCount },
            { pod: pod.metadata.name, ready: true, restartCount: 0 },
            JSON.stringify(state),
          );
    }
    say(
      `${name}: ${workloads.map(({ metadata }) => metadata.name).join(', ')} started and stay ready`,
    );
  }

  /** Does the same, then deletes them. */
  async function startsAndGoes(name: string, yaml: string): Promise<void> {
    try {
      await starts(name, yaml);
    } catch (error) {
      const events = await node.tryKubectl(
        ...['get', 'events', '-A', '--field-selector=type=Warning'],
        '--sort-by=.lastTimestamp',
      );
      throw new Error(`${String(error)}\n${events.out.split('\n').slice(-8).join('\n')}`, {
        cause: error,
      });
    } finally {
      await node.kubectlWith(yaml, 'delete', '--ignore-not-found', '--wait=false', '-f', '-');
    }
  }

  for (const directory of ['check', 'node-cache'])
    test(`deploy/${directory}`, async () => {
      await startsAndGoes(
        `deploy/${directory}`,
        await node.kubectl('kustomize', deploy(directory)),
      );
    });

  for (const directory of ['kubeadm', 'cluster-dns'])
    test(`deploy/${directory}, instead of kubeadm's addon`, async () => {
      await starts(`deploy/${directory}`, await node.kubectl('kustomize', deploy(directory)));
    });

  const image = { repository: 'ndots' };
  /** DNS pods alongside kubeadm's, which keep the Service. */
  const usual = { image, service: { create: false }, k8sAppLabelOverride: 'ndots-dns' };
  const parts: Readonly<Record<string, object>> = {
    DNS: {},
    'webhook that advises': { webhook: { enabled: true } },
    'webhook that enforces': { webhook: { enabled: true, mode: 'enforce', ndots: 2 } },
    check: { check: { enabled: true } },
    'check on every node, in its network': {
      check: { enabled: true, kind: 'DaemonSet', hostNetwork: true },
    },
    autoscaler: { autoscaler: { enabled: true } },
    kuberhealthy: { kuberhealthy: { enabled: true } },
    'node cache': { nodeCache: { enabled: true, clusterDns: '10.96.0.10' } },
    'the agent of each node': { watch: { enabled: true } },
    'all parts under the profiles of deploy/seccomp': {
      seccompDirectory: 'ndots',
      webhook: { enabled: true },
      check: { enabled: true },
      autoscaler: { enabled: true },
      kuberhealthy: { enabled: true },
      nodeCache: { enabled: true, clusterDns: '10.96.0.10' },
    },
  };
  for (const [part, values] of Object.entries(parts))
    test(`the chart: ${part}`, async () => {
      await node.putSeccompProfiles();
      await node.kubectl('apply', '--server-side', '-f', deploy('check/crds.yaml'));
      await startsAndGoes(`the chart: ${part}`, helmTemplate({ ...usual, ...values }));
    });
});
