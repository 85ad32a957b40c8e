/** Changes bytes at random. */
import type { Random } from '../../src/server/base/random.ts';

/** Bytes with a special meaning in messages: end markers, pointers, label lengths, types. */
const telling = [
  0, 1, 2, 5, 6, 12, 15, 16, 28, 33, 41, 46, 63, 64, 65, 127, 128, 191, 192, 250, 255,
];
/** Longer inputs would only be slower. */
const LENGTH_MAX = 4096;

/** Copies an input from `corpus` and damages it in one to eight ways, as a bad network or an attacker might. */
export function mutate(corpus: readonly Uint8Array[], random: Random): Uint8Array {
  let bytes = Array.from(corpus[random.integer(corpus.length)]!);
  for (let count = 1 + random.integer(8); count > 0; count--) {
    bytes = damage(bytes, corpus, random);
  }
  return Uint8Array.from(bytes.length > LENGTH_MAX ? bytes.slice(0, LENGTH_MAX) : bytes);
}

export function damage(bytes: number[], corpus: readonly Uint8Array[], random: Random): number[] {
  const at = random.integer(bytes.length + 1);
  const length = random.integer(Math.min(24, bytes.length - at) + 1);
  switch (random.integer(10)) {
    case 0:
      if (at < bytes.length) bytes[at]! ^= 1 << random.integer(8);
      return bytes;
    case 1:
    case 2:
      if (at < bytes.length) bytes[at] = telling[random.integer(telling.length)]!;
      return bytes;
    case 3:
      if (at < bytes.length) bytes[at] = random.integer(256);
      return bytes;
    case 4:
      return bytes.slice(0, at);
    case 5:
      bytes.splice(at, length);
      return bytes;
    case 6:
      bytes.splice(at, 0, ...bytes.slice(random.integer(bytes.length + 1)).slice(0, length));
      return bytes;
    case 7: {
      const other = corpus[random.integer(corpus.length)]!;
      const from = random.integer(other.length + 1);
      return [...bytes.slice(0, at), ...other.subarray(from)];
    }
    case 8: {
      // A pointer, usually into the message.
      const target = random.integer(random.integer(8) === 0 ? 0x4000 : bytes.length + 1);
      bytes.splice(at, random.integer(3), 0xc0 | (target >> 8), target & 0xff);
      return bytes;
    }
    default:
      // Damages one of the header's counts.
      if (bytes.length >= 12) {
        const count = 4 + 2 * random.integer(4);
        bytes[count] = random.integer(16) === 0 ? 0xff : 0;
        bytes[count + 1] = random.integer(16) === 0 ? 0xff : random.integer(5);
      }
      return bytes;
  }
}
