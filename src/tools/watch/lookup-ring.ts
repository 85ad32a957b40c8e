/**
 * Lookups in full detail: the last minutes, in memory that has a limit. The oldest go first, piece
 * by piece.
 */
import type { SeenLookup } from '../capture/pair/seen-exchange.ts';
import { ByteReader, ByteWriter } from './byte-writer.ts';
import { readLookup, writeLookup, type StoredLookup, type TextNumbers } from './packed-lookup.ts';

/** A piece is full with this number of bytes of lookups, or with this share of the limit. */
const PIECE_BYTES = 128 * 1024;
const PIECES_LEAST = 16;
/** A piece holds at most this part of the window, so that old lookups can be dropped. */
const PIECE_TIME = 10;
/** Bytes of a text without its characters, in a list and a map, estimated. */
const TEXT_BYTES = 64;
/** Bytes of the place of a lookup. */
const PLACE_BYTES = 8;

export interface RingLookup extends StoredLookup {
  /** Rises by one with each lookup that was stored. */
  readonly id: number;
}

/** Stores lookups in the order in which they end. */
export class LookupRing {
  /** Lookups that were dropped early, because there was no room. */
  droppedEarly = 0;
  /** The start of the newest of these; -Infinity: there are none. */
  droppedMs: number = -Infinity;
  /** Bytes of all that is stored. */
  bytes = 0;
  nextId: number;
  readonly #limitBytes: number;
  readonly #windowMs: number;
  readonly #pieceBytes: number;
  #pieces: Piece[] = [];
  readonly #writer = new ByteWriter();

  /** @param firstId the id of the first lookup */
  constructor(limitBytes: number, windowMs: number, firstId = 1) {
    this.nextId = firstId;
    this.#limitBytes = limitBytes;
    this.#windowMs = windowMs;
    this.#pieceBytes = Math.min(PIECE_BYTES, Math.ceil(limitBytes / PIECES_LEAST));
  }

  /** @returns the id of the lookup */
  add(lookup: SeenLookup): number {
    const id = this.nextId++;
    let piece = this.#pieces.at(-1);
    const isOver =
      piece !== undefined &&
      (piece.bytes >= this.#pieceBytes ||
        Math.abs(lookup.startMs - piece.baseMs) > this.#windowMs / PIECE_TIME);
    if (piece === undefined || isOver) {
      piece?.seal();
      piece = new Piece(id, lookup.startMs);
      this.#pieces.push(piece);
    }
    const before = piece.bytes;
    this.#writer.clear();
    writeLookup(lookup, piece.baseMs, piece, this.#writer);
    piece.add(this.#writer.written, lookup.startMs);
    this.bytes += piece.bytes - before;
    while (this.bytes > this.#limitBytes && this.#pieces.length > 1) {
      const { length, newestMs, bytes } = this.#pieces.shift()!;
      this.bytes -= bytes;
      this.droppedEarly += length;
      this.droppedMs = Math.max(this.droppedMs, newestMs);
    }
    return id;
  }

  /** Drops pieces that lie before the window. */
  advance(nowMs: number): void {
    const fromMs = nowMs - this.#windowMs;
    if (this.#pieces.every(({ newestMs }) => newestMs >= fromMs)) return;
    this.#pieces = this.#pieces.filter(({ newestMs }) => newestMs >= fromMs);
    this.bytes = this.#pieces.reduce((sum, { bytes }) => sum + bytes, 0);
  }

  /** Lookups that are stored. */
  get size(): number {
    return this.#pieces.reduce((sum, { length }) => sum + length, 0);
  }

  /** The start of the oldest one; null: there is none. */
  get oldestMs(): number | null {
    if (this.#pieces.length === 0) return null;
    return Math.min(...this.#pieces.map(({ oldestMs }) => oldestMs));
  }

  /** All since a time, those that ended last first. @param before only with lower ids */
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

  /** The lookup with this id; null: it is not stored any more. */
  get(id: number): RingLookup | null {
    const piece = this.#pieces.findLast(({ firstId }) => firstId <= id);
    return piece === undefined || id >= piece.firstId + piece.length
      ? null
      : piece.at(id - piece.firstId);
  }
}

/** Some lookups that follow one another, with the texts of these. */
class Piece implements TextNumbers {
  readonly firstId: number;
  readonly baseMs: number;
  oldestMs: number = Infinity;
  newestMs: number = -Infinity;
  length = 0;
  bytes = 0;
  /** Null once nothing is added any more. */
  #numbers: Map<string, number> | null = new Map();
  readonly #texts: string[] = [];
  readonly #writer = new ByteWriter();
  #sealed: Uint8Array | null = null;
  /** The end of each lookup. */
  readonly #ends: number[] = [];

  constructor(firstId: number, baseMs: number) {
    this.firstId = firstId;
    this.baseMs = baseMs;
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

  add(bytes: Uint8Array, startMs: number): void {
    this.#writer.bytes(bytes);
    this.#ends.push(this.#writer.length);
    this.length++;
    this.bytes += bytes.length + PLACE_BYTES;
    if (startMs < this.oldestMs) this.oldestMs = startMs;
    if (startMs > this.newestMs) this.newestMs = startMs;
  }

  /** No more lookups are added: frees memory that only writing needs. */
  seal(): void {
    this.#sealed = this.#writer.written.slice();
    this.#writer.release();
    this.#numbers = null;
  }

  at(index: number): RingLookup {
    const bytes = this.#sealed ?? this.#writer.written;
    const start = index === 0 ? 0 : this.#ends[index - 1]!;
    const reader = new ByteReader(bytes, start, this.#ends[index]);
    reader.number();
    const lookup = readLookup(reader, this.baseMs, (number) => this.#texts[number] ?? '');
    return { id: this.firstId + index, ...lookup };
  }
}
