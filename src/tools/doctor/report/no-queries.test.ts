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
