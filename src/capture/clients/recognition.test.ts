import assert from 'node:assert/strict';
import { test } from 'node:test';
import { seededRandom } from '../../base/random.ts';
import { readMeasured } from '../../../test/kit/measured.ts';
import { readRecorded } from '../../../test/kit/recorded.ts';
import { recordedPackets } from '../../../test/kit/recorded-capture.ts';
import type { MeasuredQuery } from '../../../test/kit/measured.ts';
import { Reading } from '../reading.ts';
import { Recognition, type Kind, type Recognised } from './recognition.ts';

/** The runs of real resolvers, by the kind of the resolver. */
const kindOf = (client: string): Kind | null => {
  // Its image is of Alpine.
  if (client === 'python@3.6') return 'musl';
  const [name = ''] = client.split('@');
  if (
    [
      'glibc',
      'glibc-ac',
      'glibc-null',
      'ahosts',
      'gocgo',
      'python',
      'node',
      'node-http',
      'curl',
      'java',
      'getent-ahosts',
      'cgo',
    ].includes(name)
  )
    return 'glibc';
  if (['musl', 'musl-ac', 'musl-null'].includes(name)) return 'musl';
  if (name === 'go') return 'go';
  if (name === 'cares' || name === 'c-ares') return 'c-ares';
  return name === 'evdns' ? 'evdns' : null;
};

function recordings(): ReadonlyMap<string, readonly (readonly MeasuredQuery[])[]> {
  const found = new Map<string, (readonly MeasuredQuery[])[]>();
  const add = (client: string, queries: readonly MeasuredQuery[]): void => {
    if (kindOf(client) === null || queries.length < 2) return;
    found.set(client, [...(found.get(client) ?? []), queries]);
  };
  for (const { runs } of readMeasured()) for (const run of runs) add(run.client, run.queries);
  for (const { runs, families } of readRecorded())
    if (families.length === 2) for (const run of runs) add(run.client, run.queries);
  return found;
}

/** Whether a run asks for more than one name: where none of five does, old c-ares does nothing that glibc does not. */
const walks = (queries: readonly MeasuredQuery[]): boolean =>
  new Set(queries.map(([, , , , , name]) => name)).size > 1;

test('of five lookups, one of which at least goes along the search path, glibc, musl, Go and c-ares are recognised 19 times in 20', () => {
  const random = seededRandom(11);
  const right = new Map<Kind, number>();
  const all = new Map<Kind, number>();
  const wrong: string[] = [];
  for (const [client, runs] of recordings()) {
    if (!runs.some(walks)) continue;
    const kind = kindOf(client)!;
    for (let turn = 0; turn < 12; turn++) {
      const recognition = new Recognition();
      const reading = new Reading({ lookup: (lookup) => recognition.add(lookup) });
      // Five runs, a minute apart: five calls of one client.
      for (let lookup = 0; lookup < 5; lookup++) {
        const walking = runs.filter(walks);
        const from = lookup === 0 ? walking : runs;
        const queries = from[random.integer(from.length)]!;
        for (const { bytes, timeMs } of recordedPackets(
          queries,
          '10.244.0.9',
          1.7e12 + (turn * 5 + lookup) * 200_000,
          20_000 + 900 * lookup,
        ))
          reading.takeNetwork(bytes, 0, bytes.length, timeMs, 0);
      }
      reading.end();
      all.set(kind, (all.get(kind) ?? 0) + 1);
      const { best } = recognition;
      if (best?.kind === kind) right.set(kind, (right.get(kind) ?? 0) + 1);
      else wrong.push(`${client} taken for ${best?.kind} (${best?.confidence.toFixed(2)})`);
    }
  }
  const share = (kind: Kind): number => (right.get(kind) ?? 0) / all.get(kind)!;
  if (process.env['SHOW'] !== undefined)
    console.log(
      [...all].map(([kind, n]) => `${kind} ${n} ${share(kind).toFixed(3)}`),
      wrong,
    );
  for (const kind of ['glibc', 'musl', 'go', 'c-ares'] as const)
    assert.ok(share(kind) >= 0.95, `${kind}: ${share(kind)}; ${wrong.join('; ')}`);
});

