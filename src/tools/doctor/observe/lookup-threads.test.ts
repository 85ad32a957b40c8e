import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { seededRandom } from '../../../server/base/random.ts';
import type { SeenLookup } from '../../capture/pair/seen-exchange.ts';
import { LookupThreads, type FewThreads } from './lookup-threads.ts';

type Span = readonly [startMs: number, endMs: number];

function fewOf(spans: readonly Span[]): FewThreads | null {
  const threads = new LookupThreads();
  for (const [startMs, endMs] of spans.toSorted(([, one], [, other]) => one - other))
    threads.add({ startMs, endMs } as SeenLookup);
  return threads.few;
}

/** Lookups of 20 to 60 ms that wait for one of a few threads. */
function queued(threads: number, count: number): readonly Span[] {
  const random = seededRandom(7);
  const free = Array.from({ length: threads }, () => 0);
  return Array.from({ length: count }, () => {
    const at = free.indexOf(Math.min(...free));
    const startMs = free[at]! + 0.3;
    free[at] = startMs + 20 + random.integer(40);
    return [startMs, free[at]!] as const;
  });
}

describe('lookups of a client that wait for few threads', () => {
  test('two or four threads show themselves by lookups that begin where another one ends', () => {
    for (const threads of [2, 3, 4]) {
      const few = fewOf(queued(threads, 100))!;
      assert.equal(few.threads, threads);
      assert.ok(few.handed >= 0.9 * few.full && few.full >= 90, JSON.stringify(few));
      assert.ok(few.meanMs > 30 && few.meanMs < 50);
    }
  });

  test('one after the other is a loop, and five at a time are not a few', () => {
    assert.equal(fewOf(queued(1, 100)), null);
    assert.equal(fewOf(queued(5, 100)), null);
  });

  test('thirty of them say enough', () => {
    assert.notEqual(fewOf(queued(4, 40)), null);
    assert.equal(fewOf(queued(4, 30)), null);
  });

  test('lookups that begin when they will wait for none', () => {
    for (let seed = 1; seed <= 50; seed++) {
      const random = seededRandom(seed);
      const spans = Array.from({ length: 300 }, (_, i): Span => {
        const startMs = i * 25 + random.integer(25);
        return [startMs, startMs + 20 + random.integer(40)];
      });
      assert.equal(fewOf(spans), null, `seed ${seed}`);
    }
  });
});
