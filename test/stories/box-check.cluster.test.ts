/**
 * "A trip down the DNS rabbit hole", end to end. A checker that must report to `kube-health.localhost` never does; the
 * fault is found, explained and fixed. Several parts are real: the API server, Kuberhealthy's own client built without
 * cgo, the cluster DNS with its Corefile, and the pod's network and files.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { parseAllDocuments } from 'yaml';
import type { KubeJson } from '../kit/apiserver/store.ts';
import { printed, start, type Child } from '../kit/child.ts';
import { Cluster } from '../kit/cluster/cluster.ts';
import { noApiServer } from '../kit/cluster/programs.ts';
import { ClusterPod, noCluster, PLACE } from '../kit/cluster-pod.ts';
import { noReporter, reporterProgram } from '../kit/kuberhealthy-client/client.ts';
import { freePorts } from '../kit/free-ports.ts';

const storyHost = 'kube-health.localhost';

interface State {
  readonly OK: boolean;
  readonly Errors: readonly string[];
}

interface MadePod {
  readonly metadata: { readonly name: string };
  readonly spec: {
    readonly containers: readonly {
      readonly env: readonly { readonly name: string; readonly value?: string }[];
    }[];
  };
}

const deploymentCheck = {
  apiVersion: 'comcast.github.io/v1',
  kind: 'KuberhealthyCheck',
  metadata: { name: 'deployment-check', namespace: 'kube-health' },
  spec: {
    runInterval: '1h',
    timeout: '15s',
    podSpec: { containers: [{ name: 'checker', image: 'deployment-check' }] },
  },
} as unknown as KubeJson;

const skip = noCluster() || (noApiServer() ?? noReporter() ?? false);

describe('the check of the Box story', { skip }, () => {
  let cluster: Cluster;
  let network: ClusterPod;
  let child: Child | null = null;
  let port = 0;

  before(async () => {
    reporterProgram(2);
    [port] = await freePorts(1);
    cluster = await Cluster.start();
    const crds = parseAllDocuments(readFileSync('deploy/check/crds.yaml', 'utf8'));
    assert.deepEqual(await cluster.put(crds.map((each) => each.toJS() as KubeJson)), []);
    await cluster.kubectl('wait', '--for=condition=Established', 'crd', '--all', '--timeout=30s');
    await cluster.kubectl('create', 'namespace', 'kube-health');
    network = await ClusterPod.make();
    await network.serve('test/corefiles/story-box.corefile');
  });
  after(async () => {
    child?.signal('SIGKILL');
    await child?.exitCode;
    await network?.end();
    await cluster?.[Symbol.asyncDispose]();
  });

  async function serve(...words: readonly string[]): Promise<void> {
    child?.signal('SIGTERM');
    await child?.exitCode;
    child = start(
      'ndots',
      [
        ...['bin/ndots', 'check', 'serve', '--kuberhealthy', '--listen', `127.0.0.1:${port}`],
        ...['--reporting-url', `http://${storyHost}:${port}`],
        ...['--kubeconfig', cluster.kubeconfig('admin'), ...words],
      ],
      { env: { ...process.env, POD_NAMESPACE: 'kube-health', POD_NAME: 'kuberhealthy-1' } },
    );
    await printed(child, /in Kuberhealthy's place/, 30_000);
  }

  /** Recreates the check so that it runs immediately, and returns its pod's environment. */
  async function checkerEnvironment(): Promise<Record<string, string>> {
    await cluster.kubectl('delete', 'khchecks,khstates,pods', '--all', '-n', 'kube-health');
    await cluster.put([deploymentCheck]);
    for (let tries = 0; tries < 200; tries++) {
      const { items } = JSON.parse(
        await cluster.kubectl('get', 'pods', '-n', 'kube-health', '-o', 'json'),
      ) as { items: MadePod[] };
      const [pod] = items;
      if (pod === undefined) {
        await pause(100);
        continue;
      }
      const patch = [
        '--subresource=status',
        '--type=merge',
        '-p',
        '{"status":{"phase":"Running"}}',
      ];
      await cluster.kubectl('patch', 'pod', pod.metadata.name, '-n', 'kube-health', ...patch);
      return Object.fromEntries(
        pod.spec.containers[0]!.env.map(({ name, value }) => [name, value ?? 'kube-health']),
      );
    }
    throw new Error(`no pod\n${child?.output()}`);
  }

  async function stateUntil(wanted: (state: State) => boolean): Promise<State> {
    for (let tries = 0; tries < 300; tries++) {
      const { items } = JSON.parse(
        await cluster.kubectl('get', 'khstates', '-n', 'kube-health', '-o', 'json'),
      ) as { items: { spec: State }[] };
      const [found] = items;
      if (found !== undefined && wanted(found.spec)) return found.spec;
      await pause(150);
    }
    throw new Error(`the state did not come\n${child?.output()}`);
  }

  test('found and explained: the checker does not find the host, so the check never reports, and its state has the reason', async () => {
    await serve('--report-by', 'name');
    const env = await checkerEnvironment();
    const reporting = `http://${storyHost}:${port}/externalCheckStatus?token=`;
    assert.ok(String(env['KH_REPORTING_URL']).startsWith(reporting));
    // As seen from a pod in that cluster, with its DNS, search path and hosts.
    const resolvConf = network.file(
      'pod-resolv.conf',
      `nameserver ${PLACE.dns}\nsearch kube-health.svc.cluster.local svc.cluster.local cluster.local\noptions ndots:5\n`,
    );
    const hosts = network.file(
      'pod-hosts',
      '127.0.0.1 localhost\n172.17.0.7 kh-7fbbd69ffc-8tr6d\n',
    );
    const words = `mount --bind ${resolvConf} /etc/resolv.conf && mount --bind ${hosts} /etc/hosts && exec ${reporterProgram(2)}`;
    const checker = network.node.start('checker', ['unshare', '-m', 'sh', '-c', words], {
      PATH: process.env['PATH'],
      ...env,
    });
    const state = await stateUntil(({ OK }) => !OK);
    const [error = ''] = state.Errors;
    assert.match(
      error,
      /^Check execution error: kube-health\/deployment-check: timed out waiting for checker pod to report in: pod deployment-check-\w+ is Running; KH_REPORTING_URL is under localhost/,
    );
    assert.match(error, /Go without cgo .*: .*no such host.* after 8 queries/);
    assert.match(error, /glibc .*127\.0\.0\.1.* with nss-myhostname/);
    assert.match(error, new RegExp(`--report-by address .*: http://127\\.0\\.0\\.1:${port}$`));
    // The wording from 2020, printed by today's build of that client.
    assert.equal(await checker.exitCode, 1, checker.output());
    assert.match(
      checker.output(),
      /dial tcp: lookup kube-health\.localhost on 10\.96\.0\.10:53: no such host/,
    );
    const page = await fetch(`http://127.0.0.1:${port}/`).then((response) => response.json());
    assert.equal((page as { OK: boolean }).OK, false);
  });

  test('fixed: checkers get the address, and report without any DNS', async () => {
    await serve();
    const env = await checkerEnvironment();
    const reporting = `http://127.0.0.1:${port}/externalCheckStatus?token=`;
    assert.ok(String(env['KH_REPORTING_URL']).startsWith(reporting));
    const dead = network.file('dead-resolv.conf', 'nameserver 192.0.2.1\n');
    const words = `mount --bind ${dead} /etc/resolv.conf && exec ${reporterProgram(2)}`;
    const checker = start('checker', ['unshare', '-m', 'sh', '-c', words], {
      env: { PATH: process.env['PATH'], ...env },
    });
    assert.equal(await checker.exitCode, 0, checker.output());
    await stateUntil(({ OK }) => OK);
    assert.match(
      child!.output(),
      /checkers report to http:\/\/127\.0\.0\.1:\d+, which is kube-health\.localhost:\d+, so they do not need DNS/,
    );
  });
});
