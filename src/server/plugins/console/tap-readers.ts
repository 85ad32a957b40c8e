/** The readers of a server's own queries, over HTTP: in the main thread. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Gzip } from 'node:zlib';
import { builtins } from '../../base/builtins.ts';
import { every, type Clock, type Timer } from '../../base/clock.ts';
import { answerText } from '../../base/http-answer.ts';
import { isSameSecret } from '../../base/secret-file.ts';
import type { KeptAcrossReloads } from '../../engine/contract/control-context.ts';
import { ownVersion } from '../../engine/contract/own-version.ts';
import { Frames, type FrameChunk } from '../../engine/taps/tap-frames.ts';
import {
  DNSTAP_CONTENT_TYPE,
  DnstapWriter,
  LEFT_OUT,
  RELOADED,
  TAP_STREAM,
} from '../../wire/dnstap.ts';
import { CONTROL, writeControl } from '../../wire/frame-stream.ts';

/** Readers at a time; one console serves any number of browsers. */
const READERS_MAX = 4;
/** Bytes that wait for one reader; with more, it misses messages, which are counted. */
const BACKLOG_MAX = 4 * 1024 * 1024;
/** The count of dropped messages is sent this often; without it a reader treats the server as dead. */
const BEAT_MS = 5000;
/** A reader that takes nothing for this long is closed, milliseconds. */
const STALLED_MS = 30_000;

interface TapReader {
  readonly response: ServerResponse;
  readonly gzip: Gzip | null;
  /** Messages that it missed. */
  missed: number;
  /** `frames.lost` when it connected. */
  readonly lostBefore: number;
  /** Since when it has had no room, milliseconds; null: it has room. */
  fullSinceMs: number | null;
}

/** Gives the messages of all workers to each reader. Workers write none while there is no reader. */
export class TapReaders implements KeptAcrossReloads {
  readonly frames: Frames;
  /** 1 while there are readers; workers look at it before they write. */
  readonly watched: Int32Array<SharedArrayBuffer> = new Int32Array(new SharedArrayBuffer(4));
  /** Messages that were sent, for each reader. */
  sent = 0;
  /** Messages that a reader had no room for. */
  #missed = 0;
  readonly #clock: Clock;
  readonly #readers = new Set<TapReader>();
  #beat: Timer | null = null;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.frames = new Frames(clock);
    void this.frames.listen(() => this.#deliver());
  }

  get connected(): number {
    return this.#readers.size;
  }

  /** Messages that not every reader received. */
  get leftOut(): number {
    return this.frames.lost + this.#missed;
  }

  /** Sends messages until the reader goes. @param identity the name of this server */
  serve(
    request: IncomingMessage,
    response: ServerResponse,
    token: string | null,
    identity: string,
  ): void {
    response.setHeader('ndots-stream', TAP_STREAM);
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
    const isPacked = /\bgzip\b/.test(request.headers['accept-encoding'] ?? '');
    response.writeHead(200, {
      'content-type': 'application/octet-stream',
      'cache-control': 'no-store',
      'ndots-server': encodeURIComponent(identity),
      'ndots-version': ownVersion(),
      ...(isPacked && { 'content-encoding': 'gzip' }),
    });
    const gzip = isPacked ? builtins.zlib().createGzip({ level: 1 }) : null;
    gzip?.pipe(response);
    const reader: TapReader = {
      response,
      gzip,
      missed: 0,
      lostBefore: this.frames.lost,
      fullSinceMs: null,
    };
    response.on('close', () => this.#remove(reader));
    response.on('error', () => response.destroy());
    this.#drop();
    this.#readers.add(reader);
    Atomics.store(this.watched, 0, 1);
    this.#beat ??= every(this.#clock, BEAT_MS, () => this.#count());
    write(reader, writeControl(CONTROL.START, [DNSTAP_CONTENT_TYPE]));
    write(reader, this.#leftOutFrame(reader));
  }

  /** Tells each reader that the server serves a new configuration since this time, milliseconds since 1970. */
  reloaded(ms: number): void {
    for (const reader of this.#readers) {
      if (isFull(reader)) continue;
      write(reader, noteFrame(`${RELOADED}${Math.round(ms)}`));
      reader.gzip?.flush();
    }
  }

  close(): void {
    this.#deliver();
    this.frames.end();
    for (const reader of this.#readers) {
      const stop = writeControl(CONTROL.STOP);
      (reader.gzip ?? reader.response).end(stop);
      this.#remove(reader);
    }
  }

  /** Drops messages after the last reader has disconnected. */
  #drop(): void {
    if (this.#readers.size > 0) return;
    for (let chunk = this.frames.take(); chunk !== null; chunk = this.frames.take())
      chunk.release();
  }

  #deliver(): void {
    for (let chunk = this.frames.take(); chunk !== null; chunk = this.frames.take()) {
      for (const reader of this.#readers) this.#give(reader, chunk);
      chunk.release();
    }
    for (const { gzip } of this.#readers) gzip?.flush();
  }

  #give(reader: TapReader, chunk: FrameChunk): void {
    if (isFull(reader)) {
      reader.missed += chunk.frames;
      this.#missed += chunk.frames;
      const now = this.#clock.now();
      reader.fullSinceMs ??= now;
      if (now - reader.fullSinceMs >= STALLED_MS) reader.response.destroy();
      return;
    }
    reader.fullSinceMs = null;
    this.sent += chunk.frames;
    chunk.hold();
    write(reader, chunk.bytes, () => chunk.release());
  }

  /** Sends each reader its number of missed messages, as a sign of life. */
  #count(): void {
    for (const reader of this.#readers)
      if (!isFull(reader)) {
        reader.fullSinceMs = null;
        write(reader, this.#leftOutFrame(reader));
        reader.gzip?.flush();
      }
  }

  #leftOutFrame({ missed, lostBefore }: TapReader): Uint8Array {
    return noteFrame(`${LEFT_OUT}${missed + this.frames.lost - lostBefore}`);
  }

  #remove(reader: TapReader): void {
    if (!this.#readers.delete(reader)) return;
    reader.gzip?.destroy();
    if (this.#readers.size > 0) return;
    Atomics.store(this.watched, 0, 0);
    this.#beat?.cancel();
    this.#beat = null;
  }
}

/** A message without a type. */
function noteFrame(text: string): Uint8Array {
  const writer = new DnstapWriter(new Uint8Array(0), 0);
  writer.begin(0, text);
  writer.endFrame();
  return writer.bytes.slice(writer.start, writer.at);
}

/** The API server passes no `Authorization` on to a pod, so a header of our own has it as well. */
function tokenIn({ headers }: IncomingMessage): string | null {
  const own = headers['ndots-console'];
  if (typeof own === 'string') return own;
  return /^Bearer (.+)$/.exec(headers.authorization ?? '')?.[1] ?? null;
}

function isFull({ response, gzip }: TapReader): boolean {
  return response.writableLength + (gzip?.writableLength ?? 0) > BACKLOG_MAX;
}

function write(
  { response, gzip }: TapReader,
  bytes: Uint8Array,
  done: () => void = () => undefined,
): void {
  (gzip ?? response).write(bytes, done);
}
