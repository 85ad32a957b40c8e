/** Tests several clusters in parallel, each with a separate model. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { once } from 'node:events';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test, type TestContext } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { DnsPodsApi, kubeconfigOf } from '../../../../test/kit/dns-pods-api.ts';
import { freePorts } from '../../../../test/kit/free-ports.ts';
import { runCommand } from '../../../../test/kit/trace-command.ts';
import { makeWorld } from '../../../../test/kit/world.ts';
import { top } from '../top/top.ts';

const directory = mkdtempSync(join(tmpdir(), 'ndots-clusters-'));
after(() => rmSync(directory, { recursive: true }));
const tokenFile = join(directory, 'token');
writeFileSync(tokenFile, 'a-token-that-is-long-enough');

/** A cluster with one DNS pod, which receives continuous queries for this name. */
async function cluster(t: TestContext, context: string, name: string): Promise<DnsPodsApi> {
  const [port] = (await freePorts(1)) as [number];
  const console = `console 127.0.0.1:${port} {\n token_file token\n }`;
  const world = await makeWorld(`. {\n ${console}\n hosts {\n 192.0.2.1 ${name}\n }\n}`, {
    directory,
  });
  const timer = setInterval(() => {
    void world.ask(name);
    void world.clock.advance(20);
  }, 20);
  t.after(() => {
    clearInterval(timer);
    return world.close();
  });
  const api = await DnsPodsApi.start(t, context);
  // Both clusters use the same addresses.
  api.pods = [{ name: 'coredns-a', podIP: '10.244.0.5', port }];
  return api;
}

const replicas = ['--replicas', '--server-token', tokenFile, '--context', 'a', '--context', 'b'];

test('clusters with the same addresses are shown side by side, and an unavailable one is left out', async (t) => {
  const [a, b] = [await cluster(t, 'a', 'a.example'), await cluster(t, 'b', 'b.example')];
  const kubeconfig = ['--kubeconfig', kubeconfigOf(t, [a, b])];
  const words = ['--view', 'names', '-o', 'json', ...replicas, ...kubeconfig];
  const names = (line: string): object => {
    const { cluster: context, rows } = JSON.parse(line) as {
      cluster: string;
      rows: { name: string }[];
    };
    return { context, names: rows.map(({ name }) => name) };
  };
  // Waits until both views, which are printed every second, contain their names.
  const seen = new Set<string>();
  for (let seconds = 2; seen.size < 2; seconds *= 2) {
    const { out } = await runCommand(top, [...words, '--for', `${seconds}s`]);
    for (const line of out.trim().split('\n')) {
      const found = names(line) as { names: string[] };
      if (found.names.length > 0) seen.add(JSON.stringify(found));
    }
  }
  assert.deepEqual([...seen].toSorted(), [
    JSON.stringify({ context: 'a', names: ['a.example.'] }),
    JSON.stringify({ context: 'b', names: ['b.example.'] }),
  ]);
  await b.close();
  const { out, err } = await runCommand(top, [...words, '--for', '1500ms']);
  assert.match(err, /b is left out: /);
  assert.ok(
    out
      .trim()
      .split('\n')
      .every((line) => !line.includes('"cluster":"b"')),
  );
});

test('a cluster that is left out keeps no connection to the servers given beside it', async (t) => {
  const api = await cluster(t, 'a', 'a.example');
  const none = await DnsPodsApi.start(t, 'b');
  const open = new Set<Socket>();
  const agent = createServer((socket) => {
    open.add(socket.resume());
    socket.on('close', () => open.delete(socket)).on('error', () => undefined);
  });
  agent.listen(0, '127.0.0.1');
  await once(agent, 'listening');
  t.after(() => agent.close());
  const { port } = agent.address() as AddressInfo;
  const words = ['--server', `127.0.0.1:${port}`, '-o', 'json', ...replicas];
  const kubeconfig = ['--kubeconfig', kubeconfigOf(t, [api, none])];
  const { err } = await runCommand(top, [...words, ...kubeconfig, '--for', '1s']);
  assert.match(err, /b is left out: no pod with/);
  // The command runs in this process, so a connection that it does not close stays open.
  for (let waits = 0; open.size > 0 && waits < 100; waits++) await setTimeout(20);
  assert.equal(open.size, 0);
});

for (const [words, message] of [
  [['--replica-node='], /--replica-node takes the name of a node, not ""/],
  [['--replica-node', 'node1,node2'], /takes the name of a node, not "node1,node2"/],
  // zsh passes the value of an unquoted variable as one word.
  [['--replica-node=a --replica-node=b '], /not "a --replica-node=b "/],
  [['--replica-node-selector', ' '], /--replica-node-selector takes labels, such as/],
  [['--replica-selector='], /--replica-selector takes labels, such as/],
] as const)
  test(`${words.join(' ')} is a usage error, because it would select other pods than meant`, async () => {
    const given = ['--replicas', '--server-token', tokenFile, '--once', ...words];
    const { code, err } = await runCommand(top, given);
    assert.equal(code, 3);
    assert.match(err, message);
  });

test('several contexts need --replicas', async () => {
  const { code, err } = await runCommand(top, ['--context', 'a', '--context', 'b', '--once']);
  assert.equal(code, 3);
  assert.match(err, /several --context options need --replicas/);
});
