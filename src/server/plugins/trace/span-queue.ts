import type { Span, SpanBatch } from './span.ts';

/**
 * A worker's spans until the control plane has received them. One batch is in flight at a time. The rest wait, and
 * above the limit the oldest ones are dropped. A busy control plane or an unavailable collector therefore costs a
 * worker neither time nor memory.
 */
export class SpanQueue {
  readonly #from: string;
  readonly #most: number;
  readonly #batch: number;
  readonly #send: (batch: SpanBatch) => void;
  #waiting: Span[] = [];
  #dropped = 0;
  #underWay = false;

  /**
   * @param from this worker's ID
   * @param most maximum number of waiting spans
   * @param batch number of spans to send at once
   */
  constructor(from: string, most: number, batch: number, send: (batch: SpanBatch) => void) {
    this.#from = from;
    this.#most = most;
    this.#batch = batch;
    this.#send = send;
  }

  add(spans: readonly Span[], dropped: number): void {
    this.#dropped += dropped;
    this.#waiting.push(...spans);
    const over = this.#waiting.length - this.#most;
    if (over > 0) {
      this.#waiting.splice(0, over);
      this.#dropped += over;
    }
    if (this.#waiting.length >= this.#batch) this.flush();
  }

  /** Sends the waiting spans, unless a batch is already in progress. */
  flush(): void {
    if (this.#underWay || (this.#waiting.length === 0 && this.#dropped === 0)) return;
    this.#underWay = true;
    const spans = this.#waiting.splice(0, this.#batch);
    const dropped = this.#dropped;
    this.#dropped = 0;
    this.#send({ from: this.#from, spans, dropped });
  }

  /** Called once the control plane has received a batch from the worker `from`. */
  taken(from: string): void {
    if (from !== this.#from) return;
    this.#underWay = false;
    if (this.#waiting.length >= this.#batch) this.flush();
  }
}
