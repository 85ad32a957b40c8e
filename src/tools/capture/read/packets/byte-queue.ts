/** Buffers an input's bytes until a record is complete. */

const nothing = new Uint8Array(0);

/** Holds one record and one chunk, or at most twice that. */
export class ByteQueue {
  /** The contents are `bytes[at, bytes.length)`. */
  bytes: Uint8Array = nothing;
  view: DataView = new DataView(nothing.buffer);
  at = 0;
  #room = nothing;
  /** The number of bytes consumed before `bytes[0]`. */
  #before = 0;

  /** Adds a copy of the chunk. The previous contents of `bytes` are overwritten. */
  push(chunk: Uint8Array): void {
    const { bytes, at } = this;
    const rest = bytes.length - at;
    const length = rest + chunk.length;
    let room = this.#room;
    if (length > room.length) room = new Uint8Array(Math.max(length, 2 * room.length));
    // Uses one buffer for all chunks, because separate ones would become garbage.
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

  /** The position of `at` in the whole stream. */
  get offset(): number {
    return this.#before + this.at;
  }
}
