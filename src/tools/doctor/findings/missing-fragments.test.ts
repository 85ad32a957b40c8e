import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  addressRecord,
  back,
  dnsMessage,
  framed as framedOf,
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

test('TCP replies that never arrive from a server that accepts connections were too large for the path', async () => {
  assert.equal((await codes(false))[0], 'ND3012');
  assert.ok(!(await codes(true)).includes('ND3012'));
});

/** Full-size segments of an answer over TCP, sent again when the server’s timer runs out. @param times repeats */
function stuckSegments(client: string, times: number, spacingMs: number): readonly Captured[] {
  const answer = Array.from({ length: 60 }, (_, i) => addressRecord(BIG, `10.9.0.${i}`));
  return Array.from({ length: 3 }, (_, i): readonly Captured[] => {
    const [ms, port] = [i * 9000, 30_000 + i];
    const way = ends(client, port);
    const reply = framedOf(dnsMessage(BIG, 'A', { id: port, reply: true, answer }));
    const segment = tcpPacket(back(way), 501, TCP.PSH | TCP.ACK, reply);
    return [
      ...overTcp(ms, client, '10.96.0.10', port, false),
      at(ms + 6, segment),
      ...Array.from({ length: times }, (__, n) => at(ms + 6 + spacingMs * 2 ** n, segment)),
    ];
  }).flat();
}

test('full-size segments that are retransmitted again and again never reach the client', async () => {
  const [first] = (await examine(inOrder([stuckSegments(POD, 5, 220)]))).findings;
  assert.equal(first?.code, 'ND3012');
  assert.equal(first.severity, 'critical');
  assert.match(first.seen.join(' '), /3 TCP connections to 10\.244\.1\.5.*15 times/);
});

test('segments that are captured twice or retransmitted once are not stuck', async () => {
  for (const [times, spacingMs] of [
    [5, 0.01],
    [1, 220],
  ] as const)
    assert.deepEqual(
      (await examine(inOrder([stuckSegments(POD, times, spacingMs)]))).findings
        .filter(({ severity }) => severity !== 'info')
        .map(({ code }) => code),
      [],
    );
});
