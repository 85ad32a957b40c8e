/** Serves a live stream over HTTP to permitted readers, with compression, bounded memory per reader and heartbeats. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Gzip } from 'node:zlib';
import { builtins } from './builtins.ts';
import { every, type Clock, type Timer } from './clock.ts';
import {
  decideAgain,
  tokenIn,
  type AccessDecision,
  type AccessGate,
  type AccessRequest,
} from './http-access.ts';
import { acceptsGzip, answerText } from './http-answer.ts';
import { Problem } from './problem.ts';

/** Maximum number of readers. One console serves any number of browsers. */
const READERS_MAX = 4;
/** Maximum number of bytes buffered per reader. Beyond this, the reader misses messages, which are counted. */
const BACKLOG_MAX = 4 * 1024 * 1024;
/**
 * Interval at which the count of missed messages is sent. If it does not arrive, a reader assumes that the server is
 * dead.
 */
const BEAT_MS = 5000;
/** Milliseconds after which a reader that accepts no data, or acknowledges none, is disconnected. */
const STALLED_MS = 30_000;

/** A stream to be sent to all readers. */
export interface StreamSource {
  /** Its path, for decisions about readers. */
  readonly path: string;
  /** Headers for every response. */
  readonly headers: Readonly<Record<string, string>>;
  /** Number of messages that were lost before any reader could get them. */
  readonly lost: number;
  /**
   * Called when the first reader connects and when the last one disconnects. Throws a Problem if the source cannot
   * start.
   */
  watched(on: boolean): void;
  /** Returns the first bytes for a new reader. */
  opening(): Uint8Array;
  /** Returns the bytes a reader needs to continue after a gap. */
  again?(): Uint8Array;
  /** Returns a record of the messages that a reader missed. */
  leftOut(messages: number): Uint8Array;
  /** Returns the last bytes for a reader, or null. */
  closing(): Uint8Array | null;
}

/** The gate for the stream's readers, and the server's name. */
export interface StreamAccess {
  readonly gate: AccessGate;
  readonly identity: string;
}

interface StreamReader {
  readonly response: ServerResponse;
  readonly gzip: Gzip | null;
  /** Messages that this reader missed. */
  missed: number;
  /** The value of `source.lost` when the reader connected. */
  readonly lostBefore: number;
  /** The time at which the reader's buffer became full, in milliseconds, or null if it has room. */
  fullSinceMs: number | null;
  /** True if it missed the most recent bytes. */
  hasGap: boolean;
}

/** Sends the same bytes to every reader. */
export class StreamReaders {
  /** Messages sent, summed over readers. */
  sent = 0;
  /** Messages dropped because a reader's buffer was full. */
  missed = 0;
  readonly #source: StreamSource;
  readonly #clock: Clock;
  readonly #timeOutPeer: (socket: Socket, ms: number) => void;
  readonly #readers = new Set<StreamReader>();
  #beat: Timer | null = null;

  /**
   * @param timeOutPeer makes the kernel close a connection whose peer acknowledges nothing for this many milliseconds.
   *   Without it, a reader that vanished keeps its place on a quiet server, whose messages fit in the kernel's buffer
   */
  constructor(
    source: StreamSource,
    clock: Clock,
    timeOutPeer: (socket: Socket, ms: number) => void,
  ) {
    this.#source = source;
    this.#clock = clock;
    this.#timeOutPeer = timeOutPeer;
  }

  get connected(): number {
    return this.#readers.size;
  }

