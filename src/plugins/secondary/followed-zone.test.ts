import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { seededRandom } from '../../base/random.ts';
import { VirtualClock } from '../../base/virtual-clock.ts';
import { makeLog, pluginLog } from '../../base/log.ts';
import { TYPE } from '../../wire/iana.ts';
import { parseName } from '../../wire/name.ts';
import { ZoneBuilder } from '../../zone/zone-builder.ts';
import type { PackedZone } from '../../zone/packed-zone.ts';
import { ZonePublisher } from '../../zone/zone-publisher.ts';
import type { ZoneChange } from '../../zone/zone-replica.ts';
import { ZoneMemory } from './zone-memory.ts';
import { PrimaryTurns } from './primary-turns.ts';
import { FollowedZone, type Fetching, type FollowedZoneParts } from './followed-zone.ts';

function pack(serial: number): PackedZone {
  const builder = new ZoneBuilder(parseName('example.org.'));
  builder.add(parseName('example.org.'), TYPE.SOA, 60, soaData(serial));
  return builder.pack();
}

/** Names are the root; refresh 100 s, retry 10 s, expire 1000 s. */
function soaData(serial: number): Uint8Array {
  const out = Buffer.alloc(22);
  out.writeUInt32BE(serial, 2);
  out.writeUInt32BE(100, 6);
  out.writeUInt32BE(10, 10);
  out.writeUInt32BE(1000, 14);
  out.writeUInt32BE(5, 18);
  return new Uint8Array(out);
}

interface Followed {
  readonly clock: VirtualClock;
  readonly zone: FollowedZone;
  /** The same zone after a reload. */
  reloaded(): FollowedZone;
  readonly published: string[];
  readonly asked: string[];
  readonly log: string[];
  /** What the primaries have; null: they are not there. */
  primary: number | null;
  /** Differences are of no use. */
  brokenIxfr: boolean;
  readonly counted: { readonly fallbacks: number };
}

function follow(): Followed {
  const clock = new VirtualClock();
  const published: string[] = [];
  const log: string[] = [];
  const asked: string[] = [];
  const tell = ({ packed, expired }: ZoneChange): void => {
    published.push(expired ? 'expired' : String(packed?.serial ?? 'nothing'));
  };
  const publisher = new ZonePublisher(
    (() => ({
      publish: (changes: Iterable<ZoneChange>) => [...changes].forEach(tell),
      whenApplied: (run: () => void) => run(),
      close: () => undefined,
    })) as never,
    clock,
  );
  const counted = { fallbacks: 0 };
  const followed: { primary: number | null; brokenIxfr: boolean } = {
    primary: 1,
    brokenIxfr: false,
  };
  const there = (what: string, host: string): number => {
    asked.push(`${what} ${host}`);
    if (followed.primary === null || host === '192.0.2.1') throw new Error('no way');
    return followed.primary;
  };
  const fetching: Fetching = {
    serial: async (_origin, { host }) => there('soa', host),
    transfer: async (_origin, old, { host }) => {
      const serial = there(old === null ? 'axfr' : 'ixfr', host);
      if (old !== null && followed.brokenIxfr) throw new Error('differences that do not fit');
      return { packed: pack(serial), serial, differences: undefined, records: 2 };
    },
  };
  const nothing = { set: () => undefined, add: () => undefined };
  const metric = { with: () => nothing };
  const parts: FollowedZoneParts = {
    zone: 'example.org.',
    primaries: [
      { host: '192.0.2.1', port: 53 },
      { host: '192.0.2.2', port: 53 },
    ],
    key: null,
    publisher,
    clock,
    random: seededRandom(1),
    log: pluginLog(
      makeLog((line) => log.push(line)),
      'secondary',
    ),
    maxBytes: 1e6,
    memory: new ZoneMemory(nothing).allow(1e9),
    turns: new PrimaryTurns(clock, 32, nothing),
    metrics: {
      records: metric,
      serial: metric,
      reloads: metric,
      failures: metric,
      fallbacks: { with: () => ({ add: () => void counted.fallbacks++ }) },
    },
    fetching,
  };
  const zone = new FollowedZone(parts);
  const reloaded = (): FollowedZone => new FollowedZone(parts);
  return Object.assign(followed, { clock, zone, reloaded, published, asked, log, counted });
}

