/** Hashes and random numbers for the browser machine, because the browser's own hash functions are asynchronous. */
import { hmac } from '@noble/hashes/hmac.js';
import { sha1 } from '@noble/hashes/legacy.js';
import { sha256, sha384, sha512 } from '@noble/hashes/sha2.js';

const hashes = { sha1, sha256, sha384, sha512 } as const;

interface RunningHash {
  update(data: string | Uint8Array): RunningHash;
  digest(): Buffer;
  digest(encoding: BufferEncoding): string;
}

function bytesOf(data: string | Uint8Array): Uint8Array {
  return typeof data === 'string' ? new TextEncoder().encode(data) : data;
}

function known(name: string): (typeof hashes)[keyof typeof hashes] {
  const key = name.toLowerCase();
  if (!Object.hasOwn(hashes, key)) throw new Error(`this page has no hash ${name}`);
  return hashes[key as keyof typeof hashes];
}

function running(inner: { update(data: Uint8Array): unknown; digest(): Uint8Array }): RunningHash {
  const outer: RunningHash = {
    update(data) {
      inner.update(bytesOf(data));
      return outer;
    },
    digest: ((encoding?: BufferEncoding) => {
      const bytes = Buffer.from(inner.digest());
      return encoding === undefined ? bytes : bytes.toString(encoding);
    }) as RunningHash['digest'],
  };
  return outer;
}

export function createHash(name: string): RunningHash {
  return running(known(name).create());
}

/** Creates an incremental keyed hash (HMAC). */
export function createHmac(name: string, key: Uint8Array): RunningHash {
  return running(hmac.create(known(name), key));
}

/** `hash` from `node:crypto`, which returns hexadecimal text by default. */
export function hash(
  name: string,
  data: string | Uint8Array,
  encoding: BufferEncoding | 'buffer' = 'hex',
): string | Buffer {
  const made = createHash(name).update(data);
  return encoding === 'buffer' ? made.digest() : made.digest(encoding);
}

export function randomBytes(size: number): Buffer {
  return randomFillSync(Buffer.alloc(size));
}

export function randomFillSync<T extends Uint8Array<ArrayBuffer> | Uint32Array<ArrayBuffer>>(
  into: T,
): T {
  crypto.getRandomValues(into);
  return into;
}
