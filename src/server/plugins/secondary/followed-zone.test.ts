import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { sleep } from '../../base/clock.ts';
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

type Times = readonly [refresh: number, retry: number, expire: number];

function pack(serial: number, times: Times, hasNs: boolean): PackedZone {
  const builder = new ZoneBuilder(parseName('example.org.'));
  builder.add(parseName('example.org.'), TYPE.SOA, 60, soaData(serial, times));
  if (hasNs) builder.add(parseName('example.org.'), TYPE.NS, 60, parseName('ns.example.org.'));
  return builder.pack();
}

function soaData(serial: number, [refresh, retry, expire]: Times): Uint8Array {
  const out = Buffer.alloc(22);
  out.writeUInt32BE(serial, 2);
  out.writeUInt32BE(refresh, 6);
  out.writeUInt32BE(retry, 10);
  out.writeUInt32BE(expire, 14);
  out.writeUInt32BE(5, 18);
  return new Uint8Array(out);
}

interface Followed {
  readonly clock: VirtualClock;
  readonly zone: FollowedZone;
  /** Returns the same zone after a reload. */
  reloaded(): FollowedZone;
  readonly published: string[];
  readonly asked: string[];
  readonly log: string[];
  /** The primaries' version, or null if unavailable. */
  primary: number | null;
  brokenIxfr: boolean;
  /** The serial that it transfers, if that differs from the one it reports, or null. */
  transferred: number | null;
  /** The version on the first primary, which is unavailable at first. */
  first: number | null;
  /** Timers in the SOA record, in seconds. */
  times: Times;
  /** True if the zone has an NS record, both in full and after differences. */
  hasNs: { axfr: boolean; ixfr: boolean };
  /** Duration of a transfer in seconds, at one record per second. */
  takesSeconds: number;
  readonly counted: { readonly fallbacks: number; readonly failures: number };
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
  const counted = { fallbacks: 0, failures: 0 };
  const followed: Pick<
    Followed,
    'primary' | 'first' | 'brokenIxfr' | 'transferred' | 'times' | 'hasNs' | 'takesSeconds'
  > = {
    primary: 1,
    first: null,
    brokenIxfr: false,
    transferred: null,
    times: [100, 10, 1000],
    hasNs: { axfr: true, ixfr: true },
    takesSeconds: 0,
  };
  const there = (what: string, host: string): number => {
    asked.push(`${what} ${host}`);
    const has = host === '192.0.2.1' ? followed.first : followed.primary;
    if (has === null) throw new Error('no way');
    return has;
  };
  const fetching: Fetching = {
    serial: async (_origin, { host }) => there('soa', host),
    transfer: async (_origin, old, { host }, { claim }) => {
      const said = there(old === null ? 'axfr' : 'ixfr', host);
      for (let second = 0; second < followed.takesSeconds; second++) {
        claim(1024);
        await sleep(clock, 1000);
      }
      if (old !== null && followed.brokenIxfr) throw new Error('differences that do not fit');
      const serial = followed.transferred ?? said;
      const packed = pack(serial, followed.times, followed.hasNs[old === null ? 'axfr' : 'ixfr']);
      return { packed, serial, differences: undefined, records: 2 };
    },
  };
  const nothing = { set: () => undefined, add: () => undefined };
  const metric = { with: () => nothing };
  const lines = pluginLog(
    makeLog((line) => log.push(line)),
    'secondary',
  );
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
    log: lines,
    failures: lines,
    maxBytes: 1e6,
    memory: new ZoneMemory(nothing).allow(1e9),
    turns: new PrimaryTurns(clock, 32, nothing),
    metrics: {
      records: metric,
      serial: metric,
      reloads: metric,
      loading: metric,
      failures: { with: () => ({ add: () => void counted.failures++ }) },
      fallbacks: { with: () => ({ add: () => void counted.fallbacks++ }) },
    },
    fetching,
  };
  const zone = new FollowedZone(parts);
  const reloaded = (): FollowedZone => new FollowedZone(parts);
  return Object.assign(followed, { clock, zone, reloaded, published, asked, log, counted });
}

