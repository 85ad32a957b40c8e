import { releaseBytes } from '../../runtime/release-bytes.ts';
import { oneLine } from '../../base/visible.ts';
import { GrpcFailure, STATUS } from './grpc-failure.ts';
import type { ResponseFields } from '../http2/response-fields.ts';

/** Events of a call. */
export interface GrpcCall {
  /** Called with one complete message, which is valid only during the call. */
  onMessage(message: Buffer): void;
  /** The last event; null means status OK. */
  onEnd(failure: GrpcFailure | null): void;
}

export interface GrpcStreamHost {
  readonly messageMax: number;
  send(stream: number, data: Buffer, room: number, last: boolean): number;
  allow(stream: number, bytes: number): void;
  reset(stream: number): void;
  forget(stream: number): void;
}

/** Size of the prefix before each message: the compression flag (never set here) and the length. */
export const PREFIX = 5;
const WINDOW_STEP = 1 << 19;

/** A single call: messages in both directions over one HTTP/2 stream, followed by a final status (gRPC over HTTP/2). */
export class GrpcStream {
  readonly id: number;
  readonly #host: GrpcStreamHost;
  readonly #call: GrpcCall;
  /** Bytes of requests that the server currently accepts. */
  #room: number;
  #unsent: Buffer = nothing;
  #ending = false;
  #over = false;
  #status = 0;
  /** An incomplete message. */
  #piece: Buffer = nothing;
  #filled = 0;
  #received = 0;

  constructor(host: GrpcStreamHost, id: number, room: number, call: GrpcCall) {
    this.#host = host;
    this.id = id;
    this.#room = room;
    this.#call = call;
  }

  /**
   * Sends a message, or buffers it until the server accepts more.
   * @param last true if no more messages follow
   */
  write(message: Uint8Array, last = false): void {
    const prefix = Buffer.alloc(PREFIX);
    prefix.writeUInt32BE(message.length, 1);
    this.writeFramed(Buffer.concat([prefix, message]), last);
  }

