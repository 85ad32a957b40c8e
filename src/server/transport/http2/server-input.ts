/** Parses the frames that an HTTP/2 server receives on one connection (RFC 9113). */
import { arena } from '../write-reply.ts';
import { Http2FrameReader } from './frame-reader.ts';
import { ERROR, FLAG, FRAME, readWord, writeWord } from './frames.ts';
import { HeaderBlock } from './header-block.ts';
import { RequestHeader } from './request-header.ts';
import { readSettings } from './server-settings.ts';

/** Event handlers. Bytes passed to them are valid only during the call. */
export interface ServerInputHost {
  /**
   * A request's header is complete. `header` is valid unless the kind is `tooLarge`.
   * @param ends true if no body follows
   */
  onRequest(stream: number, tooLarge: boolean, ends: boolean): void;
  /** A request's header violates HTTP, so the stream ends. */
  onMalformed(stream: number): void;
  /**
   * A header block after a request.
   * @param proper true for trailers, which end the request
   */
  onTrailers(stream: number, proper: boolean): void;
  /** Part of a body, on an open stream. */
  onData(frame: Http2FrameReader): void;
  onReset(stream: number): void;
  /**
   * The client has changed its settings.
   * @param streamWindow number of bytes that may initially be sent on a stream, or null if unchanged
   */
  onSettings(streamWindow: number | null): void;
  /**
   * The client accepts more bytes.
   * @param stream the stream, or 0 for the whole connection
   */
  onWindow(stream: number, more: number): void;
  /** The client has violated the protocol, so the connection ends. */
  onViolation(error: number): void;
  /**
   * Starts a frame in the arena.
   * @returns the position where its payload begins
   */
  beginFrame(length: number, type: number, flags: number, stream: number): number;
}

/** Reads frames, performs all checks that do not depend on the stream, and answers PING and SETTINGS. */
export class ServerInput {
  /** The header of the current request. */
  readonly header: RequestHeader = new RequestHeader();
  /** The highest stream id opened by the client. */
  last = 0;
  readonly #host: ServerInputHost;
  readonly #reader = new Http2FrameReader();
  readonly #block = new HeaderBlock();
  /** True once the client's settings have arrived. */
  #introduced = false;

  constructor(host: ServerInputHost) {
    this.#host = host;
  }

  get held(): number {
    return this.#reader.held + this.#block.held;
  }

  /** True if the last `read` completed a frame. */
  get whole(): boolean {
    return this.#reader.whole && this.#reader.error === null;
  }

  /**
   * Continues reading at `at`, up to the end of one frame.
   * @returns the number of bytes read, at least one
   */
  read(chunk: Buffer, at: number): number {
    const reader = this.#reader;
    const size = reader.read(chunk, at);
    if (reader.error !== null) this.#host.onViolation(reader.error);
    return size;
  }

  release(): void {
    this.#reader.release();
    this.#block.release();
  }

  /** Drops an incomplete frame. */
  stop(): void {
    this.#reader.stop();
    this.#block.stop();
  }

  take(): void {
    const frame = this.#reader;
    const host = this.#host;
    const { type, id } = frame;
    if (!this.#introduced) {
      if (type !== FRAME.SETTINGS || (frame.flags & FLAG.ACK) !== 0) {
        return host.onViolation(ERROR.PROTOCOL_ERROR);
      }
      this.#introduced = true;
    }
    const { open } = this.#block;
    if (open === 0 ? type === FRAME.CONTINUATION : type !== FRAME.CONTINUATION || id !== open) {
      return host.onViolation(ERROR.PROTOCOL_ERROR);
    }
    switch (type) {
      case FRAME.DATA:
        if (id === 0 || id > this.last) return host.onViolation(ERROR.PROTOCOL_ERROR);
        return host.onData(frame);
      case FRAME.HEADERS:
        if ((id & 1) === 0) return host.onViolation(ERROR.PROTOCOL_ERROR);
        return this.#takeBlock(this.#block.begin(frame), id);
      case FRAME.CONTINUATION:
        return this.#takeBlock(this.#block.goOn(frame), id);
      case FRAME.SETTINGS:
        return this.#takeSettings(frame);
      case FRAME.WINDOW_UPDATE:
        return this.#takeWindow(frame);
      case FRAME.PING:
        return this.#takePing(frame);
      case FRAME.RST_STREAM:
        return this.#takeReset(frame);
      case FRAME.PRIORITY:
        return this.#takePriority(frame);
      case FRAME.GOAWAY:
        // The client will open no more streams and will end the connection itself.
        return id === 0 ? undefined : host.onViolation(ERROR.PROTOCOL_ERROR);
      case FRAME.PUSH_PROMISE:
        return host.onViolation(ERROR.PROTOCOL_ERROR);
      default:
      // Unknown frames are ignored (section 4.1).
    }
  }

