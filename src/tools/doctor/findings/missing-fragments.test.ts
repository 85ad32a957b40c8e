import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  back,
  dnsMessage,
  TCP,
  tcpPacket,
  udpPacket,
  type Captured,
  type Ends,
} from '../../../../test/kit/packets.ts';
import { examine } from '../../../../test/kit/story.ts';
import { asked, at, ends, inOrder } from '../../../../test/kit/story-parts.ts';

const [POD, DNS, UPSTREAM] = ['10.244.1.5', '10.244.1.9', '10.0.0.2'];
const BIG = 'big.example.com.';

/** A truncated answer, and the same query over TCP. @param isAnswered whether its reply arrives there */
function overTcp(
  ms: number,
  client: string,
  server: string,
  port: number,
  isAnswered: boolean,
): readonly Captured[] {
  const way: Ends = ends(client, port, server);
  const framed = (message: Uint8Array): Uint8Array =>
    Uint8Array.of(message.length >> 8, message.length & 0xff, ...message);
  const query = dnsMessage(BIG, 'A', { id: port });
  const cut = dnsMessage(BIG, 'A', { id: port, reply: true, flags: 0x8380 });
  const reply = dnsMessage(BIG, 'A', { id: port, reply: true });
  return [
    at(ms, udpPacket(way, query)),
    at(ms + 1, udpPacket(back(way), cut)),
    at(ms + 2, tcpPacket(way, 100, TCP.SYN)),
    at(ms + 3, tcpPacket(back(way), 500, TCP.SYN | TCP.ACK)),
    at(ms + 4, tcpPacket(way, 101, TCP.PSH | TCP.ACK, framed(query))),
    ...(isAnswered
      ? [at(ms + 6, tcpPacket(back(way), 501, TCP.PSH | TCP.ACK, framed(reply)))]
      : []),
  ];
}

const codes = async (isAnswered: boolean): Promise<readonly string[]> => {
  const packets = inOrder(
    Array.from({ length: 24 }, (_, i) => {
      const ms = i * 4000;
      const [own, port] = [30_000 + 4 * i, 40_000 + 4 * i];
      return [
        ...asked(ms, ends(DNS, port, UPSTREAM), `n${i}.example.org.`, port, { tookMs: 3 }),
        ...overTcp(ms + 100, POD, DNS, own, true),
        ...(i % 3 === 0 ? overTcp(ms + 300, DNS, UPSTREAM, port + 1, isAnswered || i === 0) : []),
      ];
    }),
  );
  return (await examine(packets)).findings.map(({ code }) => code);
};

test('replies over TCP that never come from one server, which accepts connections, were too large for the path', async () => {
  assert.equal((await codes(false))[0], 'ND3012');
  assert.ok(!(await codes(true)).includes('ND3012'));
});
