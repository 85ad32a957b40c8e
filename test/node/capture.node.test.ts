/**
 * The processes that captures on the node report: by the DaemonSet in deploy/capture with its capabilities and seccomp
 * profile, and by `ndots node`. Every name is compared with the program that the test started.
 */
import assert from 'node:assert/strict';
import { resolve } from 'node:path';
import { after, before, describe, test } from 'node:test';
import type { ExchangeDocument } from '../../src/faces/cli/capture/capture-rows.ts';
import { start } from '../kit/child.ts';
import { DNS_PODS } from './cluster-dns.ts';
import { NodeCluster } from './node-cluster.ts';
import { TOOLS_IMAGE } from './node-images.ts';
import { noNode } from './node-programs.ts';
import { say, until } from './progress.ts';

const manifests = resolve(import.meta.dirname, '../../deploy/capture');
const NAMESPACE = 'ndots-capture';
const DAEMON_SET = 'daemonset/ndots-capture';

describe('the process behind a query, on a real node', { skip: noNode() ?? false }, () => {
  let node: NodeCluster;
  before(async () => {
    node = await NodeCluster.start();
    await node.putSeccompProfiles();
    const yaml = await node.kubectl('kustomize', manifests);
    assert.match(yaml, /--bpf/);
    // The kernel reports the machine's process IDs, and this node has its own process namespace.
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
  /** Looks up a new name in the client pod. @returns a part of the name */
  async function lookUp(): Promise<string> {
    const label = `seen-${looked++}`;
    await inClient('/usr/local/bin/lookup-glibc', `${label}.example.com`, '0', '1');
    return label;
  }

  /** A name's exchanges in the output of a capture. */
  const exchangesOf = (label: string, output: string): readonly ExchangeDocument[] =>
    output
      .split('\n')
      .filter((line) => line.startsWith('{"kind":"Exchange"'))
      .map((line) => JSON.parse(line) as ExchangeDocument)
      .filter(({ question }) => question.name.startsWith(`${label}.`));

  /** Asserts that the test started all processes in the exchanges. @returns how many there are */
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
        assert.match(commandLine, /seen-\d+\.example\.com/);
      }
      if (answerer?.container) assert.ok(servers.includes(answerer.container.id));
    }
    return asked.filter(
      ({ asker }) => asker!.container!.id === client && asker!.processes.length > 0,
    ).length;
  }

  const logs = (): Promise<string> =>
    node.kubectl('-n', NAMESPACE, 'logs', DAEMON_SET, '--tail=-1');

  test('deploy/capture starts with its capabilities and its profile, and names the process of lookups', async () => {
    let all = 0;
    let named = 0;
    await until('lookups whose process was found', async () => {
      const label = await lookUp();
      let exchanges: readonly ExchangeDocument[] = [];
      await until(`${label} in the log`, async () => {
        exchanges = exchangesOf(label, await logs());
        return exchanges.length > 0 ? null : 'not yet';
      });
      all += exchanges.length;
      named += await assertTrue(exchanges);
      return named >= 10 ? null : `${named} of ${all} queries`;
    });
    say(`deploy/capture named the process of ${named} of ${all} queries`);
    const [pod] = await node.pods(NAMESPACE, 'app=ndots-capture');
    const [status] = pod!.status.containerStatuses!;
    assert.deepEqual([status!.ready, status!.restartCount], [true, 0], JSON.stringify(status));
  });

  test('-o flow shows the connection after a lookup, its translation, and the process that accepted it', async () => {
    const capture = start(
      'capture -o flow',
      node.space.inside(
        node.kubectlWords(
          ...['-n', NAMESPACE, 'exec', DAEMON_SET, '--'],
          ...['ndots', 'capture', '-i', 'any', '--process', '-o', 'flow', '--for', '120s'],
        ),
      ),
    );
    try {
      const story =
        /kubernetes\.default[^]*?asked +by \w{12}\/curl\[\d+\][^]*?connects to 10\.96\.0\.1:443 ⇒ 172\.30\.0\.1:6443 +accepted by \S*kube-apiserver\[\d+\]/;
      await until(
        'the whole way of curl to the API server',
        async () => {
          await inClient('curl', '-sk', '-m', '5', 'https://kubernetes.default.svc/version');
          return story.test(capture.output()) ? null : capture.output().slice(-1000);
        },
        110_000,
      );
    } finally {
      await capture.stop();
    }
  });

  test('ndots node runs a capture on the node, and deletes its pod', async () => {
    const words = ['node', 'node1', '--image', TOOLS_IMAGE, '--'];
    const capturing = node.ndots([
      ...words,
      'capture',
      '-i',
      'any',
      '--process',
      '-o',
      'json',
      '-q',
      '--for',
      '30s',
    ]);
    let ended = false;
    const labels: string[] = [];
    void capturing.finally(() => (ended = true));
    while (!ended) labels.push(await lookUp());
    const { code, out, err } = await capturing;
    assert.equal(code, 0, err);
    const named = await assertTrue(labels.flatMap((label) => exchangesOf(label, out)));
    assert.ok(named > 0, out.slice(0, 2000) + err);
    say(`ndots node named the process of ${named} queries in ${labels.length} lookups`);
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
