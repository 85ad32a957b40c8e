/**
 * The processes reported by captures on a node. Captures are made by the DaemonSet in deploy/capture, with its
 * capabilities and seccomp profile, and by `ndots node`. Each reported name is compared with the program that the test
 * started.
 */
import assert from 'node:assert/strict';
import { resolve } from 'node:path';
import { after, before, describe, test } from 'node:test';
import type { AskerDocument } from '../../src/faces/cli/capture/asker-rows.ts';
import type { ExchangeDocument } from '../../src/faces/cli/capture/capture-rows.ts';
import { start } from '../kit/child.ts';
import { DNS_PODS } from './cluster-dns.ts';
import { NodeCluster, type PodState } from './node-cluster.ts';
import { TOOLS_IMAGE } from './node-images.ts';
import { noNode } from './node-programs.ts';
import { say, until } from './progress.ts';

const manifests = resolve(import.meta.dirname, '../../deploy/capture');
const NAMESPACE = 'ndots-capture';
const DAEMON_SET = 'daemonset/ndots-capture';
const SELECTOR = 'app=ndots-capture';
/** Must match src/faces/cli/capture/capture-process.ts. */
const SEARCH_NICE = -10;

describe('the process behind a query, on a real node', { skip: noNode() ?? false }, () => {
  let node: NodeCluster;
  before(async () => {
    node = await NodeCluster.start();
    await node.putSeccompProfiles();
    const yaml = await node.kubectl('kustomize', manifests);
    assert.match(yaml, /--bpf/);
    // The kernel reports process IDs in the machine's namespace, while this node has its own.
    await node.kubectlWith(yaml.replace(/^ *- --bpf\n/m, ''), 'apply', '-f', '-');
    await node.rolledOut(NAMESPACE, DAEMON_SET);
  });
  after(() => node?.[Symbol.asyncDispose]());

  const inClient = (...words: readonly string[]): Promise<unknown> =>
    node.tryKubectl('-n', 'shop', 'exec', 'deploy/client', '--', ...words);

  const containersOf = async (namespace: string, selector: string): Promise<readonly string[]> =>
    (await node.pods(namespace, selector)).map(({ status }) =>
      status.containerStatuses![0]!.containerID!.replace('containerd://', ''),
    );

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

  /** The exchanges in a capture's output whose names start with this. */
  const exchangesOf = (label: string, output: string): readonly ExchangeDocument[] =>
    output
      .split('\n')
      .filter((line) => line.startsWith('{"kind":"Exchange"'))
      .map((line) => JSON.parse(line) as ExchangeDocument)
      .filter(({ question }) => question.name.startsWith(label));

  /**
   * Asserts that all processes in the exchanges were started by the test.
   * @returns the number of those with a command line
   */
  async function assertTrue(exchanges: readonly ExchangeDocument[]): Promise<number> {
    const [client] = await containersOf('shop', 'app=client');
    const servers = await containersOf('kube-system', DNS_PODS);
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

  /** The DaemonSet's pod. During a rollout, the set's name may also refer to the terminating pod. */
  async function capturePod(): Promise<PodState> {
    const [pod] = await node.pods(NAMESPACE, SELECTOR);
    assert.ok(pod !== undefined, 'the DaemonSet has no pod');
    return pod;
  }

  const logs = async (): Promise<string> =>
    node.kubectl('-n', NAMESPACE, 'logs', (await capturePod()).metadata.name, '--tail=-1');

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
    const [status] = (await capturePod()).status.containerStatuses!;
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
    NET_ADMIN: async () => {
      const shown = await flowWith(/connects to 10\.96\.0\.1:443/);
      return shown.includes('⇒') ? shown : null;
    },
    SYS_NICE: async () => {
      const nice = await niceOfCapture();
      return nice === 0 ? null : `nice ${nice}`;
    },
  };

  /** Checks that the capture has exited with a message. */
  async function ended(message: RegExp): Promise<string | null> {
    const [status] = (await capturePod()).status.containerStatuses ?? [];
    if (status?.ready !== false) return JSON.stringify(status);
    const text = await logs();
    return message.test(text) ? null : text;
  }

  /** Looks up a name in the client pod and checks how the queries so far are described. */
  async function missing(is: (asker: AskerDocument) => boolean): Promise<string | null> {
    await lookUp();
    const { podIP } = (await node.pods('shop', 'app=client'))[0]!.status;
    const own = exchangesOf('seen', await logs()).filter(({ client }) => client.address === podIP);
    const askers = own.map(({ asker }) => asker!);
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
    const pod = (await capturePod()).metadata.name;
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
      const give = (value: readonly string[]): Promise<string> =>
        node.kubectl(
          ...['-n', NAMESPACE, 'patch', DAEMON_SET, '--type=json', '-p'],
          JSON.stringify([{ op: 'replace', path, value }]),
        );
      const before = await capturePod();
      await give(given.filter((each) => each !== capability));
      try {
        await until('a pod without the capability to run', async () => {
          const [pod] = await node.pods(NAMESPACE, SELECTOR);
          const [status] = pod?.status.containerStatuses ?? [];
          const started = status?.state['running'] ?? status?.state['terminated'];
          return pod?.metadata.uid !== before.metadata.uid && started ? null : 'not yet';
        });
        await until(`the loss of ${capability}`, loss);
      } finally {
        await give(given);
        await node.rolledOut(NAMESPACE, DAEMON_SET);
      }
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
