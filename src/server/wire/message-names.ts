/** Compares the names of one message with each other, in time linear in the message. */
import { hashMapped, hashPair } from '../base/hash.ts';
import { LOWER } from './name.ts';

/** Pointers reach no further (RFC 1035 section 4.1.4). */
const REACH = 0x4000;
/** Hash chains of labels; a power of two. */
const CHAINS = 4096;
/**
 * Maximum number of labels in a chain that are compared. A longer chain does not occur by chance; further
 * names in it count as different from all others.
 */
const CHAIN_MAX = 64;
/** Maximum number of labels and pointers in a name. */
const STEPS_MAX = 256;
const ROOT = 0;
/** Takes a label while it is hashed. */
const folded = new Uint8Array(64);

/**
 * Gives each name of a message a number, the same for the same name but for ASCII case. Each label
 * is read once, however many pointers lead to it. Comparing names byte by byte would take time that
 * grows with the square of the message. The names must have been checked (`checkName`) or written
 * here.
 *
 * ```ts
 * names.begin(bytes, start);
 * if (names.id(one) === names.id(other)) …
 * ```
 */
export class MessageNames {
  /** The number of labels since `begin`, for tests. */
  labels = 0;
  #bytes: Uint8Array = new Uint8Array(0);
  #start = 0;
  /** Numbers the messages; entries of earlier ones do not count. */
  #round = 0;
  /** By offset in the message: the number of the name there, and the message it is of. */
  readonly #ids = new Uint16Array(REACH);
  readonly #idRounds = new Uint32Array(REACH);
  /** By hash: the last label of the chain, and the message it is of. */
  readonly #chains = new Uint16Array(CHAINS);
  readonly #chainRounds = new Uint32Array(CHAINS);
  /** By number of a name: its first label, the name after that, the previous one in its chain. */
  #labelAt = new Int32Array(256);
  #rest = new Uint16Array(256);
  #before = new Uint16Array(256);
  #count = 0;
  /** The positions of the current name's labels and pointers. */
  readonly #steps = new Int32Array(STEPS_MAX);

  /** Begins a message; numbers of the previous one mean nothing in it. */
  begin(bytes: Uint8Array, start: number): void {
    this.#bytes = bytes;
    this.#start = start;
    this.labels = 0;
    this.#count = 0;
    if (++this.#round < 0x1_0000_0000) return;
    this.#idRounds.fill(0);
    this.#chainRounds.fill(0);
    this.#round = 1;
  }

  /** The number of the name at `at`. */
  id(at: number): number {
    const bytes = this.#bytes;
    const steps = this.#steps;
    let count = 0;
    let id = ROOT;
    for (;;) {
      const offset = at - this.#start;
      if (offset < REACH && this.#idRounds[offset] === this.#round) {
        id = this.#ids[offset]!;
        break;
      }
      const size = bytes[at]!;
      if (size === 0) break;
      steps[count++] = at;
      at = size < 0xc0 ? at + size + 1 : this.#start + (((size & 0x3f) << 8) | bytes[at + 1]!);
    }
    while (count > 0) {
      at = steps[--count]!;
      if (bytes[at]! < 0xc0) id = this.#named(at, id);
      const offset = at - this.#start;
      if (offset >= REACH) continue;
      this.#ids[offset] = id;
      this.#idRounds[offset] = this.#round;
    }
    return id;
  }

  /** The number of the name that has the label at `at` before the name `rest`. */
  #named(at: number, rest: number): number {
    const bytes = this.#bytes;
    this.labels++;
    const hash = hashMapped(bytes, at + 1, bytes[at]!, LOWER, folded);
    const chain = hashPair(hash, rest) & (CHAINS - 1);
    const last = this.#chainRounds[chain] === this.#round ? this.#chains[chain]! : ROOT;
    let left = CHAIN_MAX;
    for (let id = last; id !== ROOT && left > 0; id = this.#before[id]!, left--)
      if (this.#rest[id] === rest && this.#sameLabel(this.#labelAt[id]!, at)) return id;
    const id = ++this.#count;
    if (id === this.#rest.length) this.#grow();
    this.#labelAt[id] = at;
    this.#rest[id] = rest;
    this.#before[id] = last;
    this.#chains[chain] = id;
    this.#chainRounds[chain] = this.#round;
    return id;
  }

  #sameLabel(one: number, other: number): boolean {
    const bytes = this.#bytes;
    for (let i = 0, size = bytes[one]!; i <= size; i++)
      if (LOWER[bytes[one + i]!] !== LOWER[bytes[other + i]!]) return false;
    return true;
  }

  #grow(): void {
    const size = 2 * this.#rest.length;
    const larger = [new Int32Array(size), new Uint16Array(size), new Uint16Array(size)] as const;
    larger[0].set(this.#labelAt);
    larger[1].set(this.#rest);
    larger[2].set(this.#before);
    [this.#labelAt, this.#rest, this.#before] = larger;
  }
}

/** This thread's numbers: one message at a time. */
export const messageNames: MessageNames = new MessageNames();
