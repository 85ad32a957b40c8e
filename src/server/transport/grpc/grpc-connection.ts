/** An HTTP/2 connection to a gRPC server, and the calls it carries. */
import { whyFailed } from '../../base/why-failed.ts';
import type { Socket } from 'node:net';
import type { Clock, Timer } from '../../base/clock.ts';
import { clientGreeting, makeFrame, wordsFrame } from '../http2/client-frames.ts';
import { ClientInput, type ClientInputHost } from '../http2/client-input.ts';
import { ERROR, FLAG, FRAME, PAYLOAD_MAX, WINDOW, WINDOW_MAX } from '../http2/frames.ts';
import type { HeaderBlock } from '../http2/header-block.ts';
import { grpcFields } from '../http2/request-fields.ts';
import { ResponseFields } from '../http2/response-fields.ts';
import { GrpcFailure, STATUS } from './grpc-failure.ts';
import { GrpcStream, type GrpcCall, type GrpcStreamHost } from './grpc-stream.ts';

export interface GrpcConnectionParts {
  /** Connected; with TLS, the handshake is complete. */
  readonly socket: Socket;
  readonly secure: boolean;
  /** For requests and messages: `etcd-0:2379`. */
  readonly authority: string;
  readonly clock: Clock;
  /** Maximum size of a received message in bytes; a larger one fails its call. */
  readonly messageMax: number;
  /** Called once, when the connection has ended. */
  readonly onClose?: () => void;
}

/**
 * Number of bytes the server may send before it needs a window update, per stream and in total. The window is renewed
 * when half of it is used up.
 */
const STREAM_WINDOW = 1 << 20;
const CONNECTION_WINDOW = 1 << 22;
/**
 * Milliseconds of silence, while calls are open, before a PING is sent. etcd treats more than one PING per 5 s as an
 * attack.
 */
const QUIET_MS = 6000;
const PING_ANSWER_MS = 3000;
/**
 * Maximum number of concurrent calls until the server announces its own limit. RFC 9113 section 6.5.2 recommends at
 * least this many.
 */
const STREAMS_USUAL = 100;
/** Maximum number of bytes in PING and SETTINGS acknowledgements that a server may leave unread. */
const UNREAD_MAX = 1024 * 1024;
/** The last stream id, after which a new connection is needed. */
const STREAM_LAST = 0x3fff_ffff;

/**
 * One HTTP/2 connection to a gRPC server. Calls run in parallel and respect the server's flow control windows. A silent
 * server is sent a PING, so a half-open connection is detected within seconds.
 */
export class GrpcConnection implements GrpcStreamHost, ClientInputHost {
  readonly messageMax: number;
  readonly authority: string;
  readonly #parts: GrpcConnectionParts;
  readonly #socket: Socket;
  readonly #streams = new Map<number, GrpcStream>();
  readonly #fields = new ResponseFields();
  #next = 1;
  #window = WINDOW;
  #streamWindow = WINDOW;
  #maxStreams = STREAMS_USUAL;
  #closed: GrpcFailure | null = null;
  #retiring = false;
  /** Clock time when the server last sent anything. */
  heardAt: number;
  #watchdog: Timer | null = null;

