/**
 * `capture --process --bpf` in pods: the unchanged DaemonSet in deploy/capture, with its capabilities, its seccomp
 * profile and `hostPID`, and `ndots node`. The node shares this machine's process namespace, like a real one.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { ExchangeDocument } from '../../src/faces/cli/capture/capture-rows.ts';
import {
  CAPTURE_DAEMON_SET,
  CAPTURE_MANIFESTS,
  CAPTURE_NAMESPACE,
  captureLog,
  captureStarted,
  capturePod,
  containersOf,
  exchangesOf,
  whileChanged,
} from './capture-daemon-set.ts';
import { DNS_PODS } from './cluster-dns.ts';
import { assertStoryOfBackend, assertStoryOfExternalName, startBackend } from './curl-story.ts';
import { NodeCluster } from './node-cluster.ts';
import { TOOLS_IMAGE } from './node-images.ts';
import { noNode } from './node-programs.ts';
import { say, until } from './progress.ts';

const POD_SPEC = '/spec/template/spec';
const CONTAINER = `${POD_SPEC}/containers/0`;
/** Lookups by programs that run for milliseconds. Each sends two queries. */
const LOOKUPS = 50;

describe('the process behind a query, with --bpf', { skip: noNode() ?? false }, () => {
  let node: NodeCluster;
  before(async () => {
    node = await NodeCluster.start('iptables', 'machine');
    await node.putSeccompProfiles();
    await node.kubectl('apply', '-k', CAPTURE_MANIFESTS);
    await node.rolledOut(CAPTURE_NAMESPACE, CAPTURE_DAEMON_SET);
    await started();
  });
  after(() => node?.[Symbol.asyncDispose]());

  let looked = 0;
  /**
   * Looks up new names in the client pod, one program each.
   * @returns their common beginning
   */
  async function lookUp(times: number): Promise<string> {
    const label = `bpf-${looked++}-`;
    const script = `for at in $(seq ${times}); do /usr/local/bin/lookup-glibc ${label}$at.example.com. 0 1; done`;
    await node.kubectl('-n', 'shop', 'exec', 'deploy/client', '--', 'sh', '-c', script);
    return label;
  }

  const started = (): Promise<void> => captureStarted(node, () => lookUp(1));

  /** The queries of the client pod, once all of them are in the output. */
  async function ofClient(
    label: string,
    count: number,
    output: () => Promise<string>,
  ): Promise<readonly ExchangeDocument[]> {
    const { podIP } = (await node.pods('shop', 'app=client'))[0]!.status;
    let found: readonly ExchangeDocument[] = [];
    await until(`${count} queries for ${label} in the output`, async () => {
      const text = await output();
      found = exchangesOf(label, text).filter(({ client }) => client.address === podIP);
      return found.length >= count ? null : `${found.length}\n${text.slice(-500)}`;
    });
    return found;
  }

  /** Asserts that the process of each query is known, and is the program that the test started. */
  async function assertAllNamed(exchanges: readonly ExchangeDocument[]): Promise<void> {
    const [client] = await containersOf(node, 'shop', 'app=client');
    for (const { asker, question } of exchanges) {
      assert.equal(asker!.why, null, JSON.stringify(asker));
      assert.equal(asker!.container?.id, client);
      for (const { command, commandLine } of asker!.processes) {
        assert.equal(command, 'lookup-glibc');
        // A process that is exiting no longer has a command line.
        if (commandLine !== '')
          assert.ok(commandLine.includes(question.name.replace(/\.$/, '')), commandLine);
      }
    }
  }

  const log = (): Promise<string> => captureLog(node);

  test('deploy/capture names the process of every query of programs that run for milliseconds', async () => {
    const label = await lookUp(LOOKUPS);
    const exchanges = await ofClient(label, 2 * LOOKUPS, log);
    await assertAllNamed(exchanges);
    const servers = await containersOf(node, 'kube-system', DNS_PODS);
    const answered = exchanges.flatMap(({ answerer }) => answerer?.container?.id ?? []);
    assert.deepEqual(
      answered.filter((id) => !servers.includes(id)),
      [],
    );
    say(`deploy/capture: all ${exchanges.length} have a process, ${answered.length} a server`);
    const [status] = (await capturePod(node)).status.containerStatuses!;
    assert.deepEqual([status!.ready, status!.restartCount], [true, 0], JSON.stringify(status));
  });

  test('ndots node does the same under the seccomp profile of the container runtime', async () => {
    const running = node.startNdots([
      ...['node', 'node1', '--image', TOOLS_IMAGE, '--'],
      ...['capture', '-i', 'any', '--process', '--bpf', '-o', 'json'],
    ]);
    try {
      await until('the capture to start', () =>
        running.output().includes('Ctrl-C ends\n') ? null : running.output(),
      );
      const label = await lookUp(LOOKUPS);
      const output = (): Promise<string> => Promise.resolve(running.output());
      await assertAllNamed(await ofClient(label, 2 * LOOKUPS, output));
    } finally {
      await running.stop();
    }
  });

  for (const [title, run] of Object.entries({
    'curl backend': assertStoryOfBackend,
    'curl of an external name': assertStoryOfExternalName,
  }))
    test(`-o flow shows ${title}`, async () => {
      await startBackend(node);
      // Process 1 of this node is the machine's, which has no kubelet.
      await run(node, { words: ['--bpf'], hasNames: false });
    });

  /** Checks that the capture has exited with these words. */
  const ended = (words: RegExp): Promise<void> =>
    until('the capture to end', async () => {
      const [status] = (await capturePod(node)).status.containerStatuses ?? [];
      if (status?.ready !== false) return JSON.stringify(status);
      const text = await log();
      return words.test(text) ? null : text;
    });

  const given = async (path: string): Promise<unknown> => {
    const words = ['-n', CAPTURE_NAMESPACE, 'get', CAPTURE_DAEMON_SET, '-o', `jsonpath={${path}}`];
    return JSON.parse(await node.kubectl(...words)) as unknown;
  };

  test('without hostPID it ends, and the message names hostPID', async () => {
    const set = (value: boolean): readonly object[] => [
      { op: 'replace', path: `${POD_SPEC}/hostPID`, value },
    ];
    await whileChanged(node, { patch: set(false), undo: set(true) }, () =>
      ended(/--bpf needs the host’s PID namespace[^]*set hostPID: true/),
    );
  });

  test('without hostPID and --bpf it reports that it sees no other processes', async () => {
    const args = (await given('.spec.template.spec.containers[0].args')) as readonly string[];
    const set = (hostPID: boolean, value: readonly string[]): readonly object[] => [
      { op: 'replace', path: `${POD_SPEC}/hostPID`, value: hostPID },
      { op: 'replace', path: `${CONTAINER}/args`, value },
    ];
    const patch = set(
      false,
      args.filter((each) => each !== '--bpf'),
    );
    await whileChanged(node, { patch, undo: set(true, args) }, async () => {
      await until('the note', async () => {
        const text = await log();
        return /processes in other PID namespaces are not visible.*hostPID: true/.test(text)
          ? null
          : text;
      });
      await started();
      const exchanges = await ofClient(await lookUp(5), 10, log);
      assert.ok(exchanges.every(({ asker }) => asker!.processes.length === 0));
    });
  });

  test("without the node's /sys/fs/cgroup it ends, and the message names it", async () => {
    const path = `${CONTAINER}/volumeMounts`;
    const value = await given('.spec.template.spec.containers[0].volumeMounts');
    await whileChanged(
      node,
      { patch: [{ op: 'remove', path }], undo: [{ op: 'add', path, value }] },
      () => ended(/--bpf needs cgroup v2[^]*mount the node’s \/sys\/fs\/cgroup/),
    );
  });

  /** Changes the capabilities of deploy/capture during a check. */
  async function without(capability: string, check: () => Promise<void>): Promise<void> {
    const path = `${CONTAINER}/securityContext/capabilities/add`;
    const all = (await given(
      '.spec.template.spec.containers[0].securityContext.capabilities.add',
    )) as readonly string[];
    assert.ok(all.includes(capability));
    const set = (value: readonly string[]): readonly object[] => [{ op: 'replace', path, value }];
    const patch = set(all.filter((each) => each !== capability));
    await whileChanged(node, { patch, undo: set(all) }, check);
  }

  test('without SYS_ADMIN it ends, because it may neither enter network namespaces nor load programs', () =>
    without('SYS_ADMIN', () => ended(/permission denied|cannot load BPF programs/)));

  test('without SYS_PTRACE it names the sender of a query, but not the process that answers', () =>
    without('SYS_PTRACE', async () => {
      await started();
      const exchanges = await ofClient(await lookUp(5), 10, log);
      for (const { asker, answerer } of exchanges) {
        assert.equal(asker!.why, null);
        assert.equal(asker!.processes[0]!.command, 'lookup-glibc');
        assert.deepEqual(answerer?.processes ?? [], []);
      }
    }));

  test('without bpf in the seccomp profile it ends, and the message names seccomp', async () => {
    const path = `${POD_SPEC}/securityContext/seccompProfile`;
    const set = (file: string): readonly object[] => [
      { op: 'replace', path, value: { type: 'Localhost', localhostProfile: `ndots/${file}.json` } },
    ];
    const places = '/var/lib/kubelet/seccomp/ndots';
    const script = 'grep -v \'"bpf",\' "$1/capture.json" > "$1/no-bpf.json"';
    await node.space.must(['sh', '-ec', script, 'sh', places]);
    await whileChanged(node, { patch: set('no-bpf'), undo: set('capture') }, () =>
      ended(/cannot load BPF programs into the kernel[^]*seccomp forbids it/),
    );
  });
});
