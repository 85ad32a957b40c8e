import assert from 'node:assert/strict';
import { test } from 'node:test';
import { back, TCP, tcpPacket, type Captured, type Ends } from '../../../../test/kit/packets.ts';
import { given, others } from '../../../../test/kit/given-answers.ts';
import { examine } from '../../../../test/kit/story.ts';
import { at, inOrder } from '../../../../test/kit/story-parts.ts';
import { usualPorts, Reading } from '../../capture/read/reading.ts';
import { Examination } from '../examination.ts';
import { isWithoutDns, withoutDnsHints } from './no-queries.ts';

/** Connections to port 853, with the flags of the segments after the SYN. */
function overTls(ending: number): readonly Captured[] {
  return inOrder(
    Array.from({ length: 20 }, (_, i) => {
      const way: Ends = { from: '172.18.0.3', fromPort: 40_000 + i, to: '10.0.0.2', toPort: 853 };
      return [
        at(i * 500, tcpPacket(way, 100, TCP.SYN)),
        at(i * 500 + 1, tcpPacket(back(way), 1, ending)),
      ];
    }),
  );
}

function resultOf(packets: readonly Captured[]): { isEmpty: boolean; hints: string } {
  const { domains, events, observed } = new Examination();
  const reading = new Reading(events, usualPorts, { domains });
  for (const { timeMs, bytes } of packets) reading.takeNetwork(bytes, 0, bytes.length, timeMs, 0);
  reading.end();
  const isEmpty = isWithoutDns(reading, observed[0]!);
  return { isEmpty, hints: withoutDnsHints(reading, observed[0]!).join('\n') };
}

test('failed connections of DNS over TLS deserve a report, without any query', () => {
  assert.equal(resultOf(overTls(TCP.RST | TCP.ACK)).isEmpty, false);
});

test('a capture of DNS over TLS that works has a hint that queries are encrypted', () => {
  const { isEmpty, hints } = resultOf(overTls(TCP.SYN | TCP.ACK));
  assert.equal(isEmpty, true);
  assert.match(hints, /^20 connections went to 10\.0\.0\.2 port 853 \(DNS over TLS\)/);
});

test('one connection to a name server whose first packet is repeated without an answer deserves a report', async () => {
  const way: Ends = { from: '10.244.1.21', fromPort: 57_466, to: '10.96.0.10', toPort: 53 };
  const repeated = (times: readonly number[]): Captured[] =>
    times.map((ms) => at(ms, tcpPacket(way, 100, TCP.SYN)));
  const blocked = repeated([0, 1000, 2000, 3000, 4000, 5000, 7000, 11_000, 19_000]);
  assert.equal(resultOf(blocked).isEmpty, false);
  assert.equal(resultOf(repeated([0, 1000, 2000])).isEmpty, true);
  // Other pods of the node ask over UDP, and are answered.
  for (const packets of [blocked, inOrder([blocked, given(others(20))])]) {
    const [first] = (await examine(packets)).findings;
    assert.equal(first?.code, 'ND3011');
    assert.equal(first.severity, 'critical');
    assert.match(
      first.seen[0]!,
      /1 of 1 .*10\.244\.1\.21 opened to 10\.96\.0\.10 were not answered/,
    );
    assert.match(first.why, /use-vc/);
  }
});

/** A server that sends large segments again and again. @param isCopied by another interface of the node, at once */
function stuck(times: readonly number[], isCopied = false): readonly Captured[] {
  return inOrder(
    Array.from({ length: 4 }, (_, i) => {
      const way: Ends = {
        from: '10.244.1.33',
        fromPort: 40_000 + i,
        to: '10.244.2.45',
        toPort: 8080,
      };
      const sent = (ms: number, sequence: number) =>
        at(i * 500 + ms, tcpPacket(back(way), sequence, TCP.ACK, new Uint8Array(1448)));
      return [
        at(i * 500, tcpPacket(way, 100, TCP.SYN)),
        at(i * 500 + 1, tcpPacket(back(way), 1, TCP.SYN | TCP.ACK)),
        ...Array.from({ length: 40 }, (__, nth) => [
          sent(2 + nth * 200, 2 + 1448 * nth),
          ...(isCopied ? [sent(2.1 + nth * 200, 2 + 1448 * nth)] : []),
        ]).flat(),
        ...times.map((ms) => sent(8000 + ms, 2 + 1448 * 39)),
      ];
    }),
  );
}

test('without queries, segments that are retransmitted again and again are reported', () => {
  const { isEmpty, hints } = resultOf(stuck([200, 600, 1500, 3100]));
  assert.equal(isEmpty, true);
  assert.match(
    hints,
    /^On 4 of 4 .* 10\.244\.2\.45 port 8080 retransmitted .* 1448 bytes .* up to 4 times/,
  );
  assert.doesNotMatch(hints, /All .* packets are IPv4/);
  // Neither a lost segment nor a second interface is a black hole.
  assert.doesNotMatch(resultOf(stuck([200])).hints, /retransmitted/);
  assert.doesNotMatch(resultOf(stuck([], true)).hints, /retransmitted/);
});
