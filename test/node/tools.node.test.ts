/** Compares the output of commands that examine a cluster with tcpdump, the pods and the kernel. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import type { NamesView } from '../../src/tools/watch/view.ts';
import { printed } from '../kit/child.ts';
import { DNS_DEPLOYMENT, DNS_PODS, QUICK_PROBE, restart, setImage } from './cluster-dns.ts';
import { NodeCluster } from './node-cluster.ts';
import { NDOTS_IMAGES, TOOLS_IMAGE } from './node-images.ts';
import { noNode } from './node-programs.ts';
import { NODE_SEARCH, UPSTREAM_ADDRESS } from './node-settings.ts';
import { until } from './progress.ts';

/** A name with fewer dots than ndots, so that every search domain is tried. */
const EXTERNAL = 'www.example.com';
/** The discard port, where the packet that ends a capture is sent. */
const END_PORT = 9;

describe('command output on a real cluster', { skip: noNode() ?? false }, () => {
  let node: NodeCluster;
  before(async () => {
    node = await NodeCluster.start();
  });
  after(() => node?.[Symbol.asyncDispose]());

  const file = (name: string): string => join(node.space.directory, name);

  async function asJson<T>(...words: readonly string[]): Promise<T> {
    const { out, err } = await node.ndots([...words, '-o', 'json']);
    try {
      return JSON.parse(out) as T;
    } catch (error) {
      throw new Error(`ndots ${words.join(' ')}: ${out.slice(0, 500)}${err}`, { cause: error });
    }
  }

  /**
   * Captures a pod's queries with tcpdump during an event.
   * @returns the `NAME TYPE` of each query, in order
   */
  async function onTheWire(
    pid: number,
    happens: () => Promise<unknown>,
  ): Promise<readonly string[]> {
    const capture = node.startInPod('tcpdump', pid, [
      // Switching to another user would clear the parent death signal.
      ...['tcpdump', '-Z', 'root', '-n', '-U', '-i', 'eth0', '-w', file('wire.pcap')],
      ...['udp', 'port', '53', 'or', 'udp', 'port', String(END_PORT)],
    ]);
    await printed(capture, /listening on/);
    await happens();
    // Packets are written in order. Once the last one is in the file, so are all queries before it.
    const last = `echo > /dev/udp/${UPSTREAM_ADDRESS}/${END_PORT}`;
    await node.inPod(pid, ['bash', '-c', last], false);
    await until('the last packet in the capture', async () => {
      const { out, err } = await node.space.run(['tcpdump', '-n', '-r', file('wire.pcap')]);
      return out.includes(`.${END_PORT}: UDP`) ? null : err;
    });
    await capture.stop();
    const text = await node.space.must(['tcpdump', '-n', '-r', file('wire.pcap')]);
    return (
      text
        .split('\n')
        .map((line) => / (A|AAAA)\? (\S+) /.exec(line))
        .filter((found) => found !== null)
        .map(([, type, name]) => `${name} ${type}`)
        // tcpdump prints a query's question only.
        .toSorted()
    );
  }

  /** The packet sockets in a pod's network. */
  async function packetSockets(pid: number): Promise<number> {
    const { out } = await node.inPod(pid, ['cat', '/proc/net/packet'], false);
    return out.trim().split('\n').length - 1;
  }

  /**
   * Runs ndots in a pod's network, and starts the event once ndots has opened a packet socket there.
   * @returns its output
   */
  async function reading(
    pid: number,
    words: readonly string[],
    happens: () => Promise<unknown>,
  ): Promise<string> {
    const before = await packetSockets(pid);
    const running = node.ndots([...words, '--pid', String(pid)]);
    let ended = false;
    void running.finally(() => (ended = true));
    await until('ndots to read packets', async () =>
      ended || (await packetSockets(pid)) > before ? null : `${before} packet sockets`,
    );
    await happens();
    const { code, out, err } = await running;
    assert.equal(code, 0, err);
    return out;
  }

  const lookUp = (pid: number): Promise<unknown> =>
    node.inPod(pid, ['/usr/local/bin/lookup-glibc', EXTERNAL, '0', '1']);

  interface Trace {
    readonly conf: { readonly search: readonly string[]; readonly servers: readonly string[] };
    readonly queries: readonly { readonly name: string; readonly type: string }[];
  }
  const queriesOf = ({ queries }: Trace): readonly string[] =>
    queries.map(({ name, type }) => `${name} ${type}`).toSorted();

  test('trace --from plans the queries that the pod sends', async () => {
    const client = await node.pidOf('shop', 'app=client');
    const wire = await onTheWire(client, () => lookUp(client));
    assert.equal(wire.length, 12, wire.join('\n'));
    const conf = await node.inPod(client, ['cat', '/etc/resolv.conf']);
    for (const domain of NODE_SEARCH) assert.match(conf.out, new RegExp(`\\b${domain}\\b`));
    const where = [EXTERNAL, '--from', 'deploy/client', '-n', 'shop'];
    const live = await asJson<Trace>('trace', ...where);
    assert.deepEqual(queriesOf(live), wire);
    assert.match(conf.out, new RegExp(`^nameserver ${live.conf.servers.join(' ')}$`, 'm'));
    const planned = await asJson<Trace>(
      ...['trace', ...where, '--node-resolv-conf', '/etc/resolv.conf', '--plan'],
    );
    assert.deepEqual(queriesOf(planned), wire);
  });

  test('kubectl ndots exec traces the queries of the pod', async () => {
    const client = await node.pidOf('shop', 'app=client');
    let traced: Trace | null = null;
    const wire = await onTheWire(client, async () => {
      const { out, err, code } = await node.kubectlNdots(
        ...['exec', 'deploy/client', '-n', 'shop', '--image', TOOLS_IMAGE],
        ...['--', 'trace', EXTERNAL, '-o', 'json'],
      );
      assert.equal(code, 0, err);
      traced = JSON.parse(out) as Trace;
    });
    assert.deepEqual(queriesOf(traced!), wire);
  });

  test('capture --pid captures the queries that tcpdump does, and names the pods', async () => {
    const client = await node.pidOf('shop', 'app=client');
    let seen: readonly string[] = [];
    const wire = await onTheWire(client, async () => {
      const words = ['capture', '-i', 'any', '--cluster', '-q', '-o', 'json', '-c', '12'];
      const out = await reading(client, [...words, '--for', '60s'], () => lookUp(client));
      const rows = out
        .split('\n')
        .filter((line) => line.startsWith('{"kind":"Exchange"'))
        .map(
          (line) =>
            JSON.parse(line) as {
              readonly client: { readonly pod?: string; readonly name?: string };
              readonly question: { readonly name: string; readonly type: string };
            },
        );
      seen = rows.map(({ question }) => `${question.name} ${question.type}`).toSorted();
      assert.match(JSON.stringify(rows[0]!.client), /client-/);
    });
    assert.deepEqual(seen, wire);
  });

  test('top --once counts the lookups and queries that tcpdump does', async () => {
    const client = await node.pidOf('shop', 'app=client');
    let shown = '';
    const wire = await onTheWire(client, async () => {
      const words = ['top', '-i', 'any', '--once', '--for', '20s', '--view', 'names', '-o', 'json'];
      shown = await reading(client, words, async () => {
        for (let i = 0; i < 3; i++) await lookUp(client);
      });
    });
    const { rows: names } = JSON.parse(shown) as Pick<NamesView, 'rows'>;
    const rows = names.map(({ name, lookups, queries }) => ({ name, lookups, queries }));
    assert.deepEqual(rows, [{ name: EXTERNAL, lookups: 3, queries: wire.length }]);
  });

  test('plan --cluster counts the queries of a lookup as the pod sends them', async () => {
    const client = await node.pidOf('shop', 'app=client');
    const wire = await onTheWire(client, () => lookUp(client));
    const plans = await asJson<
      readonly {
        readonly workload: { readonly namespace: string; readonly name: string };
        readonly plans: readonly {
          readonly client: string;
          readonly choices: readonly { readonly ndots: number; readonly queries: number }[];
        }[];
      }[]
    >('plan', file('wire.pcap'), '--cluster', '-c', 'glibc');
    const [plan] = plans;
    assert.match(plan!.workload.name, /client/);
    const queries = (ndots: number): number | undefined =>
      plan!.plans[0]!.choices.find((choice) => choice.ndots === ndots)?.queries;
    assert.equal(queries(5), wire.length);
    assert.equal(queries(2), 2);
  });

  interface Examined {
    readonly findings: readonly { readonly code: string; readonly seen: readonly string[] }[];
  }

  test("doctor cluster and lint --cluster find kubeadm's slow probe, and not when it is repaired", async () => {
    await setImage(node, NDOTS_IMAGES[0]);
    const before = await asJson<Examined>('doctor', 'cluster', '-q');
    assert.ok(
      before.findings.some(({ code }) => code === 'ND1004'),
      JSON.stringify(before.findings),
    );
    const linted = await asJson<Examined>('lint', '--cluster');
    assert.ok(
      linted.findings.some(({ code }) => code === 'CF59'),
      JSON.stringify(linted),
    );
    await node.kubectl('-n', 'kube-system', 'patch', DNS_DEPLOYMENT, '-p', QUICK_PROBE);
    await node.rolledOut('kube-system', DNS_DEPLOYMENT);
    assert.deepEqual((await asJson<Examined>('lint', '--cluster')).findings, []);
    const behind = await asJson<Examined>('doctor', 'cluster', '-q');
    assert.ok(
      !behind.findings.some(({ code }) => code === 'ND1004'),
      JSON.stringify(behind.findings),
    );
  });

  test('doctor cluster names the right that a DNS pod lacks', async () => {
    const binding = await node.kubectl(
      ...['get', 'clusterrolebinding', 'system:coredns', '-o', 'json'],
    );
    await node.kubectl('delete', 'clusterrolebinding', 'system:coredns');
    try {
      const [pod] = await node.pods('kube-system', DNS_PODS);
      await node.kubectl('-n', 'kube-system', 'delete', 'pod', pod!.metadata.name);
      await until('a DNS pod that runs and is not ready', async () => {
        const pods = await node.pods('kube-system', DNS_PODS);
        const unready = pods.some(({ status }) =>
          status.containerStatuses?.some(({ ready, state }) => !ready && state['running']),
        );
        return unready ? null : 'all are ready';
      });
      const { out, err } = await node.ndots(['doctor', 'cluster', '-q']);
      assert.match(out, /ClusterRole|RBAC|right/i, out + err);
    } finally {
      const made = JSON.parse(binding) as { metadata: Record<string, unknown> };
      for (const key of ['uid', 'resourceVersion', 'creationTimestamp']) delete made.metadata[key];
      await node.kubectlWith(JSON.stringify(made), 'apply', '-f', '-');
    }
    await node.rolledOut('kube-system', DNS_DEPLOYMENT);
  });

  test("cache explain and flush through the API server report the content of the pods' caches", async () => {
    const token = 'a-token-of-the-test';
    const namespace = ['-n', 'kube-system'];
    await node.kubectl(
      ...[
        ...namespace,
        'create',
        'secret',
        'generic',
        'dns-admin',
        `--from-literal=token=${token}`,
      ],
    );
    const config = JSON.parse(
      await node.kubectl(...namespace, 'get', 'configmap', 'coredns', '-o', 'json'),
    ) as { data: { Corefile: string } };
    const admin = '.:53 {\n    admin :9154 {\n        token_file /etc/dns-admin/token\n    }';
    const Corefile = config.data.Corefile.replace('.:53 {', admin);
    await node.kubectl(
      ...[
        ...namespace,
        'patch',
        'configmap',
        'coredns',
        '-p',
        JSON.stringify({ data: { Corefile } }),
      ],
    );
    const volume = { name: 'dns-admin', secret: { secretName: 'dns-admin' } };
    const mount = { name: 'dns-admin', mountPath: '/etc/dns-admin', readOnly: true };
    const spec = { volumes: [volume], containers: [{ name: 'coredns', volumeMounts: [mount] }] };
    const patch = JSON.stringify({ spec: { replicas: 1, template: { spec } } });
    await node.kubectl(...namespace, 'patch', DNS_DEPLOYMENT, '-p', patch);
    await restart(node);
    await node.space.must(['sh', '-c', 'printf %s "$1" > /run/token', 'sh', token]);
    const words = ['--cluster', '--token-file', '/run/token'];
    const client = await node.pidOf('shop', 'app=client');
    await until('the name to be cached', async () => {
      await lookUp(client);
      const { code, out, err } = await node.ndots(['cache', 'explain', EXTERNAL, ...words]);
      return code === 0 && /NOERROR/.test(out) ? null : out + err;
    });
    const flushed = await node.ndots(['cache', 'flush', EXTERNAL, ...words]);
    assert.equal(flushed.code, 0, flushed.err);
    const { code } = await node.ndots(['cache', 'explain', EXTERNAL, ...words]);
    assert.equal(code, 1);
  });
});
