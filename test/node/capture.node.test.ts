/**
 * The processes reported by captures on a node. Captures are made by the DaemonSet in deploy/capture, with its
 * capabilities and seccomp profile, and by `ndots node`. Each reported name is compared with the program that the test
 * started.
 */
import assert from 'node:assert/strict';
import { getPriority } from 'node:os';
import { after, before, describe, test } from 'node:test';
import type { Asker } from '../../src/tools/capture/pair/asker.ts';
import type { ExchangeDocument } from '../../src/faces/cli/capture/capture-rows.ts';
import { start } from '../kit/child.ts';
import {
  CAPTURE_DAEMON_SET as DAEMON_SET,
  CAPTURE_MANIFESTS,
  CAPTURE_NAMESPACE as NAMESPACE,
  CAPTURE_SELECTOR as SELECTOR,
  captureLog,
  captureStarted,
  capturePod,
  containersOf,
  exchangesOf,
  whileChanged,
} from './capture-daemon-set.ts';
import { DNS_PODS } from './cluster-dns.ts';
import { NodeCluster } from './node-cluster.ts';
import { TOOLS_IMAGE } from './node-images.ts';
import { noNode } from './node-programs.ts';
import { say, until } from './progress.ts';

/** Must match src/faces/cli/capture/capture-process.ts. */
const SEARCH_NICE = -10;

