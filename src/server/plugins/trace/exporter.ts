/** Sends spans to a collector. */
import type { ClientRequest } from 'node:http';
import { whyFailed } from '../../base/why-failed.ts';
import type { Clock, Timer } from '../../base/clock.ts';
import { sendHttp } from '../../base/http-request.ts';
import type { Log } from '../../base/log.ts';
import type { Counter } from '../../metrics/registry.ts';
import type { Span } from './span.ts';

/** Time limit in milliseconds for sending a batch to a collector. */
const ANSWER_MS = 5000;
/** Time limit in milliseconds for sending the remaining spans at shutdown. */
const CLOSE_MS = 1000;
/** Replies from a collector that are longer than this, in bytes, are not read. */
const ANSWER_MAX = 4096;
/** Minimum time in milliseconds between two reports about failures. */
const TELL_MS = 10_000;

export interface ExporterParts {
  readonly url: URL;
  readonly contentType: string;
  readonly body: (spans: readonly Span[]) => Buffer;
  /** Maximum number of waiting spans; when there are more, the oldest ones are dropped. */
  readonly backlog: number;
  readonly batch: number;
  readonly intervalMs: number;
  readonly clock: Clock;
  readonly log: Log;
  readonly sent: Counter;
  readonly dropped: Counter;
}

/** Sends spans in batches, with one request at a time. If the collector rejects a batch, it is dropped and counted. */
export class Exporter {
  readonly #parts: ExporterParts;
  #waiting: Span[] = [];
  #timer: Timer | null = null;
  #underWay: Promise<void> | null = null;
  #toldAt = -Infinity;
  #asked: ClientRequest | null = null;
  #closes = false;

  constructor(parts: ExporterParts) {
    this.#parts = parts;
  }

  add(spans: readonly Span[], dropped: number): void {
    const { backlog, batch, intervalMs, clock } = this.#parts;
    this.#waiting.push(...spans);
    const over = Math.max(0, this.#waiting.length - backlog);
    this.#waiting.splice(0, over);
    this.#parts.dropped.add(dropped + over);
    if (this.#waiting.length >= batch) this.#next();
    else this.#timer ??= clock.after(intervalMs, () => this.#next());
  }

  /** Sends the remaining spans, provided that the collector accepts them within a second. */
  async close(): Promise<void> {
    const { clock, dropped } = this.#parts;
    this.#timer?.cancel();
    let isOver = false;
    const end = clock.after(CLOSE_MS, () => {
      isOver = true;
      dropped.add(this.#waiting.splice(0).length);
      this.#asked?.destroy(new Error('no answer before the end'));
    });
    // From now on, the process waits for the collector.
    this.#closes = true;
    this.#asked?.socket?.ref();
    await this.#underWay;
    while (this.#waiting.length > 0 && !isOver) {
      this.#next();
      await this.#underWay;
    }
    end.cancel();
    this.#timer?.cancel();
  }

  #next(): void {
    this.#timer?.cancel();
    this.#timer = null;
    if (this.#underWay !== null || this.#waiting.length === 0) return;
    const { batch, intervalMs, clock } = this.#parts;
    const spans = this.#waiting.splice(0, batch);
    this.#underWay = this.#send(spans).finally(() => {
      this.#underWay = null;
      if (this.#waiting.length >= batch) this.#next();
      else if (this.#waiting.length > 0)
        this.#timer ??= clock.after(intervalMs, () => this.#next());
    });
  }

  async #send(spans: readonly Span[]): Promise<void> {
    const { body, sent, dropped, clock, log, url } = this.#parts;
    try {
      const status = await this.#post(body(spans));
      if (status < 200 || status > 299) throw new Error(`HTTP status ${status}`);
      sent.add(spans.length);
    } catch (error) {
      dropped.add(spans.length);
      const now = clock.now();
      if (now - this.#toldAt < TELL_MS) return;
      this.#toldAt = now;
      const text = whyFailed(error);
      log.warning(`failed to send spans to ${url.href}: ${text}`);
    }
  }

  async #post(bytes: Buffer): Promise<number> {
    const { url, contentType, clock } = this.#parts;
    const { status } = await sendHttp({
      url,
      options: {
        method: 'POST',
        headers: { 'content-type': contentType, 'content-length': bytes.length },
        // Batches share a connection.
        agent: undefined,
      },
      body: bytes,
      clock,
      waitMs: ANSWER_MS,
      late: 'no answer in 5 s',
      bytesMax: ANSWER_MAX,
      tooLong: `more than ${ANSWER_MAX} bytes`,
      made: (request) => {
        this.#asked = request;
        request.on('socket', (socket) => {
          if (this.#closes) socket.ref();
          else socket.unref();
        });
      },
    });
    return status;
  }
}
