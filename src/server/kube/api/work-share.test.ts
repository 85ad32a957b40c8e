import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { VirtualClock } from '../../base/virtual-clock.ts';
import { WorkShare } from './work-share.ts';

/**
 * Works in pieces of `pieceMs` for `forMs`, pausing when told to.
 * @returns the share of time spent working
 */
async function workedShare(processors: number, pieceMs: number, forMs: number): Promise<number> {
  const clock = new VirtualClock();
  let cpuMs = 400;
  const share = new WorkShare({ clock, cpuMs: () => cpuMs, processors: () => processors });
  const before = cpuMs;
  while (clock.now() < forMs) {
    cpuMs += pieceMs;
    await clock.advance(pieceMs);
    await clock.advance(share.restMs());
  }
  return (cpuMs - before) / clock.now();
}

void suite('the share of a CPU that a list may take', () => {
  test('is half of one if nothing limits the process', async () => {
    const share = await workedShare(Infinity, 1, 10_000);
    assert.ok(share > 0.49 && share < 0.51, String(share));
  });

  test("is a quarter of the process's limit, even if each piece of work is long", async () => {
    for (const pieceMs of [0.2, 1, 10]) {
      const share = await workedShare(0.5, pieceMs, 20_000);
      assert.ok(share > 0.12 && share < 0.13, `${pieceMs} ms: ${share}`);
    }
  });

  test('does not delay isolated changes', async () => {
    const clock = new VirtualClock();
    let cpuMs = 0;
    const share = new WorkShare({ clock, cpuMs: () => cpuMs, processors: () => 0.5 });
    for (let change = 0; change < 100; change++) {
      cpuMs += 0.5;
      assert.equal(share.restMs(), 0);
      await clock.advance(10);
    }
  });

  test('follows a limit that is changed while the process runs', async () => {
    const clock = new VirtualClock();
    let cpuMs = 0;
    let processors = 1;
    const share = new WorkShare({ clock, cpuMs: () => cpuMs, processors: () => processors });
    const restMs = async (): Promise<number> => {
      await clock.advance(2000);
      cpuMs += 13;
      return share.restMs();
    };
    assert.equal(await restMs(), 40);
    processors = 2;
    assert.equal(await restMs(), 20);
  });

  test('ignores what the thread did before, such as startup', async () => {
    const clock = new VirtualClock();
    let cpuMs = 0;
    const share = new WorkShare({ clock, cpuMs: () => cpuMs, processors: () => Infinity });
    cpuMs += 5000;
    assert.ok(share.restMs() <= 40);
  });
});
