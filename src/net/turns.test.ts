import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import type { Clock } from '../base/clock.ts';
import { Turns, type TurnTaker } from './turns.ts';

/** Virtual milliseconds that a query takes. */
const QUERY_MS = 0.01;

/** Time that passes by work alone. */
class WorkClock implements Clock {
  #now = 0;

  now(): number {
    return this.#now;
  }

  wall(): number {
    return this.#now;
  }

  after(): never {
    throw new Error('turns set no alarms');
  }

  pass(ms: number): void {
    this.#now += ms;
  }
}

/** A connection with so many queries to be served. */
class Asking implements TurnTaker {
  nextTaker: TurnTaker | null = null;
  queued = false;
  left: number;
  /** When the last was served; -1: not yet. */
  done = -1;
  readonly #turns: Turns;
  readonly #clock: WorkClock;

  constructor(turns: Turns, clock: WorkClock, queries: number) {
    this.left = queries;
    this.#turns = turns;
    this.#clock = clock;
  }

  takeTurn(): void {
    for (let quantum = this.#turns.quantum; quantum > 0 && this.left > 0; quantum--) {
      this.left--;
      this.#clock.pass(QUERY_MS);
    }
    if (this.left > 0) this.#turns.wait(this, true, this.#clock.now());
    else this.done = this.#clock.now();
  }
}

const round = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe('turns', () => {
  test('who comes with one query waits for less than two rounds, however much the others have sent', async () => {
    const clock = new WorkClock();
    const turns = new Turns(clock);
    const asking = (queries: number): Asking => {
      const one = new Asking(turns, clock, queries);
      turns.wait(one, false, clock.now());
      return one;
    };
    const flood = Array.from({ length: 150 }, () => asking(100_000));
    for (let i = 0; i < 200; i++) await round();
    for (let i = 0; i < 20; i++) {
      const begun = clock.now();
      const newcomer = asking(1);
      while (newcomer.done < 0) await round();
      assert.ok(newcomer.done - begun < 4, `${newcomer.done - begun} ms`);
    }
    for (const one of flood) one.left = 1;
    while (flood.some(({ done }) => done < 0)) await round();
  });

  test('a round of the event loop is given up after a millisecond, so that others come in', async () => {
    const clock = new WorkClock();
    const turns = new Turns(clock);
    const flood = Array.from({ length: 50 }, () => new Asking(turns, clock, 1000));
    for (const one of flood) turns.wait(one, false, clock.now());
    while (flood.some(({ done }) => done < 0)) {
      const before = clock.now();
      await round();
      assert.ok(clock.now() - before < 2, `${clock.now() - before} ms`);
    }
  });

  test('who has something new all the time does not keep the others from theirs', async () => {
    const clock = new WorkClock();
    const turns = new Turns(clock);
    const patient = new Asking(turns, clock, 320);
    turns.wait(patient, true, clock.now());
    const restless = Array.from({ length: 100 }, () => new Asking(turns, clock, 0));
    for (let rounds = 0; patient.done < 0; rounds++) {
      assert.ok(rounds < 25);
      for (const one of restless) {
        one.left = 16;
        turns.wait(one, false, clock.now());
      }
      await round();
    }
  });

  test('what comes is served as it comes, until a millisecond of a round is over', async () => {
    const clock = new WorkClock();
    const turns = new Turns(clock);
    for (let i = 0; i < 63; i++) turns.served(1, clock.now());
    clock.pass(5);
    assert.ok(turns.free(clock.now()));
    turns.served(1, clock.now());
    assert.ok(turns.free(clock.now()));
    clock.pass(1);
    assert.ok(!turns.free(clock.now()));
    await round();
    assert.ok(turns.free(clock.now()));
  });

  test('property: everybody is served to the end, and each as far as the others while all have more to ask', async () => {
    const some = fc.array(fc.integer({ min: 1, max: 2000 }), { minLength: 1, maxLength: 40 });
    await fc.assert(
      fc.asyncProperty(some, async (sizes) => {
        const clock = new WorkClock();
        const turns = new Turns(clock);
        const all = sizes.map((queries) => new Asking(turns, clock, queries));
        for (const one of all) turns.wait(one, false, clock.now());
        while (all.some(({ done }) => done < 0)) {
          await round();
          const served = all.flatMap(({ left }, i) => (left === 0 ? [] : [sizes[i]! - left]));
          if (served.length > 1) assert.ok(Math.max(...served) - Math.min(...served) <= 128);
        }
      }),
      { numRuns: 30 },
    );
  });
});
