import type { TLSSocket } from 'node:tls';

import { MEDIA_TYPE } from './dns-over-https.ts';
import { exchangeError, failLater } from '../upstream/exchange-failure.ts';
import {
  ExchangeError,
  type Carrier,
  type UpstreamExchange,
} from '../upstream/upstream-exchange.ts';
import { GatheredMessage } from '../stream/gathered-message.ts';
import { matchReply } from '../upstream/match-reply.ts';
import { sizeUpstream, writeQuery } from '../upstream/write-query.ts';
import type { UpstreamParts } from '../upstream-address.ts';
import { Timed, type TimerWheel } from '../timer-wheel.ts';
import { clientGreeting, wordsFrame } from './client-frames.ts';
import { ClientInput, type ClientInputHost } from './client-input.ts';
import {
  ERROR,
  FLAG,
  FRAME,
  FRAME_HEADER,
  PAYLOAD_MAX,
  WINDOW,
  writeFrameHeader,
} from './frames.ts';
import type { HeaderBlock } from './header-block.ts';
import { contentLength, pathAndAccept, requestFields } from './request-fields.ts';
import { ResponseFields } from './response-fields.ts';

/** Go's HTTP client's message for a timeout. */
export const LATE = 'context deadline exceeded (Client.Timeout exceeded while awaiting headers)';

/** Maximum bytes that a peer may leave unread. */
const UNREAD_MAX = 1024 * 1024;
/**
 * Number of body bytes that the upstream may send without permission, per stream and in total. The window is renewed
 * when half of it is used up.
 */
const STREAM_WINDOW = 1 << 17;
const CONNECTION_WINDOW = 1 << 24;
/** An upstream with a smaller stream window cannot accept a DNS message of normal size. */
const QUERY_ROOM = 4096;
/** The last stream id, after which a new connection is needed. */
const STREAM_LAST = 0x3fff_ffff;

export interface Http2Host {
  readonly parts: UpstreamParts;
  readonly wheel: TimerWheel;
  readonly now: () => number;
  readonly authority: string;
  readonly path: string;
  /** The prefix of errors: `Post "https://dns.example/dns-query"`. */
  readonly action: string;
  /** @param left the exchanges that were waiting on the connection, with their deadlines still set */
  gone(link: Http2Link, left: readonly UpstreamExchange[], error: ExchangeError): void;
}

/**
 * One HTTP/2 connection to an upstream, which can carry any number of queries (RFC 8484). All requests made in one turn
 * are sent in one write. The link's own deadline marks the end of its idle period.
 */
export class Http2Link extends Timed implements Carrier, ClientInputHost {
  answered = 0;
  readonly #host: Http2Host;
  readonly #socket: TLSSocket;
  readonly #block: Buffer;
  readonly #streams = new Map<number, UpstreamExchange>();
  readonly #bodies = new Map<number, GatheredMessage>();
  /** Requests waiting for the end of the turn, or until the upstream accepts more data. */
  #unsent: UpstreamExchange[] = [];
  #flushing = false;
  #stream = 1;
  #maxStreams = 100;
  /** Number of body bytes that the upstream accepts, in total and per stream. */
  #window = WINDOW;
  #streamWindow = WINDOW;
  readonly #fields = new ResponseFields();
  #closing = false;
  #closed = false;

