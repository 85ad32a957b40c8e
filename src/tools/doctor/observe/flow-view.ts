/**
 * All queries from one of a client's ports to one server, to detect that replies stopped while
 * queries continued.
 */
import { isLost, type SeenExchange } from '../../capture/pair/seen-exchange.ts';
import { NumberRows } from './number-rows.ts';

const IDS_MAX = 1000;

// Positions in a flow’s row.
const ASKED = 0;
const LOST = 1;
const FIRST = 0;
const LAST = 1;
const LAST_ANSWERED = 2;
const FIRST_REPLY = 3;

export function flowRows(): NumberRows {
  return new NumberRows(2, 4);
}

interface Unanswered {
  readonly ms: number;
  readonly id: number;
}

// Most flows have none.
const none: readonly Unanswered[] = [];

export class FlowView {
  readonly client: string;
  readonly port: number;
  readonly server: string;
  readonly #rows: NumberRows;
  readonly #row: number;
  /** Lost queries that were sent after the last answered one. */
  #since = none;

  constructor({ client, server }: SeenExchange, rows: NumberRows) {
    this.client = client.address;
    this.port = client.port;
    this.server = server.address;
    this.#rows = rows;
    this.#row = rows.add();
    rows.setTime(this.#row, FIRST, Infinity);
    rows.setTime(this.#row, LAST, -Infinity);
    rows.setTime(this.#row, LAST_ANSWERED, -Infinity);
    rows.setTime(this.#row, FIRST_REPLY, Infinity);
  }

  get asked(): number {
    return this.#rows.count(this.#row, ASKED);
  }

  get lost(): number {
    return this.#rows.count(this.#row, LOST);
  }

  get firstMs(): number {
    return this.#rows.time(this.#row, FIRST);
  }

  get lastMs(): number {
    return this.#rows.time(this.#row, LAST);
  }

  /** The time of the last answered query; -Infinity if there is none. */
  get lastAnsweredMs(): number {
    return this.#rows.time(this.#row, LAST_ANSWERED);
  }

  /** The time of the first reply; Infinity if there was none. */
  get firstReplyMs(): number {
    return this.#rows.time(this.#row, FIRST_REPLY);
  }

  /** True if its first reply or its last answered query is between these times, milliseconds since 1970. */
  isAnsweredBetween(fromMs: number, toMs: number): boolean {
    return [this.firstReplyMs, this.lastAnsweredMs].some((ms) => ms > fromMs && ms < toMs);
  }

  add(exchange: SeenExchange): void {
    const { sentMs, id } = exchange;
    const rows = this.#rows;
    const row = this.#row;
    rows.increment(row, ASKED);
    rows.setTime(row, FIRST, Math.min(this.firstMs, sentMs));
    rows.setTime(row, LAST, Math.max(this.lastMs, sentMs));
    // Exchanges do not end in the order in which they begin.
    if (!isLost(exchange)) {
      rows.setTime(row, FIRST_REPLY, Math.min(this.firstReplyMs, exchange.repliedMs ?? sentMs));
      rows.setTime(row, LAST_ANSWERED, Math.max(this.lastAnsweredMs, sentMs));
      if (this.#since.length > 0) this.#since = this.#since.filter(({ ms }) => ms > sentMs);
      return;
    }
    rows.increment(row, LOST);
    if (sentMs <= this.lastAnsweredMs || this.#since.length >= IDS_MAX) return;
    if (this.#since === none) this.#since = [];
    (this.#since as Unanswered[]).push({ ms: sentMs, id });
  }

  /**
   * True if the socket had received a reply when this query was sent. Exchanges that end before it
   * have to be added before this call, and the query itself after it.
   */
  knew({ sentMs }: SeenExchange): boolean {
    return sentMs > this.firstReplyMs;
  }

  /**
   * The number of queries with different ids that got no reply at the end. A repeat keeps its id.
   */
  get unanswered(): number {
    return new Set(this.#since.map(({ id }) => id)).size;
  }

  /** The same number, counting each repeat. */
  get unansweredTries(): number {
    return this.#since.length;
  }

  /** The start of the silence; Infinity if the last query was answered. */
  get silentSinceMs(): number {
    return this.#since.reduce((least, { ms }) => Math.min(least, ms), Infinity);
  }

  /** The time for which queries continued without a reply, milliseconds. */
  get silentMs(): number {
    return this.#since.length === 0 ? 0 : this.lastMs - this.silentSinceMs;
  }
}
