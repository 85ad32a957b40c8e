/** Assembles a header block from HEADERS and CONTINUATION frames. */
import { ERROR, FLAG, readWord } from './frames.ts';
import type { Http2FrameReader } from './frame-reader.ts';
import { BLOCK_MAX } from './header-decoder.ts';

/** Size of the priority fields that may precede the header block. */
const PRIORITY_SIZE = 5;

/**
 * Assembles a request's header block from a HEADERS frame and any CONTINUATION frames that follow (RFC 9113 section
 * 6.2).
 */
export class HeaderBlock {
  /** The stream whose block is incomplete, or 0. */
  open = 0;
  /** The block, `bytes[start, end)`, once `begin` or `goOn` has returned true. */
  bytes: Buffer = nothing;
  start = 0;
  end = 0;
  /** True if the request has no body. */
  endsStream = false;
  /** The client's error, which makes the connection unusable. */
  error: number | null = null;

  get held(): number {
    return this.open === 0 ? 0 : this.bytes.length;
  }

  /**
   * Processes a HEADERS frame.
   * @returns true if the block is complete
   */
  begin({ bytes, start, end, flags, id }: Http2FrameReader): boolean {
    this.endsStream = (flags & FLAG.END_STREAM) !== 0;
    let padding = 0;
    if ((flags & FLAG.PADDED) !== 0) padding = start < end ? bytes[start++]! : PADDING_MISSING;
    if ((flags & FLAG.PRIORITY) !== 0) {
      if (end - start < PRIORITY_SIZE) return this.#fail(ERROR.FRAME_SIZE_ERROR);
      if (readWord(bytes, start) === id) return this.#fail(ERROR.PROTOCOL_ERROR);
      start += PRIORITY_SIZE;
    }
    if (padding > end - start) return this.#fail(ERROR.PROTOCOL_ERROR);
    this.bytes = bytes;
    this.start = start;
    this.end = end - padding;
    if ((flags & FLAG.END_HEADERS) !== 0) return true;
    // Copy it into a buffer with room to grow, because the received chunk may be much larger.
    this.bytes = Buffer.allocUnsafeSlow(Math.max(512, this.end - start));
    this.end = bytes.copy(this.bytes, 0, start, this.end);
    this.start = 0;
    this.open = id;
    return false;
  }

  /**
   * Processes a CONTINUATION frame.
   * @returns true if the block is complete
   */
  goOn({ bytes, start, end, flags }: Http2FrameReader): boolean {
    const size = this.end + end - start;
    if (size > BLOCK_MAX) return this.#fail(ERROR.ENHANCE_YOUR_CALM);
    if (size > this.bytes.length) {
      const bigger = Buffer.allocUnsafeSlow(Math.max(size, 2 * this.bytes.length));
      this.bytes.copy(bigger, 0, 0, this.end);
      this.bytes = bigger;
    }
    bytes.copy(this.bytes, this.end, start, end);
    this.end = size;
    if ((flags & FLAG.END_HEADERS) === 0) return false;
    this.open = 0;
    return true;
  }

  release(): void {
    if (this.open === 0) this.bytes = nothing;
  }

  /** Drops an incomplete block. */
  stop(): void {
    this.open = 0;
    this.bytes = nothing;
  }

  #fail(error: number): false {
    this.error = error;
    return false;
  }
}

const nothing = Buffer.alloc(0);
/** Larger than any frame. */
const PADDING_MISSING = 1 << 24;
