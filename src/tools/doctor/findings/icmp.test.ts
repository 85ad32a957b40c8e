import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  addressRecord,
  back,
  dnsMessage,
  fragments,
  icmpError,
  udpPacket,
  type Captured,
} from '../../../../test/kit/packets.ts';
import { examine } from '../../../../test/kit/story.ts';
import { asked, at, ends, inOrder } from '../../../../test/kit/story-parts.ts';
import type { Finding } from './finding.ts';

const [POD, DNS, UPSTREAM, ONPREM] = ['10.244.1.5', '10.244.1.58', '10.0.0.2', '10.50.0.10'];

/** Pods ask a DNS pod, which forwards; queries below `zone` go to a server that never answers. */
function forwarded(zone: string, more: (query: Captured) => readonly Captured[]): Captured[] {
  return inOrder(
    Array.from({ length: 30 }, (_, i) => {
      const isOwn = i % 3 === 0;
      const name = isOwn ? `h${i % 4}.${zone}` : `n${i}.example.com.`;
      const way = ends(DNS, 33_000 + i, isOwn ? ONPREM : UPSTREAM);
      const query = asked(i * 400 + 1, way, name, 700 + i, { tookMs: isOwn ? null : 2 });
      const failure = isOwn ? { tookMs: 3000, rcode: 2 } : { tookMs: 4 };
      return [
        ...asked(i * 400, ends(POD, 41_000 + i, DNS), name, i, failure),
        ...asked(i * 400 + 30, ends(POD, 43_000 + i, DNS), `s${i % 3}.shop.svc.cluster.local.`, i),
        ...query,
        ...(isOwn ? more(query[0]!) : []),
      ];
    }),
  );
}

const silent = async (packets: readonly Captured[]): Promise<Finding> => {
  const { findings } = await examine(packets);
  const found = findings.find(({ code }) => code === 'ND3005');
  assert.ok(found !== undefined, findings.map(({ code }) => code).join(', '));
  return found;
};

test('a TTL that runs out on the way shows a routing loop, and the zone that fails', async () => {
  const exceeded = (query: Captured) => [
    { timeMs: query.timeMs + 1, bytes: icmpError('10.0.1.1', query.bytes, 11, 0, DNS) },
  ];
  const { title, seen } = await silent(forwarded('onprem.example.', exceeded));
  assert.match(title, /routing loop/);
  assert.match(seen.join(' '), /from 10\.0\.1\.1 10 times/);
  assert.match(seen.join(' '), /names under onprem\.example\./);
});

test('a query that the node routes on with the address of its pod lacks source NAT', async () => {
  const routedOn = (query: Captured) => {
    const bytes = Uint8Array.from(query.bytes);
    bytes[8]!--;
    return [{ timeMs: query.timeMs + 0.01, bytes }];
  };
  assert.match((await silent(forwarded('onprem.example.', routedOn))).title, /source NAT/);
  assert.doesNotMatch((await silent(forwarded('onprem.example.', () => []))).title, /source NAT/);
});

test('if another upstream answers queries with the address of the pod, source NAT is not missing', async () => {
  const all = forwarded('onprem.example.', () => []);
  const routedOn = all.map(({ timeMs, bytes }) => {
    const copy = Uint8Array.from(bytes);
    copy[8]!--;
    return { timeMs: timeMs + 0.01, bytes: copy };
  });
  assert.doesNotMatch((await silent(inOrder([all, routedOn]))).title, /source NAT/);
});

test('a search domain whose server is silent is named as one', async () => {
  const walks = Array.from({ length: 6 }, (_, i) => {
    const name = `api${i}.example.org.`;
    const way = (port: number) => ends(POD, port + i, DNS);
    return [
      ...asked(i * 6000, way(50_000), `${name}shop.svc.cluster.local.`, i, { rcode: 3 }),
      ...asked(i * 6000 + 1, way(51_000), `${name}svc.cluster.local.`, i, { rcode: 3 }),
      ...asked(i * 6000 + 2, way(52_000), `${name}cluster.local.`, i, { rcode: 3 }),
      ...asked(i * 6000 + 3, way(53_000), `${name}corp.example.`, i, { tookMs: 4000, rcode: 2 }),
      ...asked(i * 6000 + 4, ends(DNS, 60_000 + i, ONPREM), `${name}corp.example.`, i, {
        tookMs: null,
      }),
      ...asked(i * 6000 + 4004, way(54_000), name, i),
      ...asked(i * 6000 + 4004.1, ends(DNS, 61_000 + i, UPSTREAM), name, i, { tookMs: 0.3 }),
    ];
  });
  assert.match(
    (await silent(inOrder(walks))).seen.join(' '),
    /the search domain corp\.example\. is appended/,
  );
});

test('pods that ask an address beside the DNS service have a wrong one', async () => {
  const packets = Array.from({ length: 20 }, (_, i) => {
    const name = `db${i % 4}.shop.svc.cluster.local.`;
    const way = ends('10.244.1.9', 45_000 + i);
    const translated = { ...way, to: DNS };
    const wrong = ends(POD, 46_000 + i, '10.100.0.10');
    const node = { ...wrong, from: '10.0.1.11' };
    const passing = (along: typeof way, ms: number, ttl: number) =>
      at(i * 500 + ms, udpPacket(along, dnsMessage(name, 'A', { id: i + 1 }), i + 1, ttl));
    const answer = [addressRecord(name, '10.96.3.1')];
    const message = dnsMessage(name, 'A', { id: i + 1, reply: true, answer });
    return [
      passing(way, 0, 64),
      passing(translated, 0.1, 63),
      at(i * 500 + 0.5, udpPacket(back(translated), message, 9)),
      at(i * 500 + 0.6, udpPacket(back(way), message, 9, 63)),
      passing(wrong, 50, 64),
      passing(node, 50.1, 63),
    ];
  });
  assert.match((await silent(inOrder(packets))).title, /name server address other than/);
});

test('an ICMP error for missing fragments shows at the server that they get lost', async () => {
  const packets = Array.from({ length: 5 }, (_, i) => {
    const way = ends('192.0.2.9', 50_000 + i, '203.0.113.53');
    const record = { name: 'big.example.', type: 16, class: 1, ttl: 30 };
    const answer = Array.from({ length: 9 }, () => ({
      ...record,
      data: { strings: ['v'.repeat(250)] },
    }));
    const long = dnsMessage('big.example.', 'TXT', { id: i, reply: true, answer });
    const parts = fragments(back(way), long, 1480, 60 + i);
    return [
      at(i * 9000, udpPacket(way, dnsMessage('big.example.', 'TXT', { id: i }), i + 1)),
      ...parts.map((bytes) => at(i * 9000 + 1, bytes)),
      at(i * 9000 + 8000, icmpError('192.0.2.9', parts[0]!, 11, 1, '203.0.113.53')),
      ...asked(i * 9000 + 3000, ends('192.0.2.9', 51_000 + i, '203.0.113.53'), 'a.example.', i),
    ];
  });
  const { findings } = await examine(inOrder(packets));
  assert.equal(findings[0]?.code, 'ND3012');
  assert.match(
    findings[0].seen.join(' '),
    /192\.0\.2\.9 reported that only the first fragment of 5 replies/,
  );
});
