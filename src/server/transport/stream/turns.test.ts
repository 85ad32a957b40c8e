import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { Turns, type TurnTaker } from './turns.ts';

/** A connection with `queries` to be served. */
class Asking implements TurnTaker {
  left: number;
  readonly #turns: Turns;

  constructor(turns: Turns, queries: number) {
    this.left = queries;
    this.#turns = turns;
    turns.wait(this);
  }

  takeTurn(): void {
    for (let n = this.#turns.allowance; n > 0 && this.left > 0; n--) {
      this.left--;
      this.#turns.count();
    }
    if (this.left > 0) this.#turns.wait(this);
  }
}

const sum = (all: readonly Asking[]): number => all.reduce((total, { left }) => total + left, 0);
const round = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe('turns', () => {
  test('property: every client is eventually served, about 256 queries per turn of the event loop', async () => {
    const some = fc.array(fc.integer({ min: 1, max: 2000 }), { minLength: 1, maxLength: 300 });
    await fc.assert(
      fc.asyncProperty(some, async (sizes) => {
        const turns = new Turns();
        const all = sizes.map((queries) => new Asking(turns, queries));
        for (let left = sum(all); left > 0;) {
          await round();
          const served = left - sum(all);
          assert.ok(served >= Math.min(left, 256) && served < 256 + 16, `${served} of ${left}`);
          left -= served;
        }
      }),
      { numRuns: 30 },
    );
  });

  test('a client with new input gets a few queries served at once, whatever the others have sent', async () => {
    const turns = new Turns();
    for (let n = 0; n < 1000; n++) turns.count();
    assert.equal(turns.allowance, 16);
    await round();
    assert.equal(turns.allowance, 64);
  });

  test('after ten milliseconds of work, one query of new input is served at once, and waiting ones have their own turns', async () => {
    const turns = new Turns();
    turns.spend(9);
    assert.ok(turns.allowance > 0);
    turns.spend(1);
    assert.equal(turns.allowance, 1);
    const order: string[] = [];
    // Each takes six milliseconds. One of the waiting ones gets its turn first, and then two at a time.
    const slow = (name: string): TurnTaker => ({
      takeTurn() {
        assert.ok(turns.allowance > 0);
        order.push(name);
        turns.spend(6);
      },
    });
    for (const name of 'abcde') turns.wait(slow(name));
    const turnsTaken: string[] = [];
    while (order.length < 5) {
      const before = order.length;
      await round();
      turnsTaken.push(order.slice(before).join(''));
    }
    assert.deepEqual(
      turnsTaken.filter((taken) => taken !== ''),
      ['a', 'bc', 'de'],
    );
  });

  test('a turn of the event loop that accepts a connection is short', async () => {
    const turns = new Turns();
    const flood = [new Asking(turns, 1000), new Asking(turns, 1000)];
    turns.hurry();
    await round();
    assert.equal(sum(flood), 2000 - 32);
    await round();
    assert.equal(sum(flood), 2000 - 32 - 256);
  });
});