  constructor(parts: GrpcConnectionParts) {
    this.#parts = parts;
    this.#socket = parts.socket;
    this.messageMax = parts.messageMax;
    this.authority = parts.authority;
    this.heardAt = parts.clock.now();
    const { socket } = parts;
    const unreadMax = UNREAD_MAX + parts.messageMax;
    const input = new ClientInput(socket, this, CONNECTION_WINDOW, unreadMax);
    socket.on('data', (chunk: Buffer) => {
      this.heardAt = parts.clock.now();
      input.read(chunk);
    });
    socket.on('error', (error: Error) => this.#end(whyFailed(error)));
    socket.on('end', () => this.#end('the connection was closed by the server'));
    socket.on('close', () => this.#end('the connection was closed'));
    socket.on('drain', () => this.#sendAll());
    socket.write(clientGreeting(STREAM_WINDOW, CONNECTION_WINDOW));
  }

  /** True if it accepts more calls. */
  get open(): boolean {
    return this.#closed === null && !this.#retiring && this.#next < STREAM_LAST;
  }

  /** Number of calls that can be started now without exceeding the server's limit. */
  get room(): number {
    return this.#maxStreams - this.#streams.size;
  }

  /**
   * Returns the header block for calls of one method, for use with `begin`.
   * @param metadata names in lower case
   */
  fields(path: string, metadata: Readonly<Record<string, string>> = {}): Buffer {
    const { secure, authority } = this.#parts;
    return grpcFields({ secure, authority, path, metadata });
  }

  /** Starts a call. No handler is called before this method returns. */
  call(path: string, metadata: Readonly<Record<string, string>>, call: GrpcCall): GrpcStream {
    return this.begin(this.fields(path, metadata), call);
  }

  /** Starts a call with a header block created by `fields`. */
  begin(block: Buffer, call: GrpcCall): GrpcStream {
    const stream = new GrpcStream(this, this.#next, this.#streamWindow, call);
    this.#next += 2;
    if (this.#closed !== null) {
      const failure = this.#closed;
      queueMicrotask(() => stream.fail(failure));
      return stream;
    }
    this.#streams.set(stream.id, stream);
    this.#gather();
    this.#socket.write(makeFrame(FRAME.HEADERS, FLAG.END_HEADERS, stream.id, block));
    this.#watch();
    return stream;
  }

  close(failure: GrpcFailure): void {
    if (this.#closed !== null) return;
    this.#closed = failure;
    this.#watchdog?.cancel();
    this.#socket.destroy();
    for (const stream of [...this.#streams.values()]) stream.fail(failure);
    this.#streams.clear();
    this.#parts.onClose?.();
  }

  /**
   * Sends as much of `data` as the server currently accepts.
   * @returns the number of bytes sent
   */
  send(stream: number, data: Buffer, room: number, last: boolean): number {
    if (this.#closed !== null) return data.length;
    let sent = 0;
    do {
      const size = Math.min(data.length - sent, room - sent, this.#window, PAYLOAD_MAX);
      if (size <= 0 && data.length > 0) break;
      const ends = last && sent + size === data.length;
      const piece = data.subarray(sent, sent + size);
      this.#socket.write(makeFrame(FRAME.DATA, ends ? FLAG.END_STREAM : 0, stream, piece));
      this.#window -= size;
      sent += size;
    } while (sent < data.length);
    return sent;
  }

  allow(stream: number, bytes: number): void {
    if (this.#closed === null)
      this.#socket.write(wordsFrame(FRAME.WINDOW_UPDATE, 0, stream, bytes));
  }

  reset(stream: number): void {
    if (this.#closed === null)
      this.#socket.write(wordsFrame(FRAME.RST_STREAM, 0, stream, ERROR.CANCEL));
  }

  forget(stream: number): void {
    this.#streams.delete(stream);
    if (this.#streams.size > 0) return;
    this.#watchdog?.cancel();
    this.#watchdog = null;
    if (this.#retiring) this.#end('the server does not accept more calls on this connection');
  }

  /** Writes this turn's output in a single write. */
  #gather(): void {
    if (this.#socket.writableCorked > 0) return;
    this.#socket.cork();
    process.nextTick(this.#leave);
  }

  readonly #leave = (): void => this.#socket.uncork();

  #end(what: string): void {
    this.close(new GrpcFailure('unavailable', what));
  }

  onViolation(what: string): void {
    this.close(new GrpcFailure('malformed', what, STATUS.INTERNAL));
  }

  #sendAll(): void {
    for (const stream of this.#streams.values()) stream.flush();
  }

  /** Pings a silent server for as long as calls are open. */
  #watch(): void {
    if (this.#watchdog !== null) return;
    const { clock } = this.#parts;
    this.heardAt = clock.now();
    const check = (): void => {
      const quiet = clock.now() - this.heardAt;
      if (quiet < QUIET_MS) {
        this.#watchdog = clock.after(QUIET_MS - quiet, check);
        return;
      }
      this.#socket.write(wordsFrame(FRAME.PING, 0, 0, 0, 0));
      this.#watchdog = clock.after(PING_ANSWER_MS, () => {
        if (clock.now() - this.heardAt < QUIET_MS) return check();
        const text = `no data for ${Math.round(quiet / 1000 + PING_ANSWER_MS / 1000)} s`;
        this.close(new GrpcFailure('silent', text));
      });
    };
    this.#watchdog = clock.after(QUIET_MS, check);
  }

  get stopped(): boolean {
    return this.#closed !== null;
  }

  onHeader(stream: number, { bytes, start, end, endsStream }: HeaderBlock): void {
    const fields = this.#fields;
    if (!fields.read(bytes, start, end)) return this.onViolation('a header block is malformed');
    this.#streams.get(stream)?.headers(fields, endsStream);
  }

  onBody(stream: number, piece: Buffer, size: number, ends: boolean): void {
    this.#streams.get(stream)?.body(piece, size, ends);
  }

  onReset(stream: number, code: number): void {
    this.#streams.get(stream)?.wasReset(code);
  }

  onSettings(maxStreams: number | null, streamWindow: number | null): void {
    if (maxStreams !== null) this.#maxStreams = maxStreams;
    if (streamWindow === null) return;
    const more = streamWindow - this.#streamWindow;
    this.#streamWindow = streamWindow;
    for (const stream of this.#streams.values()) stream.widen(more);
  }

  onWindow(stream: number, more: number): void {
    if (stream !== 0) return this.#streams.get(stream)?.widen(more);
    this.#window += more;
    // RFC 9113 section 6.9.1.
    if (this.#window > WINDOW_MAX) return this.onViolation('a window is too large');
    this.#sendAll();
  }

  /** The server accepts no more calls. Calls it has not started fail, while the others run to completion. */
  onGoAway(last: number): void {
    this.#retiring = true;
    const failure = new GrpcFailure('unavailable', 'the server is shutting down');
    for (const stream of [...this.#streams.values()]) if (stream.id > last) stream.fail(failure);
    if (this.#streams.size === 0) this.close(failure);
  }
}
