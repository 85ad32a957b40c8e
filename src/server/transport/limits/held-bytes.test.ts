import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { HeldBytes, type Holder } from './held-bytes.ts';

class Connection implements Holder {
  held = 0;
  destroyed = false;

  destroy(): void {
    this.destroyed = true;
    this.held = 0;
  }
}

function bench(): {
  holders: Connection[];
  tell(index: number, bytes: number): void;
  destroyed(): number[];
  bytes: HeldBytes<Connection>;
  evicted(): number;
} {
  const holders = Array.from({ length: 4 }, () => new Connection());
  let evicted = 0;
  const bytes = new HeldBytes<Connection>(100, () => evicted++);
  return {
    holders,
    bytes,
    evicted: () => evicted,
    tell(index, held) {
      holders[index]!.held = held;
      bytes.tell(holders[index]!, held);
    },
    destroyed: () => holders.flatMap(({ destroyed }, index) => (destroyed ? [index] : [])),
  };
}

describe('a budget of held bytes', () => {
  test('spares every holder while it lasts', () => {
    const { tell, destroyed, bytes } = bench();
    tell(0, 50);
    tell(1, 50);
    tell(0, 20);
    tell(2, 30);
    assert.deepEqual(destroyed(), []);
    assert.equal(bytes.total, 100);
  });

  test('evicts the longest-standing holders, and no more than necessary', () => {
    const { tell, destroyed, evicted, bytes } = bench();
    tell(1, 40);
    tell(0, 40);
    tell(2, 50);
    assert.deepEqual(destroyed(), [1]);
    assert.equal(evicted(), 1);
    assert.equal(bytes.total, 90);
  });

  test('checks again before evicting and spares holders that have released their bytes', () => {
    const { holders, tell, destroyed, bytes } = bench();
    tell(0, 60);
    tell(1, 30);
    holders[0]!.held = 0;
    tell(2, 60);
    assert.deepEqual(destroyed(), []);
    assert.equal(bytes.total, 90);
  });

  test('evicts a holder that exceeds it alone', () => {
    const { tell, destroyed, bytes } = bench();
    tell(3, 101);
    assert.deepEqual(destroyed(), [3]);
    assert.equal(bytes.total, 0);
  });

  test('a holder that releases its bytes and holds again counts as new', () => {
    const { tell, destroyed } = bench();
    tell(0, 40);
    tell(1, 40);
    tell(0, 0);
    tell(0, 40);
    tell(2, 40);
    assert.deepEqual(destroyed(), [1]);
  });
});
