/** One server as a capture shows it: rates and latencies by the second. */
import { latencyOf, type SeenExchange } from '../exchanges/seen-exchange.ts';
import { BoundedMap } from './bounded-map.ts';
import { countOutcome, noOutcomes, type Outcomes } from './outcomes.ts';

/** Seconds that are looked at one by one: two hours. */
const SECONDS_MAX = 7200;
const CLIENTS_MAX = 1000;
const BUCKETS = 20;
/** Upper end of the first bucket of latencies, milliseconds; each next one is twice as wide. */
const FIRST_BUCKET_MS = 0.1;

/** One second of one server. */
export interface Second {
  asked: number;
  /** Replies that came in it. */
  replied: number;
  /** Of those asked in it. */
  lost: number;
  latencyMs: number;
}

/** What is counted of one server. */
export class ServerView {
  readonly address: string;
  readonly outcomes: Outcomes = noOutcomes();
  readonly clients: Set<string> = new Set();
  readonly seconds: BoundedMap<number, Second> = new BoundedMap(SECONDS_MAX);
  firstMs: number = Infinity;
  lastMs: number = -Infinity;
  firstReplyMs: number = Infinity;
  lastReplyMs: number = -Infinity;
  readonly #latencies = Array.from({ length: BUCKETS }, () => 0);

  constructor(address: string) {
    this.address = address;
  }

  add(exchange: SeenExchange): void {
    const { sentMs, repliedMs, client } = exchange;
    countOutcome(this.outcomes, exchange);
    if (this.clients.size < CLIENTS_MAX) this.clients.add(client.address);
    this.firstMs = Math.min(this.firstMs, sentMs);
    this.lastMs = Math.max(this.lastMs, sentMs);
    const second = this.#second(sentMs);
    if (second !== null) second.asked++;
    const took = latencyOf(exchange);
    if (took === null || repliedMs === null) {
      if (second !== null) second.lost++;
      return;
    }
    this.firstReplyMs = Math.min(this.firstReplyMs, repliedMs);
    this.lastReplyMs = Math.max(this.lastReplyMs, repliedMs);
    if (second !== null) second.latencyMs += took;
    const arrived = this.#second(repliedMs);
    if (arrived !== null) arrived.replied++;
    const bucket = Math.ceil(Math.log2(Math.max(took, FIRST_BUCKET_MS) / FIRST_BUCKET_MS));
    this.#latencies[Math.min(BUCKETS - 1, bucket)]!++;
  }

  /** The latency that this share of the answered queries stayed below; within a factor of two. Milliseconds. */
  quantile(share: number): number {
    const total = this.#latencies.reduce((sum, each) => sum + each, 0);
    let reached = 0;
    for (let bucket = 0; bucket < BUCKETS; bucket++) {
      reached += this.#latencies[bucket]!;
      if (total > 0 && reached >= share * total) return FIRST_BUCKET_MS * 2 ** bucket;
    }
    return 0;
  }

  /** The seconds in order. */
  get history(): readonly (readonly [second: number, Second])[] {
    return this.#order.toSorted(([one], [other]) => one - other);
  }

  readonly #order: (readonly [number, Second])[] = [];
  readonly #makeSecond = (at: number): Second => {
    const made: Second = { asked: 0, replied: 0, lost: 0, latencyMs: 0 };
    this.#order.push([at, made]);
    return made;
  };

  #second(ms: number): Second | null {
    const at = Math.floor(ms / 1000);
    return this.seconds.at(at, this.#makeSecond);
  }
}
