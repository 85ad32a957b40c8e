import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ClientSample } from './client-sample.ts';

const clients = Array.from(
  { length: 4096 },
  (_, at) => `10.${at >> 10}.${(at >> 4) & 63}.${at & 15}`,
);

/** Plays one second with `rate` exchanges. */
function second(sample: ClientSample, rate: number, nowMs: number): void {
  sample.advance(nowMs);
  for (let at = 0; at < rate; at++) sample.take(clients[at % clients.length]!);
  sample.advance(nowMs + 1000);
}

test('the sample has all clients while the rules can keep up, and a fraction of them beyond that', () => {
  const sample = new ClientSample();
  second(sample, 1200, 0);
  assert.equal(sample.share, 1);
  second(sample, 5000, 1000);
  assert.equal(sample.share, 1 / 4);
  const chosen = clients.filter((client) => sample.has(client));
  assert.ok(Math.abs(chosen.length / clients.length - 1 / 4) < 0.05, `${chosen.length} clients`);
  // Near a limit, the selection stays the same. Clients that are already selected stay selected as it grows.
  second(sample, 2450, 2000);
  assert.equal(sample.share, 1 / 4);
  second(sample, 1500, 3000);
  assert.equal(sample.share, 1 / 2);
  assert.ok(chosen.every((client) => sample.has(client)));
  second(sample, 10, 4000);
  assert.equal(sample.share, 1);
});

test('a burst is sampled before its second is over', () => {
  const sample = new ClientSample();
  sample.advance(0);
  let taken = 0;
  for (let at = 0; at < 40_000; at++) if (sample.take(clients[at % clients.length]!)) taken++;
  assert.ok(taken < 10_000, `${taken} exchanges`);
  second(sample, 10, 1000);
  assert.equal(sample.share, 1);
});
