import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RCODE } from '../../../server/wire/iana.ts';
import { soa } from '../../../../test/kit/content-stories.ts';
import { given, others, type Given } from '../../../../test/kit/given-answers.ts';
import { back, TCP, tcpPacket, type Captured } from '../../../../test/kit/packets.ts';
import { at, inOrder } from '../../../../test/kit/story-parts.ts';
import { examine } from '../../../../test/kit/story.ts';
import type { Finding } from './finding.ts';

/** Six connections of 10.244.1.7 (or its IPv6 address) that open, or get no reply. */
const connections = (to: string, opens: boolean): Captured[] =>
  Array.from({ length: 6 }, (_, nth) => {
    const from = to.includes(':') ? '2001:db8:244::7' : '10.244.1.7';
    const way = { from, fromPort: 41_000 + nth, to, toPort: 443 };
    const ms = 1000 * nth + 20;
    return [
      at(ms, tcpPacket(way, 1, TCP.SYN)),
      opens
        ? at(ms + 1, tcpPacket(back(way), 1, TCP.SYN | TCP.ACK))
        : at(ms + 900, tcpPacket(way, 1, TCP.SYN)),
    ];
  }).flat();

const findings = async (
  all: readonly Given[],
  packets: readonly Captured[] = [],
): Promise<readonly Finding[]> => {
  const own = [...given([...others(20), ...all]), ...packets];
  return (await examine(inOrder(own.map((each) => [each])))).findings;
};
const codesOf = (all: readonly Finding[]): readonly string[] => all.map(({ code }) => code);

const VIRTUAL: readonly Given[] = [{ atMs: 5, name: 'pay.prod.global.', address: '240.240.0.9' }];

test('failed connections to a virtual address mean a missing sidecar, while opened ones mean nothing is wrong', async () => {
  const [first, ...rest] = await findings(VIRTUAL, connections('240.240.0.9', false));
  assert.equal(first?.code, 'ND4047');
  assert.match(first.seen.join(' '), /pay\.prod\.global\. with 240\.240\.0\.9.*10\.244\.1\.7/s);
  assert.ok(!codesOf(rest).includes('ND3091'));
  const fine = await findings(VIRTUAL, connections('240.240.0.9', true));
  assert.ok(!codesOf(fine).includes('ND4047'));
});

/** A and AAAA of two names, the latter with the former in it. */
const synthesized = (prefix: string): Given[] =>
  ['www.example.com.', 'api.example.org.'].flatMap((name, nth): Given[] => [
    { atMs: 5 + nth, name, address: `203.0.113.${nth + 1}` },
    { atMs: 7 + nth, name, type: 'AAAA', address: `${prefix}cb00:710${nth + 1}` },
  ]);

test('DNS64 is reported with its prefix if NAT64 is missing, and not otherwise', async () => {
  for (const prefix of ['64:ff9b::', '2001:db8:64::']) {
    const all = synthesized(prefix);
    const [first] = await findings(all, connections(`${prefix}cb00:7101`, false));
    assert.equal(first?.code, 'ND4046');
    assert.match(first.seen[0]!, new RegExp(`${prefix}/96`));
    assert.ok(
      !codesOf(await findings(all, connections(`${prefix}cb00:7101`, true))).includes('ND4046'),
    );
    const remark = (await findings(all)).find(({ code }) => code === 'ND4046');
    assert.equal(remark?.severity, 'info');
  }
});

/** A walk that ends at a Service, as glibc does it. */
const walk = (stem: string, address: string): Given[] => [
  {
    ...{ atMs: 5, name: `${stem}shop.svc.cluster.local.` },
    reply: { rcode: RCODE.NXDOMAIN, authority: [soa('cluster.local.')] },
  },
  { atMs: 6, name: `${stem}svc.cluster.local.`, address },
];

test('a Service that hides an external name is reported with its namespace, while an intended one is not', async () => {
  const failing = connections('10.96.7.7', false);
  const [alone] = await findings(walk('quay.io.', '10.96.7.7'), failing);
  assert.equal(alone?.code, 'ND2020');
  assert.match(alone.seen[0]!, /Service quay in the namespace io/);
  const real = { atMs: 9, name: 'quay.io.', address: '198.51.100.4', client: '10.244.1.9' };
  const [both] = await findings([...walk('quay.io.', '10.96.7.7'), real], failing);
  assert.equal(both?.code, 'ND2020');
  assert.match(both.seen[1]!, /198\.51\.100\.4/);
  const meant = await findings(walk('redis.cache.', '10.96.7.7'), failing);
  assert.ok(!codesOf(meant).includes('ND2020'));
  const open = await findings(walk('quay.io.', '10.96.7.7'), connections('10.96.7.7', true));
  assert.ok(!codesOf(open).includes('ND2020'));
});
