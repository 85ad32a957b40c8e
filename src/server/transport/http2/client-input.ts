/** Parses the frames that an HTTP/2 client receives on one connection (RFC 9113). */
import type { Socket } from 'node:net';
import { makeFrame, wordsFrame } from './client-frames.ts';
import { Http2FrameReader } from './frame-reader.ts';
import { FrameBudget } from './frame-budget.ts';
import { ERROR, FLAG, FRAME, readWord, SETTING, WINDOW_MAX } from './frames.ts';
import { HeaderBlock } from './header-block.ts';

/** Event handlers. Bytes passed to them are valid only during the call. */
export interface ClientInputHost {
  /** True if no more input should be read. */
  readonly stopped: boolean;
  /** Called when a header block is complete. Every block must be decoded, because later blocks depend on it. */
  onHeader(stream: number, block: HeaderBlock): void;
  /**
   * Called with part of a body, without padding.
   * @param size the number of bytes it uses of the stream's window
   */
  onBody(stream: number, piece: Buffer, size: number, ends: boolean): void;
  onReset(stream: number, code: number): void;
  /** Called with the settings in one frame that matter to a client; null if a setting is not included. */
  onSettings(maxStreams: number | null, streamWindow: number | null): void;
  /** The server accepts no streams after this one. */
  onGoAway(last: number): void;
  /**
   * The server accepts more bytes.
   * @param stream the stream, or 0 for the whole connection
   */
  onWindow(stream: number, more: number): void;
  /** The server has violated the protocol, so the connection ends. */
  onViolation(what: string): void;
}

/**
 * Reads frames and answers those that only need an acknowledgement, namely PING and SETTINGS. Renews the connection's
 * window when half of it is used up.
 */
export class ClientInput {
  readonly #socket: Socket;
  readonly #host: ClientInputHost;
  readonly #window: number;
  readonly #unreadMax: number;
  readonly #reader = new Http2FrameReader(false);
  readonly #block = new HeaderBlock();
  readonly #budget: FrameBudget;
  /** Body bytes since the last window update. */
  #received = 0;
  /** Replies to frames in the current chunk, which are sent in a single write. */
  #out: Buffer[] = [];

  /**
   * @param window number of body bytes that the server may send without permission, in total
   * @param unreadMax number of bytes that a server may leave unread
   */
  constructor(
    socket: Socket,
    host: ClientInputHost,
    window: number,
    unreadMax: number,
    now: () => number = () => performance.now(),
  ) {
    this.#budget = new FrameBudget(now);
    this.#socket = socket;
    this.#host = host;
    this.#window = window;
    this.#unreadMax = unreadMax;
  }

  read(chunk: Buffer): void {
    const reader = this.#reader;
    const host = this.#host;
    for (let at = 0; at < chunk.length && !host.stopped;) {
      at += reader.read(chunk, at);
      if (reader.error !== null) return host.onViolation('it sent bytes that are not HTTP/2');
      if (reader.whole) this.#take(reader);
    }
    if (this.#out.length > 0 && !host.stopped) this.#socket.write(Buffer.concat(this.#out));
    this.#out = [];
    reader.release();
    this.#block.release();
  }

  #take(frame: Http2FrameReader): void {
    const { type, flags, id, bytes, start, end } = frame;
    const host = this.#host;
    const block = this.#block;
    if (this.#carries(frame)) this.#budget.earn();
    else if (type !== FRAME.HEADERS && this.#budget.spend()) return this.#calm();
    if (block.open !== 0 && (type !== FRAME.CONTINUATION || id !== block.open))
      return host.onViolation('a header block is cut off');
    // Each PING is answered, so answers would pile up here if the server did not read them.
    if (this.#socket.writableLength > this.#unreadMax)
      return host.onViolation('it does not read its replies');
    switch (type) {
      case FRAME.DATA:
        return this.#takeBody(frame);
      case FRAME.HEADERS:
        if (block.begin(frame)) host.onHeader(id, block);
        break;
      case FRAME.CONTINUATION:
        if (block.open !== 0 && block.goOn(frame)) host.onHeader(id, block);
        break;
      case FRAME.RST_STREAM:
        if (end - start === 4) host.onReset(id, readWord(bytes, start));
        return;
      case FRAME.SETTINGS:
        if ((flags & FLAG.ACK) === 0) this.#takeSettings(bytes.subarray(start, end));
        return;
      case FRAME.PING:
        if ((flags & FLAG.ACK) === 0 && end - start === 8)
          this.#out.push(makeFrame(FRAME.PING, FLAG.ACK, 0, bytes.subarray(start, end)));
        return;
      case FRAME.GOAWAY:
        if (end - start >= 8) host.onGoAway(readWord(bytes, start));
        return;
      case FRAME.WINDOW_UPDATE:
        if (end - start === 4) host.onWindow(id, readWord(bytes, start));
        return;
      case FRAME.PUSH_PROMISE:
        return host.onViolation('it pushed a stream, although ndots disabled that');
    }
    // Frames of other types are ignored.
    if (block.error !== null) host.onViolation('a header block is malformed');
  }

  /** Returns true if a frame is part of an answer. */
  #carries({ type, flags, start, end }: Http2FrameReader): boolean {
    return type === FRAME.DATA && (end > start || (flags & FLAG.END_STREAM) !== 0);
  }

  /** Ends a connection that carries little more than control frames. */
  #calm(): void {
    this.#out = [];
    this.#socket.write(wordsFrame(FRAME.GOAWAY, 0, 0, 0, ERROR.ENHANCE_YOUR_CALM));
    this.#host.onViolation('it is flooding the connection with empty frames');
  }

  #takeBody({ bytes, start, end, flags, id }: Http2FrameReader): void {
    this.#received += end - start;
    if (this.#received >= this.#window / 2) {
      this.#out.push(wordsFrame(FRAME.WINDOW_UPDATE, 0, 0, this.#received));
      this.#received = 0;
    }
    let from = start;
    let to = end;
    if ((flags & FLAG.PADDED) !== 0) {
      from++;
      to = Math.max(from, end - (bytes[start] ?? 0));
    }
    this.#host.onBody(id, bytes.subarray(from, to), end - start, (flags & FLAG.END_STREAM) !== 0);
  }

  #takeSettings(payload: Buffer): void {
    let maxStreams: number | null = null;
    let streamWindow: number | null = null;
    for (let at = 0; at + 6 <= payload.length; at += 6) {
      const value = payload.readUInt32BE(at + 2);
      const setting = payload.readUInt16BE(at);
      if (setting === SETTING.MAX_CONCURRENT_STREAMS) maxStreams = value;
      if (setting !== SETTING.INITIAL_WINDOW_SIZE) continue;
      if (value > WINDOW_MAX) return this.#host.onViolation('a window is too large');
      streamWindow = value;
    }
    this.#out.push(wordsFrame(FRAME.SETTINGS, FLAG.ACK, 0));
    this.#host.onSettings(maxStreams, streamWindow);
  }
}
