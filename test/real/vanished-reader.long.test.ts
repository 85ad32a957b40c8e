/** `ndots watch serve` when a reader vanishes without closing its connection. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { printed, start, type Child } from '../kit/child.ts';
import { inSpace, noTwoNodes } from '../kit/two-nodes.ts';

const program = join(import.meta.dirname, '../../bin/ndots');
const TOKEN = 'a-token-that-is-long-enough';
const NODE = `ndots-vr-${process.pid}`;
const DESK = `${NODE}-desk`;
const AT = '10.93.0.1:9155';
/** In seconds, as documented in docs/watch.md. */
const FREE_WITHIN_S = 45;

function sh(script: string): string {
  const { status, stderr, stdout } = spawnSync('sh', ['-c', `set -e\n${script}`], {
    encoding: 'utf8',
  });
  assert.equal(status, 0, stderr);
  return stdout;
}

describe('a reader that vanishes on a quiet node', { skip: noTwoNodes() ?? false }, () => {
  const directory = mkdtempSync(join(tmpdir(), 'ndots-vanished-'));
  const children: Child[] = [];
  before(() => {
    writeFileSync(join(directory, 'token'), TOKEN);
    sh(`ip netns add ${NODE}
      ip netns add ${DESK}
      ip -n ${NODE} link add eth0 type veth peer name eth0 netns ${DESK}
      ip -n ${NODE} addr add 10.93.0.1/24 dev eth0
      ip -n ${DESK} addr add 10.93.0.2/24 dev eth0
      ip -n ${NODE} link set eth0 up
      ip -n ${DESK} link set eth0 up
      ip -n ${NODE} link set lo up`);
  });
  after(async () => {
    for (const child of children) await child.stop();
    for (const space of [NODE, DESK]) spawnSync('ip', ['netns', 'del', space]);
    rmSync(directory, { recursive: true });
  });

  const readers = (): number => {
    const text = sh(inSpace(NODE, ['curl', '-s', `http://${AT}/metrics`]).join(' '));
    return Number(/^ndots_watch_readers (\d+)$/m.exec(text)?.[1]);
  };
  const until = async (holds: () => boolean, limitS: number): Promise<boolean> => {
    for (const begin = performance.now(); performance.now() - begin < limitS * 1000;) {
      if (holds()) return true;
      await new Promise((resolve) => setTimeout(resolve, 1000));
    }
    return false;
  };

  test('frees its place within the documented time', async () => {
    const serve = ['watch', 'serve', '--listen', AT, '--token-file', join(directory, 'token')];
    const agent = start('agent', inSpace(NODE, [program, ...serve]));
    children.push(agent);
    await printed(agent, /packets for readers on/);
    const header = `authorization: Bearer ${TOKEN}`;
    const words = ['curl', '-sN', '-o', '/dev/null', '-H', header, `http://${AT}/v1/exchanges`];
    children.push(start('reader', inSpace(DESK, words)));
    assert.ok(await until(() => readers() === 1, 20));
    // From now on, the desk sends nothing, not even that it received something.
    sh(`ip -n ${DESK} route add blackhole 10.93.0.1/32`);
    assert.ok(await until(() => readers() === 0, FREE_WITHIN_S));
  });
});
