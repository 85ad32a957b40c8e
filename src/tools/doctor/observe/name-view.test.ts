import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { TYPE } from '../../../server/wire/iana.ts';
import type { SeenExchange } from '../../capture/pair/seen-exchange.ts';
import { madeExchange } from '../../capture/read/records/made-exchange.ts';
import { NameRows, NameView } from './name-view.ts';
import { Names } from './names.ts';

interface Given {
  readonly atMs: number;
  readonly rcode?: number;
  readonly found?: boolean;
  readonly server?: string;
  readonly port?: number;
  readonly type?: number;
}

function exchange({
  atMs,
  rcode = 0,
  found = false,
  server = '10.0.0.10',
  port = 4000,
  type = TYPE.A,
}: Given): SeenExchange {
  const made = madeExchange({
    client: { address: '10.0.0.1', port },
    server: { address: server, port: 53 },
    ...{
      protocol: 'udp',
      id: 1,
      name: 'api.shop.svc.cluster.local.',
      type,
      class: 1,
      udpSize: 512,
    },
    ...{ sentMs: atMs, repliedMs: atMs + 5, rcode, flags: 0, line: 1 },
  });
  made.answers = found ? 1 : 0;
  return made;
}

function answer(names: Names, given: Given): void {
  const made = exchange(given);
  names.at(made.name, made.type)!.add(made);
}

function view(...given: readonly Given[]): NonNullable<ReturnType<Names['get']>> {
  const names = new Names(10);
  for (const each of given) answer(names, each);
  return names.get('api.shop.svc.cluster.local.', TYPE.A)!;
}

describe('what is counted of a name', () => {
  it('A and AAAA of one name are counted separately', () => {
    const names = new Names(10);
    answer(names, { atMs: 0, found: true });
    answer(names, { atMs: 1, rcode: 3, type: TYPE.AAAA });
    const { name } = names.list[0]!;
    assert.deepEqual(
      [TYPE.A, TYPE.AAAA].map((type) => names.get(name, type)!.outcomes),
      [
        { asked: 1, lost: 0, found: 1, nodata: 0, nxdomain: 0, servfail: 0, refused: 0, error: 0 },
        { asked: 1, lost: 0, found: 0, nodata: 0, nxdomain: 1, servfail: 0, refused: 0, error: 0 },
      ],
    );
    assert.equal(names.get(name, TYPE.MX), undefined);
  });

  it('servers are in the order of their first queries, each with its own counts', () => {
    const { servers, answeredMs } = view(
      { atMs: 10, server: '10.0.0.2', rcode: 3 },
      { atMs: 20, server: '10.0.0.1', found: true },
      { atMs: 30, server: '10.0.0.2', found: true },
      { atMs: 40, server: '10.0.0.2', rcode: 2 },
    );
    assert.deepEqual(
      [...servers].map(([server, { asked, found, nxdomain, servfail }]) => [
        server,
        asked,
        found,
        nxdomain,
        servfail,
      ]),
      [
        ['10.0.0.2', 3, 1, 1, 1],
        ['10.0.0.1', 1, 1, 0, 0],
      ],
    );
    assert.deepEqual(
      [servers.size, servers.has('10.0.0.1'), servers.has('10.0.0.3'), servers.get('10.0.0.3')],
      [2, true, false, undefined],
    );
    // A failure answers nothing.
    assert.deepEqual(
      [...answeredMs],
      [
        ['10.0.0.2', 30],
        ['10.0.0.1', 20],
      ],
    );
  });

  it('of more than eight servers, only the first have counts', () => {
    const { servers, answeredMs, outcomes } = view(
      ...Array.from({ length: 12 }, (_, at) => ({ atMs: at, server: `10.0.0.${at}`, found: true })),
    );
    assert.deepEqual([servers.size, answeredMs.size, outcomes.asked], [8, 8, 12]);
  });

  it('an endless list of addresses does not grow beyond its limit', () => {
    const rows = new NameRows();
    const one = new NameView('api.shop.svc.cluster.local.', TYPE.A, rows);
    const addresses = Array.from({ length: 300 }, (_, at) => `10.0.${at >> 8}.${at & 255}`);
    for (const [at, server] of addresses.entries())
      one.add(exchange({ atMs: at, server, rcode: at % 2 === 0 ? 3 : 2 }));
    const known = addresses.filter((address) => rows.numbers.knownOf(address) >= 0);
    assert.ok(known.length <= 24, `${known.length} addresses`);
  });

  it('the longest row of errors is returned, also when a shorter one follows', () => {
    const { denial } = view(
      { atMs: 10, rcode: 3 },
      { atMs: 20, rcode: 2 },
      { atMs: 30, rcode: 3 },
      { atMs: 40 },
      { atMs: 50, rcode: 3 },
      { atMs: 60 },
    );
    assert.deepEqual(denial, { fromMs: 15, toMs: 35, count: 3 });
    assert.equal(view({ atMs: 10 }).denial, null);
  });

  it('a name that was there is absent from its first negative answer until it is found again', () => {
    const given = [
      { atMs: 5, rcode: 3 },
      { atMs: 10, found: true },
      { atMs: 20, rcode: 3 },
      { atMs: 30 },
      { atMs: 40, found: true },
      { atMs: 50, rcode: 3 },
    ];
    const { absence, firstFoundMs, lastFoundMs, firstNegativeMs, lastNegativeMs } = view(...given);
    assert.deepEqual(absence, { fromMs: 25, toMs: 35, foundMs: 15, count: 2 });
    assert.deepEqual(
      [firstFoundMs, lastFoundMs, firstNegativeMs, lastNegativeMs],
      [15, 45, 10, 55],
    );
    assert.equal(view(...given.slice(0, 2)).absence, null);
  });

  it('each server has the times of its last denial and of its first answer', () => {
    const { serverTimes, missingFirst, existingLast } = view(
      { atMs: 10, server: '10.0.0.1', rcode: 3 },
      { atMs: 20, server: '10.0.0.2', rcode: 3 },
      { atMs: 30, server: '10.0.0.1', found: true },
      { atMs: 40, server: '10.0.0.2', rcode: 3 },
      { atMs: 50, server: '10.0.0.3' },
      { atMs: 60, server: '10.0.0.1', found: true },
    );
    assert.deepEqual(serverTimes, [
      { server: '10.0.0.1', missingMs: 15, untilMs: 15, existsMs: 35 },
      { server: '10.0.0.2', missingMs: 45, untilMs: 45, existsMs: Infinity },
      { server: '10.0.0.3', missingMs: -Infinity, untilMs: -Infinity, existsMs: 55 },
    ]);
    assert.deepEqual([missingFirst, existingLast], [2, 2]);
  });

  it('a socket is another one when its port is', () => {
    const ports = [4000, 4000, 4001, 4000];
    assert.equal(view(...ports.map((port, at) => ({ atMs: at, port }))).sockets, 3);
  });

  it('queries for more names than have room are counted', () => {
    const names = new Names(1);
    answer(names, { atMs: 1 });
    assert.equal(names.at('other.', TYPE.A), null);
    assert.deepEqual([names.size, names.leftOut], [1, 1]);
    names.clear();
    assert.equal(names.size, 0);
  });
});
