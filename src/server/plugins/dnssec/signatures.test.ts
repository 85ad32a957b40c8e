import assert from 'node:assert/strict';
import { test } from 'node:test';
import { VirtualClock } from '../../base/virtual-clock.ts';
import type { Signer } from '../../dnssec/signer.ts';
import { TYPE } from '../../wire/iana.ts';
import { parseName } from '../../wire/name.ts';
import { Signatures, wanted } from './signatures.ts';

test('the number of RRsets signed at once is limited, and the others follow in order of arrival', () => {
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

test('if the clock jumps forward or back, no signature is sent that it considers invalid', () => {
  const clock = new VirtualClock();
  const signer = {
    pair: { algorithm: 13, tag: 1, flags: 257 },
    sign: (_bytes: Uint8Array, done: (error: null, signature: Uint8Array) => void) =>
      done(null, Uint8Array.of(1)),
  } as unknown as Signer;
  const onBusy = (): void => undefined;
  const parts = { signers: [signer], capacity: 100, most: 10, atOnce: 2, clock, onBusy };
  const signatures = new Signatures(parts);
  const zone = parseName('example.org.');
  const data = [Uint8Array.of(10, 0, 0, 1)];
  const what = wanted({ owner: zone, type: TYPE.A, originalTtl: 30, data }, zone);
  const made: boolean[] = [];
  const day = 86_400_000;
  // The last step returns to the start, because signatures dated in the future must not be sent.
  for (const byMs of [0, 30 * day, -60 * day, 30 * day]) {
    clock.setWall(byMs);
    assert.equal(signatures.find(what), null);
    signatures.make(what, (_, signed) => made.push(signed !== null));
    const now = clock.wall() / 1000;
    const { inception, expiration } = signatures.find(what)!;
    assert.ok(inception < now && now < expiration);
  }
  assert.deepEqual(made, [true, true, true, true]);
});
