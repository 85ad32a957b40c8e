import assert from 'node:assert/strict';
import { test } from 'node:test';
import { VirtualClock } from '../../base/virtual-clock.ts';
import { NotifyGate } from './notify-gate.ts';

function gate() {
  const clock = new VirtualClock();
  const passed: string[] = [];
  const lines: string[] = [];
  const it = new NotifyGate({
    clock,
    pass: (zone, from) => void passed.push(`${zone} ${from}`),
    log: (line) => void lines.push(line),
  });
  return { clock, passed, lines, it };
}

test('of a hundred thousand notifications per second, at most one per second is handled, including the last', async () => {
  const { clock, passed, it } = gate();
  for (let tenth = 0; tenth < 100; tenth++) {
    for (let i = 0; i < 1000; i++) it.notified('example.org.', '192.0.2.1');
    await clock.advance(100);
  }
  assert.ok(passed.length >= 10 && passed.length <= 14, `${passed.length}`);
  await clock.advance(5000);
  passed.length = 0;
  it.notified('example.org.', '192.0.2.1');
  it.notified('example.org.', '192.0.2.2');
  it.notified('example.net.', '192.0.2.1');
  assert.deepEqual(passed, ['example.org. 192.0.2.1', 'example.net. 192.0.2.1']);
  await clock.advance(1000);
  assert.deepEqual(passed.slice(2), ['example.org. 192.0.2.2']);
  it.close();
});

test('of notifications for thousands of zones, a thousand are handled at once, then two hundred per second, in turn', async () => {
  const { clock, passed, it } = gate();
  const zones = Array.from({ length: 5000 }, (_, i) => `z${i}.example.`);
  for (let second = 0; second < 10; second++) {
    for (const zone of zones) it.notified(zone, '192.0.2.1');
    await clock.advance(1000);
  }
  assert.ok(passed.length >= 2900 && passed.length <= 3100, `${passed.length}`);
  await clock.advance(60_000);
  assert.equal(new Set(passed).size, zones.length);
  passed.length = 0;
  await clock.advance(60_000);
  assert.deepEqual(passed, []);
  it.notified('z0.example.', '192.0.2.1');
  assert.deepEqual(passed, ['z0.example. 192.0.2.1']);
  it.close();
});

test('a change shortly after a transfer is fetched within a tenth of a second too', async () => {
  const { clock, passed, it } = gate();
  for (let change = 1; change <= 5; change++) {
    it.notified('example.org.', '192.0.2.1');
    await clock.advance(20);
    it.notified('example.org.', '192.0.2.1');
    await clock.advance(100);
    assert.equal(passed.length, 2 * change);
    await clock.advance(2000);
  }
  it.close();
});

test('notifications from strangers cause ten lines a minute and a count', async () => {
  const { clock, lines, it } = gate();
  for (let i = 0; i < 5000; i++) it.dropped('example.org.', '203.0.113.9');
  assert.equal(lines.length, 10);
  await clock.advance(60_000);
  assert.deepEqual(lines.slice(10), ['Dropping notify for example.org.: 4990 more']);
  it.dropped('example.org.', '203.0.113.9');
  assert.equal(lines.length, 12);
  it.close();
});
