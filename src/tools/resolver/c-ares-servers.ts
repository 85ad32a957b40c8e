/** The failures and latencies that c-ares has recorded for servers since 1.22. */
import type { ModelContext } from './client.ts';
import type { CaresConf } from './c-ares-conf.ts';
import type { CaresTraits } from './c-ares-releases.ts';

export interface CaresServer {
  readonly address: string;
  readonly index: number;
  /** Failures since the last success. */
  failures: number;
  /** The time of the last failure. */
  failedAt: number;
  /** False if the server has shown that it does not support cookies. */
  cookies: boolean;
  /** The sum and number of its latencies. */
  totalMs: number;
  answers: number;
}

/** Limits on the adaptive timeout, and its factor over the average latency. */
const shortestMs = 250;
const longestMs = 5000;
const latencyFactor = 5;
const enoughAnswers = 3;
/** Jitter shortens a retry's timeout by at most this fraction. */
const mostJitter = 0.5;
/** The number of steps from which jitter is drawn. */
export const jitterSteps = 65_537;

export class CaresServers {
  readonly #context: ModelContext;
  readonly #conf: CaresConf;
  readonly #traits: CaresTraits;
  readonly #servers: readonly CaresServer[];

  constructor(context: ModelContext, conf: CaresConf, traits: CaresTraits) {
    this.#context = context;
    this.#conf = conf;
    this.#traits = traits;
    this.#servers = conf.servers.map((address, index) => ({
      address,
      index,
      failures: 0,
      failedAt: 0,
      cookies: traits.cookies,
      totalMs: 0,
      answers: 0,
    }));
  }

  get count(): number {
    return this.#servers.length;
  }

  /**
   * Returns the server with the fewest failures since its last success. If several are equal, it is the one whose
   * failure was longest ago, or the first.
   */
  best(): CaresServer | undefined {
    const { oldestFailureFirst } = this.#traits;
    const sorted = [...this.#servers].sort(
      (one, other) =>
        one.failures - other.failures ||
        (oldestFailureFirst ? one.failedAt - other.failedAt : 0) ||
        one.index - other.index,
    );
    if (!this.#conf.rotate) return sorted[0];
    const equal = sorted.filter((server) => server.failures === sorted[0]?.failures);
    return equal[this.#context.random.integer(equal.length)];
  }

  blame(server: CaresServer): void {
    server.failures++;
    server.failedAt = this.#context.network.clock.now();
  }

  /** Clears a server's failures after a success. */
  forgive(server: CaresServer): void {
    server.failures = 0;
    server.failedAt = 0;
  }

  /** @param sentAt when the query was sent, on the network's clock */
  answered(server: CaresServer, sentAt: number): void {
    server.totalMs += Math.max(1, Math.trunc(this.#context.network.clock.now() - sentAt));
    server.answers++;
  }

  /**
   * Returns five times the server's average latency in milliseconds, if known, doubled each round. Jitter cuts it by up
   * to half.
   * @param tries earlier attempts for the question
   */
  timeoutMs(server: CaresServer, tries: number): number {
    const { adapts } = this.#traits;
    const measured =
      adapts && server.answers >= enoughAnswers
        ? Math.trunc(server.totalMs / server.answers) * latencyFactor
        : 0;
    const hintMs = measured === 0 ? this.#conf.timeoutMs : measured;
    const base = adapts ? Math.min(longestMs, Math.max(shortestMs, hintMs)) : hintMs;
    const rounds = Math.trunc(tries / this.count);
    if (rounds === 0) return base;
    const grown = base * 2 ** rounds;
    const jitter = (this.#context.random.integer(jitterSteps) / (jitterSteps - 1)) * mostJitter;
    return Math.max(base, Math.trunc(grown - grown * jitter));
  }
}