  /** Processes a partial or complete header block. Every block must be decoded, because later blocks depend on it. */
  #takeBlock(whole: boolean, id: number): void {
    const host = this.#host;
    const { bytes, start, end, endsStream, error } = this.#block;
    if (error !== null) return host.onViolation(error);
    if (!whole) return;
    const trailing = id <= this.last;
    const verdict = this.header.read(bytes, start, end, trailing);
    if (verdict === 'broken') return host.onViolation(ERROR.COMPRESSION_ERROR);
    if (verdict === 'excessive') return host.onViolation(ERROR.ENHANCE_YOUR_CALM);
    if (trailing) return host.onTrailers(id, verdict === 'trailers' && endsStream);
    this.last = id;
    if (verdict === 'malformed') host.onMalformed(id);
    else host.onRequest(id, verdict === 'too-large', endsStream);
  }

  #takeSettings({ bytes, start, end, flags, id }: Http2FrameReader): void {
    const host = this.#host;
    if (id !== 0) return host.onViolation(ERROR.PROTOCOL_ERROR);
    const size = end - start;
    if ((flags & FLAG.ACK) !== 0 ? size !== 0 : size % 6 !== 0) {
      return host.onViolation(ERROR.FRAME_SIZE_ERROR);
    }
    if ((flags & FLAG.ACK) !== 0) return;
    const { streamWindow, error } = readSettings(bytes, start, end);
    if (error === null) host.onSettings(streamWindow);
    else host.onViolation(error);
  }

  #takeWindow({ bytes, start, end, id }: Http2FrameReader): void {
    if (end - start !== 4) return this.#host.onViolation(ERROR.FRAME_SIZE_ERROR);
    if (id > this.last) return this.#host.onViolation(ERROR.PROTOCOL_ERROR);
    this.#host.onWindow(id, readWord(bytes, start));
  }

  #takePing({ bytes, start, end, flags, id }: Http2FrameReader): void {
    const host = this.#host;
    if (id !== 0) return host.onViolation(ERROR.PROTOCOL_ERROR);
    if (end - start !== 8) return host.onViolation(ERROR.FRAME_SIZE_ERROR);
    if ((flags & FLAG.ACK) !== 0) return;
    bytes.copy(arena, host.beginFrame(8, FRAME.PING, FLAG.ACK, 0), start, end);
  }

  #takeReset({ start, end, id }: Http2FrameReader): void {
    const host = this.#host;
    if (end - start !== 4) return host.onViolation(ERROR.FRAME_SIZE_ERROR);
    if (id === 0 || id > this.last) return host.onViolation(ERROR.PROTOCOL_ERROR);
    host.onReset(id);
  }

  #takePriority({ bytes, start, end, id }: Http2FrameReader): void {
    if (id === 0) return this.#host.onViolation(ERROR.PROTOCOL_ERROR);
    if (end - start !== 5) return this.#resetStream(id, ERROR.FRAME_SIZE_ERROR);
    if (readWord(bytes, start) === id) this.#resetStream(id, ERROR.PROTOCOL_ERROR);
  }

  #resetStream(id: number, error: number): void {
    writeWord(arena, this.#host.beginFrame(4, FRAME.RST_STREAM, 0, id), error);
  }
}
