import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RCODE } from '../../../server/wire/iana.ts';
import { soa } from '../../../../test/kit/content-stories.ts';
import { given, others, type Given } from '../../../../test/kit/given-answers.ts';
import { back, TCP, tcpPacket, type Captured } from '../../../../test/kit/packets.ts';
import { at, inOrder } from '../../../../test/kit/story-parts.ts';
import { examine } from '../../../../test/kit/story.ts';
import type { Finding } from './finding.ts';

const CLIENT = '10.244.1.7';
const missing = Array.from({ length: 8 }, (_, nth): Given => ({
  atMs: nth * 2000 + 300,
  name: 'otel-collector.monitoring.svc.cluster.local.',
  reply: { rcode: RCODE.NXDOMAIN, authority: [soa('cluster.local.')] },
}));
const found = Array.from({ length: 12 }, (_, nth): Given => ({
  atMs: nth * 1500 + 700,
  name: 'orders.shop.svc.cluster.local.',
  address: '10.96.71.4',
}));

/** A connection after each lookup of the Service. @param opens whether it is accepted */
const connections = (opens: (nth: number) => boolean): Captured[] =>
  found.flatMap(({ atMs }, nth) => {
    const way = { from: CLIENT, fromPort: 41_000 + nth, to: '10.96.71.4', toPort: 80 };
    return [
      at(atMs + 10, tcpPacket(way, 1, TCP.SYN)),
      opens(nth)
        ? at(atMs + 11, tcpPacket(back(way), 1, TCP.SYN | TCP.ACK))
        : at(atMs + 1010, tcpPacket(way, 1, TCP.SYN)),
    ];
  });

const findings = async (packets: readonly Captured[]): Promise<readonly Finding[]> =>
  (await examine(inOrder([given([...others(20), ...missing, ...found]), [...packets]]))).findings;

test('a missing name is information if connections to another name’s address fail', async () => {
  const all = await findings(connections((nth) => nth % 2 === 0));
  assert.equal(all[0]?.code, 'ND3091');
  assert.equal(all.find(({ code }) => code === 'ND2008')?.severity, 'info');
});

test('a missing name is a warning if connections are accepted', async () => {
  const all = await findings(connections(() => true));
  assert.equal(all[0]?.code, 'ND2008');
  assert.equal(all[0].severity, 'warning');
});
