import assert from 'node:assert/strict';
import { test } from 'node:test';
import { VirtualClock } from '../../../server/base/virtual-clock.ts';
import { StreamTurns } from './stream-turns.ts';

/** Turns in virtual time, where each piece of work takes the given CPU time. */
function turns(): {
  readonly clock: VirtualClock;
  readonly streams: StreamTurns;
  readonly work: (ms: number) => () => void;
} {
  const clock = new VirtualClock();
  let cpuMs = 0;
  return {
    clock,
    streams: new StreamTurns({ clock, cpuMs: () => cpuMs }),
    work: (ms) => () => (cpuMs += ms),
  };
}

test('a stream that leaves no time for the others waits until the next second', async () => {
  const { clock, streams, work } = turns();
  const [greedy, modest] = [streams.open(), streams.open()];
  assert.equal(modest.run(work(1)), 0);
  assert.equal(greedy.run(work(600)), 0);
  await clock.advance(800);
  assert.equal(greedy.run(work(200)), 200);
  assert.equal(modest.run(work(100)), 0);
  await clock.advance(200);
  assert.equal(greedy.run(work(600)), 0);
});

test('a single busy stream leaves time for the views', () => {
  const { streams, work } = turns();
  const only = streams.open();
  assert.equal(only.run(work(699)), 0);
  assert.ok(only.run(work(2)) > 0);
});