  /** Sends a message that already has its prefix. */
  writeFramed(bytes: Buffer, last: boolean): void {
    if (this.#over || this.#ending) return;
    this.#unsent = this.#unsent.length === 0 ? bytes : Buffer.concat([this.#unsent, bytes]);
    this.#ending = last;
    this.flush();
  }

  /** Cancels the call; no more events follow. */
  cancel(): void {
    if (this.#over) return;
    this.#over = true;
    this.#host.reset(this.id);
    this.#host.forget(this.id);
  }

  /** Adjusts the window by `bytes`, which can be negative. */
  widen(bytes: number): void {
    this.#room += bytes;
    this.flush();
  }

  flush(): void {
    if (this.#unsent.length === 0 || this.#over) return;
    const sent = this.#host.send(this.id, this.#unsent, this.#room, this.#ending);
    this.#room -= sent;
    this.#unsent = this.#unsent.subarray(sent);
  }

  headers(fields: ResponseFields, ends: boolean): void {
    if (this.#over) return;
    const http = fields.http === 0 ? this.#status : fields.http;
    if (http >= 100 && http < 200) return;
    this.#status = http;
    if (http !== 200) {
      const text = `HTTP status ${http === 0 ? 'missing' : http}`;
      const kind = http >= 500 ? 'unavailable' : 'malformed';
      return this.#failed(new GrpcFailure(kind, text, codeOf(http)), ends);
    }
    if (!ends) return;
    const { status, message } = fields;
    if (status === STATUS.OK) return this.#finish(null);
    if (status < 0)
      return this.#finish(new GrpcFailure('unavailable', 'the call ended without a status'));
    this.#finish(new GrpcFailure('status', oneLine(percentDecoded(message)), status));
  }

  /** @param counted bytes that count against the window, including padding */
  body(bytes: Buffer, counted: number, ends: boolean): void {
    if (this.#over) return;
    this.#received += counted;
    if (this.#received >= WINDOW_STEP && !ends) {
      this.#host.allow(this.id, this.#received);
      this.#received = 0;
    }
    this.#take(bytes);
    // A server that ends the stream without a status has failed.
    if (ends && !this.#over) this.#finish(new GrpcFailure('unavailable', 'the call ended early'));
  }

  wasReset(code: number): void {
    if (this.#over) return;
    const text = `the server canceled the call (HTTP/2 error ${code})`;
    this.#finish(new GrpcFailure('unavailable', text));
  }

  /** Called when the connection closes, or if the call was never started. */
  fail(failure: GrpcFailure): void {
    if (!this.#over) this.#finish(failure);
  }

  #take(bytes: Buffer): void {
    let at = 0;
    while (at < bytes.length && !this.#over) {
      if (this.#filled === 0) {
        const whole = this.#wholeAt(bytes, at);
        if (whole < 0) return;
        if (whole > 0) {
          this.#call.onMessage(bytes.subarray(at + PREFIX, at + whole));
          at += whole;
          continue;
        }
      }
      at = this.#gather(bytes, at);
    }
  }

  /** Returns the size of the message at `at` if it is complete, 0 if it is incomplete, or -1 if the call has failed. */
  #wholeAt(bytes: Buffer, at: number): number {
    if (bytes.length - at < PREFIX) return 0;
    const size = this.#sizeOf(bytes, at);
    if (size < 0) return -1;
    return size <= bytes.length - at ? size : 0;
  }

  #gather(bytes: Buffer, at: number): number {
    if (this.#piece.length === 0) this.#piece = Buffer.allocUnsafeSlow(PREFIX);
    const want = this.#filled < PREFIX ? PREFIX : this.#piece.length;
    const count = Math.min(want - this.#filled, bytes.length - at);
    bytes.copy(this.#piece, this.#filled, at, at + count);
    this.#filled += count;
    if (this.#filled === PREFIX && this.#piece.length === PREFIX) {
      const size = this.#sizeOf(this.#piece, 0);
      if (size < 0) return bytes.length;
      const bigger = Buffer.allocUnsafeSlow(size);
      this.#piece.copy(bigger, 0, 0, PREFIX);
      this.#piece = bigger;
    }
    if (this.#filled >= PREFIX && this.#filled === this.#piece.length) {
      const message = this.#piece.subarray(PREFIX);
      this.#piece = nothing;
      this.#filled = 0;
      this.#call.onMessage(message);
      releaseBytes(message);
    }
    return at + count;
  }

  /** Returns the size of a message including its prefix, or -1 if it is rejected. */
  #sizeOf(bytes: Buffer, at: number): number {
    const size = bytes.readUInt32BE(at + 1);
    const { messageMax } = this.#host;
    if (bytes[at] !== 0) {
      const text = 'the reply is compressed, although ndots did not offer compression';
      this.#failed(new GrpcFailure('malformed', text, STATUS.INTERNAL), false);
      return -1;
    }
    if (size <= messageMax) return PREFIX + size;
    const text = `the message has ${size} bytes, but at most ${messageMax} are accepted`;
    this.#failed(new GrpcFailure('large', text, STATUS.RESOURCE_EXHAUSTED), false);
    return -1;
  }

  #failed(failure: GrpcFailure, ended: boolean): void {
    if (!ended) this.#host.reset(this.id);
    this.#finish(failure);
  }

  #finish(failure: GrpcFailure | null): void {
    this.#over = true;
    this.#host.forget(this.id);
    this.#call.onEnd(failure);
  }
}

const nothing = Buffer.alloc(0);

/** Maps an HTTP status other than 200 to a gRPC status (gRPC, "HTTP to gRPC Status Code Mapping"). */
function codeOf(http: number): number {
  switch (http) {
    case 400:
      return STATUS.INTERNAL;
    case 401:
      return STATUS.UNAUTHENTICATED;
    case 403:
      return STATUS.PERMISSION_DENIED;
    case 404:
      return STATUS.UNIMPLEMENTED;
    case 429:
    case 502:
    case 503:
    case 504:
      return STATUS.UNAVAILABLE;
    default:
      return STATUS.UNKNOWN;
  }
}

function percentDecoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
