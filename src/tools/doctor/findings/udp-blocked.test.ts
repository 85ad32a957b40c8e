import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  addressRecord,
  back,
  dnsMessage,
  framed,
  TCP,
  tcpPacket,
  type Captured,
} from '../../../../test/kit/packets.ts';
import { examine } from '../../../../test/kit/story.ts';
import type { Finding } from './finding.ts';
import { asked, at, ends, inOrder } from '../../../../test/kit/story-parts.ts';

const CLIENT = '10.244.1.5';
const POD = '10.244.2.27';

type OverTcp = 'answered' | 'accepted' | 'ignored';

/** One query over TCP, and its reply. */
function overTcp(atMs: number, port: number, fate: OverTcp): Captured[] {
  const way = ends(CLIENT, port, POD);
  const name = 'a.example.com.';
  const syn = at(atMs, tcpPacket(way, 1, TCP.SYN));
  if (fate === 'ignored') return [syn, at(atMs + 1000, tcpPacket(way, 1, TCP.SYN))];
  const query = framed(dnsMessage(name, 'A', { id: port }));
  const answer = [addressRecord(name, '192.0.2.1')];
  const reply = framed(dnsMessage(name, 'A', { id: port, reply: true, answer }));
  return [
    syn,
    at(atMs + 0.3, tcpPacket(back(way), 9, TCP.SYN | TCP.ACK)),
    at(atMs + 0.5, tcpPacket(way, 2, TCP.ACK, query)),
    ...(fate === 'accepted' ? [] : [at(atMs + 1, tcpPacket(back(way), 10, TCP.ACK, reply))]),
  ];
}

/** Half of the sockets get nothing; the pod is asked by its own address as well. */
async function first(tcp: OverTcp, answersUdp: boolean): Promise<Finding | undefined> {
  const packets = Array.from({ length: 60 }, (_, i) => {
    const isLost = (i * 7) % 5 < 2;
    const way = ends(CLIENT, 30_000 + i);
    const name = `n${i % 9}.example.com.`;
    return [0, 5000].flatMap((later) =>
      later > 0 && !isLost
        ? []
        : asked(i * 500 + later, way, name, i, { tookMs: isLost ? null : 0.7 }),
    );
  });
  const direct = [4000, 9000, 14_000, 19_000, 24_000].flatMap((ms, i) => [
    ...asked(ms, ends(CLIENT, 41_000 + i, POD), 'a.example.com.', 500 + i, {
      tookMs: answersUdp ? 0.7 : null,
    }),
    ...overTcp(ms + 1500, 42_000 + i, tcp),
  ]);
  const { findings } = await examine(inOrder([...packets, direct]));
  return findings[0];
}

test('the pod answers over TCP, and never over UDP', async () => {
  assert.equal((await first('answered', false))?.code, 'ND3023');
});

test('the pod answers over neither: it is dead', async () => {
  assert.notEqual((await first('ignored', false))?.code, 'ND3023');
});

test('the pod accepts TCP and answers over neither: it hangs', async () => {
  const finding = await first('accepted', false);
  assert.notEqual(finding?.code, 'ND3023');
  assert.match(finding?.seen.join(' ') ?? '', /its process does not read queries/);
});

test('the pod answers over both', async () => {
  assert.notEqual((await first('answered', true))?.code, 'ND3023');
});
