import { releaseBytes } from '../../runtime/release-bytes.ts';
import { ERROR, FRAME_HEADER, PAYLOAD_MAX, PREFACE, readWord } from './frames.ts';

/**
 * Splits the input into frames, and checks the preface that precedes a client's first frame. A frame that is complete
 * within a chunk is not copied.
 *
 * ```
 * at += reader.read(chunk, at);
 * if (reader.whole) …reader.type, reader.bytes[reader.start, reader.end)…
 * ```
 */
export class Http2FrameReader {
  /** True if the last `read` completed a frame. The fields below describe that frame until the next `read`. */
  whole = false;
  type = 0;
  flags = 0;
  /** The stream id; 0 for the connection. */
  id = 0;
  bytes: Buffer = nothing;
  start = 0;
  end = 0;
  /** The error made by the peer (RFC 9113, section 7), after which nothing more can be read. */
  error: number | null = null;
  /** Bytes of the preface received so far. */
  #greeted: number;
  /** A partially received frame. */
  #piece: Buffer | null = null;
  #filled = 0;
  /** Buffer of a frame that arrived in pieces and has been read. */
  #spent: Buffer | null = null;

  /** @param greeted true if a preface is expected first, as only clients send one */
  constructor(greeted = true) {
    this.#greeted = greeted ? 0 : PREFACE.length;
  }

  get held(): number {
    return this.#piece?.length ?? 0;
  }

  /**
   * Continues reading at `at`, up to the end of one frame.
   * @returns the number of bytes read, at least one
   */
  read(chunk: Buffer, at: number): number {
    this.whole = false;
    if (this.#greeted < PREFACE.length) return this.#greet(chunk, at);
    const left = chunk.length - at;
    if (this.#piece !== null || left < FRAME_HEADER) return this.#gather(chunk, at);
    const size = this.#sizeOf(chunk, at);
    if (size > left || this.error !== null) return this.#gather(chunk, at);
    this.#found(chunk, at, at + size);
    return size;
  }

  /** Drops an incomplete frame. */
  stop(): void {
    if (this.#piece !== null) releaseBytes(this.#piece);
    this.#piece = null;
    this.#filled = 0;
  }

  release(): void {
    if (this.#spent !== null) releaseBytes(this.#spent);
    this.#spent = null;
    this.bytes = nothing;
  }

  #greet(chunk: Buffer, begin: number): number {
    let at = begin;
    while (this.#greeted < PREFACE.length && at < chunk.length && this.error === null) {
      if (chunk[at++] !== PREFACE[this.#greeted++]) this.error = ERROR.PROTOCOL_ERROR;
    }
    return at - begin;
  }

  /** Appends bytes to a frame that is arriving in pieces. */
  #gather(chunk: Buffer, begin: number): number {
    let at = begin;
    this.#piece ??= Buffer.allocUnsafeSlow(FRAME_HEADER);
    while (at < chunk.length && this.error === null) {
      const size = this.#filled < FRAME_HEADER ? FRAME_HEADER : this.#sizeOf(this.#piece, 0);
      if (size > this.#piece.length) this.#grow(size);
      const count = Math.min(size - this.#filled, chunk.length - at);
      chunk.copy(this.#piece, this.#filled, at, at + count);
      this.#filled += count;
      at += count;
      if (this.#filled >= FRAME_HEADER && this.#filled === this.#sizeOf(this.#piece, 0)) {
        this.#found(this.#piece, 0, this.#filled);
        this.#spent = this.#piece;
        this.#piece = null;
        this.#filled = 0;
        break;
      }
    }
    return at - begin;
  }

  #grow(size: number): void {
    const bigger = Buffer.allocUnsafeSlow(size);
    this.#piece!.copy(bigger, 0, 0, this.#filled);
    releaseBytes(this.#piece!);
    this.#piece = bigger;
  }

  /** Returns the size of the frame at `at`, including its header. */
  #sizeOf(bytes: Buffer, at: number): number {
    const length = (bytes[at]! << 16) | (bytes[at + 1]! << 8) | bytes[at + 2]!;
    if (length <= PAYLOAD_MAX) return FRAME_HEADER + length;
    this.error = ERROR.FRAME_SIZE_ERROR;
    return FRAME_HEADER;
  }

  #found(bytes: Buffer, at: number, end: number): void {
    this.whole = true;
    this.type = bytes[at + 3]!;
    this.flags = bytes[at + 4]!;
    this.id = readWord(bytes, at + 5);
    this.bytes = bytes;
    this.start = at + FRAME_HEADER;
    this.end = end;
  }
}

const nothing = Buffer.alloc(0);
