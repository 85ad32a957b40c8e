/** `ndots watch serve` when its interface or its network namespace disappears, and with unusual interface numbers. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import type { Views } from '../../src/tools/watch/view.ts';
import { printed, start, type Child } from '../kit/child.ts';
import { freePorts } from '../kit/free-ports.ts';
import { inSpace, noTwoNodes } from '../kit/two-nodes.ts';

const program = join(import.meta.dirname, '../../bin/ndots');
const TOKEN = 'a-token-that-is-long-enough';
const NODE = `ndots-as-${process.pid}`;
const OTHER = `${NODE}-far`;
/** An interface number that does not fit in 16 bits. */
const HIGH = 70_001;

const MAC = '02:00:00:00:00:01';
/** An address that neither side has, so packets to it arrive but are not answered. */
const SILENT = '10.92.0.78';

/** Names on the wire. */
const OWN = '\u0003own\u0007example';
const FOREIGN = '\u0005other\u0007example';

function sh(script: string): void {
  const { status, stderr } = spawnSync('sh', ['-c', `set -e\n${script}`], { encoding: 'utf8' });
  assert.equal(status, 0, stderr);
}

/** The node's only interface, which has the default route, and the other machine behind it. */
const wire = (index: number): string => `
  ip -n ${NODE} link add eth0 index ${index} type veth peer name eth0 netns ${OTHER}
  ip -n ${NODE} addr add 10.92.0.1/24 dev eth0
  ip -n ${OTHER} addr add 10.92.0.2/24 dev eth0
  ip -n ${NODE} link set eth0 address ${MAC} up
  ip -n ${NODE} neigh add ${SILENT} lladdr 02:00:00:00:00:78 dev eth0
  ip -n ${OTHER} link set eth0 up
  ip -n ${OTHER} neigh add ${SILENT} lladdr ${MAC} dev eth0
  ip -n ${NODE} route add default via 10.92.0.2`;

describe('an agent', { skip: noTwoNodes() ?? false }, () => {
  const directory = mkdtempSync(join(tmpdir(), 'ndots-surroundings-'));
  const token = join(directory, 'token');
  const agents: Child[] = [];
  before(() => {
    writeFileSync(token, TOKEN);
    sh(`ip netns add ${NODE}\nip netns add ${OTHER}\nip -n ${NODE} link set lo up\n${wire(HIGH)}`);
  });
  after(async () => {
    for (const agent of agents) await agent.stop();
    for (const space of [NODE, OTHER]) spawnSync('ip', ['netns', 'del', space]);
    rmSync(directory, { recursive: true });
  });

  async function begin(...words: readonly string[]): Promise<[Child, string]> {
    const [port] = await freePorts(1);
    const agent = start('agent', [
      ...[program, 'watch', 'serve', '--netns', `/var/run/netns/${NODE}`],
      ...['--listen', `127.0.0.1:${port}`, '--token-file', token, ...words],
    ]);
    agents.push(agent);
    await printed(agent, /packets for readers on/);
    return [agent, `http://127.0.0.1:${port}`];
  }

  interface Reading {
    readonly status: number;
    /** The bytes received so far, as Latin-1. */
    text(): string;
    readonly over: Promise<unknown>;
  }

  async function read(at: string): Promise<Reading> {
    const response = await fetch(`${at}/v1/exchanges`, {
      headers: { authorization: `Bearer ${TOKEN}`, 'accept-encoding': 'identity' },
    });
    let text = '';
    const take = async (): Promise<void> => {
      for await (const piece of response.body!) text += Buffer.from(piece).toString('latin1');
    };
    return { status: response.status, text: () => text, over: take().catch(() => undefined) };
  }

  const dig = (space: string, name: string): Promise<unknown> =>
    start('dig', inSpace(space, ['dig', `@${SILENT}`, '+tries=1', '+time=1', name])).exitCode;

  test('warns once if other machines can reach it, because the stream is not encrypted', async () => {
    const [port] = await freePorts(1);
    const [agent] = await begin('--listen', `0.0.0.0:${port}`);
    await printed(agent, /\[WARNING\]/);
    const [warning, ...more] = agent.output().match(/^\[WARNING\].*$/gm) ?? [];
    assert.match(warning!, /packets and the token can be read in transit\. .* port-forward POD/);
    assert.deepEqual(more, []);
  });

  test('leaves out clients of other nodes on an interface with a high number', async () => {
    const [, at] = await begin();
    const { text } = await read(at);
    await dig(OTHER, 'other.example');
    await dig(NODE, 'own.example');
    assert.ok(text().includes(OWN));
    assert.ok(!text().includes(FOREIGN));
  });

  test('ends the streams of an interface that is replaced, and captures the new one for the next reader', async () => {
    const [, at] = await begin('-i', 'eth0', '--all-clients');
    const { over } = await read(at);
    sh(`ip -n ${NODE} link del eth0`);
    await over;
    const refused = await read(at);
    assert.equal(refused.status, 503);
    await refused.over;
    assert.match(refused.text(), /there is no interface eth0/);
    sh(wire(HIGH + 1));
    const again = await read(at);
    assert.equal(again.status, 200);
    await dig(NODE, 'own.example');
    assert.ok(again.text().includes(OWN));
  });

  test('top follows an interface that is removed and created again', async () => {
    const top = start('top', [
      ...[program, 'top', '--netns', `/var/run/netns/${NODE}`, '-i', 'eth0'],
      ...['-o', 'json', '--view', 'names', '--for', '100s'],
    ]);
    agents.push(top);
    const latest = (): Views['names'] | null => {
      const line = top.output().split('\n').at(-2);
      return line?.startsWith('{') ? (JSON.parse(line) as Views['names']) : null;
    };
    const stateOf = (): string | undefined => latest()?.inputs[0]!.state;
    const until = async (holds: () => boolean): Promise<void> => {
      while (!holds()) await new Promise((resolve) => setTimeout(resolve, 100));
    };
    await until(() => stateOf() === 'reading');
    sh(`ip -n ${NODE} link del eth0`);
    await until(() => stateOf() === 'away');
    assert.match(latest()!.inputs[0]!.why, /there is no interface eth0/);
    sh(wire(HIGH + 2));
    await until(() => stateOf() === 'reading');
    await dig(NODE, 'own.example');
    await until(() => latest()!.rows.some(({ name }) => name === 'own.example.'));
    await top.stop();
  });

  test('outlives its network namespace, and says that it is gone', async () => {
    const [agent, at] = await begin();
    const { over } = await read(at);
    sh(`ip netns del ${NODE}`);
    await over;
    const refused = await read(at);
    assert.equal(refused.status, 503);
    await refused.over;
    assert.match(refused.text(), /there is no network namespace/);
    sh(`ip netns add ${NODE}`);
    assert.equal((await read(at)).status, 200);
    assert.doesNotMatch(agent.output(), /Error|Node\.js/);
  });
});
