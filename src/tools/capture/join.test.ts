import assert from 'node:assert/strict';
import { test } from 'node:test';
import { costsAtMost } from '../../../test/kit/growth.ts';
import type { SeenExchange } from './pair/seen-exchange.ts';
import { join, Vantage } from './join.ts';
import { madeExchange } from './read/records/made-exchange.ts';

function exchange(id: number, sentMs: number): SeenExchange {
  return madeExchange({
    client: { address: '10.0.0.1', port: 4000 },
    server: { address: '10.0.0.10', port: 53 },
    ...{ protocol: 'udp', id, name: 'www.example.', type: 1, class: 1, udpSize: 512 },
    ...{ sentMs, repliedMs: sentMs + 5, rcode: 0, flags: 0, line: 1 },
  });
}

test('a query that a vantage point had no room for is not counted as lost there', () => {
  const [client, server] = [new Vantage('client', 100), new Vantage('server', 40)];
  for (let id = 0; id < 100; id++)
    for (const each of [client, server]) each.add(exchange(id, id * 1000));
  assert.equal(server.leftOut, 60);
  const { exchanges } = join([client, server]);
  // The server's last exchange is from second 39, and queries from the 2 s before that may have arrived later.
  assert.equal(exchanges.length, 38);
  assert.ok(exchanges.every(({ seen }) => seen[1] !== null));
});

test('queries that look equal are joined in the order of their times, in time proportional to their number', async () => {
  const joined = (count: number): void => {
    const places = [new Vantage('client', count), new Vantage('server', count)];
    for (let nth = 0; nth < count; nth++) {
      places[0]!.add(exchange(7, nth / 50));
      // Nine out of ten reached the server.
      if (nth % 10 > 0) places[1]!.add(exchange(7, nth / 50 + 0.004));
    }
    const { exchanges, matched } = join(places);
    assert.equal(matched[1], 0.9 * count);
    assert.equal(exchanges.length, count);
  };
  await costsAtMost(
    24,
    () => joined(64_000),
    () => joined(8000),
  );
});

test('at a busy vantage point, queries without a reply, which end late, are compared too', () => {
  const places = [new Vantage('client', 5000), new Vantage('server', 5000)];
  const sent = Array.from({ length: 60_000 }, (_, id) => exchange(id, id));
  for (const each of sent.filter(({ id }) => id % 10 === 0)) {
    each.repliedMs = null;
    each.ending = 'lost';
  }
  const endMs = ({ sentMs, repliedMs }: SeenExchange): number => repliedMs ?? sentMs + 15_000;
  for (const each of sent.toSorted((one, other) => endMs(one) - endMs(other)))
    for (const place of places) if (!place.isOver) place.add(each);
  assert.ok(places.every(({ isOver }) => isOver));
  const { exchanges } = join(places);
  assert.ok(exchanges.length > 3000 && exchanges.length < 5600, `${exchanges.length} queries`);
  assert.ok(exchanges.every(({ seen }) => seen[1] !== null));
  assert.equal(
    exchanges.filter(({ lost }) => lost !== null).length,
    exchanges.filter(({ exchange: { id } }) => id % 10 === 0).length,
  );
  assert.ok(exchanges.filter(({ lost }) => lost !== null).length > 300);
});
