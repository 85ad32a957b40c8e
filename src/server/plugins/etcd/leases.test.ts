import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { VirtualClock } from '../../base/virtual-clock.ts';
import { LeaseClock } from './leases.ts';

const id = Buffer.from([0, 0, 0, 0, 0, 0, 0, 7]).toString('latin1');

/** A lease with a fixed time left. It counts requests and returns the reported expiry. */
function makeLease(ttl: number): {
  readonly clock: VirtualClock;
  readonly asked: () => number;
  /** Seconds from now, or null if unknown. */
  readonly left: () => number | null;
} {
  const clock = new VirtualClock();
  let asked = 0;
  let until: number | null = null;
  const leases = new LeaseClock({
    clock,
    ask: async (lease) => {
      asked++;
      return { id: lease, ttl } as never;
    },
    changed: (_, at) => {
      until = at;
    },
  });
  leases.add(id);
  return {
    clock,
    asked: () => asked,
    left: () => (until === null ? null : Math.round((until - clock.wall()) / 1000)),
  };
}

describe("leases, when the machine's clock is set", () => {
  for (const [what, byMs] of [
    ['back by a day', -86_400_000],
    ['forward by a day', 86_400_000],
  ] as const)
    test(`${what}: they end and are requested at the same moments as before`, async () => {
      const lease = makeLease(60);
      await lease.clock.advance(1000);
      assert.equal(lease.left(), 59);
      lease.clock.setWall(byMs);
      await lease.clock.advance(1000);
      assert.equal(lease.left(), 58);
      assert.equal(lease.asked(), 1);
      await lease.clock.advance(30_000);
      assert.equal(lease.asked(), 2);
      assert.ok(lease.left()! > 55, String(lease.left()));
    });
});
