import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { VirtualClock } from '../base/virtual-clock.ts';
import type { PackedZone } from './packed-zone.ts';
import { ReplacedZones } from './replaced-zones.ts';

/** Counts collections in place of the runtime's. */
function collections(t: TestContext): { count: number } {
  const runtime = globalThis as { gc?: unknown };
  const before = runtime.gc;
  const counted = { count: 0 };
  runtime.gc = () => counted.count++;
  t.after(() => {
    runtime.gc = before;
  });
  return counted;
}

const ofMiB = (size: number): PackedZone =>
  ({
    data: { byteLength: size * 1024 * 1024 },
    nodes: { byteLength: 0 },
    slots: { byteLength: 0 },
    nsec3: { byteLength: 0 },
  }) as PackedZone;

test('versions of large zones that follow each other are collected together', async (t) => {
  const counted = collections(t);
  const clock = new VirtualClock();
  const replaced = new ReplacedZones(clock, () => false);
  for (let i = 0; i < 6; i++) {
    replaced.add(ofMiB(8));
    await clock.advance(2000);
  }
  assert.equal(counted.count, 0);
  await clock.advance(3000);
  assert.equal(counted.count, 1);
  await clock.advance(60_000);
  assert.equal(counted.count, 1, 'there is nothing more to collect');
});

test('so much memory that it matters is collected at once, little is not collected at all', async (t) => {
  const counted = collections(t);
  const clock = new VirtualClock();
  const replaced = new ReplacedZones(clock, () => true);
  replaced.add(ofMiB(40));
  replaced.add(ofMiB(40));
  await clock.advance(1);
  assert.equal(counted.count, 1);
  replaced.add(ofMiB(0.5));
  replaced.add(null);
  await clock.advance(60_000);
  assert.equal(counted.count, 1);
});

test('a thread that answers many queries is let alone until it has time', async (t) => {
  const counted = collections(t);
  const clock = new VirtualClock();
  let busy = true;
  const replaced = new ReplacedZones(clock, () => busy);
  replaced.add(ofMiB(8));
  await clock.advance(60_000);
  assert.equal(counted.count, 0);
  busy = false;
  await clock.advance(15_000);
  assert.equal(counted.count, 1);
});
