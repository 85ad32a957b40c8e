import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { andThen, isLater, Later, type Maybe, orElse, whenSettled } from './maybe.ts';

const plus = (value: number, amount: number): number => value + amount;

describe('a later value', () => {
  test('passes through all steps, in order, within the call that settles it', () => {
    const later = new Later<number>();
    const seen: number[] = [];
    later.map(plus, 1).map((value) => value * 10, null);
    later.settle(
      (value) => seen.push(value),
      () => assert.fail(),
      null,
    );
    assert.deepEqual(seen, []);
    later.resolve(4);
    assert.deepEqual(seen, [50]);
  });

  test('steps added after the value is known run at once', () => {
    const later = new Later<number>();
    later.resolve(1);
    const seen: number[] = [];
    later.map(plus, 1).settle(
      (value) => seen.push(value),
      () => assert.fail(),
      null,
    );
    assert.deepEqual(seen, [2]);
  });

  test('a step may itself return a later value or a promise', async () => {
    for (const inner of [new Later<number>(), Promise.resolve(7)]) {
      const later = new Later<number>();
      later.map((): Maybe<number> => inner, null).map(plus, 1);
      later.resolve(0);
      if (inner instanceof Later) inner.resolve(7);
      assert.equal(await later, 8);
    }
  });

  test('an error skips to the first step that handles errors', () => {
    const later = new Later<number>();
    const seen: unknown[] = [];
    later
      .map(plus, 1)
      .rescue((error) => {
        seen.push(error);
        return 40;
      }, null)
      .map(plus, 2)
      .settle(
        (value) => seen.push(value),
        () => assert.fail(),
        null,
      );
    later.reject('broken');
    assert.deepEqual(seen, ['broken', 42]);
  });

  test('a step that throws is an error', async () => {
    const later = new Later<number>();
    later.map(() => {
      throw new Error('thrown');
    }, null);
    later.resolve(1);
    await assert.rejects(Promise.resolve(later), /thrown/);
  });

  test('can be awaited like a promise, and distinguished from a value', async () => {
    const later = new Later<number>();
    setImmediate(() => later.resolve(3));
    assert.equal(isLater<number>(later), true);
    assert.equal(isLater(3), false);
    assert.equal(await later, 3);
  });
});

test('andThen, orElse and whenSettled treat values, promises and later values alike', async () => {
  const kinds = (): Maybe<number>[] => {
    const later = new Later<number>();
    setImmediate(() => later.resolve(1));
    return [1, Promise.resolve(1), later];
  };
  for (const kind of kinds()) assert.equal(await andThen(kind, plus, 2), 3);
  const failing = (): (Promise<number> | Later<number>)[] => {
    const later = new Later<number>();
    setImmediate(() => later.reject(new Error('no')));
    return [Promise.reject(new Error('no')), later];
  };
  for (const kind of failing())
    assert.equal(await orElse(kind, (error, more) => (error as Error).message.length + more, 5), 7);
  for (const kind of failing()) {
    const told = await new Promise((resolve) => {
      whenSettled(
        kind,
        () => resolve('value'),
        (error, context) => resolve(`${(error as Error).message} ${context}`),
        'here',
      );
    });
    assert.equal(told, 'no here');
  }
});
