import { PAYLOAD_MAX, WINDOW, WINDOW_MAX } from './frames.ts';
import type { Http2Stream } from './http2-stream.ts';

/**
 * Begins a DATA frame, the last of its reply or not; gives where its payload is to be written, in
 * `out`.
 */
export type BeginData = (length: number, last: boolean, id: number) => number;

/**
 * The bytes that the client allows us to send (RFC 9113, section 5.2), and the replies that wait
 * for it.
 */
export class ParkedReplies {
  /** Bytes that may be sent on the connection. */
  window: number = WINDOW;
  /** Bytes that may be sent on a stream to begin with. */
  streamWindow: number = WINDOW;
  /** Bytes that wait. */
  bytes = 0;
  /** The first one that continues. */
  readonly #streams = new Set<Http2Stream>();

  get size(): number {
    return this.#streams.size;
  }

  /** True if a body can be sent at once, in one frame. */
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
   * Sends as much as the windows allow. @param ended called for each stream whose reply has left
   * @returns whether any has
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
   * @returns false: more than HTTP/2 permits
   */
  grant(stream: Http2Stream | null, bytes: number): boolean {
    if (stream === null) return (this.window += bytes) <= WINDOW_MAX;
    return (stream.window += bytes) <= WINDOW_MAX;
  }

  /**
   * The client has changed what streams begin with, to at most `WINDOW_MAX`.
   * @returns false: a stream has more than there can be
   */
  restart(bytes: number, open: Iterable<Http2Stream>): boolean {
    const more = bytes - this.streamWindow;
    if (more === 0) return true;
    this.streamWindow = bytes;
    for (const stream of open) if (!this.grant(stream, more)) return false;
    return true;
  }
}
