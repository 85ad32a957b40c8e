import assert from 'node:assert/strict';
import { verify } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { writeZoneKey, zoneKey } from '../../../test/kit/zone-keys.ts';
import { algorithms, publicKeyOf } from './algorithm.ts';
import { readKeyPair } from './key-file.ts';
import type { KeyPair } from './key-pair.ts';
import { PoolSigner, signerFor, TurnSigner, type Signer } from './signer.ts';

const directory = mkdtempSync(join(tmpdir(), 'ndots-signer-'));
after(() => rmSync(directory, { recursive: true }));

function pairOf(algorithm: number): KeyPair {
  return readKeyPair(writeZoneKey(directory, zoneKey('example.org.', algorithm)));
}

function holds({ algorithm, data }: KeyPair, bytes: Uint8Array, signature: Uint8Array): boolean {
  const of = algorithms.get(algorithm)!;
  const key = publicKeyOf(of, data.subarray(4))!;
  return verify(of.digest, bytes, { key, dsaEncoding: 'ieee-p1363' }, signature);
}

for (const algorithm of [13, 15]) {
  for (const Signing of [TurnSigner, PoolSigner]) {
    test(`a signature with algorithm ${algorithm} arrives in a later turn and is valid (${Signing.name})`, async () => {
      const pair = pairOf(algorithm);
      const bytes = Buffer.from('what is signed');
      let turnIsOver = false;
      const made = new Promise<Uint8Array>((resolve, reject) => {
        const signer: Signer = new Signing(pair);
        signer.sign(bytes, (error, signature) => {
          if (!turnIsOver) reject(new Error('told in the same turn'));
          else if (error === null) resolve(signature);
          else reject(error);
        });
      });
      turnIsOver = true;
      assert.ok(holds(pair, bytes, await made));
    });
  }
}

test('requests that arrive while a turn signs wait for the next turn', async () => {
  const signer = new TurnSigner(pairOf(13));
  const order: string[] = [];
  await new Promise<void>((resolve) => {
    signer.sign(Uint8Array.of(1), () => {
      order.push('first');
      setImmediate(() => order.push('others'));
      signer.sign(Uint8Array.of(2), () => {
        order.push('second');
        resolve();
      });
    });
  });
  assert.deepEqual(order, ['first', 'others', 'second']);
});

test('only quick algorithms are signed in the worker', () => {
  for (const algorithm of [13, 15]) assert.ok(signerFor(pairOf(algorithm)) instanceof TurnSigner);
  for (const algorithm of [14, 8]) assert.ok(signerFor(pairOf(algorithm)) instanceof PoolSigner);
});
