import type { TLSSocket } from 'node:tls';

import { exchangeError } from './exchange-failure.ts';
import type { Carrier, Exchange } from './exchange.ts';
import {
  CODE,
  contentLength,
  FLAGS,
  FRAME,
  FRAME_HEADER,
  FRAME_MAX,
  greeting,
  numbersFrame,
  pathAndAccept,
  readFrameHeader,
  readStatus,
  requestBlock,
  SETTING,
  writeFrameHeader,
  type FrameHeader,
} from './http2-frames.ts';
import { matchReply, writeQuery } from './match-reply.ts';
import { ExchangeError } from './exchange.ts';
import type { UpstreamParts } from './network.ts';
import { Timed, type TimerWheel } from './timer-wheel.ts';

export const MEDIA_TYPE = 'application/dns-message';
/** How Go's HTTP client says that the time is up. */
export const LATE = 'context deadline exceeded (Client.Timeout exceeded while awaiting headers)';

/** The longest DNS message, and hence body. */
const MESSAGE_MAX = 65_535;
/** Bytes of bodies that the upstream may send unasked, per stream and in all; renewed when half is used up. */
const STREAM_WINDOW = 1 << 17;
const WINDOW = 1 << 24;
/** The last stream: then a connection has had its time. */
const STREAM_LAST = 0x3fff_ffff;

/** The upstream that a connection belongs to. */
export interface Http2Host {
  readonly parts: UpstreamParts;
  readonly wheel: TimerWheel;
  readonly now: () => number;
  readonly authority: string;
  readonly path: string;
  /** What errors begin with: `Post "https://dns.example/dns-query"`. */
  readonly action: string;
  /** @param left the exchanges that waited on it, their deadlines still set */
  gone(link: Http2Link, left: readonly Exchange[], error: ExchangeError): void;
}

/**
 * One HTTP/2 connection to an upstream, which carries any number of queries (RFC 8484). Requests of one turn leave in one write.
 * As a deadline: the end of being idle.
 */
export class Http2Link extends Timed implements Carrier {
  /** Replies that it has brought. */
  answered = 0;
  readonly #host: Http2Host;
  readonly #socket: TLSSocket;
  readonly #block: Buffer;
  readonly #streams = new Map<number, Exchange>();
  /** Bodies of which there is a part. */
  readonly #bodies = new Map<number, Buffer>();
  /** Requests that wait for the end of the turn, or for the upstream to take more. */
  #unsent: Exchange[] = [];
  #flushing = false;
  #stream = 1;
  #maxStreams = 100;
  /** Bytes of bodies that the upstream takes: in all, and per stream. */
  #window = 65_535;
  #streamWindow = 65_535;
  #received = 0;
  #part: Buffer | null = null;
  /** The block of a header that goes on in the next frame. */
  #headers: Buffer | null = null;
  #closing = false;
  #closed = false;