describe('the process behind a query, on a real node', { skip: noNode() ?? false }, () => {
  let node: NodeCluster;
  before(async () => {
    node = await NodeCluster.start();
    await node.putSeccompProfiles();
    const yaml = await node.kubectl('kustomize', CAPTURE_MANIFESTS);
    assert.match(yaml, /--bpf/);
    // The kernel reports process IDs in the machine's namespace, while this node has its own.
    await node.kubectlWith(yaml.replace(/^ *- --bpf\n/m, ''), 'apply', '-f', '-');
    await node.rolledOut(NAMESPACE, DAEMON_SET);
    await captureStarted(node, lookUp);
  });
  after(() => node?.[Symbol.asyncDispose]());

  const inClient = (...words: readonly string[]): Promise<unknown> =>
    node.tryKubectl('-n', 'shop', 'exec', 'deploy/client', '--', ...words);

  let looked = 0;
  /**
   * Looks up a new name in the client pod.
   * @returns the unique part of the name
   */
  async function lookUp(): Promise<string> {
    const label = `seen-${looked++}`;
    await inClient('/usr/local/bin/lookup-glibc', `${label}.example.com`, '0', '1');
    return label;
  }

  /**
   * Asserts that all processes in the exchanges were started by the test.
   * @returns the number of those with a command line
   */
  async function assertTrue(exchanges: readonly ExchangeDocument[]): Promise<number> {
    const [client] = await containersOf(node, 'shop', 'app=client');
    const servers = await containersOf(node, 'kube-system', DNS_PODS);
    const asked = exchanges.filter(({ asker }) => (asker?.container ?? null) !== null);
    for (const { asker, answerer, client: from } of asked) {
      // CoreDNS queries the upstream for the same name.
      if (servers.includes(asker!.container!.id)) continue;
      assert.equal(asker!.container!.id, client, JSON.stringify(from));
      for (const { command, commandLine } of asker!.processes) {
        assert.equal(command, 'lookup-glibc');
        // A process that is exiting still has its socket open but no longer has a command line.
        assert.match(commandLine, /^$|seen-\d+\.example\.com/);
      }
      if (answerer?.container) assert.ok(servers.includes(answerer.container.id));
    }
    return asked.filter(
      ({ asker }) =>
        asker!.container!.id === client &&
        asker!.processes.some(({ commandLine }) => commandLine !== ''),
    ).length;
  }

  const logs = (): Promise<string> => captureLog(node);

  test('deploy/capture starts with its capabilities and its profile, and names the process of lookups', async () => {
    let all = 0;
    let named = 0;
    await until('lookups whose process was found', async () => {
      const label = await lookUp();
      let exchanges: readonly ExchangeDocument[] = [];
      await until(`${label} in the log`, async () => {
        exchanges = exchangesOf(`${label}.`, await logs());
        return exchanges.length > 0 ? null : 'not yet';
      });
      all += exchanges.length;
      named += await assertTrue(exchanges);
      return named >= 10 ? null : `${named} of ${all} queries`;
    });
    say(`deploy/capture named the process of ${named} of ${all} queries`);
    const servers = await containersOf(node, 'kube-system', DNS_PODS);
    const answered = (await ofClient()).flatMap(({ answerer }) => answerer ?? []);
    assert.ok(answered.length > 0);
    for (const { container, processes } of answered) {
      assert.ok(servers.includes(container!.id), JSON.stringify(container));
      assert.equal(processes[0]!.command, 'coredns');
    }
    const [status] = (await capturePod(node)).status.containerStatuses!;
    assert.deepEqual([status!.ready, status!.restartCount], [true, 0], JSON.stringify(status));
    assert.equal(await niceOfCapture(), SEARCH_NICE);
  });

  /** The nice value of the capture's main thread, which searches for sockets. */
  async function niceOfCapture(): Promise<number> {
    const pid = await node.pidOf(NAMESPACE, SELECTOR);
    return Number(await node.space.must(['ps', '-o', 'ni=', '-p', String(pid)]));
  }

  /**
   * Maps each capability to a check that losing it has the effect described in deploy/README.md. A check returns null
   * if it does.
   */
  const losses: Readonly<Record<string, () => Promise<string | null>>> = {
    NET_RAW: () => ended(/cannot capture packets: permission denied/),
    SYS_ADMIN: () => ended(/cannot enter network namespaces: permission denied/),
    SYS_PTRACE: () => missing(({ container, why }) => container === null && why === 'refused'),
    DAC_READ_SEARCH: async () => {
      await lookUp();
      // CoreDNS does not run as root, but the client does.
      const servers = (await ofClient()).flatMap(({ answerer }) => answerer ?? []);
      assert.ok(
        servers.every(({ processes }) => processes.length === 0),
        JSON.stringify(servers),
      );
      return servers.some(({ why }) => why === 'refused') ? null : JSON.stringify(servers);
    },
    NET_ADMIN: async () => {
      const shown = await flowWith(/connects to 10\.96\.0\.1:443/);
      return /connects to [\d.:]+ ⇒/.test(shown) ? shown : null;
    },
    SYS_NICE: async () => {
      const nice = await niceOfCapture();
      // It has the nice value of the node, which is that of this test.
      return nice === getPriority() ? null : `nice ${nice}`;
    },
  };

  /** Checks that the capture has exited with a message. */
  async function ended(message: RegExp): Promise<string | null> {
    const [status] = (await capturePod(node)).status.containerStatuses ?? [];
    if (status?.ready !== false) return JSON.stringify(status);
    const text = await logs();
    return message.test(text) ? null : text;
  }

  /** The queries of the client pod in the log, without those that the DNS pods sent for them. */
  async function ofClient(): Promise<readonly ExchangeDocument[]> {
    const { podIP } = (await node.pods('shop', 'app=client'))[0]!.status;
    return exchangesOf('seen', await logs()).filter(({ client }) => client.address === podIP);
  }

  /** Looks up a name in the client pod and checks how the queries so far are described. */
  async function missing(is: (asker: Asker) => boolean): Promise<string | null> {
    await lookUp();
    const askers = (await ofClient()).map(({ asker }) => asker!);
    assert.ok(
      askers.every(({ processes }) => processes.length === 0),
      JSON.stringify(askers),
    );
    return askers.some(is) ? null : `${askers.length} queries: ${JSON.stringify(askers[0])}`;
  }

  /**
   * The output of a capture in the DaemonSet's pod, up to a pattern. In the meantime, curl looks up the API server and
   * sends it requests.
   */
  async function flowWith(pattern: RegExp): Promise<string> {
    const pod = (await capturePod(node)).metadata.name;
    const capture = start(
      'capture -o flow',
      node.space.inside(
        node.kubectlWords(
          ...['-n', NAMESPACE, 'exec', pod, '--'],
          ...['ndots', 'capture', '-i', 'any', '--process', '-o', 'flow', '--for', '120s'],
        ),
      ),
    );
    try {
      await until(
        `${String(pattern)} in the output of the capture`,
        async () => {
          await inClient('curl', '-sk', '-m', '5', 'https://kubernetes.default.svc/version');
          return pattern.test(capture.output()) ? null : capture.output().slice(-1000);
        },
        110_000,
      );
      return capture.output();
    } finally {
      await capture.stop();
    }
  }

  test('-o flow shows the connection after a lookup, its translation, and the process that accepted it', async () => {
    await flowWith(
      /kubernetes\.default[^]*?asked +by \w{12}\/curl\[\d+\][^]*?connects to 10\.96\.0\.1:443 ⇒ 172\.30\.0\.1:6443 +accepted by \S*kube-apiserver\[\d+\]/,
    );
  });

  for (const [capability, loss] of Object.entries(losses))
    test(`deploy/capture needs ${capability}: without it, it loses what its page says`, async () => {
      const path = '/spec/template/spec/containers/0/securityContext/capabilities/add';
      const given = JSON.parse(
        await node.kubectl(
          ...['-n', NAMESPACE, 'get', DAEMON_SET, '-o'],
          'jsonpath={.spec.template.spec.containers[0].securityContext.capabilities.add}',
        ),
      ) as readonly string[];
      assert.deepEqual(given.toSorted(), Object.keys(losses).toSorted());
      const set = (value: readonly string[]): readonly object[] => [{ op: 'replace', path, value }];
      const patch = set(given.filter((each) => each !== capability));
      await whileChanged(node, { patch, undo: set(given) }, () =>
        until(`the loss of ${capability}`, loss),
      );
    });

  test('kubectl ndots node runs a capture on the node, and deletes its pod', async () => {
    const capturing = node.kubectlNdots(
      ...['node', 'node1', '--image', TOOLS_IMAGE, '--'],
      ...['capture', '-i', 'any', '--process', '-o', 'json', '-q', '--for', '30s'],
    );
    let ended = false;
    const labels: string[] = [];
    void capturing.finally(() => (ended = true));
    while (!ended) labels.push(await lookUp());
    const { code, out, err } = await capturing;
    assert.equal(code, 0, err);
    const named = await assertTrue(labels.flatMap((label) => exchangesOf(`${label}.`, out)));
    assert.ok(named > 0, out.slice(0, 2000) + err);
    say(`kubectl ndots node named the process of ${named} queries in ${labels.length} lookups`);
    assert.equal(await podsOfVerb(), '');
  });

  const podsOfVerb = (): Promise<string> =>
    node.kubectl('get', 'pods', '-A', '-l', 'app.kubernetes.io/name=ndots-node', '-o', 'name');

  test('Ctrl-C ends the verb on the node, prints its summary, and deletes the pod', async () => {
    const words = ['node', 'node1', '--image', TOOLS_IMAGE, '--limit', '1234s', '--'];
    const running = node.ndots([...words, 'capture', '-i', 'any', '--for', '10m']);
    await until('queries in its output', async () => {
      await lookUp();
      const found = await podsOfVerb();
      const seen = found === '' ? '' : await node.tryKubectl('logs', found.trim());
      return seen !== '' && /seen-\d+/.test(seen.out) ? null : found;
    });
    const [pid] = (await node.space.must(['pgrep', '-f', 'limit 1234s'])).split('\n');
    await node.space.must(['kill', '-INT', pid!]);
    const { code, out, err } = await running;
    assert.equal(code, 130, err);
    assert.match(out, /\d+ queries/);
    assert.equal(await podsOfVerb(), '');
  });

  test('ndots node reports a node that does not exist, and a namespace that forbids such pods', async () => {
    const gone = await node.ndots(['node', 'node9', '--', 'version']);
    assert.match(gone.err, /no node "node9"/);
    assert.equal(gone.code, 2);
    await node.kubectl('create', 'namespace', 'strict');
    const level = 'pod-security.kubernetes.io/enforce=baseline';
    await node.kubectl('label', 'namespace', 'strict', level);
    const strict = await node.ndots(['node', 'node1', '-n', 'strict', '--', 'version']);
    assert.match(strict.err, /PodSecurity[^]*pod-security\.kubernetes\.io\/enforce=privileged/);
    assert.equal(strict.code, 2);
    const jane = await node.ndots(['node', 'node1', '--as', 'jane', '--', 'version']);
    assert.match(jane.err, /create, get and delete on pods/);
    assert.equal(jane.code, 2);
  });
});
