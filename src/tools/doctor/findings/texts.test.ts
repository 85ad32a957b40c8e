import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { parseAddress } from '../../../server/base/ip.ts';
import {
  dnsMessage,
  icmpError,
  ip,
  udpPacket,
  type Captured,
} from '../../../../test/kit/packets.ts';
import { asked, at, begun, ends, inOrder, names, pods } from '../../../../test/kit/story-parts.ts';
import { everything } from '../part-diagnosis.ts';
import { answeredWith } from '../../../../test/kit/content-stories.ts';
import { FLAG } from '../../../server/wire/iana.ts';
import { healthy, look, play, examine } from '../../../../test/kit/story.ts';
import { whoOf } from '../report/who.ts';
import type { Finding } from './finding.ts';

/** Findings have to be true of the packets, and useful to a reader. */

const SERVICE = 'fd00:96::a';
const NEIGHBOUR = 'fd00:77::2';

async function first(packets: readonly Captured[]): Promise<Finding> {
  const { findings } = await examine(packets);
  assert.ok(findings[0] !== undefined);
  return findings[0];
}

/** A neighbour solicitation (RFC 4861). */
function solicitation(target: string, from = 'fd00:77::1'): Uint8Array {
  const address = parseAddress(target)!;
  return ip(
    { from, to: 'ff02::1:ff00:2' },
    58,
    Uint8Array.from([135, 0, 0, 0, 0, 0, 0, 0, ...address]),
  );
}

/** A reply that a host has the address. */
function advertisement(target: string, to: string): Uint8Array {
  const body = Uint8Array.from([136, 0, 0, 0, 0, 0, 0, 0, ...parseAddress(target)!]);
  return ip({ from: target, to }, 58, body);
}

/** Two programs look up a name now and then, at such times; what they ask is answered. */
const lookupsAt = (times: readonly number[]): Captured[][] =>
  times.flatMap((ms, i) =>
    ['A', 'AAAA'].map((type, half) =>
      asked(
        ms + half * 0.03,
        ends(`fd00:77::${7 + (i % 2)}`, 31_000 + i, SERVICE),
        `${names[i % 5]!}.`,
        2 * i + half,
        { type },
      ),
    ),
  );

/**
 * The kernel of a program asks three times for an address, a second apart, and then reports that it
 * is unreachable.
 */
const inVain = (ms: number, i: number): Captured[] =>
  [0, 1005, 2020].map((afterMs) =>
    at(ms + afterMs, solicitation(NEIGHBOUR, `fd00:77::${7 + (i % 2)}`)),
  );

/** Times in no order that goes by seconds. */
const begins = Array.from({ length: 14 }, (_, i) => 500 + i * 2170 + ((i * 733) % 900));

test('what a search domain made is not listed as a name as it was written', async () => {
  const packets = inOrder(
    Array.from({ length: 240 }, (_, i) => {
      const walk = (domain: string, nth: number): Captured[] =>
        asked(
          i * 50 + nth * 2,
          ends('10.244.1.30', 20_000 + i),
          `api${i % 3}.acme.test.${domain}`,
          i + 1,
          {
            rcode: 3,
          },
        );
      return [
        ...[
          'shop.svc.cluster.local.',
          'svc.cluster.local.',
          'cluster.local.',
          'eu.internal.',
        ].flatMap(walk),
        ...(i % 3 === 0 ? [] : walk('', 4)),
      ];
    }),
  );
  const { findings } = await examine(packets);
  const absent = findings.find(({ code }) => code === 'ND2008');
  assert.ok(absent !== undefined, findings.map(({ code }) => code).join());
  assert.doesNotMatch(absent.seen.join(' '), /eu\.internal|svc|api0/);
  assert.match(absent.seen.join(' '), /api1\.acme\.test\./);
  assert.match(absent.prove, /api1\.acme\.test/);
});

