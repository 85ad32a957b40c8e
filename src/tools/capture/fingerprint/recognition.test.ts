import assert from 'node:assert/strict';
import { test } from 'node:test';
import { seededRandom } from '../../../server/base/random.ts';
import { readMeasured } from '../../../../test/kit/measured.ts';
import { readRecorded } from '../../../../test/kit/recorded.ts';
import { addressRecord, back, dnsMessage, udpPacket } from '../../../../test/kit/packets.ts';
import { recordedKind } from '../../../../test/kit/measure-traits.ts';
import { recordedPackets } from '../../../../test/kit/recorded-capture.ts';
import type { MeasuredQuery } from '../../../../test/kit/measured.ts';
import { Reading } from '../read/reading.ts';
import type { Kind } from './asking-classes.ts';
import { Recognition, type Recognised } from './recognition.ts';

function recordings(): ReadonlyMap<string, readonly (readonly MeasuredQuery[])[]> {
  const found = new Map<string, (readonly MeasuredQuery[])[]>();
  const add = (client: string, queries: readonly MeasuredQuery[]): void => {
    if (recordedKind(client) === null || queries.length < 2) return;
    found.set(client, [...(found.get(client) ?? []), queries]);
  };
  for (const { runs } of readMeasured()) for (const run of runs) add(run.client, run.queries);
  for (const { runs, families } of readRecorded())
    if (families.length === 2) for (const run of runs) add(run.client, run.queries);
  return found;
}

const walks = (queries: readonly MeasuredQuery[]): boolean =>
  new Set(queries.map(([, , , , , name]) => name)).size > 1;

/**
 * Compares the recognised kind with the real one for five runs of each client.
 * @param choose selects the five runs; empty to skip the client
 * @param snap how many bytes of each packet are captured
 */
function recogniseRecorded(
  choose: (
    runs: readonly (readonly MeasuredQuery[])[],
    lookup: number,
  ) => readonly (readonly MeasuredQuery[])[],
  snap = Infinity,
): { readonly share: (kind: Kind) => number; readonly wrong: readonly string[] } {
  const random = seededRandom(11);
  const right = new Map<Kind, number>();
  const all = new Map<Kind, number>();
  const wrong: string[] = [];
  for (const [client, runs] of recordings()) {
    if (choose(runs, 0).length === 0) continue;
    const kind = recordedKind(client)!;
    for (let turn = 0; turn < 12; turn++) {
      const recognition = new Recognition();
      const reading = new Reading({ lookup: (lookup) => recognition.add(lookup) });
      // Five runs that are a minute apart count as five calls by one client.
      for (let lookup = 0; lookup < 5; lookup++) {
        const from = choose(runs, lookup);
        const queries = from[random.integer(from.length)]!;
        for (const { bytes, timeMs } of recordedPackets(
          queries,
          '10.244.0.9',
          1.7e12 + (turn * 5 + lookup) * 200_000,
          20_000 + 900 * lookup,
        ))
          reading.takeNetwork(bytes, 0, Math.min(snap, bytes.length), timeMs, 0);
      }
      reading.end();
      all.set(kind, (all.get(kind) ?? 0) + 1);
      const { best } = recognition;
      if (best?.kind === kind && best.confidence >= 0.7)
        right.set(kind, (right.get(kind) ?? 0) + 1);
      else wrong.push(`${client} taken for ${best?.kind} (${best?.confidence.toFixed(2)})`);
    }
  }
  const share = (kind: Kind): number => (right.get(kind) ?? 0) / all.get(kind)!;
  if (process.env['SHOW'] !== undefined)
    console.log(
      [...all].map(([kind, n]) => `${kind} ${n} ${share(kind).toFixed(3)}`),
      wrong,
    );
  return { share, wrong };
}

test('of five lookups, at least one of which walks the search path, glibc, musl, Go and c-ares are recognised 19 times in 20', () => {
  const { share, wrong } = recogniseRecorded((runs, lookup) => {
    const walking = runs.filter(walks);
    return lookup === 0 || walking.length === 0 ? walking : runs;
  });
  for (const kind of ['glibc', 'musl', 'go', 'c-ares'] as const)
    assert.ok(share(kind) >= 0.95, `${kind}: ${share(kind)}; ${wrong.join('; ')}`);
});

test('of five lookups, at least one of which walks the search path, whose names are cut after 16 bytes, 9 in 10 are recognised', () => {
  const { share, wrong } = recogniseRecorded(
    (runs, lookup) => {
      const walking = runs.filter(walks);
      return lookup === 0 || walking.length === 0 ? walking : runs;
    },
    20 + 8 + 12 + 16,
  );
  for (const kind of ['glibc', 'musl', 'go', 'c-ares'] as const)
    assert.ok(share(kind) >= 0.9, `${kind}: ${share(kind)}; ${wrong.join('; ')}`);
});

