/**
 * Lookups from the last minutes in full detail, in limited memory. The oldest are dropped first, one segment at a time.
 */
import type { SeenLookup } from '../capture/pair/seen-exchange.ts';
import { ByteReader, ByteWriter } from './byte-writer.ts';
import { readLookup, writeLookup, type StoredLookup, type TextNumbers } from './packed-lookup.ts';

/** A segment is full when it reaches this number of bytes or this fraction of the limit. */
const PIECE_BYTES = 128 * 1024;
const PIECES_LEAST = 16;
/** The largest part of the window that a segment may span, so that old lookups can be dropped. */
const PIECE_TIME = 10;
/** The estimated overhead in bytes of a string in a list and a map, without its characters. */
const TEXT_BYTES = 64;
/** The bytes used by a lookup's slot. */
const PLACE_BYTES = 8;

export interface RingLookup extends StoredLookup {
  /** Increases by one with each stored lookup. */
  readonly id: number;
}

/** Stores lookups in the order they end. */
export class LookupRing {
  /** The number of lookups that were dropped early for lack of space. */
  droppedEarly = 0;
  /** The start of the newest lookup that was dropped early, or -Infinity if there was none. */
  droppedMs: number = -Infinity;
  /** The total number of bytes stored. */
  bytes = 0;
  nextId: number;
  readonly #limitBytes: number;
  readonly #windowMs: number;
  readonly #pieceBytes: number;
  #pieces: Piece[] = [];

  /** @param firstId the first lookup's ID */
  constructor(limitBytes: number, windowMs: number, firstId = 1) {
    this.nextId = firstId;
    this.#limitBytes = limitBytes;
    this.#windowMs = windowMs;
    this.#pieceBytes = Math.min(PIECE_BYTES, Math.ceil(limitBytes / PIECES_LEAST));
  }

  /** @returns the lookup's ID */
  add(lookup: SeenLookup): number {
    const id = this.nextId++;
    let piece = this.#pieces.at(-1);
    const isOver =
      piece !== undefined &&
      // The segment after it may have been older, and is gone.
      (piece.isSealed ||
        piece.bytes >= this.#pieceBytes ||
        Math.abs(lookup.startMs - piece.baseMs) > this.#windowMs / PIECE_TIME);
    if (piece === undefined || isOver) {
      piece?.seal();
      piece = new Piece(id, lookup.startMs);
      this.#pieces.push(piece);
    }
    const before = piece.bytes;
    piece.add(lookup);
    this.bytes += piece.bytes - before;
    while (this.bytes > this.#limitBytes && this.#pieces.length > 1) {
      const { length, newestMs, bytes } = this.#pieces.shift()!;
      this.bytes -= bytes;
      this.droppedEarly += length;
      this.droppedMs = Math.max(this.droppedMs, newestMs);
    }
    return id;
  }

  advance(nowMs: number): void {
    const fromMs = nowMs - this.#windowMs;
    if (this.#pieces.every(({ newestMs }) => newestMs >= fromMs)) return;
    this.#pieces = this.#pieces.filter(({ newestMs }) => newestMs >= fromMs);
    this.bytes = this.#pieces.reduce((sum, { bytes }) => sum + bytes, 0);
  }

  get size(): number {
    return this.#pieces.reduce((sum, { length }) => sum + length, 0);
  }

  /** The oldest lookup's start time, or null if there is none. */
  get oldestMs(): number | null {
    if (this.#pieces.length === 0) return null;
    return Math.min(...this.#pieces.map(({ oldestMs }) => oldestMs));
  }

  /**
   * Iterates over lookups since a given time, starting with those that ended most recently.
   * @param before only lower IDs
   */
  *newest(fromMs: number, before: number = Infinity): Iterable<RingLookup> {
    for (const piece of this.#pieces.toReversed()) {
      if (piece.newestMs < fromMs || piece.firstId >= before) continue;
      for (let at = piece.length - 1; at >= 0; at--) {
        if (piece.firstId + at >= before) continue;
        const lookup = piece.at(at);
        if (lookup.startMs >= fromMs) yield lookup;
      }
    }
  }

  /** Returns the lookup with this ID, or null if it is no longer stored. */
  get(id: number): RingLookup | null {
    const piece = this.#pieces.findLast(({ firstId }) => firstId <= id);
    return piece === undefined || id >= piece.firstId + piece.length
      ? null
      : piece.at(id - piece.firstId);
  }
}

/** A run of consecutive lookups, with the strings they use. */
class Piece implements TextNumbers {
  readonly firstId: number;
  readonly baseMs: number;
  oldestMs: number = Infinity;
  newestMs: number = -Infinity;
  length = 0;
  bytes = 0;
  /** Null once the segment is sealed. */
  #numbers: Map<string, number> | null = new Map();
  #texts: string[] = [];
  /** Null once the segment is sealed. */
  #writer: ByteWriter | null = new ByteWriter();
  #sealed = new Uint8Array(0);
  /** The start of each lookup's bytes. */
  #starts: number[] | Uint32Array = [];

  constructor(firstId: number, baseMs: number) {
    this.firstId = firstId;
    this.baseMs = baseMs;
  }

  get isSealed(): boolean {
    return this.#writer === null;
  }

  of(text: string): number {
    const known = this.#numbers!.get(text);
    if (known !== undefined) return known;
    const number = this.#texts.length;
    this.#numbers!.set(text, number);
    this.#texts.push(text);
    this.bytes += text.length + TEXT_BYTES;
    return number;
  }

  add(lookup: SeenLookup): void {
    const { startMs } = lookup;
    const writer = this.#writer!;
    const start = writer.length;
    writeLookup(lookup, this.baseMs, this, writer);
    (this.#starts as number[]).push(start);
    this.length++;
    this.bytes += writer.length - start + PLACE_BYTES;
    if (startMs < this.oldestMs) this.oldestMs = startMs;
    if (startMs > this.newestMs) this.newestMs = startMs;
  }

  /** Prevents further additions, and frees memory that is only needed for writing. */
  seal(): void {
    if (this.#writer === null) return;
    this.#sealed = this.#writer.written.slice();
    this.#writer = null;
    this.#numbers = null;
    // A list that grew has room for half as many elements again, and takes twice the space per number.
    this.#texts = this.#texts.slice();
    this.#starts = Uint32Array.from(this.#starts);
  }

  at(index: number): RingLookup {
    const bytes = this.#writer?.written ?? this.#sealed;
    const reader = new ByteReader(bytes, this.#starts[index]);
    const lookup = readLookup(reader, this.baseMs, (number) => this.#texts[number] ?? '');
    return { id: this.firstId + index, ...lookup };
  }
}
