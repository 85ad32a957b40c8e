/**
 * The chart's life cycle in a kubeadm cluster, all under load. It is installed alongside CoreDNS with the commands from
 * the page. It is then upgraded to enable every part and to use a different image, and finally removed.
 */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { NodeCluster, type PodState } from './node-cluster.ts';
import { NDOTS_IMAGES } from './node-images.ts';
import { noNode } from './node-programs.ts';
import { say, until } from './progress.ts';
import { assertNoneLost, pause, streamWhile } from './stream.ts';

const deploy = (name: string): string => resolve(import.meta.dirname, '../../deploy', name);

/** The shell commands in a section of deploy/README.md. */
function commandsBelow(heading: string): readonly string[] {
  const page = readFileSync(deploy('README.md'), 'utf8');
  const [, section = ''] = page.split(`\n### ${heading}\n`);
  const [own = ''] = section.split(/\n##+ /);
  return [...own.matchAll(/^```sh\n([^]*?)^```$/gm)].map(([, text = '']) => text);
}

/** Enables every part at once. */
const values = {
  seccompDirectory: 'ndots',
  toolsImage: { tag: NDOTS_IMAGES[0].split(':')[1] },
  webhook: { enabled: true },
  check: { enabled: true, service: 'kube-system/kube-dns' },
  autoscaler: { enabled: true },
  kuberhealthy: { enabled: true },
  nodeCache: { enabled: true, clusterDns: '10.96.0.10' },
};
/** Their workloads. */
const parts = [
  'deployment/dns-ndots',
  'deployment/dns-ndots-autoscaler',
  'deployment/dns-ndots-check',
  'deployment/dns-ndots-kuberhealthy',
  'deployment/dns-ndots-webhook',
  'daemonset/dns-ndots-node-cache',
];
/** Workloads must stay ready for this long, which is enough for a wrong probe to fail a few times. */
const STAYS_MS = 12_000;
/** A node cache that is being replaced closes connections on which a client is about to send. */
const forgiven = { TCP: 2 };

describe('the chart instead of CoreDNS', { skip: noNode() ?? false }, () => {
  const [there = '', back = '', withoutCache = ''] = commandsBelow("Beside kubeadm's CoreDNS");
  let node: NodeCluster;
  let untouched: ReadonlySet<string>;
  before(async () => {
    node = await NodeCluster.start();
    await node.putSeccompProfiles();
    await node.kubectl('apply', '--server-side', '-f', deploy('check/crds.yaml'));
    writeFileSync(join(node.space.directory, 'parts.yaml'), JSON.stringify(values));
    untouched = await objects();
  });
  after(() => node?.[Symbol.asyncDispose]());

  /** `KIND NAMESPACE NAME` of all objects, except those that other components create and delete all the time. */
  async function objects(): Promise<ReadonlySet<string>> {
    const listed = await node.kubectl('api-resources', '--verbs=list', '-o', 'name');
    const kinds = listed
      .trim()
      .split('\n')
      .filter(
        (kind) => !/^(?:events|endpointslices|endpoints|pods|replicasets)(?:\.|$)/.test(kind),
      );
    const columns = 'custom-columns=K:.kind,S:.metadata.namespace,N:.metadata.name';
    const found = await node.kubectl(
      ...['get', kinds.join(','), '-A', '--no-headers', '--ignore-not-found', '-o', columns],
    );
    return new Set(
      found
        .trim()
        .split('\n')
        .map((line) => line.trim().replaceAll(/\s+/g, ' ')),
    );
  }

  /** Everything that the node cache may leave on the node. */
  const traces = (): Promise<string> =>
    node.space.must(['sh', '-ec', 'ip -br address; iptables-save']);

  async function podsOf(part: string): Promise<readonly PodState[]> {
    const text = await node.kubectl('-n', 'kube-system', 'get', part, '-o', 'json');
    const { spec } = JSON.parse(text) as {
      spec: { selector: { matchLabels: Readonly<Record<string, string>> } };
    };
    const labels = Object.entries(spec.selector.matchLabels).map((pair) => pair.join('='));
    return node.pods('kube-system', labels.join(','));
  }

  test('the commands of the page install it beside CoreDNS without a gap', async (t) => {
    assert.match(there, /helm install[^]*patch service kube-dns[^]*scale deployment coredns/);
    const report = await streamWhile(node, 'chart installed', () => node.script(there));
    assert.equal(report.refused, 0);
    const pods = await podsOf('deployment/dns-ndots');
    const own = pods.map(({ status }) => status.podIP ?? '');
    const endpoints = await node.kubectl(
      ...['-n', 'kube-system', 'get', 'endpointslices'],
      ...['-l', 'kubernetes.io/service-name=kube-dns'],
      ...['-o', 'jsonpath={.items[*].endpoints[*].addresses[*]}'],
    );
    assert.deepEqual(new Set(endpoints.split(' ')), new Set(own));
    assertNoneLost(t, report);
  });

  test('an upgrade adds every part; each becomes ready and stays so', async (t) => {
    const words = `--namespace kube-system --reuse-values -f ${join(node.space.directory, 'parts.yaml')}`;
    const report = await streamWhile(node, 'every part added', () =>
      node.script(`helm upgrade dns deploy/helm/ndots ${words} --wait --timeout 4m`),
    );
    await pause(STAYS_MS);
    for (const part of parts) {
      await node.rolledOut('kube-system', part);
      const pods = await podsOf(part);
      assert.ok(pods.length > 0, `${part} has no pod`);
      for (const { metadata, status } of pods)
        for (const { name, ready, restartCount, state } of status.containerStatuses ?? [])
          assert.deepEqual(
            { pod: metadata.name, name, ready, restartCount },
            { pod: metadata.name, name, ready: true, restartCount: 0 },
            JSON.stringify(state),
          );
      say(`${part}: ${pods.length} ready`);
    }
    assert.match(await traces(), /10\.96\.0\.10/);
    assertNoneLost(t, report, forgiven);
  });

  test('an upgrade to another image loses no UDP query', async (t) => {
    const [, tag] = NDOTS_IMAGES[1].split(':');
    const report = await streamWhile(node, 'chart upgraded', () =>
      node.script(
        `helm upgrade dns deploy/helm/ndots --namespace kube-system --reuse-values --set image.tag=${tag} --wait`,
      ),
    );
    const path = 'jsonpath={.spec.template.spec.containers[0].image}';
    const words = ['-n', 'kube-system', 'get', 'deployment/dns-ndots', '-o', path];
    assert.equal(await node.kubectl(...words), NDOTS_IMAGES[1]);
    assertNoneLost(t, report, forgiven);
  });

  test('the commands of the page lead back to CoreDNS without a gap, and only the lease of the checks is left', async (t) => {
    assert.match(back, /scale deployment coredns[^]*patch service kube-dns[^]*helm uninstall/);
    assert.match(withoutCache, /nodeCache\.enabled=false/);
    const report = await streamWhile(node, 'chart removed', () =>
      node.script(`${withoutCache}\n${back}`),
    );
    await until(
      'the objects of the chart to be gone',
      async () => {
        const left = [...(await objects())].filter(
          (each) => !untouched.has(each) && each !== 'Lease kube-system kuberhealthy-controller',
        );
        return left.length === 0 ? null : left.join(', ');
      },
      60_000,
    );
    const present = await objects();
    assert.deepEqual(
      [...untouched].filter((each) => !present.has(each)),
      [],
    );
    assert.doesNotMatch(await traces(), /nodelocaldns|169\.254\.20\.10/i);
    assertNoneLost(t, report, forgiven);
  });
});
