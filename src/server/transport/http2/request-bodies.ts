/** HTTP/2 request bodies, and the windows that limit them. */
import { GatheredMessage } from '../stream/gathered-message.ts';
import type { Http2FrameReader } from './frame-reader.ts';
import { ERROR, FLAG, WINDOW } from './frames.ts';
import type { Http2Stream } from './http2-stream.ts';

/** Maximum number of body bytes in transit across all streams of a connection. */
const CONNECTION_WINDOW: number = 1024 * 1024;

/**
 * The result of a DATA frame. The body continues, is complete (`bytes[start, end)`), or is longer than any message.
 * Otherwise, the stream or the connection must be ended because of `error`.
 */
export type BodyVerdict = 'more' | 'whole' | 'too-long' | 'reset' | 'fail';

/** The request bodies on a connection, and how much more of them the client may send (RFC 9113 section 5.2). */
export class RequestBodies {
  /** Bytes of memory used by incomplete bodies. */
  held = 0;
  /** The body, after `whole`. */
  bytes: Uint8Array = nothing;
  start = 0;
  end = 0;
  error: number = ERROR.NO_ERROR;
  #window = CONNECTION_WINDOW;
  readonly #grant: (id: number, bytes: number) => void;

  readonly #max: number;

  /**
   * @param max maximum size of a body in bytes
   * @param grant allows the client to send more bytes, on a stream or, if it is 0, on the connection
   */
  constructor(max: number, grant: (id: number, bytes: number) => void) {
    this.#max = max;
    this.#grant = grant;
    grant(0, CONNECTION_WINDOW - WINDOW);
  }

  /**
   * Counts bytes received on any stream.
   * @returns false if the client has sent more than permitted
   */
  count(size: number): boolean {
    this.#window -= size;
    if (this.#window < 0) return false;
    if (this.#window < CONNECTION_WINDOW >> 1) {
      this.#grant(0, CONNECTION_WINDOW - this.#window);
      this.#window = CONNECTION_WINDOW;
    }
    return true;
  }

  /** Processes a DATA frame on a stream whose body is still incomplete. */
  take(stream: Http2Stream, { bytes, start, end, flags }: Http2FrameReader): BodyVerdict {
    const size = end - start;
    const ends = (flags & FLAG.END_STREAM) !== 0;
    stream.receiveWindow -= size;
    if (stream.receiveWindow < 0) return this.#wrong('reset', ERROR.FLOW_CONTROL_ERROR);
    if ((flags & FLAG.PADDED) !== 0) {
      const padding = size > 0 ? bytes[start]! + 1 : size + 1;
      if (padding > size) return this.#wrong('fail', ERROR.PROTOCOL_ERROR);
      start++;
      end -= padding - 1;
      stream.receiveWindow += padding;
      if (!ends) this.#grant(stream.id, padding);
    }
    if (ends && stream.body === null) {
      this.bytes = bytes;
      this.start = start;
      this.end = end;
      return this.#whole(stream);
    }
    if (end > start && !this.#gather(stream, bytes, start, end)) return 'too-long';
    if (ends) return this.finish(stream);
    if (stream.receiveWindow === 0) {
      // One byte more than the maximum body size, so that a longer body is detected.
      const more = Math.max(1, this.#max + 1 - (stream.body?.length ?? 0));
      stream.receiveWindow = more;
      this.#grant(stream.id, more);
    }
    return 'more';
  }

  finish(stream: Http2Stream): BodyVerdict {
    this.bytes = stream.body?.bytes ?? nothing;
    this.start = 0;
    this.end = this.bytes.length;
    this.drop(stream);
    return this.#whole(stream);
  }

  drop(stream: Http2Stream): void {
    if (stream.body === null) return;
    this.held -= stream.body.held;
    stream.body = null;
  }

  /** @returns false if the body is longer than any message */
  #gather(stream: Http2Stream, bytes: Uint8Array, start: number, end: number): boolean {
    const body = (stream.body ??= new GatheredMessage(this.#max));
    const before = body.held;
    const fits = body.add(bytes, start, end);
    this.held += body.held - before;
    return fits;
  }

  #whole(stream: Http2Stream): BodyVerdict {
    const { contentLength, question } = stream;
    if (contentLength >= 0 && contentLength !== this.end - this.start) {
      return this.#wrong('reset', ERROR.PROTOCOL_ERROR);
    }
    if (question !== null) {
      this.bytes = question;
      this.start = 0;
      this.end = question.length;
    }
    return 'whole';
  }

  #wrong(verdict: 'reset' | 'fail', error: number): BodyVerdict {
    this.error = error;
    return verdict;
  }
}

const nothing = new Uint8Array(0);
