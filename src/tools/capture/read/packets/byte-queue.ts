/** Bytes that have come and are not taken yet. */

const nothing = new Uint8Array(0);

/**
 * Holds what a record lacks until the rest comes: never more than one record and one chunk, or
 * twice as much.
 */
export class ByteQueue {
  /** What is there is `bytes[at, bytes.length)`. */
  bytes: Uint8Array = nothing;
  view: DataView = new DataView(nothing.buffer);
  at = 0;
  #room = nothing;
  /** Bytes that were taken before `bytes[0]`. */
  #before = 0;

  /** Adds bytes, which are copied. What was in `bytes` before is overwritten. */
  push(chunk: Uint8Array): void {
    const { bytes, at } = this;
    const rest = bytes.length - at;
    const length = rest + chunk.length;
    let room = this.#room;
    if (length > room.length) room = new Uint8Array(Math.max(length, 2 * room.length));
    // One piece of memory for all chunks: as many pieces of their size would wait in memory for the
    // collector.
    if (room === this.#room) room.copyWithin(0, at, bytes.length);
    else room.set(bytes.subarray(at));
    room.set(chunk, rest);
    this.#room = room;
    this.#before += at;
    this.at = 0;
    this.bytes = room.subarray(0, length);
    this.view = new DataView(room.buffer, 0, length);
  }

  get left(): number {
    return this.bytes.length - this.at;
  }

  /** Where `at` is in the whole stream. */
  get offset(): number {
    return this.#before + this.at;
  }
}