describe('a zone that another server has', () => {
  test('is fetched from the first primary that answers, and looked for again after its refresh time', async () => {
    const all = follow();
    all.zone.start();
    await all.clock.advance(1);
    assert.deepEqual(all.asked, ['axfr 192.0.2.1', 'axfr 192.0.2.2']);
    assert.deepEqual(all.published, ['1']);
    all.asked.splice(0);
    await all.clock.advance(99_000);
    assert.equal(all.asked.length, 0);
    await all.clock.advance(6_000);
    assert.deepEqual(all.asked, ['soa 192.0.2.1', 'soa 192.0.2.2']);
    all.primary = 2;
    await all.clock.advance(106_000);
    assert.deepEqual(all.published, ['1', '2']);
    assert.ok(all.asked.includes('ixfr 192.0.2.2'));
    all.zone.stop();
  });

  test('a serial that goes back is not taken, one that goes round is', async () => {
    const all = follow();
    all.primary = 0xffff_fff0;
    all.zone.start();
    await all.clock.advance(1);
    all.primary = 0xffff_ff00;
    await all.clock.advance(106_000);
    assert.deepEqual(all.published, [String(0xffff_fff0)]);
    all.primary = 3;
    await all.clock.advance(106_000);
    assert.deepEqual(all.published, [String(0xffff_fff0), '3']);
    all.zone.stop();
  });

  test('is tried again and again at first, less and less often', async () => {
    const all = follow();
    all.primary = null;
    all.zone.start();
    await all.clock.advance(60_000);
    const tries = all.asked.filter((line) => line.endsWith('2.2')).length;
    assert.ok(tries >= 9 && tries <= 12, String(tries));
    all.primary = 5;
    await all.clock.advance(11_000);
    assert.deepEqual(all.published, ['5']);
    all.zone.stop();
  });

  test('expires when nobody could be reached for its expire time, and comes back', async () => {
    const all = follow();
    all.zone.start();
    await all.clock.advance(1);
    all.primary = null;
    await all.clock.advance(990_000);
    assert.deepEqual(all.published, ['1']);
    await all.clock.advance(20_000);
    assert.deepEqual(all.published, ['1', 'expired']);
    assert.ok(all.log.some((line) => line.includes('Zone example.org. is expired')));
    all.primary = 1;
    await all.clock.advance(13_000);
    assert.deepEqual(all.published, ['1', 'expired', '1']);
    all.zone.stop();
  });

  test('a reload while nobody can be reached does not keep it from expiring', async () => {
    const all = follow();
    all.zone.start();
    await all.clock.advance(1);
    all.primary = null;
    await all.clock.advance(600_000);
    const next = all.reloaded();
    next.start();
    all.zone.stop();
    await all.clock.advance(390_000);
    assert.deepEqual(all.published, ['1']);
    await all.clock.advance(20_000);
    assert.deepEqual(all.published, ['1', 'expired']);
    next.stop();
  });

  test('differences that cannot be taken are counted, and the whole zone is asked for', async () => {
    const all = follow();
    all.zone.start();
    await all.clock.advance(1);
    all.primary = 2;
    all.brokenIxfr = true;
    all.asked.splice(0);
    all.zone.notified('192.0.2.2');
    await all.clock.advance(1);
    assert.deepEqual(all.published, ['1', '2']);
    assert.deepEqual(all.asked.slice(-2), ['ixfr 192.0.2.2', 'axfr 192.0.2.2']);
    assert.equal(all.counted.fallbacks, 1);
    all.zone.stop();
  });

  test('a primary that is not there yet is no error in the first ten seconds', async () => {
    const all = follow();
    all.primary = null;
    all.zone.start();
    await all.clock.advance(9900);
    assert.ok(all.log.length > 0);
    assert.deepEqual(
      all.log.filter((line) => !line.startsWith('[INFO]')),
      [],
    );
    await all.clock.advance(12_000);
    assert.ok(all.log.some((line) => line.startsWith('[ERROR] plugin/secondary: Failed')));
    all.zone.stop();
  });

  test('the clock of the machine may be set: neither refresh nor expiry is sooner or later', async () => {
    for (const byMs of [365 * 86_400_000, -365 * 86_400_000]) {
      const all = follow();
      all.zone.start();
      await all.clock.advance(1);
      all.clock.setWall(byMs);
      all.asked.splice(0);
      await all.clock.advance(99_000);
      assert.deepEqual(all.asked, []);
      await all.clock.advance(6_000);
      assert.deepEqual(all.asked, ['soa 192.0.2.1', 'soa 192.0.2.2']);
      all.primary = null;
      await all.clock.advance(990_000);
      assert.deepEqual(all.published, ['1']);
      await all.clock.advance(20_000);
      assert.deepEqual(all.published, ['1', 'expired']);
      all.zone.stop();
    }
  });

  test('a notification looks at once', async () => {
    const all = follow();
    all.zone.start();
    await all.clock.advance(1);
    all.primary = 2;
    all.zone.notified('192.0.2.2');
    await all.clock.advance(1);
    assert.deepEqual(all.published, ['1', '2']);
    all.zone.stop();
  });
});