  /** Sends messages until the reader disconnects. */
  serve(request: IncomingMessage, response: ServerResponse, access: StreamAccess): void {
    for (const [name, value] of Object.entries(this.#source.headers))
      response.setHeader(name, value);
    if (request.method !== 'GET') {
      response.setHeader('allow', 'GET');
      return answerText(response, 405, 'the stream is read with GET\n');
    }
    // A stream behind another one on the same connection would never be sent, and never close.
    if (response.socket === null) return void request.socket.destroy();
    const asked = { token: tokenIn(request), verb: 'get', path: this.#source.path };
    const go = (decision: AccessDecision): void => {
      if (response.destroyed) return;
      if (decision === null) return this.#open(request, response, access, asked);
      if (decision.status === 401) response.setHeader('www-authenticate', 'Bearer');
      if (decision.status === 503) response.setHeader('retry-after', '5');
      answerText(response, decision.status, `${decision.text}\n`);
    };
    const decision = access.gate.decide(asked);
    if (decision instanceof Promise) void decision.then(go);
    else go(decision);
  }

  #open(
    request: IncomingMessage,
    response: ServerResponse,
    { gate, identity }: StreamAccess,
    asked: AccessRequest,
  ): void {
    const source = this.#source;
    if (this.#readers.size >= READERS_MAX) {
      response.setHeader('retry-after', '5');
      return answerText(response, 503, `${READERS_MAX} readers are connected already\n`);
    }
    // Start the source first. If it throws, the response can still report that.
    try {
      if (this.#readers.size === 0) source.watched(true);
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      return answerText(response, 503, `${error.message}\n`);
    }
    const isPacked = acceptsGzip(request);
    response.writeHead(200, {
      'content-type': 'application/octet-stream',
      'cache-control': 'no-store',
      'ndots-server': encodeURIComponent(identity),
      ...(isPacked && { 'content-encoding': 'gzip' }),
    });
    const gzip = isPacked ? builtins.zlib().createGzip({ level: 1 }) : null;
    gzip?.pipe(response);
    const reader: StreamReader = {
      ...{ response, gzip, missed: 0, lostBefore: source.lost },
      ...{ fullSinceMs: null, hasGap: false },
    };
    if (response.socket !== null) this.#timeOutPeer(response.socket, STALLED_MS);
    response.on('close', () => this.#remove(reader));
    decideAgain(gate, asked, response, this.#clock, () => response.destroy());
    response.on('error', () => response.destroy());
    const opening = source.opening();
    this.#readers.add(reader);
    this.#beat ??= every(this.#clock, BEAT_MS, () => this.#count());
    write(reader, opening);
    write(reader, this.#leftOut(reader));
    gzip?.flush();
  }

  /**
   * Sends bytes to each reader that has room.
   * @param hold called for each such reader; returns a function to call once the bytes have been written
   */
  give(bytes: Uint8Array, messages: number, hold: () => () => void = () => nothing): void {
    for (const reader of this.#readers) {
      if (!isFull(reader)) {
        if (reader.hasGap && this.#source.again !== undefined) write(reader, this.#source.again());
        reader.hasGap = false;
        reader.fullSinceMs = null;
        this.sent += messages;
        write(reader, bytes, hold());
        continue;
      }
      reader.hasGap = true;
      reader.missed += messages;
      this.missed += messages;
      const now = this.#clock.now();
      reader.fullSinceMs ??= now;
      if (now - reader.fullSinceMs >= STALLED_MS) reader.response.destroy();
    }
  }

  /** Flushes the data held back by compression. */
  flush(): void {
    for (const { gzip } of this.#readers) gzip?.flush();
  }

  /** Ends the stream for all readers. */
  close(): void {
    const bytes = this.#source.closing();
    for (const reader of this.#readers) {
      const { gzip, response } = reader;
      if (bytes === null) (gzip ?? response).end();
      else (gzip ?? response).end(bytes);
      this.#remove(reader, false);
    }
  }

  /** Sends each reader its count of missed messages, which also serves as a heartbeat. */
  #count(): void {
    for (const reader of this.#readers)
      if (!isFull(reader)) {
        reader.fullSinceMs = null;
        write(reader, this.#leftOut(reader));
        reader.gzip?.flush();
      }
  }

  #leftOut({ missed, lostBefore }: StreamReader): Uint8Array {
    return this.#source.leftOut(missed + this.#source.lost - lostBefore);
  }

  #remove(reader: StreamReader, isGone = true): void {
    if (!this.#readers.delete(reader)) return;
    if (isGone) reader.gzip?.destroy();
    if (this.#readers.size > 0) return;
    this.#source.watched(false);
    this.#beat?.cancel();
    this.#beat = null;
  }
}

const nothing = (): void => undefined;

function isFull({ response, gzip }: StreamReader): boolean {
  return response.writableLength + (gzip?.writableLength ?? 0) > BACKLOG_MAX;
}

function write(
  { response, gzip }: StreamReader,
  bytes: Uint8Array,
  done: () => void = nothing,
): void {
  (gzip ?? response).write(bytes, done);
}
