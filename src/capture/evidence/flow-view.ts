/** All queries between one port of a client and one server: whether replies stopped, while queries went on. */
import { isLost, type SeenExchange } from '../exchanges/seen-exchange.ts';

const IDS_MAX = 1000;

/** What is counted of one flow. */
export class FlowView {
  readonly client: string;
  readonly port: number;
  readonly server: string;
  asked: number = 0;
  lost: number = 0;
  firstMs: number = Infinity;
  lastMs: number = -Infinity;
  /** When the last query that was answered was sent; -Infinity = none was. */
  lastAnsweredMs: number = -Infinity;
  /** When the first reply came; Infinity: none did. */
  firstReplyMs: number = Infinity;
  /** Of queries that were sent after the last one that was answered, and lost. */
  #since: { readonly ms: number; readonly id: number }[] = [];

  constructor({ client, server }: SeenExchange) {
    this.client = client.address;
    this.port = client.port;
    this.server = server.address;
  }

  add(exchange: SeenExchange): void {
    const { sentMs, id } = exchange;
    this.asked++;
    this.firstMs = Math.min(this.firstMs, sentMs);
    this.lastMs = Math.max(this.lastMs, sentMs);
    // Exchanges end in another order than they begin.
    if (!isLost(exchange)) {
      this.firstReplyMs = Math.min(this.firstReplyMs, exchange.repliedMs ?? sentMs);
      this.lastAnsweredMs = Math.max(this.lastAnsweredMs, sentMs);
      if (this.#since.length > 0) this.#since = this.#since.filter(({ ms }) => ms > sentMs);
      return;
    }
    this.lost++;
    if (sentMs > this.lastAnsweredMs && this.#since.length < IDS_MAX)
      this.#since.push({ ms: sentMs, id });
  }

  /** Whether the socket had got a reply when this query was sent. Exchanges that end before it have to be added first, and it not yet. */
  knew({ sentMs }: SeenExchange): boolean {
    return sentMs > this.firstReplyMs;
  }

  /** Queries with ids of their own (a client that repeats one keeps its id) that got no reply, at the end. */
  get unanswered(): number {
    return new Set(this.#since.map(({ id }) => id)).size;
  }

  /** From when on; Infinity: the last one was answered. */
  get silentSinceMs(): number {
    return this.#since.reduce((least, { ms }) => Math.min(least, ms), Infinity);
  }

  /** How long queries went on without a reply, milliseconds. */
  get silentMs(): number {
    return this.#since.length === 0 ? 0 : this.lastMs - this.silentSinceMs;
  }
}
