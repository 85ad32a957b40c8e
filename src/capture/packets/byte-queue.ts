/** Bytes that have come and are not taken yet. */

const nothing = new Uint8Array(0);

/** Holds what a record lacks until the rest comes: never more than one record and one chunk. */
export class ByteQueue {
  /** What is there is `bytes[at, bytes.length)`. */
  bytes: Uint8Array = nothing;
  view: DataView = new DataView(nothing.buffer);
  at = 0;
  /** Bytes that were taken before `bytes[0]`. */
  #before = 0;

  push(chunk: Uint8Array): void {
    this.#before += this.at;
    const rest = this.bytes.subarray(this.at);
    // The chunk may be overwritten: what is kept of it is a copy.
    this.bytes = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    this.at = 0;
    const { buffer, byteOffset, byteLength } = this.bytes;
    this.view = new DataView(buffer, byteOffset, byteLength);
  }

  /** Call when all that is whole has been taken: the chunk is let go. */
  settle(): void {
    this.#before += this.at;
    this.bytes = this.at === this.bytes.length ? nothing : this.bytes.slice(this.at);
    this.at = 0;
  }

  get left(): number {
    return this.bytes.length - this.at;
  }

  /** Where `at` is in the whole stream. */
  get offset(): number {
    return this.#before + this.at;
  }
}
