/** Sends a server's own queries to its readers from the main thread. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Clock } from '../../base/clock.ts';
import { StreamReaders, type StreamAccess } from '../../base/stream-readers.ts';
import type { KeptAcrossReloads, SwitchTime } from '../../engine/contract/control-context.ts';
import { ownVersion } from '../../engine/contract/own-version.ts';
import { Frames } from '../../engine/taps/tap-frames.ts';
import {
  CONFIGURATION,
  DNSTAP_CONTENT_TYPE,
  LEFT_OUT,
  noteFrame,
  RELOADED,
  TAP_PATH,
  RELOADING,
  TAP_STREAM,
} from '../../wire/dnstap.ts';
import { CONTROL, writeControl } from '../../wire/frame-stream.ts';
import { shownConfiguration } from './shown-configuration.ts';
import { timeOutPeer } from '../../runtime/peer-timeout.ts';

/** Sends the messages of all workers to each reader. Without a reader, workers write none. */
export class TapReaders implements KeptAcrossReloads {
  readonly frames: Frames;
  /** 1 while there are readers, which workers check before they write. */
  readonly watched: Int32Array<SharedArrayBuffer> = new Int32Array(new SharedArrayBuffer(4));
  /** The configuration being served, as texts by file name. */
  configuration: ReadonlyMap<string, string> = new Map();
  readonly #readers: StreamReaders;

  constructor(clock: Clock) {
    this.frames = new Frames(clock);
    const { frames, watched } = this;
    this.#readers = new StreamReaders(
      {
        path: TAP_PATH,
        headers: { 'ndots-stream': TAP_STREAM, 'ndots-version': ownVersion() },
        get lost() {
          return frames.lost;
        },
        watched: (on) => {
          if (on) this.#drop();
          Atomics.store(watched, 0, on ? 1 : 0);
        },
        opening: () =>
          Buffer.concat([writeControl(CONTROL.START, [DNSTAP_CONTENT_TYPE]), this.#configured()]),
        leftOut: (messages) => noteFrame(`${LEFT_OUT}${messages}`),
        closing: () => writeControl(CONTROL.STOP),
      },
      clock,
      timeOutPeer,
    );
    void this.frames.listen(() => this.#deliver());
  }

  get connected(): number {
    return this.#readers.connected;
  }

  /** Number of messages sent, summed over readers. */
  get sent(): number {
    return this.#readers.sent;
  }

  /** Number of messages that at least one reader missed. */
  get leftOut(): number {
    return this.frames.lost + this.#readers.missed;
  }

  /** Sends messages until the reader disconnects. */
  serve(request: IncomingMessage, response: ServerResponse, access: StreamAccess): void {
    this.#readers.serve(request, response, access);
  }

  /** Notifies each reader that a new configuration is being served. */
  reloaded({ fromMs, toMs }: SwitchTime): void {
    if (this.connected === 0) return;
    this.#readers.give(this.#configured(), 0);
    this.#readers.give(noteFrame(`${RELOADING}${Math.round(fromMs)}`), 0);
    this.#readers.give(noteFrame(`${RELOADED}${Math.round(toMs)}`), 0);
    this.#readers.flush();
  }

  close(): void {
    this.#deliver();
    this.frames.end();
    this.#readers.close();
  }

  #configured(): Uint8Array {
    return noteFrame(`${CONFIGURATION}${JSON.stringify(shownConfiguration(this.configuration))}`);
  }

  /** Drops messages while there are no readers. */
  #drop(): void {
    for (let chunk = this.frames.take(); chunk !== null; chunk = this.frames.take())
      chunk.release();
  }

  #deliver(): void {
    for (let chunk = this.frames.take(); chunk !== null; chunk = this.frames.take()) {
      const { bytes, frames } = chunk;
      const release = (): void => chunk.release();
      this.#readers.give(bytes, frames, () => {
        chunk.hold();
        return release;
      });
      chunk.release();
    }
    this.#readers.flush();
  }
}