test('of five lookups for one name each, the ids of a pair, which glibc derives from one clock, distinguish it from c-ares 9 times in 10', () => {
  const { share, wrong } = recogniseRecorded((runs) => {
    const still = runs.filter((run) => !walks(run));
    // The same few lookups would lead to the same result.
    return still.length < 8 ? [] : still;
  });
  for (const kind of ['glibc', 'musl', 'go', 'c-ares'] as const)
    assert.ok(share(kind) >= 0.9, `${kind}: ${share(kind)}; ${wrong.join('; ')}`);
});

/** One ID of a pair as glibc generates it, from a clock's nanoseconds that are folded and then byte-swapped. */
function clockId(pair: number, half: number): number {
  const ns = pair * 99_991 + half * 430;
  const bits = ns ^ (ns >>> 8);
  return ((bits & 0xff) << 8) | ((bits >>> 8) & 0xff);
}

const drawnId = (pair: number, half: number): number =>
  Math.imul(pair * 2 + half + 1, 0x9e3779b1) >>> 16;

test('glibc that asks one question at a time, as it does after it has lost one of a pair, is recognised', () => {
  const recognition = new Recognition();
  const reading = new Reading({ lookup: (lookup) => recognition.add(lookup) });
  const domains = ['shop.svc.k8s.lan.', 'svc.k8s.lan.', 'k8s.lan.', ''];
  let port = 1;
  const queries = [
    'api.shop.example.',
    'redis.data.',
    'www.kiosk.example.',
    'db.corp.',
    'hooks.',
  ].flatMap((stem, at) =>
    domains.flatMap((domain, step) =>
      ['A', 'AAAA'].map((type, half): MeasuredQuery => {
        const ms = at * 400 + step * 60 + half * 28;
        const answer = domain === '' ? '192.0.2.1' : 'NXDOMAIN';
        port++;
        return [
          ms,
          'udp',
          '10.96.0.10',
          port,
          clockId(at * 4 + step, half),
          `${stem}${domain}`,
          type,
          '',
          '',
          answer,
        ];
      }),
    ),
  );
  for (const { bytes, timeMs } of recordedPackets(queries, '10.244.1.9', 1.7e12))
    reading.takeNetwork(bytes, 0, bytes.length, timeMs, 0);
  reading.end();
  assert.equal(recognition.best?.kind, 'glibc');
});

/** The kind recognised for a client that sends these queries, with pairs 12 ms apart. */
function takenFor(queries: readonly MeasuredQuery[]): Kind | undefined {
  return recognised(queries)?.kind;
}

function recognised(queries: readonly MeasuredQuery[]): Recognised | null {
  const recognition = new Recognition();
  const reading = new Reading({ lookup: (lookup) => recognition.add(lookup) });
  for (const { bytes, timeMs } of recordedPackets(queries, '10.244.1.9', 1.7e12))
    reading.takeNetwork(bytes, 0, bytes.length, timeMs, 0);
  reading.end();
  return recognition.best;
}

/** Pairs of A and AAAA queries sent from one port at the same time, for a name as written. */
const pairs = (
  names: readonly string[],
  count: number,
  answer: string,
  id = clockId,
): MeasuredQuery[] =>
  Array.from({ length: count }, (_, at) =>
    ['A', 'AAAA'].map((type, half): MeasuredQuery => [
      at * 600 + half * 0.04,
      'udp',
      '10.96.0.10',
      1 + at,
      id(at, half),
      names[at % names.length]!,
      type,
      '',
      '',
      answer,
    ]),
  ).flat();

test('glibc that asks for one absolute name repeatedly is recognised: a thousand equal lookups count no more than a few', () => {
  assert.equal(takenFor(pairs(['oldqueue.data.svc.k8s.lan.'], 60, 'NXDOMAIN')), 'glibc');
});

test('a client that asks for a single label as written, without search domains, is c-ares and not glibc', () => {
  assert.equal(takenFor(pairs(['cart.', 'redis.data.', 'db.'], 9, 'NXDOMAIN', drawnId)), 'c-ares');
});

const domains = ['shop.svc.k8s.lan.', 'svc.k8s.lan.', 'k8s.lan.', ''];
const stems = [
  'api.shop.example.',
  'redis.data.',
  'www.kiosk.example.',
  'db.corp.',
  'a.b.example.',
];