test('glibc that asks one question at a time, as it does after it has lost one of a pair, is glibc', () => {
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
          (port * 7919) & 0xffff,
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

/** What a client is taken for that sends these queries, each 12 ms after the other pair. */
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

/** Pairs of A and AAAA of one moment from one port, for a name as it stands. */
const pairs = (names: readonly string[], count: number, answer: string): MeasuredQuery[] =>
  Array.from({ length: count }, (_, at) =>
    ['A', 'AAAA'].map((type, half): MeasuredQuery => [
      at * 600 + half * 0.04,
      'udp',
      '10.96.0.10',
      1 + at,
      ((at * 2 + half) * 7919) & 0xffff,
      names[at % names.length]!,
      type,
      '',
      '',
      answer,
    ]),
  ).flat();

test('glibc that asks for one absolute name, again and again, is glibc: a thousand lookups that are alike say no more than a few', () => {
  assert.equal(takenFor(pairs(['oldqueue.data.svc.k8s.lan.'], 60, 'NXDOMAIN')), 'glibc');
});

test('who asks for a single label as it stands, and goes on with no search domain, is c-ares and not glibc', () => {
  assert.equal(takenFor(pairs(['cart.', 'redis.data.', 'db.'], 9, 'NXDOMAIN')), 'c-ares');
});

const domains = ['shop.svc.k8s.lan.', 'svc.k8s.lan.', 'k8s.lan.', ''];
const stems = [
  'api.shop.example.',
  'redis.data.',
  'www.kiosk.example.',
  'db.corp.',
  'a.b.example.',
];

test('pairs from a new port each, for names as they stand, are of glibc or of c-ares: who shows nothing else is not told with confidence, however long it is watched', () => {
  for (const [count, answer] of [
    [8, '192.0.2.1'],
    [60, '192.0.2.1'],
    [60, 'NXDOMAIN'],
  ] as const) {
    const best = recognised(pairs(['www.kiosk.example.', 'api.example.'], count, answer));
    assert.equal(best?.kind, 'glibc');
    assert.ok(best.confidence > 0.5 && best.confidence < 0.7, `${count}: ${best.confidence}`);
  }
});

test('one walk along the search path tells glibc, which takes a port for each name, from c-ares, which keeps it', () => {
  const alike = pairs(['www.kiosk.example.', 'api.example.'], 20, '192.0.2.1');
  const walk = (portOf: (step: number) => number): MeasuredQuery[] =>
    domains.flatMap((domain, step) =>
      ['A', 'AAAA'].map((type, half): MeasuredQuery => [
        ...([20_000 + step * 60 + half * 0.04, 'udp', '10.96.0.10', portOf(step)] as const),
        ...([((step * 2 + half) * 6131) & 0xffff, `db.corp.${domain}`, type, '', ''] as const),
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

/** Walks of the search path, of names that only exist as they are. @param step the queries of one name: type, port and milliseconds */
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

test('Go that sends no EDNS, as up to Go 1.18 and with netedns0=0, is Go: both families at once, each from a port of its own', () => {
  const best = recognised(
    walks5((at) => [
      ['AAAA', 1 + 2 * at, 0],
      ['A', 2 + 2 * at, 0.05],
    ]),
  );
  assert.equal(best?.kind, 'go');
  assert.ok(best.confidence > 0.7, `${best.confidence}`);
});

test('glibc that asks for one family walks the search path with a socket for each name, and is glibc, not for sure', () => {
  const best = recognised(walks5((at) => [['A', 1 + at, 0]]));
  assert.equal(best?.kind, 'glibc');
  assert.ok(best.confidence < 0.9, `${best.confidence}`);
});

test('who asks from one port for ever, with ids that count up, is not musl', () => {
  const fixed = stems.flatMap((name, at) =>
    ['A', 'AAAA'].map((type, half): MeasuredQuery => [
      ...([at * 500 + half * 0.05, 'udp', '10.96.0.10', 7, 100 + 2 * at + half] as const),
      ...([name, type, '', '', '192.0.2.1'] as const),
    ]),
  );
  assert.notEqual(takenFor(fixed), 'musl');
});

test('who is like no resolver that is known is not taken for one with confidence', () => {
  // One family after the other goes all the way, as no C library does.
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
