/** The writing end of a Frame Streams connection. */
import type { Socket } from 'node:net';
import type { Clock, Timer } from '../../base/clock.ts';
import { DNSTAP_CONTENT_TYPE } from '../../wire/dnstap.ts';
import { accepts, CONTROL, FrameReader, writeControl } from '../../wire/frame-stream.ts';
import { ReadError } from '../../wire/reader.ts';
import type { FrameChunk } from '../../engine/taps/tap-frames.ts';

/** Timeout for the handshake and for the goodbye, in milliseconds. */
export const HANDSHAKE_MS = 4000;
const GOODBYE_MS = 1000;
/** Maximum frame size in bytes. It can be small, because the peer sends only control frames. */
const FRAME_MAX = 4096;

export interface FrameStreamHost {
  /** Called when the handshake is complete, after which `write` may be called. */
  ready(): void;
  /** Called when there is room again after `write` returned false. */
  drained(): void;
  /** Called when the connection has ended. @param error null if it was closed intentionally */
  ended(error: Error | null): void;
}

/** The sending end of a Frame Streams connection on an open socket, with a bidirectional handshake. */
export class FrameStream {
  readonly #socket: Socket;
  readonly #host: FrameStreamHost;
  readonly #most: number;
  readonly #reader = new FrameReader(FRAME_MAX);
  #state: 'greeting' | 'open' | 'leaving' | 'over' = 'greeting';
  #timer: Timer;
  /** Number of frames that the kernel has not accepted yet. */
  #under = 0;
  #gone: (() => void) | null = null;
  readonly #clock: Clock;

  /** @param most maximum bytes waiting for the socket */
  constructor(socket: Socket, most: number, clock: Clock, host: FrameStreamHost) {
    this.#socket = socket;
    this.#host = host;
    this.#most = most;
    this.#clock = clock;
    this.#timer = clock.after(HANDSHAKE_MS, () => {
      this.#fail(new Error('no answer to the handshake (Frame Streams, bidirectional)'));
    });
    socket.on('data', (bytes: Buffer) => this.#take(bytes));
    socket.on('drain', () => {
      if (this.#state === 'open') host.drained();
    });
    socket.on('error', (error) => this.#fail(error));
    socket.on('close', () => this.#fail(new Error('the connection was closed')));
    socket.write(writeControl(CONTROL.READY, [DNSTAP_CONTENT_TYPE]));
  }

  get open(): boolean {
    return this.#state === 'open';
  }

  /** Bytes that wait for the socket. */
  get backlog(): number {
    return this.#socket.writableLength;
  }

  /** Number of frames that may not have arrived. */
  get underway(): number {
    return this.#under;
  }

  /** @returns false if there is no more room, in which case `drained` is called later */
  write(chunk: FrameChunk): boolean {
    const { bytes, frames } = chunk;
    this.#under += frames;
    chunk.hold();
    this.#socket.write(bytes, (error) => {
      if (error === null || error === undefined) this.#under -= frames;
      chunk.release();
    });
    return this.#socket.writableLength < this.#most;
  }

  close(): Promise<void> {
    if (this.#state === 'over') return Promise.resolve();
    return new Promise((resolve) => {
      this.#gone = resolve;
      if (this.#state !== 'open') return this.#fail(null);
      this.#state = 'leaving';
      // Keeps the process alive until the goodbye is answered or times out.
      this.#socket.ref();
      this.#timer = this.#clock.after(GOODBYE_MS, () => this.#fail(null));
      this.#socket.write(writeControl(CONTROL.STOP));
    });
  }

  destroy(error: Error): void {
    this.#fail(error);
  }

  #take(bytes: Uint8Array): void {
    try {
      this.#reader.push(bytes);
      for (let frame = this.#reader.next(); frame !== null; frame = this.#reader.next()) {
        if (frame instanceof Uint8Array) throw new ReadError('a data frame from a reader', 0);
        if (frame.type === CONTROL.FINISH) return this.#fail(null);
        if (frame.type !== CONTROL.ACCEPT || this.#state !== 'greeting') continue;
        if (!accepts(frame, DNSTAP_CONTENT_TYPE))
          throw new ReadError(`it does not accept ${DNSTAP_CONTENT_TYPE}`, 0);
        this.#timer.cancel();
        this.#state = 'open';
        this.#socket.write(writeControl(CONTROL.START, [DNSTAP_CONTENT_TYPE]));
        this.#host.ready();
      }
    } catch (error) {
      if (!(error instanceof ReadError)) throw error;
      this.#fail(error);
    }
  }

  #fail(error: Error | null): void {
    if (this.#state === 'over') return;
    const wished = this.#state === 'leaving';
    this.#state = 'over';
    this.#timer.cancel();
    this.#socket.destroy();
    this.#host.ended(wished ? null : error);
    this.#gone?.();
  }
}