test('pairs from new ports for names as written are glibc if their ids are of one clock, and c-ares if they are random, even after a short time', () => {
  for (const [kind, id] of [
    ['glibc', clockId],
    ['c-ares', drawnId],
  ] as const)
    for (const [count, answer] of [
      [5, '192.0.2.1'],
      [60, '192.0.2.1'],
      [60, 'NXDOMAIN'],
    ] as const) {
      const best = recognised(pairs(['www.kiosk.example.', 'api.example.'], count, answer, id));
      assert.equal(best?.kind, kind);
      assert.ok(best.confidence > 0.7, `${kind} ${count}: ${best.confidence}`);
    }
});

test('the ids of its pairs distinguish glibc over TCP from c-ares', () => {
  const byTcp = pairs(['www.kiosk.example.', 'api.example.'], 6, '192.0.2.1').map(
    ([ms, , ...rest]): MeasuredQuery => [ms, 'tcp', ...rest],
  );
  const best = recognised(byTcp);
  assert.equal(best?.kind, 'glibc');
  assert.ok(best.confidence > 0.7, `${best.confidence}`);
});

/** Every second pair has IDs from one clock and the rest have random IDs, which proves nothing when taken together. */
const inTurn = (pair: number, half: number): number =>
  pair % 2 === 0 ? clockId(pair, half) : drawnId(pair, half);

test('one walk of the search path distinguishes glibc, which uses a port for each name, from c-ares, which reuses it', () => {
  const alike = pairs(['www.kiosk.example.', 'api.example.'], 20, '192.0.2.1', inTurn);
  const walk = (portOf: (step: number) => number): MeasuredQuery[] =>
    domains.flatMap((domain, step) =>
      ['A', 'AAAA'].map((type, half): MeasuredQuery => [
        ...([20_000 + step * 60 + half * 0.04, 'udp', '10.96.0.10', portOf(step)] as const),
        ...([inTurn(step, half), `db.corp.${domain}`, type, '', ''] as const),
        domain === '' ? '192.0.2.1' : 'NXDOMAIN',
      ]),
    );
  for (const [kind, portOf] of [
    ['glibc', (step: number) => 200 + step],
    ['c-ares', () => 200],
  ] as const) {
    const best = recognised([...alike, ...walk(portOf)]);
    assert.equal(best?.kind, kind);
    assert.ok(best.confidence > 0.7, `${kind} ${best.confidence}`);
  }
});

/**
 * Searches for names that only exist as written.
 * @param step a name's queries: type, port and milliseconds
 */
function walks5(
  step: (at: number) => readonly (readonly [type: string, port: number, ms: number])[],
  id: (at: number) => number = (at) => (at * 7919 + 77) & 0xffff,
): MeasuredQuery[] {
  let at = 0;
  return stems.flatMap((stem, lookup) =>
    domains.flatMap((domain, walked) => {
      const answer = domain === '' ? '192.0.2.1' : 'NXDOMAIN';
      return step(lookup * domains.length + walked).map(([type, port, ms]): MeasuredQuery => [
        ...([lookup * 700 + walked * 60 + ms, 'udp', '10.96.0.10', port, id(at++)] as const),
        ...([`${stem}${domain}`, type, '', '', answer] as const),
      ]);
    }),
  );
}

test('Go that sends no EDNS, as up to Go 1.18 and with netedns0=0, is Go: both families at once, each from its own port', () => {
  const best = recognised(
    walks5((at) => [
      ['AAAA', 1 + 2 * at, 0],
      ['A', 2 + 2 * at, 0.05],
    ]),
  );
  assert.equal(best?.kind, 'go');
  assert.ok(best.confidence > 0.7, `${best.confidence}`);
});

test('c-ares from 1.32 on is also recognised with a server without cookies, where each lookup has its own port', () => {
  const drawn = (at: number): number => Math.imul(at + 1, 0x9e3779b1) >>> 16;
  const asked = [0, 1, 2, 3, 4].flatMap((round) =>
    walks5(
      (at) => {
        const port = 200 + 5 * round + Math.floor(at / domains.length);
        return [
          ['A', port, 0],
          ['AAAA', port, 0.04],
        ];
      },
      (at) => drawn(at + 100 * round),
    ).map(([ms, protocol, server, port, id, name, type, , by, answer]): MeasuredQuery => [
      ...([ms + 20_000 * round, protocol, server, port, id, name, type] as const),
      ...(['edns 1232', by, answer] as const),
    ]),
  );
  const best = recognised(asked);
  assert.equal(best?.kind, 'c-ares');
  assert.ok(best.confidence > 0.7, `${best.confidence}`);
});

