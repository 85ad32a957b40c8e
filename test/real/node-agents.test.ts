/** `ndots watch serve` on two nodes, read as a single view of real packets, interfaces and dig queries. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import type { Views } from '../../src/tools/watch/view.ts';
import { printed, start, type Child } from '../kit/child.ts';
import { until } from '../kit/dnstap-collector.ts';
import { freePorts } from '../kit/free-ports.ts';
import { inSpace, makeTwoNodes, noTwoNodes, SERVER, SPACE } from '../kit/two-nodes.ts';

const program = join(import.meta.dirname, '../../bin/ndots');
const TOKEN = 'a-token-that-is-long-enough';
const QUERIES = 20;

/** The newest view that was printed. */
function latest<V extends keyof Views>(child: Child): Views[V] | null {
  const line = child
    .output()
    .split('\n')
    .findLast((each) => /^\{.*\}$/.test(each));
  return line === undefined ? null : (JSON.parse(line) as Views[V]);
}

async function metric(port: number, name: string): Promise<number> {
  const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
  return Number(new RegExp(`^${name} (\\d+)$`, 'm').exec(text)?.[1]);
}

async function readersOf(port: number, readers: number): Promise<void> {
  for (let waited = 0; (await metric(port, 'ndots_watch_readers')) !== readers; waited += 100) {
    assert.ok(waited < 30_000, `waited for ${readers} readers`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

describe('agents on two nodes', { skip: noTwoNodes() ?? false }, () => {
  const directory = mkdtempSync(join(tmpdir(), 'ndots-agents-'));
  const token = join(directory, 'token');
  const children: Child[] = [];
  let remove = (): void => undefined;
  let ports: readonly number[] = [];

  const run = (name: string, words: readonly string[]): Child => {
    const child = start(name, words);
    children.push(child);
    return child;
  };
  const agent = async (
    space: string,
    port: number,
    more: readonly string[] = [],
  ): Promise<Child> => {
    const child = run('agent', [
      ...[program, 'watch', 'serve', '--netns', `/var/run/netns/${space}`],
      ...['--listen', `127.0.0.1:${port}`, '--token-file', token, ...more],
    ]);
    await printed(child, /packets for readers on/);
    return child;
  };
  const top = (view: keyof Views, of: readonly number[]): Child =>
    run('top', [
      ...[program, 'top', '-o', 'json', '--view', view, '--server-token', token],
      ...of.flatMap((port) => ['--server', `127.0.0.1:${port}`]),
    ]);
  const dig = async (space: string, name: string): Promise<void> => {
    for (let i = 0; i < QUERIES; i++)
      assert.equal(
        await start('dig', inSpace(space, ['dig', `@${SERVER}`, '+tries=1', name])).exitCode,
        0,
      );
  };

  before(async () => {
    writeFileSync(token, TOKEN);
    remove = makeTwoNodes();
    writeFileSync(join(directory, 'Corefile'), '. {\n hosts {\n 192.0.2.1 a.example\n }\n}\n');
    const words = inSpace(SPACE.server, [program, 'serve', '-conf', join(directory, 'Corefile')]);
    await printed(run('serve', words), /ndots|CoreDNS/);
    ports = await freePorts(3);
    await agent(SPACE.first, ports[0]!);
    await agent(SPACE.second, ports[1]!, ['--identity', 'second']);
  });
  after(async () => {
    for (const child of children.toReversed()) await child.stop();
    remove();
    rmSync(directory, { recursive: true });
  });

  test('a query that passes both nodes counts once, and each client is on its node', async () => {
    const view = top('clients', ports.slice(0, 2));
    await until(() => latest<'clients'>(view)?.inputs.length === 2, 'both agents');
    for (const port of ports.slice(0, 2)) await readersOf(port, 1);
    await dig(SPACE.far, 'a.example');
    await dig(SPACE.near, 'a.example');
    const rows = (): Views['clients']['rows'] => latest<'clients'>(view)!.rows;
    const sum = (): number => rows().reduce((total, { queries }) => total + queries, 0);
    await until(() => sum() >= 2 * QUERIES, 'all queries');
    await new Promise((resolve) => setTimeout(resolve, 1000));
    assert.deepEqual(
      rows()
        .map(({ address, queries, lost }) => [address, queries, lost] as const)
        .toSorted(([one], [other]) => (one < other ? -1 : 1)),
      [
        ['10.91.1.10', QUERIES, 0],
        ['10.91.2.20', QUERIES, 0],
      ],
    );
    const { inputs } = latest<'clients'>(view)!;
    assert.deepEqual(
      inputs.map(({ queries, lostByKernel }) => [queries, lostByKernel]),
      [
        [QUERIES, 0],
        [QUERIES, 0],
      ],
    );
    await view.stop();
  });

  test('nothing is captured while no reader is connected', async () => {
    await readersOf(ports[1]!, 0);
    const packets = await metric(ports[1]!, 'ndots_watch_packets_total');
    await dig(SPACE.near, 'a.example');
    await new Promise((resolve) => setTimeout(resolve, 1200));
    assert.equal(await metric(ports[1]!, 'ndots_watch_packets_total'), packets);
  });

  test('the stream is a pcapng file that doctor reads', async () => {
    const file = join(directory, 'stream.pcapng');
    const curl = run('curl', [
      ...['curl', '-sN', '-H', `Authorization: Bearer ${TOKEN}`, '-o', file],
      `http://127.0.0.1:${ports[1]!}/v1/exchanges`,
    ]);
    await readersOf(ports[1]!, 1);
    await dig(SPACE.near, 'missing.example');
    await new Promise((resolve) => setTimeout(resolve, 500));
    await curl.stop();
    const doctor = run('capture', [program, 'capture', file, '-o', 'json']);
    await doctor.exitCode;
    const lines = doctor
      .output()
      .split('\n')
      .filter((line) => line.startsWith('{'));
    assert.equal(lines.filter((line) => line.includes('missing.example')).length, QUERIES);
  });

  test('with --all-clients an agent also shows the queries that come from other nodes', async () => {
    await agent(SPACE.second, ports[2]!, ['--all-clients']);
    const view = top('clients', [ports[2]!]);
    await readersOf(ports[2]!, 1);
    await dig(SPACE.far, 'a.example');
    await until(() => (latest<'clients'>(view)?.rows[0]?.queries ?? 0) >= QUERIES, 'all queries');
    assert.equal(latest<'clients'>(view)!.rows[0]!.address, '10.91.1.10');
    await view.stop();
  });

  test('a wrong token is refused, and the view says why', async () => {
    const wrong = join(directory, 'wrong');
    writeFileSync(wrong, 'another-token-that-is-long');
    const view = run('top', [
      ...[program, 'top', '-o', 'json', '--view', 'now'],
      ...['--server', `127.0.0.1:${ports[0]!}`, '--server-token', wrong],
    ]);
    await until(() => latest<'now'>(view)?.inputs[0]?.state === 'away', 'the refusal');
    assert.match(latest<'now'>(view)!.inputs[0]!.why, /the token is wrong or missing/);
    await view.stop();
  });
});
