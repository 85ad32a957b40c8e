import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  addressRecord,
  back,
  dnsMessage,
  fragments,
  TCP,
  tcpPacket,
  icmpError,
  udpPacket,
  type Captured,
} from '../../../../test/kit/packets.ts';
import { examine } from '../../../../test/kit/story.ts';
import { asked, at, ends, inOrder } from '../../../../test/kit/story-parts.ts';

const [POD, NODE, UPSTREAM] = ['10.244.0.7', '192.168.10.11', '10.20.0.53'];
const BIG = 'mail.corp.example.';
const TXT = 16;
const edns = (payload: number) => ({ udpSize: payload, version: 0, dnssecOk: false, options: [] });

/** A query with EDNS, and its reply of about this size. @param tookMs null: no reply */
function sized(
  ms: number,
  client: string,
  port: number,
  more: {
    readonly bytes: number;
    readonly type?: string;
    readonly tookMs?: number | null;
    readonly server?: string;
  },
): readonly Captured[] {
  const { bytes, type = 'A', tookMs = 4, server = UPSTREAM } = more;
  const way = ends(client, port, server);
  const answer =
    type === 'A'
      ? Array.from({ length: bytes >> 4 }, (_, n) => addressRecord(BIG, `10.9.0.${n}`))
      : [
          {
            ...{ name: BIG, type: TXT, class: 1, ttl: 30 },
            data: { strings: ['v'.repeat(bytes)] },
          },
        ];
  const query = dnsMessage(BIG, type, { id: port, edns: edns(1232) });
  const reply = dnsMessage(BIG, type, { id: port, reply: true, answer });
  return [
    at(ms, udpPacket(way, query, port)),
    ...(tookMs === null ? [] : [at(ms + tookMs, udpPacket(back(way), reply, port + 1))]),
  ];
}

const check = (ms: number, client: string, port: number): readonly Captured[] =>
  asked(ms, ends(client, port, UPSTREAM), '.', port, { type: 'NS' });

test('at the upstream: a forwarder asks again only for replies above 512 bytes, and checks each time', async () => {
  const codes = async (bytes: number): Promise<readonly string[]> => {
    const packets = Array.from({ length: 10 }, (_, i) => [
      ...sized(i * 2000, NODE, 40_000 + 4 * i, { bytes }),
      ...(i === 5 ? sized(i * 2000 + 300, NODE, 40_001 + 4 * i, { bytes: 100, type: 'TXT' }) : []),
      ...check(i * 2000 + 1, NODE, 40_002 + 4 * i),
    ]);
    return (await examine(inOrder(packets))).findings.map(({ code }) => code);
  };
  assert.equal((await codes(800))[0], 'ND3012');
  assert.ok(!(await codes(200)).includes('ND3012'));
});

/** At the DNS pod: A is never answered, TXT of the same name is, and queries without EDNS get truncated replies. */
function atPod(isTruncated: boolean): readonly Captured[] {
  return inOrder(
    Array.from({ length: 6 }, (_, i) => {
      const way = ends(POD, 42_000 + i, UPSTREAM);
      const cut = dnsMessage('cdn.corp.example.', 'A', { id: i, reply: true, flags: 0x8380 });
      return [
        ...sized(i * 6000, POD, 40_000 + i, { bytes: 800, tookMs: null }),
        ...sized(i * 6000 + 3000, POD, 41_000 + i, { bytes: 100, type: 'TXT' }),
        ...(isTruncated
          ? [
              at(i * 6000 + 4000, udpPacket(way, dnsMessage('cdn.corp.example.', 'A', { id: i }))),
              at(i * 6000 + 4004, udpPacket(back(way), cut)),
            ]
          : []),
      ];
    }),
  );
}

test('at the DNS pod: one type of a name is never answered, and the server has answers above 512 bytes', async () => {
  const first = async (isTruncated: boolean): Promise<string | undefined> =>
    (await examine(atPod(isTruncated))).findings[0]?.code;
  assert.equal(await first(true), 'ND3012');
  assert.notEqual(await first(false), 'ND3012');
});

