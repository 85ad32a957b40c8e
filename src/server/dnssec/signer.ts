/** Creates signatures, either on this thread or in the thread pool. */
import { createPrivateKey, sign, type KeyObject } from 'node:crypto';
import { algorithms } from './algorithm.ts';
import { isKeySigning, type KeyPair } from './key-pair.ts';

/** Called once, with either the signature or the reason why there is none. */
export type SignatureMade = (error: Error | null, signature: Uint8Array) => void;

export interface Signer {
  readonly pair: KeyPair;
  /** Calls `done` in a later turn. */
  sign(bytes: Uint8Array, done: SignatureMade): void;
}

/**
 * Signs in the runtime's thread pool while the requesting thread continues. Handing a signature over takes more CPU
 * time than a fast algorithm needs.
 */
export class PoolSigner implements Signer {
  readonly pair: KeyPair;
  readonly #key: SigningKey;

  constructor(pair: KeyPair) {
    this.pair = pair;
    this.#key = signingKey(pair);
  }

  sign(bytes: Uint8Array, done: SignatureMade): void {
    const { digest, key } = this.#key;
    sign(digest, bytes, key, (error, signature) => done(error, signature));
  }
}

/** Signs on the requesting thread between two turns of its event loop, once the turn's replies have been sent. */
export class TurnSigner implements Signer {
  readonly pair: KeyPair;
  readonly #key: SigningKey;
  #waiting: { readonly bytes: Uint8Array; readonly done: SignatureMade }[] = [];

  constructor(pair: KeyPair) {
    this.pair = pair;
    this.#key = signingKey(pair);
  }

  sign(bytes: Uint8Array, done: SignatureMade): void {
    if (this.#waiting.push({ bytes, done }) === 1) setImmediate(this.#turn);
  }

  #turn = (): void => {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const { bytes, done } of waiting) this.#signNow(bytes, done);
  };

  #signNow(bytes: Uint8Array, done: SignatureMade): void {
    const { digest, key } = this.#key;
    let signature: Uint8Array;
    try {
      signature = sign(digest, bytes, key);
    } catch (error) {
      done(error as Error, new Uint8Array(0));
      return;
    }
    done(null, signature);
  }
}

/**
 * Returns a signer for this key. It runs on the calling thread, unless the algorithm is so slow that all other work
 * would have to wait.
 */
export function signerFor(pair: KeyPair): Signer {
  return isQuick(pair) ? new TurnSigner(pair) : new PoolSigner(pair);
}

/** Returns true if signing is cheaper than handing the work to another thread and back. */
export function isQuick({ algorithm }: KeyPair): boolean {
  return algorithms.get(algorithm)!.quick;
}

/** A key in the form that `node:crypto` accepts. */
interface SigningKey {
  readonly digest: string | null;
  readonly key: { readonly key: KeyObject; readonly dsaEncoding: 'ieee-p1363' };
}

function signingKey({ secret, algorithm }: KeyPair): SigningKey {
  const key = createPrivateKey({ key: Buffer.from(secret), format: 'der', type: 'pkcs8' });
  return {
    digest: algorithms.get(algorithm)!.digest,
    // Two concatenated numbers, as in RFC 6605 section 4.
    key: { key, dsaEncoding: 'ieee-p1363' },
  };
}

/**
 * Returns the signers for an RRset. If there are keys of both kinds, those with SEP sign the DNSKEY records, and the
 * others sign everything else. If not, every key signs everything.
 */
export function signersOf(signers: readonly Signer[], ofKeys: boolean): readonly Signer[] {
  const isSplit =
    signers.some(({ pair }) => isKeySigning(pair)) &&
    !signers.every(({ pair }) => isKeySigning(pair));
  return isSplit ? signers.filter(({ pair }) => isKeySigning(pair) === ofKeys) : signers;
}
