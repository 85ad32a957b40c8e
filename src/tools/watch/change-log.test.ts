import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { cartOwners } from '../../../test/kit/watched.ts';
import { LiveModel } from './live-model.ts';
import type { WindowQuery } from './window-counts.ts';

const START = Date.UTC(2026, 10, 29);
const SECOND = 1000;

/** A model that observes servers with these numbers of queries in each second. */
class World {
  readonly model: LiveModel = new LiveModel({ owners: cartOwners });
  #nowMs = START;

  pass(seconds: number, rates: Readonly<Record<string, number>>): void {
    for (let second = 0; second < seconds; second++) {
      for (const [server, rate] of Object.entries(rates))
        for (let at = 0; at < rate; at++) this.model.counts.exchange(query(server, this.#nowMs));
      this.#nowMs += SECOND;
      this.model.advance(this.#nowMs);
    }
  }

  get changes(): readonly string[] {
    return this.model.changes.rows.map(({ text }) => text);
  }
}

function query(server: string, sentMs: number): WindowQuery {
  const [address, port] = server.split(' ') as [string, string];
  return {
    client: { address: '10.244.1.7', port: 40_000 },
    server: { address, port: Number(port) } as WindowQuery['server'],
    ...{ hops: [], name: 'a.example.', type: 1, protocol: 'udp', ending: 'answered' },
    ...{ rcode: 0, sentMs, repliedMs: sentMs + 1 },
  };
}

describe('changes of the servers', () => {
  test('a server is new, gone and back under its name, whatever its port', () => {
    for (const port of [53, 5353]) {
      const world = new World();
      world.pass(40, { '192.0.2.53 53': 2 });
      assert.deepEqual(world.changes, []);
      world.pass(30, { '192.0.2.53 53': 2, [`10.96.0.10 ${port}`]: 2 });
      world.pass(70, { '192.0.2.53 53': 2 });
      world.pass(10, { '192.0.2.53 53': 2, [`10.96.0.10 ${port}`]: 2 });
      assert.deepEqual(world.changes, [
        'server kube-system/kube-dns is queried for the first time',
        'server kube-system/kube-dns is no longer queried',
        'server kube-system/kube-dns is queried again',
      ]);
    }
  });

  test('a query rate that triples and falls back is reported once each way', () => {
    const world = new World();
    world.pass(160, { '192.0.2.53 53': 4 });
    world.pass(160, { '192.0.2.53 53': 40 });
    world.pass(60, { '192.0.2.53 53': 4 });
    assert.deepEqual(
      world.changes.map((text) => text.replaceAll(/[\d.]+/g, 'N')),
      Array(2).fill('the query rate changed from N to N per second'),
    );
  });
});
