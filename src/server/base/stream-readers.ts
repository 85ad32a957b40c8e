/** The readers of a live stream over HTTP: a token, compression, bounded memory for each, and a sign of life. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Gzip } from 'node:zlib';
import { builtins } from './builtins.ts';
import { every, type Clock, type Timer } from './clock.ts';
import { answerText } from './http-answer.ts';
import { isSameSecret } from './secret-file.ts';

/** Maximum number of readers at a time; one console serves any number of browsers. */
const READERS_MAX = 4;
/** Maximum bytes waiting for one reader; beyond that, it misses messages, which are counted. */
const BACKLOG_MAX = 4 * 1024 * 1024;
/** The count of dropped messages is sent this often; without it a reader treats the server as dead. */
const BEAT_MS = 5000;
/** A reader that takes nothing for this long is closed, milliseconds. */
const STALLED_MS = 30_000;

/** The stream that all readers get. */
export interface StreamSource {
  /** Headers of every response. */
  readonly headers: Readonly<Record<string, string>>;
  /** Messages that were lost before any reader could get them. */
  readonly lost: number;
  /** The first reader comes, or the last one goes. May throw as it begins. */
  watched(on: boolean): void;
  /** The first bytes of a reader. */
  opening(): Uint8Array;
  /** Bytes that a reader needs before it can continue after a gap. */
  again?(): Uint8Array;
  /** A record of the messages that a reader did not get. */
  leftOut(messages: number): Uint8Array;
  /** The last bytes of a reader; null: none. */
  closing(): Uint8Array | null;
}

/** The secret of a stream and the name of its server. */
export interface StreamAccess {
  /** null: it cannot be read now. */
  readonly token: string | null;
  readonly identity: string;
}

interface StreamReader {
  readonly response: ServerResponse;
  readonly gzip: Gzip | null;
  /** Messages that it missed. */
  missed: number;
  /** `source.lost` when it connected. */
  readonly lostBefore: number;
  /** Since when it has had no room, milliseconds; null: it has room. */
  fullSinceMs: number | null;
  /** It missed the latest bytes. */
  hasGap: boolean;
}

/** Gives the same bytes to each reader. */
export class StreamReaders {
  /** Messages that were sent, for each reader. */
  sent = 0;
  /** Messages that a reader had no room for. */
  missed = 0;
  readonly #source: StreamSource;
  readonly #clock: Clock;
  readonly #readers = new Set<StreamReader>();
  #beat: Timer | null = null;

  constructor(source: StreamSource, clock: Clock) {
    this.#source = source;
    this.#clock = clock;
  }

  get connected(): number {
    return this.#readers.size;
  }

  /** Sends messages until the reader goes. @throws what the source throws as it begins */
  serve(
    request: IncomingMessage,
    response: ServerResponse,
    { token, identity }: StreamAccess,
  ): void {
    const source = this.#source;
    for (const [name, value] of Object.entries(source.headers)) response.setHeader(name, value);
    if (token === null)
      return answerText(response, 503, 'the token of this server cannot be read\n');
    const given = tokenIn(request);
    if (given === null || !isSameSecret(given, token)) {
      response.setHeader('www-authenticate', 'Bearer');
      return answerText(response, 401, 'the token is missing or wrong\n');
    }
    if (this.#readers.size >= READERS_MAX) {
      response.setHeader('retry-after', '5');
      return answerText(response, 503, `${READERS_MAX} readers are connected already\n`);
    }
    // A source that cannot begin throws, while the response can still say so.
    if (this.#readers.size === 0) source.watched(true);
    const isPacked = /\bgzip\b/.test(request.headers['accept-encoding'] ?? '');
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
    response.on('close', () => this.#remove(reader));
    response.on('error', () => response.destroy());
    const opening = source.opening();
    this.#readers.add(reader);
    this.#beat ??= every(this.#clock, BEAT_MS, () => this.#count());
    write(reader, opening);
    write(reader, this.#leftOut(reader));
    gzip?.flush();
  }

  /**
   * Gives bytes to each reader that has room.
   * @param hold called for each of these; returns what is called when they are written
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

  /** Sends what compression holds back. */
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

  /** Sends each reader its number of missed messages, as a sign of life. */
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

/** The API server passes no `Authorization` on to a pod, so a header of our own has it as well. */
function tokenIn({ headers }: IncomingMessage): string | null {
  const own = headers['ndots-console'];
  if (typeof own === 'string') return own;
  return /^Bearer (.+)$/.exec(headers.authorization ?? '')?.[1] ?? null;
}

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