test('glibc that asks for one family walks the search path with a socket for each name, and is recognised, but not with certainty', () => {
  const best = recognised(walks5((at) => [['A', 1 + at, 0]]));
  assert.equal(best?.kind, 'glibc');
  assert.ok(best.confidence < 0.9, `${best.confidence}`);
});

test('a client that walks the search path for one family is musl if the IP identification continues across sockets, and glibc if each socket has its own', () => {
  for (const [kind, ipId] of [
    ['musl', (at: number) => 0x95a7 + at * 31],
    ['glibc', (at: number) => (at * 40_503) & 0xffff],
  ] as const) {
    const recognition = new Recognition();
    const reading = new Reading({ lookup: (lookup) => recognition.add(lookup) });
    let at = 0;
    for (const [lookup, stem] of stems.entries())
      for (const [step, domain] of domains.entries()) {
        const ends = {
          ...{ from: '10.244.1.9', fromPort: 31_000 + ++at, to: '10.96.0.10', toPort: 53 },
        };
        const name = `${stem}${domain}`;
        const id = drawnId(at, 0);
        const answer = domain === '' ? [addressRecord(name, '192.0.2.1')] : [];
        const reply = dnsMessage(name, 'A', {
          ...{ id, reply: true, answer },
          rcode: domain === '' ? 0 : 3,
        });
        const sentMs = 1.7e12 + lookup * 700 + step * 60;
        for (const [ms, bytes] of [
          [0, udpPacket(ends, dnsMessage(name, 'A', { id }), ipId(at))],
          [20, udpPacket(back(ends), reply, 7000 + at)],
        ] as const)
          reading.takeNetwork(bytes, 0, bytes.length, sentMs + ms, 0);
      }
    reading.end();
    const { best } = recognition;
    assert.equal(best?.kind, kind);
    assert.ok(best.confidence > 0.7, `${kind} ${best.confidence}`);
  }
});

test('a client that always uses one port, with ids that count up, is not musl', () => {
  const fixed = stems.flatMap((name, at) =>
    ['A', 'AAAA'].map((type, half): MeasuredQuery => [
      ...([at * 500 + half * 0.05, 'udp', '10.96.0.10', 7, 100 + 2 * at + half] as const),
      ...([name, type, '', '', '192.0.2.1'] as const),
    ]),
  );
  assert.notEqual(takenFor(fixed), 'musl');
});

test('a client unlike all known resolvers is not named with confidence', () => {
  // Searches the whole path for one family before the other, which no C library does.
  const queries = stems.flatMap((stem, lookup) =>
    ['A', 'AAAA'].flatMap((type, half) =>
      domains.map((domain, walked): MeasuredQuery => {
        const at = (lookup * 2 + half) * domains.length + walked;
        return [
          ...([lookup * 900 + half * 300 + walked * 60, 'udp', '10.96.0.10', 1 + at] as const),
          ...([(at * 7919) & 0xffff, `${stem}${domain}`, type, '', ''] as const),
          domain === '' ? '192.0.2.1' : 'NXDOMAIN',
        ];
      }),
    ),
  );
  const best = recognised([...queries, ...pairs(stems, 12, '192.0.2.1')]);
  assert.ok(best?.kind === 'tool' || best!.confidence < 0.7, `${best?.kind} ${best?.confidence}`);
});

test('glibc and Go with trust-ad set AD, and are recognised', () => {
  const asked: readonly (readonly [Kind, readonly MeasuredQuery[]])[] = [
    [
      'glibc',
      walks5(
        (at) => [
          ['A', 1 + at, 0],
          ['AAAA', 1 + at, 0.04],
        ],
        (at) => clockId(at >> 1, at & 1),
      ),
    ],
    [
      'go',
      walks5((at) => [
        ['AAAA', 1 + 2 * at, 0],
        ['A', 2 + 2 * at, 0.05],
      ]).map(([ms, protocol, server, port, id, name, type, , by, answer]): MeasuredQuery => [
        ...([ms, protocol, server, port, id, name, type] as const),
        ...(['edns 1232', by, answer] as const),
      ]),
    ],
  ];
  for (const [kind, queries] of asked) {
    const recognition = new Recognition();
    const reading = new Reading({ lookup: (lookup) => recognition.add(lookup) });
    for (const { bytes, timeMs } of recordedPackets(queries, '10.244.1.9', 1.7e12)) {
      // The second flags byte, which follows the IPv4 and UDP headers.
      bytes[20 + 8 + 3]! |= 0x20;
      reading.takeNetwork(bytes, 0, bytes.length, timeMs, 0);
    }
    reading.end();
    const { best } = recognition;
    assert.equal(best?.kind, kind);
    assert.ok(best.confidence > 0.7, `${kind} ${best.confidence}`);
  }
});
