/** Compares names within a message, in time linear in the message's size. */
import { hashMapped, hashPair } from '../base/hash.ts';
import { LOWER } from './name.ts';

/** Pointers can reach only offsets below this (RFC 1035 section 4.1.4). */
const REACH = 0x4000;
/** Number of hash chains for labels, which is a power of two. */
const CHAINS = 4096;
/**
 * Maximum number of labels compared per chain. Longer chains do not occur by chance, and any further names in one count
 * as different from all others.
 */
const CHAIN_MAX = 64;
/** Maximum number of labels and pointers in a name. */
const STEPS_MAX = 256;
const ROOT = 0;
/** Scratch space for a label while it is being hashed. */
const folded = new Uint8Array(64);

/**
 * Numbers the names in a message. Names that are equal except for ASCII case get the same number. Each label is read
 * once, however many pointers lead to it. Comparing names byte by byte would take time quadratic in the message size.
 * The names must have been checked (`checkName`) or written by this program.
 *
 * ```ts
 * names.begin(bytes, start);
 * if (names.id(one) === names.id(other)) …
 * ```
 */
export class MessageNames {
  /** Number of labels since `begin`, for tests. */
  labels = 0;
  #bytes: Uint8Array = new Uint8Array(0);
  #start = 0;
  /** Number of the current message. Entries from earlier messages are ignored. */
  #round = 0;
  /** By offset in the message, the number of the name there and the message it belongs to. */
  readonly #ids = new Uint16Array(REACH);
  readonly #idRounds = new Uint32Array(REACH);
  /** By hash, the last label in the chain and the message it belongs to. */
  readonly #chains = new Uint16Array(CHAINS);
  readonly #chainRounds = new Uint32Array(CHAINS);
  /**
   * By name number, the name's first label, the number of the name after that label, and the previous name in its
   * chain.
   */
  #labelAt = new Int32Array(256);
  #rest = new Uint16Array(256);
  #before = new Uint16Array(256);
  #count = 0;
  /** Positions of the current name's labels and pointers. */
  readonly #steps = new Int32Array(STEPS_MAX);

  /** Begins a message. Numbers from the previous message become meaningless. */
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

  /** Returns the number of the name at `at`. */
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

  /** Returns the number of the name that consists of the label at `at` followed by the name `rest`. */
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

/** This thread's instance, used for one message at a time. */
export const messageNames: MessageNames = new MessageNames();
