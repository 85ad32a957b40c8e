import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Series, WastePlan } from '../../../tools/watch/view.ts';
import { coursesOf, planText, seesNothing } from './now-parts.ts';

function series(stepMs: number, queries: readonly number[]): Series {
  const zero = queries.map(() => 0);
  return {
    ...{ fromMs: 100_000, stepMs, queries, lookups: zero, lost: zero, failed: zero },
    ...{ nxdomain: zero, wasted: zero, p50: queries, p99: queries },
  };
}

describe('the course of rates', () => {
  test('the current step counts the time that it has lasted, so the rate does not drop at the end', () => {
    const { rates, p50 } = coursesOf(series(10_000, [8000, 8000, 3200]), 124_000);
    assert.deepEqual(rates.queries, [800, 800, 800]);
    assert.equal(p50.length, 3);
  });

  test('a step that has just begun is left out, unless it is the only one', () => {
    const { rates, p50 } = coursesOf(series(10_000, [8000, 8000, 3]), 120_010);
    assert.deepEqual(rates.queries, [800, 800]);
    assert.deepEqual(p50, [8000, 8000]);
    assert.deepEqual(coursesOf(series(1000, [7]), 100_200).rates.queries, [7]);
  });

  test('complete steps are unchanged', () => {
    assert.deepEqual(coursesOf(series(1000, [5, 6]), 102_000).rates.queries, [5, 6]);
  });
});

test('queries of an input that has been dropped have been seen', () => {
  assert.ok(seesNothing({ inputs: [], detailFromMs: null }));
  assert.ok(!seesNothing({ inputs: [], detailFromMs: 100_000 }));
});

test('a plan shows the share that it saves, because it covers only the most queried names', () => {
  const plan: WastePlan = {
    ...{ ndots: 2, queriesNow: 300, dotted: [], broken: [], unknown: [], patch: '', resolver: '' },
    queriesThen: 92,
  };
  assert.equal(planText(plan), 'ndots:2 saves 69 %');
  assert.equal(
    planText({ ...plan, ndots: null, dotted: [{ name: 'a.example.', saved: 3 }] }),
    'a final dot: a.example.',
  );
  assert.equal(
    planText({ ...plan, ndots: null, broken: ['redis.cache'] }),
    'a lower ndots would break redis.cache',
  );
  assert.equal(planText({ ...plan, ndots: null }), '');
  assert.equal(planText(null), '');
});
