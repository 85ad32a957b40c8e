import { PAYLOAD_MAX, WINDOW, WINDOW_MAX } from './frames.ts';
import type { Http2Stream } from './http2-stream.ts';

/**
 * Starts a DATA frame, which may be the last one for its reply. Returns the position in `out` where its payload begins.
 */
export type BeginData = (length: number, last: boolean, id: number) => number;

/**
 * Tracks how many bytes the client allows us to send (RFC 9113, section 5.2), and holds the replies that are waiting
 * for permission.
 */
export class ParkedReplies {
  /** Bytes that may be sent on the connection. */
  window: number = WINDOW;
  /** Number of bytes that may initially be sent on a stream. */
  streamWindow: number = WINDOW;
  /** Number of waiting bytes. */
  bytes = 0;
  /** The first one continues next. */
  readonly #streams = new Set<Http2Stream>();

  get size(): number {
    return this.#streams.size;
  }

  /** Returns true if a body can be sent right away in a single frame. */
  fits(length: number, stream: Http2Stream | null): boolean {
    return length <= Math.min(this.window, stream?.window ?? this.streamWindow, PAYLOAD_MAX);
  }

  add(stream: Http2Stream, body: Uint8Array): void {
    stream.reply = body;
    this.bytes += body.length;
    this.#streams.add(stream);
  }

  delete(stream: Http2Stream): void {
    if (this.#streams.delete(stream)) this.bytes -= stream.reply!.length;
  }

  /**
   * Sends as much as the windows allow.
   * @param ended called for each stream whose reply has been sent completely
   * @returns true if there were any
   */
  send(out: Uint8Array, begin: BeginData, ended: (stream: Http2Stream) => void): boolean {
    let any = false;
    for (const stream of this.#streams) {
      while (this.window > 0 && stream.window > 0) {
        const body = stream.reply!;
        const length = Math.min(body.length, this.window, stream.window, PAYLOAD_MAX);
        const last = length === body.length;
        out.set(body.subarray(0, length), begin(length, last, stream.id));
        any = true;
        this.window -= length;
        stream.window -= length;
        this.bytes -= length;
        stream.reply = body.subarray(length);
        if (last) {
          this.#streams.delete(stream);
          ended(stream);
          break;
        }
      }
      if (this.window <= 0) break;
    }
    return any;
  }

  /**
   * The client allows `bytes` more.
   * @returns false if the total exceeds HTTP/2's maximum
   */
  grant(stream: Http2Stream | null, bytes: number): boolean {
    if (stream === null) return (this.window += bytes) <= WINDOW_MAX;
    return (stream.window += bytes) <= WINDOW_MAX;
  }

  /**
   * The client has changed the initial window for streams, to at most `WINDOW_MAX`.
   * @returns false if this makes a stream's window exceed the maximum
   */
  restart(bytes: number, open: Iterable<Http2Stream>): boolean {
    const more = bytes - this.streamWindow;
    if (more === 0) return true;
    this.streamWindow = bytes;
    for (const stream of open) if (!this.grant(stream, more)) return false;
    return true;
  }
}