  /** @param socket connected, and agreed on HTTP/2 */
  constructor(host: Http2Host, socket: TLSSocket) {
    super();
    this.#host = host;
    this.#socket = socket;
    const { httpMethod } = host.parts;
    this.#block = requestBlock(httpMethod, host.authority, host.path, MEDIA_TYPE);
    socket.on('data', this.#onData);
    socket.on('error', (error) => this.destroy(this.#broken(error)));
    socket.on('end', () => this.destroy(this.#ended()));
    socket.on('close', () => this.destroy(this.#ended()));
    socket.write(greeting(STREAM_WINDOW, WINDOW));
    this.#rest();
  }

  /** Whether it takes further queries. */
  get open(): boolean {
    return !this.#closing && !this.#closed && this.#stream < STREAM_LAST;
  }

  get waiting(): number {
    return this.#streams.size + this.#unsent.length;
  }

  /** Sends the exchange's query; its deadline is set. */
  send(exchange: Exchange): void {
    if (this.waiting === 0) {
      this.#host.wheel.cancel(this);
      this.#socket.ref();
    }
    exchange.carrier = this;
    exchange.reused = this.answered > 0;
    exchange.id = 0;
    this.#unsent.push(exchange);
    this.#flushLater();
  }

  timeOut(exchange: Exchange): void {
    const { parts, action, now } = this.#host;
    parts.counters.timeouts.add(1);
    if (exchange.id !== 0) this.#cancel(exchange.id);
    this.#remove(exchange);
    exchange.failed(new ExchangeError('timeout', `${action}: ${LATE}`), now());
  }

  override expire(): void {
    this.destroy(this.#ended());
  }

  /** No more queries; closes when the last reply has come. */
  retire(): void {
    this.#closing = true;
    if (this.waiting === 0) this.destroy(this.#ended());
  }

  destroy(error: ExchangeError): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#host.wheel.cancel(this);
    this.#socket.destroy();
    const left = [...this.#streams.values(), ...this.#unsent];
    this.#streams.clear();
    this.#bodies.clear();
    this.#unsent = [];
    for (const exchange of left) exchange.carrier = null;
    this.#host.gone(this, left, error);
  }

  #ended(): ExchangeError {
    return new ExchangeError('closed', `${this.#host.action}: EOF`);
  }

  #broken(cause: unknown): ExchangeError {
    const { failure, message } = exchangeError(cause, 'read', 'tcp');
    return new ExchangeError(failure, `${this.#host.action}: ${message}`);
  }

  #violated(what: string): void {
    this.destroy(new ExchangeError('http', `${this.#host.action}: ${what}`));
  }

  #flushLater(): void {
    if (this.#flushing) return;
    this.#flushing = true;
    process.nextTick(this.#flush);
  }

  #flush = (): void => {
    this.#flushing = false;
    if (this.#closed) return;
    const out: Buffer[] = [];
    const unsent = this.#unsent;
    let sent = 0;
    for (; sent < unsent.length && this.#streams.size < this.#maxStreams; sent++) {
      const request = this.#request(unsent[sent]!);
      if (request === null) break;
      out.push(request);
    }
    if (sent === 0) return;
    this.#unsent = unsent.slice(sent);
    this.#socket.write(out.length === 1 ? out[0]! : Buffer.concat(out));
  };

  /** The frames of one request; null: the upstream does not take that much at present. */
  #request(exchange: Exchange): Buffer | null {
    const { query } = exchange;
    const { path, parts } = this.#host;
    const size = query.end - query.start;
    const post = parts.httpMethod === 'POST';
    if (post && size > this.#window) return null;
    const stream = this.#stream;
    this.#stream += 2;
    exchange.id = stream;
    exchange.mark = 0;
    this.#streams.set(stream, exchange);
    if (!post) {
      const message = Buffer.allocUnsafe(size);
      writeQuery(query, 0, message, 0);
      const end = pathAndAccept(`${path}?dns=${message.toString('base64url')}`, MEDIA_TYPE);
      return this.#headersFrame(end, 0, FLAGS.END_HEADERS | FLAGS.END_STREAM, stream);
    }
    this.#window -= size;
    const out = this.#headersFrame(
      contentLength(size),
      FRAME_HEADER + size,
      FLAGS.END_HEADERS,
      stream,
    );
    const at = out.length - size - FRAME_HEADER;
    writeQuery(
      query,
      0,
      out,
      writeFrameHeader(out, at, size, FRAME.DATA, FLAGS.END_STREAM, stream),
    );
    return out;
  }

  /** @param more bytes of room behind the frame */
  #headersFrame(end: Buffer, more: number, flags: number, stream: number): Buffer {
    const block = this.#block;
    const length = block.length + end.length;
    const out = Buffer.allocUnsafe(FRAME_HEADER + length + more);
    const at = writeFrameHeader(out, 0, length, FRAME.HEADERS, flags, stream);
    block.copy(out, at);
    end.copy(out, at + block.length);
    return out;
  }

  #cancel(stream: number): void {
    this.#socket.write(numbersFrame(FRAME.RST_STREAM, 0, stream, CODE.CANCEL));
  }

  #onData = (chunk: Buffer): void => {
    let bytes = this.#part === null ? chunk : Buffer.concat([this.#part, chunk]);
    this.#part = null;
    while (!this.#closed && bytes.length >= FRAME_HEADER) {
      const header = readFrameHeader(bytes, 0);
      if (header.length > FRAME_MAX) return this.#violated('a frame is too long');
      const end = FRAME_HEADER + header.length;
      if (bytes.length < end) break;
      this.#onFrame(header, bytes.subarray(FRAME_HEADER, end));
      bytes = bytes.subarray(end);
    }
    if (bytes.length > 0 && !this.#closed) this.#part = bytes;
  };

  #onFrame(header: FrameHeader, payload: Buffer): void {
    if (this.#headers !== null && header.type !== FRAME.CONTINUATION)
      return this.#violated('a header block is cut off');
    switch (header.type) {
      case FRAME.DATA:
        return this.#onBody(header, unpadded(header, payload));
      case FRAME.HEADERS: {
        const block = unpadded(header, payload);
        return this.#onHeaders(
          header,
          (header.flags & FLAGS.PRIORITY) === 0 ? block : block.subarray(5),
        );
      }
      case FRAME.CONTINUATION:
        return this.#onHeaders(header, payload);
      case FRAME.RST_STREAM:
        return this.#onReset(header.stream, payload);
      case FRAME.SETTINGS:
        return this.#onSettings(header, payload);
      case FRAME.PING:
        if ((header.flags & FLAGS.ACK) === 0 && payload.length === 8) {
          const numbers = [payload.readUInt32BE(0), payload.readUInt32BE(4)];
          this.#socket.write(numbersFrame(FRAME.PING, FLAGS.ACK, 0, ...numbers));
        }
        return undefined;
      case FRAME.GOAWAY:
        return this.#onGoAway(payload);
      case FRAME.WINDOW_UPDATE:
        if (header.stream === 0 && payload.length === 4) {
          this.#window += payload.readUInt32BE(0) & 0x7fff_ffff;
          if (this.#unsent.length > 0) this.#flushLater();
        }
        return undefined;
      case FRAME.PUSH_PROMISE:
        return this.#violated('it pushes what nobody asked for');
      default:
        // Frames of other kinds are to be passed over.
        return undefined;
    }
  }

  #onHeaders({ flags, stream, type }: FrameHeader, block: Buffer): void {
    const exchange = this.#streams.get(stream);
    if (type === FRAME.HEADERS && exchange !== undefined && exchange.mark < 200) {
      exchange.mark = readStatus(block);
      // What ends in the header has no body, whichever frame ends the header.
      if ((flags & FLAGS.END_STREAM) !== 0) this.#bodies.set(stream, nothing);
    }
    this.#headers = (flags & FLAGS.END_HEADERS) === 0 ? block : null;
    if (this.#headers !== null || exchange === undefined) return;
    const { mark: status } = exchange;
    if (status >= 100 && status < 200) return;
    if (status !== 200) {
      if (!this.#bodies.has(stream)) this.#cancel(stream);
      const what = status === 0 ? 'HTTP status missing' : `HTTP status ${status}`;
      return this.#fail(exchange, new ExchangeError('http', `${this.#host.action}: ${what}`));
    }
    if (type === FRAME.HEADERS && (flags & FLAGS.END_STREAM) !== 0) this.#finish(exchange, nothing);
  }

  #onBody({ flags, stream, length }: FrameHeader, payload: Buffer): void {
    this.#received += length;
    if (this.#received >= WINDOW / 2) {
      this.#socket.write(numbersFrame(FRAME.WINDOW_UPDATE, 0, 0, this.#received));
      this.#received = 0;
    }
    const exchange = this.#streams.get(stream);
    if (exchange === undefined) return;
    const before = this.#bodies.get(stream);
    const body = before === undefined ? payload : Buffer.concat([before, payload]);
    if (body.length > MESSAGE_MAX) {
      this.#cancel(stream);
      const text = `${this.#host.action}: the body is too long`;
      return this.#fail(exchange, new ExchangeError('http', text));
    }
    if ((flags & FLAGS.END_STREAM) !== 0) this.#finish(exchange, body);
    else this.#bodies.set(stream, body);
  }

  #finish(exchange: Exchange, body: Buffer): void {
    const { action, now, wheel } = this.#host;
    // Some servers do not send 0 back; what counts here is TLS.
    const id = body.length >= 2 ? body.readUInt16BE(0) : 0;
    if (matchReply(exchange.query, id, body, 0, body.length) !== 'reply') {
      const text = `${action}: the body is no reply to the query`;
      return this.#fail(exchange, new ExchangeError('http', text));
    }
    this.answered++;
    wheel.cancel(exchange);
    this.#remove(exchange);
    exchange.replied(body, 0, body.length, false, exchange.reused, now());
  }

  #onReset(stream: number, payload: Buffer): void {
    const exchange = this.#streams.get(stream);
    if (exchange === undefined) return;
    const code = payload.length === 4 ? payload.readUInt32BE(0) : CODE.NO_ERROR;
    const failure = code === CODE.REFUSED_STREAM ? 'closed' : 'http';
    const text = `${this.#host.action}: stream error: stream ID ${stream}; code ${code}`;
    this.#fail(exchange, new ExchangeError(failure, text));
  }

  #onSettings({ flags }: FrameHeader, payload: Buffer): void {
    if ((flags & FLAGS.ACK) !== 0) return;
    for (let at = 0; at + 6 <= payload.length; at += 6) {
      const value = payload.readUInt32BE(at + 2);
      switch (payload.readUInt16BE(at)) {
        case SETTING.MAX_CONCURRENT_STREAMS:
          this.#maxStreams = Math.max(1, value);
          break;
        case SETTING.INITIAL_WINDOW_SIZE:
          this.#streamWindow = value;
          break;
      }
    }
    this.#socket.write(numbersFrame(FRAME.SETTINGS, FLAGS.ACK, 0));
    if (this.#streamWindow < MESSAGE_MAX / 4) return this.#violated('it takes no messages');
    if (this.#unsent.length > 0) this.#flushLater();
  }

  /** The upstream takes no more: what it has not begun is asked elsewhere. */
  #onGoAway(payload: Buffer): void {
    this.#closing = true;
    const last = payload.length >= 4 ? payload.readUInt32BE(0) & 0x7fff_ffff : 0;
    const refused = [...this.#streams.values()].filter(({ id }) => id > last);
    const unsent = this.#unsent;
    this.#unsent = [];
    for (const exchange of refused) this.#streams.delete(exchange.id);
    const left = [...refused, ...unsent];
    for (const exchange of left) exchange.carrier = null;
    if (this.waiting === 0) {
      this.#closed = true;
      this.#host.wheel.cancel(this);
      this.#socket.destroy();
    }
    this.#host.gone(this, left, this.#ended());
  }

  #fail(exchange: Exchange, error: ExchangeError): void {
    this.#host.wheel.cancel(exchange);
    this.#remove(exchange);
    exchange.failed(error, this.#host.now());
  }

  /** The exchange no longer waits here. */
  #remove(exchange: Exchange): void {
    exchange.carrier = null;
    if (exchange.id === 0) this.#unsent.splice(this.#unsent.indexOf(exchange), 1);
    else {
      this.#streams.delete(exchange.id);
      this.#bodies.delete(exchange.id);
      if (this.#unsent.length > 0) this.#flushLater();
    }
    if (this.waiting === 0) this.#rest();
  }

  /** Nobody waits: it does not keep the process alive, and goes after a while. */
  #rest(): void {
    if (this.#closing) return this.destroy(this.#ended());
    this.#socket.unref();
    this.#host.wheel.set(this, this.#host.parts.expireMs);
  }
}

const nothing = Buffer.alloc(0);

function unpadded({ flags }: FrameHeader, payload: Buffer): Buffer {
  if ((flags & FLAGS.PADDED) === 0) return payload;
  return payload.subarray(1, Math.max(1, payload.length - (payload[0] ?? 0)));
}
