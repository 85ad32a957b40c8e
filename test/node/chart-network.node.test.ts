/**
 * The chart's HorizontalPodAutoscaler and NetworkPolicy. The cluster has no metrics API. kube-router enforces the
 * policy, because the bridge plugin does not.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { goProgram } from '../kit/go-program.ts';
import { helmTemplate } from '../kit/helm.ts';
import { start, type Child } from '../kit/child.ts';
import { NodeCluster, type PodState } from './node-cluster.ts';
import { noNode } from './node-programs.ts';
import { say, until } from './progress.ts';

/** DNS pods next to kubeadm's, which keep the Service. */
const usual = {
  image: { repository: 'ndots' },
  service: { create: false },
  k8sAppLabelOverride: 'ndots-dns',
};
const NAMESPACE = 'kube-system';
const DEPLOYMENT = 'deployment/dns-ndots';
const PODS = 'k8s-app=ndots-dns';
/** The ports of the kubelet's probes, which come from the node and which a policy does not affect. */
const PROBE_PORTS = ['TCP 8080', 'TCP 8181'];
const METRICS_PORT = 9153;

describe("the chart's objects for the network and for scaling", { skip: noNode() ?? false }, () => {
  let node: NodeCluster;
  before(async () => {
    node = await NodeCluster.start();
  });
  after(() => node?.[Symbol.asyncDispose]());

  const get = async <T>(...words: readonly string[]): Promise<T> =>
    JSON.parse(await node.kubectl('-n', NAMESPACE, 'get', ...words, '-o', 'json')) as T;

  /** Applies the chart with these values. */
  async function install(values: object): Promise<void> {
    const yaml = helmTemplate({ ...usual, ...values });
    await node.kubectlWith(yaml, 'apply', '--server-side', '--force-conflicts', '-f', '-');
    await node.rolledOut(NAMESPACE, DEPLOYMENT);
  }

  test('the HPA scales the Deployment to its minimum, and reports only that metrics are missing', async () => {
    await install({ hpa: { enabled: true, minReplicas: 2, maxReplicas: 3 } });
    try {
      interface Hpa {
        readonly spec: {
          readonly scaleTargetRef: { readonly kind: string; readonly name: string };
        };
        readonly status: {
          readonly desiredReplicas: number;
          readonly conditions?: readonly {
            readonly type: string;
            readonly status: string;
            readonly reason: string;
          }[];
        };
      }
      let found: Hpa | null = null;
      await until('two replicas, and the conditions of the HPA', async () => {
        found = await get<Hpa>('hpa', 'dns-ndots');
        const pods = await node.pods(NAMESPACE, PODS);
        const conditions = found.status.conditions ?? [];
        const isActive = conditions.some(({ type }) => type === 'ScalingActive');
        return pods.length === 2 && isActive ? null : JSON.stringify(found.status);
      });
      await node.rolledOut(NAMESPACE, DEPLOYMENT);
      const { spec, status } = found as unknown as Hpa;
      const { kind, name } = spec.scaleTargetRef;
      assert.equal(`${kind.toLowerCase()}/${name}`, DEPLOYMENT);
      // It found its target, but not the metrics.
      const shown = status.conditions!.map((each) => `${each.type} ${each.status} ${each.reason}`);
      assert.ok(
        shown.some((each) => each.startsWith('AbleToScale True ')),
        shown.join('\n'),
      );
      assert.ok(shown.includes('ScalingActive False FailedGetResourceMetric'), shown.join('\n'));
      const { items } = await get<{
        items: readonly { readonly type: string; readonly message: string }[];
      }>('events', '--field-selector', 'involvedObject.kind=HorizontalPodAutoscaler');
      const warnings = items.filter(({ type }) => type === 'Warning');
      assert.ok(warnings.length > 0);
      for (const { message } of warnings) assert.match(message, /metrics API|metrics\.k8s\.io/);
    } finally {
      await node.kubectl('-n', NAMESPACE, 'delete', 'hpa', 'dns-ndots');
    }
  });

  interface Policy {
    readonly spec: {
      readonly podSelector: { readonly matchLabels: Readonly<Record<string, string>> };
      readonly ingress: readonly {
        readonly ports: readonly { readonly protocol: string; readonly port: number }[];
      }[];
    };
  }

  const namesOf = (pods: readonly PodState[]): readonly string[] =>
    pods.map(({ metadata }) => metadata.name).toSorted();

  /** `TCP 53`, … for the sockets that listen in a pod, other than on its loopback interface. */
  async function listening(pod: PodState): Promise<readonly string[]> {
    const pods = await node.pods(NAMESPACE, PODS);
    const at = pods.findIndex(({ metadata }) => metadata.name === pod.metadata.name);
    const { out } = await node.inPod(
      await node.pidOf(NAMESPACE, PODS, at),
      ['ss', '-Hlntu'],
      false,
    );
    const sockets = out
      .trim()
      .split('\n')
      .map((line) => line.trim().split(/\s+/))
      .map(([protocol = '', , , , address = '']) => [protocol, address] as const)
      .filter(([, address]) => !/^(?:127\.|\[::1\])/.test(address))
      .map(([protocol, address]) => `${protocol.toUpperCase()} ${address.split(':').at(-1)}`);
    return [...new Set(sockets)].toSorted();
  }

  test('the NetworkPolicy selects exactly the DNS pods among all parts, and names the ports that they listen on', async () => {
    await install({
      networkPolicy: { enabled: true },
      check: { enabled: true },
      autoscaler: { enabled: true, min: 1 },
      webhook: { enabled: true },
    });
    const { spec } = await get<Policy>('networkpolicy', 'dns-ndots');
    const selector = Object.entries(spec.podSelector.matchLabels).map((pair) => pair.join('='));
    const selected = await node.pods(NAMESPACE, selector.join(','));
    assert.deepEqual(namesOf(selected), namesOf(await node.pods(NAMESPACE, PODS)));
    assert.ok(selected.length > 0);
    const allowed = spec.ingress.flatMap(({ ports }) =>
      ports.map(({ protocol, port }) => `${protocol} ${port}`),
    );
    assert.deepEqual(
      [...allowed, ...PROBE_PORTS].toSorted(),
      await listening(selected[0]!),
      JSON.stringify(spec.ingress),
    );
  });

  describe('enforced by kube-router', () => {
    let router: Child;
    before(async () => {
      const program = goProgram(
        'kube-router',
        'github.com/cloudnativelabs/kube-router/v2/cmd/kube-router',
        'v2.1.0',
      );
      router = start(
        'kube-router',
        node.space.inside([
          ...[program, '--kubeconfig', '/etc/kubernetes/admin.conf', '--hostname-override=node1'],
          ...['--run-router=false', '--run-service-proxy=false', '--run-firewall=true'],
          ...['--service-cluster-ip-range=10.96.0.0/16', '--iptables-sync-period=5s'],
        ]),
      );
    });
    after(() => router?.stop());

    /** Runs a command in a pod of the namespace shop. */
    const inShop = async (app: string, ...words: readonly string[]): Promise<number | null> =>
      (await node.inPod(await node.pidOf('shop', `app=${app}`), words)).code;

    const dig = (address: string, ...words: readonly string[]): Promise<number | null> =>
      inShop(
        'client',
        'dig',
        '+time=1',
        '+tries=1',
        ...words,
        `@${address}`,
        'web.shop.svc.cluster.local',
      );
    const page = (
      app: string,
      address: string,
      port: number,
      path: string,
    ): Promise<number | null> =>
      inShop(app, 'curl', '-sf', '-m', '2', '-o', '/dev/null', `http://${address}:${port}${path}`);

    test('DNS is open to all pods, metrics to the listed ones, and probes to the node', async () => {
      await install({
        networkPolicy: {
          enabled: true,
          metricsFrom: [
            {
              namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'shop' } },
              podSelector: { matchLabels: { app: 'db' } },
            },
          ],
        },
      });
      const [pod] = await node.pods(NAMESPACE, PODS);
      const address = pod!.status.podIP!;
      // The DNS pod is reachable, so a refusal is the policy's.
      await until('the policy to be enforced', async () => {
        if (router.output().includes('Unsupported')) return router.output();
        const code = await page('client', address, METRICS_PORT, '/metrics');
        return code === 0 ? router.output().slice(-300) : null;
      });
      assert.equal(await dig(address), 0);
      assert.equal(await dig(address, '+tcp'), 0);
      assert.equal(await page('db', address, METRICS_PORT, '/metrics'), 0);
      assert.notEqual(await page('client', address, METRICS_PORT, '/metrics'), 0);
      assert.notEqual(await page('client', address, 8181, '/ready'), 0);
      const probe = ['curl', '-sf', '-m', '2', '-o', '/dev/null', `http://${address}:8181/ready`];
      await node.space.must(probe);
      await node.kubectl('-n', NAMESPACE, 'delete', 'networkpolicy', 'dns-ndots');
      await until('the policy to be gone', async () =>
        (await page('client', address, METRICS_PORT, '/metrics')) === 0 ? null : 'still refused',
      );
      say('kube-router: DNS open, metrics limited, probes from the node');
    });
  });
});
