/** Tests Corefiles that are reloaded more often than a pod's memory allows. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { makeWorld, type World } from '../../../../test/kit/world.ts';
import { makeLog } from '../../base/log.ts';
import { VirtualClock } from '../../base/virtual-clock.ts';
import { SharedRegistry } from '../../metrics/shared-registry.ts';
import { OneAtATime } from './one-at-a-time.ts';
import { PacedReloads } from './paced-reloads.ts';

/** The address that the `n`th Corefile returns for every name. */
function nth(n: number): string {
  return `. {\n template IN A . {\n  answer "{{ .Name }} 60 IN A 10.0.${n >> 8}.${n & 255}"\n }\n}\n`;
}

function reloads({ log }: World): number {
  return log.filter((line) => line.includes('Reloading complete')).length;
}

describe('a Corefile that changes ten times a second', () => {
  test('is loaded at once at first, and then at most twice a second', async () => {
    const world = await makeWorld(nth(0));
    for (let n = 1; n <= 4; n++) {
      world.setCorefile(nth(n));
      assert.equal(await world.clock.run(world.server.reload()), true);
    }
    assert.equal(world.clock.now() < 100, true);
    const before = reloads(world);
    for (let n = 0; n < 300; n++) {
      world.setCorefile(nth(n));
      void world.server.reload();
      await world.clock.advance(100);
    }
    assert.ok(reloads(world) - before <= 61, `${reloads(world) - before} in 30 seconds`);
    await world.close();
  });

  test('is served in its final state half a second later, and the log explains the delay', async () => {
    const world = await makeWorld(nth(0));
    let last: Promise<boolean> = Promise.resolve(false);
    for (let n = 1; n <= 100; n++) {
      world.setCorefile(nth(n));
      last = world.server.reload();
      await world.clock.advance(100);
    }
    await world.clock.advance(500);
    assert.equal(await last, true);
    const reply = await world.ask('x.example. A');
    assert.match(JSON.stringify(reply), /10\.0\.0\.100/);
    const told = world.log.filter((line) => line.includes('are combined'));
    assert.equal(told.length, 1);
    await world.close();
  });
});

test('endless reload requests start twice a second with two workers, and half as often with four', async () => {
  for (const [workers, most] of [
    [1, 64],
    [2, 64],
    [4, 34],
    [16, 12],
  ] as const) {
    const clock = new VirtualClock();
    let begun = 0;
    const reloads = new PacedReloads({
      clock,
      log: makeLog(() => undefined),
      metrics: new SharedRegistry(() => undefined),
      taking: new OneAtATime(),
      workers: () => workers,
      run: async () => ++begun > 0,
    });
    for (let i = 0; i < 1500; i++) {
      void reloads.request();
      await clock.advance(20);
    }
    assert.ok(begun <= most && begun >= most - 4, `${begun} with ${workers} workers`);
  }
});
