/** A ring of lines in shared memory, used to pass lines from one thread to another. */
import { copyBytes } from './copy-bytes.ts';
import { limit, type Limit } from './limits.ts';

/**
 * Maximum number of bytes of buffered lines per thread. This is more than a third of a second of query log at 20 000
 * queries per second.
 */
export const lineRingLimit: Limit = limit({ default: 1 << 20, min: 1 << 12, max: 1 << 28 });

/** Shared memory through which one thread passes lines to another. */
export interface LineRingMemory {
  readonly bytes: SharedArrayBuffer;
  /** Positions; see `HEAD`, `TAIL`, `LOST`. */
  readonly words: Int32Array<SharedArrayBuffer>;
  /** A word shared by all rings that have the same reader. It is 1 while there are announced but unread lines. */
  readonly bell: Int32Array<SharedArrayBuffer>;
}

/** Total bytes written and read. Both wrap around at 2^32, and give the position modulo the ring's size. */
const HEAD = 0;
const TAIL = 1;
/** Number of lines that did not fit. */
const LOST = 2;

/** @param size in bytes, rounded to a power of two within `lineRingLimit` */
export function makeLineRing(size: number, bell: Int32Array<SharedArrayBuffer>): LineRingMemory {
  const { min, max } = lineRingLimit;
  const power = 2 ** Math.ceil(Math.log2(Math.min(max, Math.max(min, size))));
  return {
    bytes: new SharedArrayBuffer(power),
    words: new Int32Array(new SharedArrayBuffer(12)),
    bell,
  };
}

const encoder = new TextEncoder();
const NEWLINE = 10;

/**
 * The writing end, used by one thread at a time. A line is encoded only once, directly into shared memory, where the
 * reader finds it even if this thread ends. It never waits: a line that does not fit is dropped and counted.
 */
export class LineWriter {
  readonly #bytes: Uint8Array;
  readonly #words: Int32Array<SharedArrayBuffer>;
  readonly #bell: Int32Array<SharedArrayBuffer>;
  readonly #mask: number;

  constructor({ bytes, words, bell }: LineRingMemory) {
    this.#bytes = new Uint8Array(bytes);
    this.#words = words;
    this.#bell = bell;
    this.#mask = bytes.byteLength - 1;
  }

  /** @param line without a line end */
  write(line: string): void {
    const head = Atomics.load(this.#words, HEAD);
    this.#commit(head, this.#put(line, head & this.#mask, this.#room(head)));
  }

  /**
   * Writes `from[start, end)` completely or not at all. Intended for records that are not delimited by line endings.
   */
  writeBytes(from: Uint8Array, start: number, end: number): void {
    const length = end - start;
    const head = Atomics.load(this.#words, HEAD);
    if (length > this.#room(head)) return this.#commit(head, 0);
    const at = head & this.#mask;
    const first = Math.min(length, this.#bytes.length - at);
    copyBytes(from, start, this.#bytes, at, first);
    if (first < length) copyBytes(from, start + first, this.#bytes, 0, length - first);
    this.#commit(head, length);
  }

  #room(head: number): number {
    return this.#bytes.length - (((head - Atomics.load(this.#words, TAIL)) | 0) >>> 0);
  }

  /**
   * Makes written bytes visible to the reader.
   * @param written number of bytes, or 0 if the line did not fit
   */
  #commit(head: number, written: number): void {
    const words = this.#words;
    if (written === 0) {
      Atomics.add(words, LOST, 1);
      return;
    }
    Atomics.store(words, HEAD, (head + written) | 0);
    if (Atomics.load(this.#bell, 0) === 0 && Atomics.exchange(this.#bell, 0, 1) === 0) {
      Atomics.notify(this.#bell, 0);
    }
  }

  /** @returns the size of the line including its line ending, or 0 if it does not fit */
  #put(line: string, at: number, room: number): number {
    const bytes = this.#bytes;
    const straight = Math.min(room, bytes.length - at);
    // A character takes one to three bytes.
    if (line.length < straight) {
      const { read, written } = encoder.encodeInto(line, bytes.subarray(at, at + straight - 1));
      if (read === line.length) {
        bytes[at + written] = NEWLINE;
        return written + 1;
      }
    }
    if (line.length >= room) return 0;
    // The line wraps around at the end of the ring, so it must be split.
    const encoded = encoder.encode(`${line}\n`);
    if (encoded.length > room) return 0;
    const first = Math.min(encoded.length, bytes.length - at);
    bytes.set(encoded.subarray(0, first), at);
    bytes.set(encoded.subarray(first), 0);
    return encoded.length;
  }
}

/** The reading end, for one thread. */
export class LineReader {
  readonly #memory: LineRingMemory;

  constructor(memory: LineRingMemory) {
    this.#memory = memory;
  }

  /**
   * Returns the buffered bytes in one or two pieces, which are valid until released. They consist of whole lines unless
   * part of one was released before.
   */
  pieces(): Uint8Array<SharedArrayBuffer>[] {
    const { bytes, words } = this.#memory;
    const tail = Atomics.load(words, TAIL);
    const length = ((Atomics.load(words, HEAD) - tail) | 0) >>> 0;
    if (length === 0) return [];
    const at = tail & (bytes.byteLength - 1);
    const first = Math.min(length, bytes.byteLength - at);
    const pieces = [new Uint8Array(bytes, at, first)];
    if (first < length) pieces.push(new Uint8Array(bytes, 0, length - first));
    return pieces;
  }

  /** Releases the first `count` buffered bytes. */
  release(count: number): void {
    const { words } = this.#memory;
    Atomics.store(words, TAIL, (Atomics.load(words, TAIL) + count) | 0);
  }

  /** Total number of lines lost. */
  get lost(): number {
    return Atomics.load(this.#memory.words, LOST) >>> 0;
  }
}
