import assert from 'node:assert/strict';
import { test } from 'node:test';
import { seededRandom } from '../../../server/base/random.ts';
import type { Captured } from '../../../../test/kit/packets.ts';
import { examine } from '../../../../test/kit/story.ts';
import { asked, ends, inOrder } from '../../../../test/kit/story-parts.ts';

const SERVICE = '10.96.0.10';
const PODS = ['10.244.0.5', '10.244.0.12'];
const SECOND = 1000;

/**
 * On the node: a lookup opens a socket, and its A query is repeated there until it is answered; AAAA follows. Lost
 * queries are seen before the translation only.
 * @param isLost by a number in [0, 1), whether the socket has got a reply, and its number
 */
function onNode(
  isLost: (draw: number, isKnown: boolean, nth: number) => boolean,
  isOnNode = true,
): readonly Captured[] {
  const random = seededRandom(7);
  const draw = (): number => random.integer(1_000_000) / 1_000_000;
  const packets: (readonly Captured[])[] = [];
  for (let i = 0; i < 120; i++) {
    const [client, port] = [`10.244.1.${(i % 4) + 20}`, 32_000 + i];
    const name = `n${i % 9}.shop.svc.cluster.local.`;
    const pod = PODS[random.integer(2)]!;
    let isKnown = false;
    let atMs = i * 700;
    for (const type of ['A', 'AAAA'])
      for (let attempt = 0; attempt < 4; attempt++) {
        const lost = isLost(draw(), isKnown, i);
        const id = 2 * i + (type === 'A' ? 1 : 2);
        packets.push(
          asked(atMs, ends(client, port, SERVICE), name, id, { type, tookMs: lost ? null : 1 }),
        );
        if (!lost && isOnNode)
          packets.push(asked(atMs + 0.1, ends(client, port, pod), name, id, { type }));
        atMs += lost ? 2.5 * SECOND : 3;
        isKnown ||= !lost;
        if (!lost) break;
      }
  }
  return inOrder(packets);
}

const codes = async (packets: readonly Captured[]): Promise<readonly string[]> =>
  (await examine(packets)).findings.map(({ code }) => code);

test('one third of the choices lost on the node, with two live endpoints, means one dead endpoint', async () => {
  const [first] = (await examine(onNode((draw, isKnown) => !isKnown && draw < 1 / 3))).findings;
  assert.equal(first?.code, 'ND3008');
  assert.match(first.seen.join(' '), /answered by 2 endpoints/);
});

test('losses on sockets with an entry, or far from one endpoint’s share, do not mean a dead endpoint', async () => {
  assert.ok(!(await codes(onNode((draw) => draw < 1 / 3))).includes('ND3008'));
  assert.ok(!(await codes(onNode((draw, isKnown) => !isKnown && draw < 0.08))).includes('ND3008'));
});

test('at the client: many losses of new sockets, and none of known ones, suggest a dead endpoint', async () => {
  const atClient = (isLost: (draw: number, isKnown: boolean) => boolean) =>
    examine(onNode(isLost, false));
  const [first] = (await atClient((draw, isKnown) => !isKnown && draw < 1 / 3)).findings;
  assert.equal(first?.code, 'ND3008');
  assert.ok(first.confidence < 0.8);
  const any = await atClient((draw) => draw < 1 / 3);
  assert.ok(!any.findings.some(({ code }) => code === 'ND3008'));
});

test('at the client: new sockets lose queries only from a moment on, so the node may drop them as well', async () => {
  const packets = onNode((draw, isKnown, i) => i >= 40 && !isKnown && draw < 0.5, false);
  const [first] = (await examine(packets)).findings;
  assert.equal(first?.code, 'ND3008');
  assert.match(first.title, /from a moment on/);
  assert.match(first.why, /connection tracking table/);
});
