import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Query } from '../../transport/query.ts';
import type { Answer } from '../../../../test/kit/upstream.ts';
import { brief, cacheWorld, type CacheWorld } from './fixture.test.ts';

/** A changing zone with its names and serial. */
class Zone {
  serial = 100;
  readonly names = new Set<string>();
  owner = 'cluster.local.';

  readonly answer = (query: Query): Answer =>
    this.names.has(query.name)
      ? { answer: ['@ 30 A 10.0.0.1'] }
      : {
          rcode: 'NXDOMAIN',
          authority: [
            `${this.owner} 30 SOA ns.cluster.local. host.cluster.local. ${this.serial} 7200 1800 86400 30`,
          ],
        };

  add(name: string): void {
    this.names.add(name);
    this.serial++;
  }
}

const NEW = 'new.shop.svc.cluster.local.';
const world = (zone: Zone, line = 'follow_serial'): Promise<CacheWorld> =>
  cacheWorld(`cache { ${line} }`, zone.answer, 'cluster.local');
const rcode = async (from: CacheWorld, name: string): Promise<string> =>
  brief(await from.ask(`${name} A`)).split(' ')[0]!;
const rest = (from: CacheWorld): Promise<void> => from.clock.advance(0);

describe('denials in a changing zone', () => {
  test('without follow_serial, a new name is denied until the denial expires', async () => {
    const zone = new Zone();
    const from = await world(zone, 'denial 9984 5');
    assert.equal(await rcode(from, NEW), 'NXDOMAIN');
    zone.add(NEW);
    await from.clock.advance(4900);
    assert.equal(await rcode(from, NEW), 'NXDOMAIN');
  });

  test('they end as soon as any denial carries a newer serial', async () => {
    const zone = new Zone();
    const from = await world(zone);
    assert.equal(await rcode(from, NEW), 'NXDOMAIN');
    zone.add(NEW);
    assert.equal(await rcode(from, NEW), 'NXDOMAIN');
    assert.equal(await rcode(from, 'other.cluster.local.'), 'NXDOMAIN');
    assert.equal(await rcode(from, NEW), 'NOERROR');
  });

  test('a client that queries only the new name finds it after a second', async () => {
    const zone = new Zone();
    const from = await world(zone);
    assert.equal(await rcode(from, NEW), 'NXDOMAIN');
    zone.add(NEW);
    await from.clock.advance(1000);
    await rcode(from, NEW);
    await rest(from);
    assert.equal(await rcode(from, NEW), 'NOERROR');
  });

  test('other names are queried again too when a denied name appears', async () => {
    const zone = new Zone();
    const from = await world(zone);
    await rcode(from, NEW);
    await rcode(from, 'second.cluster.local.');
    zone.add(NEW);
    zone.add('second.cluster.local.');
    await from.clock.advance(1000);
    await rcode(from, NEW);
    await rest(from);
    assert.equal(await rcode(from, 'second.cluster.local.'), 'NOERROR');
  });

  test('the upstream is queried at most once a second, regardless of the number of denials', async () => {
    const zone = new Zone();
    const from = await world(zone);
    const names = Array.from({ length: 20 }, (_, i) => `n${i}.cluster.local.`);
    for (const name of names) await rcode(from, name);
    const before = from.asked.length;
    for (let i = 0; i < 90; i++) {
      await from.clock.advance(100);
      for (const name of names) await rcode(from, name);
      await rest(from);
    }
    const asked = from.asked.length - before;
    assert.ok(asked >= 5 && asked <= 10, String(asked));
  });

  test('denials from a server that lags behind are cached for a second', async () => {
    const zone = new Zone();
    const from = await world(zone);
    zone.serial = 200;
    await rcode(from, 'a.cluster.local.');
    zone.serial = 150;
    assert.equal(brief(await from.ask(`${NEW} A`)), 'NXDOMAIN 1');
    zone.serial = 200;
    await rcode(from, 'b.cluster.local.');
    zone.names.add(NEW);
    await from.clock.advance(1000);
    assert.equal(await rcode(from, NEW), 'NOERROR');
  });

  test("each zone has its own serial, so one that is lower than another zone's is not behind", async () => {
    const [cluster, corp] = [new Zone(), new Zone()];
    corp.owner = 'corp.example.';
    corp.serial = 7;
    const from = await cacheWorld(
      'cache { follow_serial }',
      (query) => (query.name.endsWith(corp.owner) ? corp : cluster).answer(query),
      'cluster.local corp.example',
    );
    await rcode(from, 'a.cluster.local.');
    assert.equal(brief(await from.ask('a.corp.example. A')), 'NXDOMAIN 30');
    await rcode(from, 'b.cluster.local.');
    // A change in one zone does not affect the other.
    const before = from.asked.length;
    corp.add('b.corp.example.');
    await rcode(from, 'c.corp.example.');
    await rcode(from, 'a.cluster.local.');
    assert.equal(from.asked.length, before + 1);
  });

  test('serials wrap around', async () => {
    const zone = new Zone();
    zone.serial = 0xffff_ffff;
    const from = await world(zone);
    await rcode(from, NEW);
    zone.names.add(NEW);
    zone.serial = 3;
    await rcode(from, 'a.cluster.local.');
    assert.equal(await rcode(from, NEW), 'NOERROR');
  });

  test("another zone's SOA record is ignored", async () => {
    const zone = new Zone();
    zone.owner = 'example.';
    const from = await world(zone);
    await rcode(from, NEW);
    zone.add(NEW);
    await rcode(from, 'a.cluster.local.');
    assert.equal(await rcode(from, NEW), 'NXDOMAIN');
  });
});