/** Before and after a translation: all replies pass it, and some do not reach the pod. */
function onBothSides(isLost: (i: number) => boolean): readonly Captured[] {
  return inOrder(
    Array.from({ length: 16 }, (_, i) => {
      const bytes = i % 2 === 0 ? 800 : 100;
      const [ms, port] = [i * 3000, 40_000 + i];
      const type = i % 2 === 0 ? 'A' : 'TXT';
      return [
        ...sized(ms, POD, port, {
          ...{ bytes, type, server: '10.96.0.10' },
          tookMs: isLost(i) ? null : 6,
        }),
        ...sized(ms + 0.1, POD, port, { bytes, type }),
      ];
    }),
  );
}

test('on both sides: only replies above 512 bytes do not come back', async () => {
  const [first] = (await examine(onBothSides((i) => i % 2 === 0))).findings;
  assert.equal(first?.code, 'ND3012');
  assert.match(first.seen[0]!, /512 bytes/);
  const { findings } = await examine(onBothSides((i) => i % 4 < 2));
  assert.ok(!findings.some(({ code }) => code === 'ND3012'));
});

test('on the node: a pod that reports missing fragments repeats queries whose fragments passed', async () => {
  const packets = Array.from({ length: 6 }, (_, i) => {
    const way = ends(POD, 50_000, UPSTREAM);
    const answer = Array.from({ length: 9 }, () => ({
      ...{ name: BIG, type: TXT, class: 1, ttl: 30 },
      data: { strings: ['v'.repeat(250)] },
    }));
    const id = 500 + (i >> 1);
    const long = dnsMessage(BIG, 'TXT', { id, reply: true, answer });
    const parts = fragments(back(way), long, 1480, 60 + i);
    const ms = i * 3000;
    return [
      at(ms, udpPacket(way, dnsMessage(BIG, 'TXT', { id, edns: edns(4096) }), i + 1)),
      ...parts.map((bytes) => at(ms + 1, bytes)),
      ...(i === 0 ? [at(ms + 17_000, icmpError(POD, parts[0]!, 11, 1, UPSTREAM))] : []),
      ...asked(ms + 700, ends(POD, 51_000 + i, UPSTREAM), `n${i}.example.`, i),
    ];
  });
  const { findings } = await examine(inOrder(packets));
  const [first] = findings;
  assert.equal(first?.code, 'ND3012');
  assert.match(first.seen.join(' '), /reassembly.*repeated 5 queries/);
  assert.deepEqual(
    findings.filter(({ severity }) => severity === 'critical').map(({ code }) => code),
    ['ND3012'],
  );
});

test('fragments are lost, and TCP, the fallback, is blocked: the fragments come first and name both', async () => {
  const packets = Array.from({ length: 8 }, (_, i) => {
    const way = ends(POD, 50_000 + i, UPSTREAM);
    const answer = Array.from({ length: 9 }, () => ({
      ...{ name: BIG, type: TXT, class: 1, ttl: 30 },
      data: { strings: ['v'.repeat(250)] },
    }));
    const long = dnsMessage(BIG, 'TXT', { id: i, reply: true, answer });
    const [head] = fragments(back(way), long, 1480, 60 + i);
    const small = ends(POD, 52_000 + i, UPSTREAM);
    const cut = dnsMessage(BIG, 'TXT', { id: i, reply: true, flags: 0x8380 });
    const ms = i * 5000;
    return [
      at(ms, udpPacket(way, dnsMessage(BIG, 'TXT', { id: i, edns: edns(4096) }), i + 1)),
      at(ms + 1, head!),
      at(ms + 800, udpPacket(small, dnsMessage(BIG, 'TXT', { id: i, edns: edns(1232) }), i + 30)),
      at(ms + 801, udpPacket(back(small), cut, i + 40)),
      at(ms + 802, tcpPacket(small, 100, TCP.SYN)),
      at(ms + 1802, tcpPacket(small, 100, TCP.SYN)),
      ...asked(ms + 700, ends(POD, 51_000 + i, UPSTREAM), `n${i}.example.`, i),
    ];
  });
  const { findings } = await examine(inOrder(packets));
  assert.deepEqual(
    findings.slice(0, 2).map(({ code }) => code),
    ['ND3012', 'ND3011'],
  );
  assert.match(findings[0]!.seen.join(' '), /cannot be reached over TCP either/);
});