  /** @param socket connected, with HTTP/2 negotiated */
  constructor(host: Http2Host, socket: TLSSocket) {
    super();
    this.#host = host;
    this.#socket = socket;
    const { httpMethod } = host.parts;
    this.#block = requestFields(httpMethod, host.authority, host.path, MEDIA_TYPE);
    const input = new ClientInput(socket, this, CONNECTION_WINDOW, UNREAD_MAX, host.now);
    socket.on('data', (chunk: Buffer) => input.read(chunk));
    socket.on('error', (error) => this.destroy(this.#broken(error)));
    socket.on('end', () => this.destroy(this.#ended()));
    socket.on('close', () => this.destroy(this.#ended()));
    socket.write(clientGreeting(STREAM_WINDOW, CONNECTION_WINDOW));
    this.#rest();
  }

  /** True if it accepts more queries. */
  get open(): boolean {
    return !this.#closing && !this.#closed && this.#stream < STREAM_LAST;
  }

  get waiting(): number {
    return this.#streams.size + this.#unsent.length;
  }

  /** Sends the exchange's query. The caller has already set its deadline. */
  send(exchange: UpstreamExchange): void {
    const { query } = exchange;
    if (sizeUpstream(query) > Math.min(PAYLOAD_MAX / 2, this.#streamWindow)) {
      const error = new ExchangeError('local', `${this.#host.action}: the query is too long`);
      this.#host.wheel.cancel(exchange);
      return failLater(exchange, error, this.#host.now);
    }
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

  timeOut(exchange: UpstreamExchange): void {
    const { parts, action, now } = this.#host;
    parts.counters.timeouts.add(1);
    if (exchange.id !== 0) this.#cancel(exchange.id);
    this.#remove(exchange);
    exchange.failed(new ExchangeError('timeout', `${action}: ${LATE}`), now());
  }

  override expire(): void {
    this.destroy(this.#ended());
  }

  /** Accepts no more queries, and closes once the last reply has arrived. */
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

  onViolation(what: string): void {
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

  /** Builds the frames for one request, or returns null if they exceed what the upstream currently accepts. */
  #request(exchange: UpstreamExchange): Buffer | null {
    const { query } = exchange;
    const { path, parts } = this.#host;
    const size = sizeUpstream(query);
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
      return this.#headersFrame(end, 0, FLAG.END_HEADERS | FLAG.END_STREAM, stream);
    }
    this.#window -= size;
    const out = this.#headersFrame(
      contentLength(size),
      FRAME_HEADER + size,
      FLAG.END_HEADERS,
      stream,
    );
    const at = out.length - size - FRAME_HEADER;
    writeQuery(query, 0, out, writeFrameHeader(out, at, size, FRAME.DATA, FLAG.END_STREAM, stream));
    return out;
  }

  /** @param more number of free bytes needed after the frame */
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
    this.#socket.write(wordsFrame(FRAME.RST_STREAM, 0, stream, ERROR.CANCEL));
  }

  get stopped(): boolean {
    return this.#closed;
  }

  onWindow(stream: number, more: number): void {
    if (stream !== 0) return;
    this.#window += more;
    if (this.#unsent.length > 0) this.#flushLater();
  }

  /** Called when a response's header is complete. Trailers and informational responses are ignored. */
  onHeader(id: number, { bytes, start, end, endsStream }: HeaderBlock): void {
    if (!this.#fields.read(bytes, start, end))
      return this.onViolation('a header block is malformed');
    const exchange = this.#streams.get(id);
    if (exchange === undefined) return;
    const { http } = this.#fields;
    const status = http >= 100 && http < 600 ? http : 0;
    if (exchange.mark < 200) exchange.mark = status;
    if (exchange.mark >= 100 && exchange.mark < 200 && !endsStream) return;
    if (exchange.mark !== 200) {
      if (!endsStream) this.#cancel(id);
      const what = exchange.mark === 0 ? 'HTTP status missing' : `HTTP status ${exchange.mark}`;
      return this.#fail(exchange, new ExchangeError('http', `${this.#host.action}: ${what}`));
    }
    if (endsStream) this.#finish(exchange, this.#bodies.get(id)?.bytes ?? nothing);
  }

  onBody(id: number, piece: Buffer, _size: number, ends: boolean): void {
    const exchange = this.#streams.get(id);
    if (exchange === undefined) return;
    let body = this.#bodies.get(id);
    if (ends && body === undefined) return this.#finish(exchange, piece);
    if (body === undefined) this.#bodies.set(id, (body = new GatheredMessage()));
    if (!body.add(piece, 0, piece.length)) {
      this.#cancel(id);
      const text = `${this.#host.action}: the body is too long`;
      return this.#fail(exchange, new ExchangeError('http', text));
    }
    if (ends) this.#finish(exchange, body.bytes);
  }

  #finish(exchange: UpstreamExchange, body: Buffer): void {
    const { action, now, wheel } = this.#host;
    // Some servers do not return id 0. That is acceptable, because TLS protects the exchange.
    const id = body.length >= 2 ? body.readUInt16BE(0) : 0;
    if (matchReply(exchange.query, id, body, 0, body.length) !== 'reply') {
      const text = `${action}: the body is not a reply to the query`;
      return this.#fail(exchange, new ExchangeError('http', text));
    }
    this.answered++;
    wheel.cancel(exchange);
    this.#remove(exchange);
    exchange.replied(body, 0, body.length, false, exchange.reused, now());
  }

  onReset(id: number, code: number): void {
    const exchange = this.#streams.get(id);
    if (exchange === undefined) return;
    const failure = code === ERROR.REFUSED_STREAM ? 'closed' : 'http';
    const text = `${this.#host.action}: stream error: stream ID ${id}; code ${code}`;
    this.#fail(exchange, new ExchangeError(failure, text));
  }

  onSettings(maxStreams: number | null, streamWindow: number | null): void {
    if (maxStreams !== null) this.#maxStreams = Math.max(1, maxStreams);
    if (streamWindow !== null) this.#streamWindow = streamWindow;
    if (this.#streamWindow < QUERY_ROOM) return this.onViolation('it accepts no messages');
    if (this.#unsent.length > 0) this.#flushLater();
  }

  /** The upstream accepts no more requests. Queries that it has not started move to another connection. */
  onGoAway(last: number): void {
    this.#closing = true;
    const refused = [...this.#streams.values()].filter(({ id }) => id > last);
    const left = [...refused, ...this.#unsent];
    this.#unsent = [];
    for (const exchange of refused) this.#streams.delete(exchange.id);
    for (const exchange of left) exchange.carrier = null;
    if (this.waiting === 0) {
      this.#closed = true;
      this.#host.wheel.cancel(this);
      this.#socket.destroy();
    }
    this.#host.gone(this, left, this.#ended());
  }

  #fail(exchange: UpstreamExchange, error: ExchangeError): void {
    this.#host.wheel.cancel(exchange);
    this.#remove(exchange);
    exchange.failed(error, this.#host.now());
  }

  /** The exchange is no longer waiting here. */
  #remove(exchange: UpstreamExchange): void {
    exchange.carrier = null;
    if (exchange.id === 0) this.#unsent.splice(this.#unsent.indexOf(exchange), 1);
    else {
      this.#streams.delete(exchange.id);
      this.#bodies.delete(exchange.id);
      if (this.#unsent.length > 0) this.#flushLater();
    }
    if (this.waiting === 0) this.#rest();
  }

  /** Called when no query is waiting. The link then no longer keeps the process alive, and closes after a while. */
  #rest(): void {
    if (this.#closing) return this.destroy(this.#ended());
    this.#socket.unref();
    this.#host.wheel.set(this, this.#host.parts.expireMs);
  }
}

const nothing = Buffer.alloc(0);
