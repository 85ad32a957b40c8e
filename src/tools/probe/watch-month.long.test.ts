import assert from 'node:assert/strict';
import { test } from 'node:test';
import { watchOf } from '../../../test/kit/lossy-watch.ts';
import { VirtualClock } from '../../server/base/virtual-clock.ts';

test('a month of rounds every 10 s with 0.01 % message loss raises no alert', async () => {
  const clock = new VirtualClock();
  const { watch, lines } = watchOf(clock, new Set(), 0.0001);
  const stop = new AbortController();
  const running = watch.run(stop.signal);
  for (let hour = 0; hour < 30 * 24; hour++) {
    await clock.advance(3_600_000);
    const alerts = watch.status().filter(({ alert, isDown }) => alert !== null || isDown);
    assert.deepEqual(alerts, [], `hour ${hour}`);
  }
  assert.deepEqual(lines, []);
  const samples = watch.samples();
  const sum = (name: string): number =>
    samples.reduce((all, each) => all + (each.name === name ? each.value : 0), 0);
  assert.ok(sum('ndots_check_rounds_total') > 3 * 250_000);
  assert.ok(sum('ndots_check_queries_lost_total') > 60, 'queries were lost');
  assert.ok(watch.status().every(({ budgetLeft }) => budgetLeft > 0.99));
  stop.abort();
  await running;
});