describe('what findings say', () => {
  test('programs whose first name server is missing on the link begin their lookups seconds late: no query is lost, and doctor warns', async () => {
    const packets = inOrder([
      ...begins.map((ms, i) => inVain(ms, i)),
      ...lookupsAt(begins.map((ms) => ms + 3050)),
    ]);
    const { code, severity, confidence, seen, fix, exchanges } = await first(packets);
    assert.equal(code, 'ND3015');
    assert.equal(severity, 'warning');
    assert.ok(confidence < 0.7, `${confidence}`);
    assert.match(seen[0]!, new RegExp(`^${NEIGHBOUR} was requested on the local network`));
    assert.match(seen[1]!, /^14 of 14 lookups from the 2 clients/);
    assert.match(fix[0]!, /nameserver/);
    assert.deepEqual([...new Set(exchanges.map(({ client }) => client.address))].toSorted(), [
      'fd00:77::7',
      'fd00:77::8',
    ]);
  });

  test('a client that asks the link for a missing address, even all the time, and does lookups at other times, has no dead name server', async () => {
    const everySecond = Array.from({ length: 40 }, (_, i) => inVain(i * 3030, i)).flat();
    const stranger = Array.from({ length: 60 }, (_, i) =>
      at(i * 1000, solicitation('fd00:77::99', 'fd00:77::42')),
    );
    // One of the clients does no lookups, though the others do some when the kernel gives up.
    const both = begins.flatMap((ms, i) => [
      ...inVain(ms, i),
      at(ms, solicitation(NEIGHBOUR, 'fd00:77::42')),
    ]);
    for (const [probes, times] of [
      [everySecond, begins],
      [stranger, begins],
      [both, begins.map((ms) => ms + 3050)],
      // An address that is answered at last was absent for a while.
      [
        [
          ...begins.flatMap((ms, i) => inVain(ms, i)),
          at(40_000, advertisement(NEIGHBOUR, 'fd00:77::7')),
        ],
        begins.map((ms) => ms + 3050),
      ],
    ] as const) {
      const { findings } = await examine(inOrder([probes, ...lookupsAt(times)]));
      assert.deepEqual(
        findings.map(({ code }) => code).filter((code) => code === 'ND3015'),
        [],
      );
    }
  });

  test('the missing neighbour is the one asked for without an answer, not the Service that is translated to it', async () => {
    const packets = Array.from({ length: 16 }, (_, i): Captured[] => {
      const query = udpPacket(
        ends('fd00:42::7', 30_000 + i, SERVICE),
        dnsMessage('db.', 'A', { id: i }),
        5,
      );
      return [
        at(i * 900, query),
        at(i * 900 + 1, solicitation(NEIGHBOUR)),
        at(i * 900 + 3, icmpError('fd00:77::1', query, 1, 3, 'fd00:42::7')),
      ];
    });
    const { code, seen, fix, prove } = await first(inOrder(packets));
    assert.equal(code, 'ND3015');
    assert.match(
      seen[0]!,
      new RegExp(`^${NEIGHBOUR} was requested on the local network .* 16 times`),
    );
    assert.match(seen[1]!, new RegExp(`^${SERVICE} drew ICMP`));
    assert.match(fix[0]!, new RegExp(NEIGHBOUR));
    assert.match(prove, new RegExp(`ip neigh show ${NEIGHBOUR};`));
  });

  test('a client that gets an ICMP port unreachable does not wait for a time-out', async () => {
    const packets = Array.from({ length: 16 }, (_, i) => {
      const query = udpPacket(
        ends('10.244.1.7', 30_000 + i, '10.96.0.10'),
        dnsMessage('db.', 'A', { id: i }),
        5,
      );
      return [
        at(i * 900, query),
        at(i * 900 + 1, icmpError('10.96.0.10', query, 3, 3, '10.244.1.7')),
      ];
    });
    const { code, why } = await first(inOrder(packets));
    assert.equal(code, 'ND3005');
    assert.match(why, /Clients that read the ICMP error \(glibc, Go\) try the next server at once/);
  });

  test('programs are affected, not the DNS pod that queries the upstream for them', async () => {
    const packets = inOrder(
      Array.from({ length: 60 }, (_, i) => {
        const name = `${names[i % 2]!}.`;
        return [
          ...asked(i * 200, ends('10.244.1.7', 31_000 + i, '10.244.3.2'), name, 300 + i, {
            rcode: 5,
            tookMs: 2,
          }),
          ...asked(i * 200 + 0.5, ends('10.244.3.2', 33_000 + i, '192.0.2.53'), name, 400 + i, {
            rcode: 5,
          }),
          ...asked(
            i * 200 + 90,
            ends('10.244.1.7', 35_000 + i, '10.244.3.2'),
            'db.shop.svc.cluster.local.',
            700 + i,
          ),
        ];
      }),
    );
    const finding = await first(packets);
    assert.equal(finding.code, 'ND4010');
    assert.match(
      finding.seen[0]!,
      /^60 of 120 \(50 %\) queries were REFUSED, most by 192\.0\.2\.53 \(60\)/,
    );
    assert.match(finding.seen[1]!, /^10\.244\.1\.7 got this error/);
    const [observed] = look(packets, [], [everything]);
    assert.deepEqual(
      whoOf(finding, observed!, new Map()).groups.map(({ name }) => name),
      ['10.244.1.7'],
    );
  });

  test('an upstream that fails is named, though the DNS pod remembers its failures and gives each of them many times', async () => {
    const packets = inOrder(
      Array.from({ length: 120 }, (_, i) => {
        const name = `${names[i % 5]!}.example.com.`;
        return [
          ...asked(i * 200, ends('10.244.1.7', 31_000 + i, '10.244.3.2'), name, 300 + i, {
            rcode: 2,
            tookMs: 2,
          }),
          ...(i % 10 === 0
            ? asked(i * 200 + 0.5, ends('10.244.3.2', 33_000 + i, '192.0.2.53'), name, 400 + i, {
                rcode: 2,
              })
            : []),
          ...asked(
            i * 200 + 90,
            ends('10.244.1.7', 35_000 + i, '10.244.3.2'),
            'db.shop.svc.cluster.local.',
            700 + i,
          ),
        ];
      }),
    );
    const { findings } = await examine(packets);
    const failing = findings.find(({ code }) => code === 'ND4002' || code === 'ND4007');
    assert.match(
      failing?.seen[0] ?? '',
      /192\.0\.2\.53/,
      findings.map(({ code }) => code).join(' '),
    );
  });

  test('a capture without the upstream does not claim that a cached failure is over', async () => {
    const failing = (broken: string, isUpstream: boolean): Captured[] =>
      inOrder(
        Array.from({ length: 40 }, (_, i) => [
          ...asked(i * 900, ends('10.244.1.7', 31_000 + i), broken, i, { rcode: 2, tookMs: 0.3 }),
          ...asked(
            i * 900 + 200,
            ends('10.244.1.7', 32_000 + i),
            i % 2 === 0 ? 'db.shop.svc.cluster.local.' : 'www.example.org.',
            100 + i,
          ),
          ...(isUpstream
            ? asked(
                i * 900 + 200.1,
                ends('10.244.3.2', 33_000 + i, '192.0.2.53'),
                'www.example.org.',
                i,
              )
            : []),
        ]),
      );
    const alone = await first(failing('broken.example.', false));
    assert.equal(alone.code, 'ND4007');
    assert.match(alone.title, /always fail/);
    assert.match(alone.why, /Either the names still fail there/);
    const both = await first(failing('broken.example.', true));
    assert.equal(both.code, 'ND4007');
    assert.match(both.title, /^A failure is cached/);
  });

  test('truncated answers in a capture without any TCP do not blame the client', async () => {
    const packets = inOrder(
      Array.from({ length: 30 }, (_, i) => {
        const way = ends('10.244.1.7', 31_000 + i);
        const reply = { flags: FLAG.QR | FLAG.RD | FLAG.RA | FLAG.TC };
        return ['A', 'AAAA'].flatMap((type, half) =>
          answeredWith(i * 700, way, 'set.shop.svc.cluster.local.', 2 * i + half, type, reply),
        );
      }),
    );
    const { code, title, why, severity } = await first(packets);
    assert.equal(code, 'ND3011');
    assert.equal(severity, 'warning');
    assert.match(title, /does not show whether TCP/);
    assert.match(why, /If TCP port 53 is blocked before this point/);
  });

  test('a server that makes half of all lookups wait for a second is critical', async () => {
    for (const [late, severity] of [
      [20, 'critical'],
      [8, 'warning'],
    ] as const) {
      let asked = 0;
      const packets = await play(
        pods('glibc', 3, {
          lookups: 40,
          everyMs: 3000,
          resolvConf: 'nameserver 10.96.0.10\n',
        }),
        (passing) => ({
          ...healthy(passing),
          tookMs: asked++ % 20 < late ? 1300 : 500,
        }),
      );
      const { findings } = await examine(packets);
      assert.equal(findings.find(({ code }) => code === 'ND4003')?.severity, severity);
    }
  });

  test('clients that wait for a slow server are reported, with their resolvers, also in a capture that has only the beginnings of names', async () => {
    const packets = await play(
      [
        ...pods('glibc', 2, { lookups: 12, everyMs: 1300 }),
        ...pods('go', 1, { lookups: 12, everyMs: 1300, from: 20 }),
        ...pods('musl', 1, { lookups: 12, everyMs: 1300, from: 40 }),
      ],
      (passing) => ({ ...healthy(passing), tookMs: 1100 }),
    );
    const finding = await first(begun(packets, 20 + 8 + 12 + 12));
    assert.equal(finding.code, 'ND4003');
    const [observed] = look(begun(packets, 20 + 8 + 12 + 12), [], [everything]);
    const { clients, resolvers } = whoOf(finding, observed!, new Map());
    assert.equal(clients, 4);
    assert.deepEqual(
      new Map(resolvers),
      new Map([
        ['glibc', 2],
        ['go', 1],
        ['musl', 1],
      ]),
    );
  });

  test('a silence lasts until the next reply, and not until the last query of those who wait', async () => {
    const packets = await play(pods('glibc', 4, { lookups: 40, everyMs: 500 }), (passing) =>
      passing.atMs > 6000 && passing.atMs < 12_000 ? { lost: true } : healthy(passing),
    );
    const { code, seen } = await first(packets);
    assert.equal(code, 'ND3007');
    const [, at = '', seconds = ''] =
      /next reply came at 03:07:(\d+), (\d)\.0 s later/.exec(seen.join(' ')) ?? [];
    assert.ok(Number(at) >= 11 && Number(at) <= 12, seen.join(' '));
    assert.ok(Number(seconds) >= 5, seen.join(' '));
  });

  test('of a pod that stopped it is said what became of queries since then', async () => {
    const packets = await play(pods('glibc', 5, { lookups: 30, everyMs: 600 }), (passing) => {
      const pod = (passing.port + passing.client.length) % 3;
      const fate = { ...healthy(passing), behind: `10.244.9.${pod + 1}` };
      return pod === 1 && passing.atMs > 9000 ? { ...fate, lost: true } : fate;
    });
    const { code, seen } = await first(packets);
    assert.equal(code, 'ND3008');
    const [, lost, all] =
      /answered until 03:07:0\d\. Since then, (\d+) of (\d+) .*queries sent there /.exec(
        seen[0]!,
      ) ?? [];
    assert.equal(lost, all, seen[0]!);
  });
});
