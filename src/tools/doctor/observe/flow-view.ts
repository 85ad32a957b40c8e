/**
 * All queries between one port of a client and one server: whether replies stopped, while queries
 * went on.
 */
import { isLost, type SeenExchange } from '../../capture/pair/seen-exchange.ts';
import { NumberRows } from './number-rows.ts';

const IDS_MAX = 1000;

// Places in the row of a flow.
const ASKED = 0;
const LOST = 1;
const FIRST = 0;
const LAST = 1;
const LAST_ANSWERED = 2;
const FIRST_REPLY = 3;

/** Rows for what is counted of flows. */
export function flowRows(): NumberRows {
  return new NumberRows(2, 4);
}

interface Unanswered {
  readonly ms: number;
  readonly id: number;
}

// Most flows have none.
const none: readonly Unanswered[] = [];

/** The counts of one flow. */
export class FlowView {
  readonly client: string;
  readonly port: number;
  readonly server: string;
  readonly #rows: NumberRows;
  readonly #row: number;
  /** Of queries that were sent after the last one that was answered, and lost. */
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

  /** The time of the last query that was answered; -Infinity = none was. */
  get lastAnsweredMs(): number {
    return this.#rows.time(this.#row, LAST_ANSWERED);
  }

  /** The time of the first reply; Infinity: there was none. */
  get firstReplyMs(): number {
    return this.#rows.time(this.#row, FIRST_REPLY);
  }

  add(exchange: SeenExchange): void {
    const { sentMs, id } = exchange;
    const rows = this.#rows;
    const row = this.#row;
    rows.increment(row, ASKED);
    rows.setTime(row, FIRST, Math.min(this.firstMs, sentMs));
    rows.setTime(row, LAST, Math.max(this.lastMs, sentMs));
    // Exchanges end in another order than they begin.
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
   * True if the socket had got a reply when this query was sent. Exchanges that end before it have
   * to be added first, and it not yet.
   */
  knew({ sentMs }: SeenExchange): boolean {
    return sentMs > this.firstReplyMs;
  }

  /**
   * Queries with ids of their own (a client that repeats one keeps its id) that got no reply, at
   * the end.
   */
  get unanswered(): number {
    return new Set(this.#since.map(({ id }) => id)).size;
  }

  /** The same, with each repeat counted. */
  get unansweredTries(): number {
    return this.#since.length;
  }

  /** From when on; Infinity: the last one was answered. */
  get silentSinceMs(): number {
    return this.#since.reduce((least, { ms }) => Math.min(least, ms), Infinity);
  }

  /** The time for which queries went on without a reply, milliseconds. */
  get silentMs(): number {
    return this.#since.length === 0 ? 0 : this.lastMs - this.silentSinceMs;
  }
}
