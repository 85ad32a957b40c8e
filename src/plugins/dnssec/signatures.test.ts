import assert from 'node:assert/strict';
import { test } from 'node:test';
import { VirtualClock } from '../../base/virtual-clock.ts';
import type { Signer } from '../../dnssec/signer.ts';
import { TYPE } from '../../wire/iana.ts';
import { parseName } from '../../wire/name.ts';
import { Signatures, wanted } from './signatures.ts';

test('no more RRsets are signed at one time than were allowed, the others in the order in which they came', () => {
  const begun: (() => void)[] = [];
  const signer = {
    pair: { algorithm: 13, tag: 1, flags: 257 },
    sign: (_bytes: Uint8Array, done: (error: null, signature: Uint8Array) => void) =>
      begun.push(() => done(null, Uint8Array.of(1))),
  } as unknown as Signer;
  let busy = 0;
  const signatures = new Signatures({
    signers: [signer],
    capacity: 100,
    most: 10,
    atOnce: 2,
    clock: new VirtualClock(),
    onBusy: (change) => (busy += change),
  });
  const ended: number[] = [];
  const zone = parseName('example.org.');
  for (let nth = 0; nth < 5; nth++) {
    const set = {
      owner: zone,
      type: TYPE.A,
      originalTtl: 30,
      data: [Uint8Array.of(10, 0, 0, nth)],
    };
    signatures.make(wanted(set, zone), () => ended.push(nth));
  }
  assert.deepEqual([begun.length, busy], [2, 5]);
  for (let done = 0; done < 5; done++) {
    begun[done]!();
    assert.equal(begun.length, Math.min(5, done + 3));
  }
  assert.deepEqual(ended, [0, 1, 2, 3, 4]);
  assert.equal(busy, 0);
});
