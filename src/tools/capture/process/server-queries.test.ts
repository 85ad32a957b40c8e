/** Determines which queries a server sent to answer another one. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { processAsker } from '../../../../test/kit/askers.ts';
import { addressRecord, dnsMessage } from '../../../../test/kit/packets.ts';
import { TYPE } from '../../../server/wire/iana.ts';
import { unknownAsker } from '../pair/asker.ts';
import type { SeenExchange } from '../pair/seen-exchange.ts';
import { ServerQueries } from './server-queries.ts';

const CLIENT = processAsker(1);
const SERVER = processAsker(2);
const OTHER = processAsker(3);

/** An exchange between a client (10.0.0.1) and a server (10.0.0.2), or between that and an upstream. */
function exchange(
  sentMs: number,
  repliedMs: number | null,
  more: Partial<SeenExchange> & { readonly from?: 'client' | 'server' } = {},
): SeenExchange {
  const { from = 'client', ...given } = more;
  const isClient = from === 'client';
  return {
    client: { address: isClient ? '10.0.0.1' : '10.0.0.2', port: 40_000 },
    server: { address: isClient ? '10.0.0.2' : '192.0.2.53', port: 53 },
    name: 'api.example.com.',
    type: TYPE.A,
    sentMs,
    repliedMs,
    hops: [],
    answers: 0,
    reply: null,
    asker: isClient ? CLIENT : SERVER,
    answerer: isClient ? SERVER : null,
    ...given,
  } as unknown as SeenExchange;
}

/** The queries found for the last exchange, after all of them have ended in this order. */
function found(...all: readonly SeenExchange[]): readonly SeenExchange[] | null {
  const queries = new ServerQueries();
  let last: readonly SeenExchange[] | null = null;
  for (const each of all) {
    last = queries.of(each);
    queries.add(each);
  }
  return last;
}

test('a name that many clients look up at once is compared with the latest ones only', () => {
  const crowd = (sentMs: number): readonly SeenExchange[] =>
    Array.from({ length: 600 }, () => exchange(sentMs, sentMs + 1));
  const own = exchange(11, 14, { from: 'server' });
  assert.deepEqual(found(...crowd(1), own, exchange(10, 15)), [own]);
  assert.equal(found(own, ...crowd(12), exchange(10, 15)), null);
});

test('the server asked the same question while the client waited', () => {
  const own = exchange(11, 14, { from: 'server' });
  assert.deepEqual(found(own, exchange(10, 15)), [own]);
});

test('a server that was already asking for another client answers both', () => {
  const own = exchange(11, 14, { from: 'server' });
  assert.deepEqual(found(own, exchange(10, 15), exchange(12, 16)), [own]);
});

test('an answer that the server got before or after the exchange is not where this one came from', () => {
  const before = exchange(1, 4, { from: 'server' });
  const refresh = exchange(11, 20, { from: 'server' });
  assert.deepEqual(found(before, refresh, exchange(10, 15)), []);
});

test('other questions, lost queries and the queries of other processes do not count', () => {
  assert.deepEqual(
    found(
      exchange(11, 12, { from: 'server', name: 'other.example.' }),
      exchange(11, 12, { from: 'server', type: TYPE.AAAA }),
      exchange(11, null, { from: 'server' }),
      exchange(11, 12, { from: 'server', asker: OTHER }),
      exchange(10, 15),
    ),
    [],
  );
});

test('the server asked for the target of an alias', () => {
  const alias = 'api.example.com.shop.svc.cluster.local.';
  const own = exchange(11, 14, { from: 'server' });
  const data = { target: 'API.example.com.' };
  const answer = [
    { name: alias, type: TYPE.CNAME, class: 1, ttl: 30, data },
    addressRecord('api.example.com.', '192.0.2.1'),
  ];
  const reply = dnsMessage(alias, 'A', { id: 1, reply: true, answer });
  assert.deepEqual(found(own, exchange(10, 15, { name: alias, answers: 2, reply })), [own]);
});

test('nothing is known if the sender of such a query at the server is unknown, or the server', () => {
  const own = exchange(11, 14, { from: 'server', asker: unknownAsker('closed') });
  assert.equal(found(own, exchange(10, 15)), null);
  const behind = { address: '10.0.0.2', port: 53 };
  const server = { address: '10.96.0.10', port: 53 };
  assert.equal(found(own, exchange(10, 15, { server, behind })), null);
  assert.equal(found(exchange(10, 15, { answerer: unknownAsker('elsewhere') })), null);
});

test('the oldest exchanges are dropped first', () => {
  const queries = new ServerQueries();
  for (let at = 0; at <= 25_000; at++)
    queries.add(exchange(at, at, { from: 'server', name: `n${at}.example.` }));
  const asked = (at: number): number =>
    queries.of(exchange(0, 30_000, { name: `n${at}.example.` }))!.length;
  assert.deepEqual([0, 15_000, 15_001, 25_000].map(asked), [0, 0, 1, 1]);
});