describe('a zone from another server', () => {
  test('is fetched from the first primary that answers, and checked again after its refresh time', async () => {
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

  test('reports the progress of a slow transfer after five seconds and then every ten', async () => {
    const all = follow();
    all.takesSeconds = 16;
    all.zone.start();
    await all.clock.advance(60_000);
    assert.deepEqual(
      all.log.filter((line) => line.includes('so far')),
      [
        '[INFO] plugin/secondary: Transferring example.org. from 192.0.2.2:53: 5 records so far, 5 KiB (5s)',
        '[INFO] plugin/secondary: Transferring example.org. from 192.0.2.2:53: 15 records so far, 15 KiB (15s)',
      ],
    );
    assert.deepEqual(all.published, ['1']);
    all.zone.stop();
  });

  test('with unusable differences is transferred again in full, and its records are counted again', async () => {
    const all = follow();
    all.zone.start();
    await all.clock.advance(1);
    Object.assign(all, { primary: 2, brokenIxfr: true, takesSeconds: 4 });
    all.zone.notified('192.0.2.2');
    await all.clock.advance(20_000);
    assert.deepEqual(
      all.log.filter((line) => line.includes('so far')),
      [
        '[INFO] plugin/secondary: Transferring example.org. from 192.0.2.2:53: 1 records so far, 1 KiB (5s)',
      ],
    );
    assert.deepEqual(all.published, ['1', '2']);
    all.zone.stop();
  });

  test('rejects a decreasing serial and accepts one that wraps around', async () => {
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

  test('logs a primary with an older serial once per serial, and counts it each time', async () => {
    const all = follow();
    all.primary = 10;
    all.zone.start();
    await all.clock.advance(1);
    all.primary = 9;
    await all.clock.advance(3 * 106_000);
    const told = all.log.filter((line) => line.startsWith('[WARNING]'));
    assert.deepEqual(told, [
      '[WARNING] plugin/secondary: example.org. has serial 9 at 192.0.2.2:53, which is older than 10; the newer version stays in use',
    ]);
    assert.equal(all.counted.failures, 3);
    all.primary = 10;
    await all.clock.advance(106_000);
    all.primary = 9;
    await all.clock.advance(106_000);
    assert.equal(all.log.filter((line) => line.startsWith('[WARNING]')).length, 2);
    assert.deepEqual(all.published, ['10']);
    all.zone.stop();
  });

  test('is updated from one primary even if another has the same or an older version', async () => {
    for (const first of [10, 9]) {
      const all = follow();
      all.primary = 10;
      all.zone.start();
      await all.clock.advance(1);
      all.first = first;
      all.primary = 11;
      all.zone.notified('192.0.2.2');
      await all.clock.advance(1);
      assert.deepEqual(all.published, ['10', '11'], `beside serial ${first}`);
      all.zone.stop();
    }
  });

  test('does not expire if one primary has it and another is unavailable', async () => {
    const all = follow();
    all.primary = 10;
    all.zone.start();
    await all.clock.advance(1);
    all.first = 10;
    all.primary = null;
    await all.clock.advance(3_000_000);
    assert.deepEqual(all.published, ['10']);
    all.zone.stop();
  });

  test('retries a newer version that one primary has but does not transfer, though another has none', async () => {
    const all = follow();
    all.times = [1000, 10, 3000];
    all.zone.start();
    await all.clock.advance(1);
    Object.assign(all, { first: 1, primary: 2, hasNs: { axfr: false, ixfr: false } });
    all.zone.notified('192.0.2.2');
    await all.clock.advance(1);
    assert.equal(all.counted.failures, 1);
    all.hasNs = { axfr: true, ixfr: true };
    await all.clock.advance(13_000);
    assert.deepEqual(all.published, ['1', '2']);
    all.zone.stop();
  });

  test('is unchanged if a primary reports a newer serial but transfers an older one, or the same', async () => {
    for (const [transferred, brokenIxfr] of [
      [9, false],
      [10, false],
      [9, true],
      [10, true],
    ] as const) {
      const all = follow();
      all.primary = 10;
      all.zone.start();
      await all.clock.advance(1);
      Object.assign(all, { primary: 11, transferred, brokenIxfr });
      await all.clock.advance(106_000);
      assert.deepEqual(all.published, ['10']);
      assert.ok(all.counted.failures > 0);
      const failed = `192.0.2.2:53": it announces serial 11 but transfers ${transferred}`;
      assert.ok(
        all.log.some((line) => line.includes(failed)),
        all.log.join('\n'),
      );
      all.zone.stop();
    }
  });

  test('does not expire before the next check if its primary answers, whatever its SOA record says', async () => {
    const all = follow();
    all.times = [60, 30, 1];
    all.zone.start();
    await all.clock.advance(600_000);
    assert.deepEqual(all.published, ['1']);
    all.primary = null;
    await all.clock.advance(200_000);
    assert.deepEqual(all.published, ['1', 'expired']);
    all.zone.stop();
  });

  test('is served for its entire expire interval, even 1000 hours', async () => {
    const all = follow();
    const hour = 3600;
    all.times = [24 * hour, 2 * hour, 1000 * hour];
    all.zone.start();
    await all.clock.advance(1);
    all.primary = null;
    await all.clock.advance(999 * 1000 * hour);
    assert.deepEqual(all.published, ['1']);
    await all.clock.advance(2 * 1000 * hour);
    assert.deepEqual(all.published, ['1', 'expired']);
    all.zone.stop();
  });

  test('is retried at increasing intervals at first', async () => {
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

  test('expires if no primary could be reached for its expire time, and returns', async () => {
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

  test('expires even after a reload while no primary can be reached', async () => {
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

  test('is requested in full after unusable differences, which are counted', async () => {
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

  test('rejects differences that remove its last NS record, and is requested in full', async () => {
    const all = follow();
    all.zone.start();
    await all.clock.advance(1);
    Object.assign(all, { primary: 2, hasNs: { axfr: true, ixfr: false } });
    all.asked.splice(0);
    all.zone.notified('192.0.2.2');
    await all.clock.advance(1);
    assert.deepEqual(all.asked.slice(-2), ['ixfr 192.0.2.2', 'axfr 192.0.2.2']);
    assert.deepEqual(all.published, ['1', '2']);
    assert.equal(all.counted.fallbacks, 1);
    all.zone.stop();
  });

  test('is unchanged by a transfer without NS records, which is logged', async () => {
    const all = follow();
    all.zone.start();
    await all.clock.advance(1);
    Object.assign(all, { primary: 2, hasNs: { axfr: false, ixfr: false } });
    await all.clock.advance(106_000);
    assert.deepEqual(all.published, ['1']);
    assert.ok(all.counted.failures > 0);
    const told = "the version with serial 2 no longer has an NS record at the zone's apex";
    assert.ok(
      all.log.some((line) => line.startsWith('[ERROR]') && line.includes(told)),
      all.log.join('\n'),
    );
    all.zone.stop();
  });

  test('is accepted with a warning if it never had an NS record', async () => {
    const all = follow();
    all.hasNs = { axfr: false, ixfr: false };
    all.zone.start();
    await all.clock.advance(1);
    all.primary = 2;
    await all.clock.advance(106_000);
    assert.deepEqual(all.published, ['1', '2']);
    assert.deepEqual(
      all.log.filter((line) => line.startsWith('[WARNING]')),
      ['[WARNING] plugin/secondary: example.org. has no NS record at its apex'],
    );
    all.zone.stop();
  });

  test('does not report an unavailable primary as an error in the first ten seconds', async () => {
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

  test("keeps its refresh and expire times if the machine's clock is set", async () => {
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

  test('is checked at once after a notification', async () => {
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
