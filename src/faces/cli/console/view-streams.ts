/**
 * Sends views to browsers as server-sent events. Browsers with the same view share one computation. A slow browser
 * misses frames, and its next frame tells it how many.
 */
import type { ServerResponse } from 'node:http';
import { every, type Clock, type Timer } from '../../../server/base/clock.ts';
import { refusalJson } from './refusal-json.ts';

/** Interval between frames of a view, milliseconds. */
export const FRAME_MS = 500;
/** Limit on streams. Beyond it, a new stream replaces the oldest one. */
export const STREAMS_MAX = 64;

interface Stream {
  readonly key: string;
  readonly response: ServerResponse;
  missed: number;
}

export interface ViewStreamsParts {
  readonly clock: Clock;
  /**
   * Renders the view for a key as JSON.
   * @throws Problem if the key is invalid
   */
  readonly view: (key: string) => string;
}

export class ViewStreams {
  readonly #parts: ViewStreamsParts;
  readonly #streams = new Set<Stream>();
  #timer: Timer | null = null;

  constructor(parts: ViewStreamsParts) {
    this.#parts = parts;
  }

  get open(): number {
    return this.#streams.size;
  }

  /** Opens a stream and sends the first frame. */
  add(key: string, response: ServerResponse): void {
    const [oldest] = this.#streams;
    if (this.#streams.size >= STREAMS_MAX && oldest !== undefined) {
      oldest.response.end('event: replaced\ndata: {}\n\n');
      this.#streams.delete(oldest);
    }
    response.writeHead(200, {
      'content-type': 'text/event-stream',
      'cache-control': 'no-store',
      'x-accel-buffering': 'no',
    });
    const stream: Stream = { key, response, missed: 0 };
    this.#streams.add(stream);
    response.on('close', () => this.#remove(stream));
    this.#send(stream, this.#frame(key));
    this.#timer ??= every(this.#parts.clock, FRAME_MS, () => this.#tick());
  }

  close(): void {
    for (const stream of this.#streams) {
      stream.response.end();
      this.#streams.delete(stream);
    }
    this.#timer?.cancel();
    this.#timer = null;
  }

  #tick(): void {
    const frames = new Map<string, string>();
    for (const stream of this.#streams) {
      if (stream.response.writableNeedDrain) {
        stream.missed++;
        continue;
      }
      let frame = frames.get(stream.key);
      if (frame === undefined) frames.set(stream.key, (frame = this.#frame(stream.key)));
      this.#send(stream, frame);
    }
  }

  #frame(key: string): string {
    try {
      return `event: view\ndata: ${this.#parts.view(key)}\n\n`;
    } catch (error) {
      return `event: refused\ndata: ${refusalJson(error)}\n\n`;
    }
  }

  #send(stream: Stream, frame: string): void {
    const { response, missed } = stream;
    stream.missed = 0;
    response.write(missed === 0 ? frame : `event: missed\ndata: ${missed}\n\n${frame}`);
  }

  #remove(stream: Stream): void {
    this.#streams.delete(stream);
    // Without streams, nothing is computed.
    if (this.#streams.size > 0) return;
    this.#timer?.cancel();
    this.#timer = null;
  }
}
