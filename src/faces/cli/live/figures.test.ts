import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Party } from '../../../tools/watch/view.ts';
import { partyLabel, partyName, printSpan } from './figures.ts';

test('a span within a second is a single time', () => {
  assert.equal(printSpan(0, 999), '00:00:00');
  assert.equal(printSpan(0, 61_000), '00:00:00 to 00:01:01');
});

test('a client or server has the same short name in all views, with marks only where there is no markup', () => {
  const party: Party = {
    ...{ address: '10.244.1.7', kind: 'pod', name: 'shop/cart-1', namespace: 'shop' },
    ...{ workload: 'deploy/cart', node: 'node7', isGone: false },
  };
  const hidden = { ...party, name: '', address: '' };
  const cases: readonly (readonly [Party, name: string, label: string])[] = [
    [party, 'shop/cart-1', 'shop/cart-1'],
    [{ ...party, isGone: true }, 'shop/cart-1', 'shop/cart-1 (gone)'],
    [{ ...party, kind: 'service' }, 'shop/cart-1', 'svc shop/cart-1'],
    [hidden, 'shop/deploy/cart', 'shop/deploy/cart'],
    [{ ...party, name: '', workload: '' }, '10.244.1.7', '10.244.1.7'],
    [{ ...hidden, workload: '' }, '-', '-'],
  ];
  for (const [given, name, label] of cases)
    assert.deepEqual([partyName(given), partyLabel(given)], [name, label]);
});
