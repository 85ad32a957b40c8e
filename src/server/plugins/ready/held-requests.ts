/** Requests that wait until the server is ready for the first time. */
import type { ServerResponse } from 'node:http';
import { every, type Clock, type Timer } from '../../base/clock.ts';
import { answerText } from '../../base/http-answer.ts';

/** Milliseconds between two checks of readiness. */
const LOOK_MS = 20;

/**
 * Makes requests wait until the server is ready, each for a limited time. kubelet probes again only after
 * `periodSeconds`, so an immediate 503 for the first probe would cost that much time.
 */
export class HeldRequests {
  readonly #clock: Clock;
  readonly #unready: () => string | null;
  readonly #log: (waiting: string) => void;
  /** The time at which each request times out. */
  readonly #held = new Map<ServerResponse, number>();
  #looks: Timer | null = null;

  /**
   * @param unready returns the missing parts, or null if there are none
   * @param log called for each request that gets a 503
   */
  constructor(clock: Clock, unready: () => string | null, log: (waiting: string) => void) {
    this.#clock = clock;
    this.#unready = unready;
    this.#log = log;
  }

  add(response: ServerResponse, forMs: number): void {
    this.#held.set(response, this.#clock.now() + forMs);
    response.once('close', () => this.#held.delete(response));
    this.#looks ??= every(this.#clock, LOOK_MS, () => this.#look());
  }

  stop(): void {
    this.#look(Infinity);
  }

  #look(now = this.#clock.now()): void {
    const waiting = this.#unready();
    for (const [response, until] of this.#held) {
      if (waiting !== null && now < until) continue;
      this.#held.delete(response);
      if (waiting === null) answerText(response, 200, 'OK');
      else {
        this.#log(waiting);
        cutShort(response, waiting);
      }
    }
    if (this.#held.size > 0) return;
    this.#looks?.cancel();
    this.#looks = null;
  }
}

/**
 * Answers 503 with a body that is shorter than its declared length. If kubelet cannot read the whole body, it repeats
 * the probe at once, at most twice, without counting a failure (docs/decisions/start.md).
 */
function cutShort(response: ServerResponse, text: string): void {
  response.writeHead(503, {
    'content-type': 'text/plain; charset=utf-8',
    'content-length': Buffer.byteLength(text) + 1,
    connection: 'close',
  });
  response.write(text, () => response.destroy());
}
