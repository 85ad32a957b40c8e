import type { Query } from './query.ts';
import type { Reply } from '../wire/reply.ts';

/**
 * The source of queries and the destination of replies: a UDP socket or a connection. A transport implements this
 * interface and passes it to `Intake.take` with each message. It moves bytes, and knows only where a DNS message begins
 * and ends. `Way` is the data a transport must remember about a query until its reply arrives. For a datagram this is
 * the client's address, and for an HTTP request the stream. Connections whose replies may be sent in any order need
 * nothing.
 */
export interface Outlet<Way = unknown> {
  readonly pending: OutletPending;
  /** Fills in the client's details: `proto`, `family`, `peer`, `peerAt`, `peerPort`, `local` and `localPort`. */
  identify(query: Query): void;
  /** Makes room for `size` bytes in `out` at `at`, sending what it contains if necessary. */
  reserve(size: number): void;
  readonly out: Uint8Array;
  readonly at: number;
  /**
   * Sends the reply that starts at `at` in `out`. `way` is the value returned by `wayBack`, or null for a reply to the
   * current message.
   */
  send(length: number, way: Way | null): void;
  /** Reports that there will be no reply. */
  keepSilent(way: Way | null): void;
  /**
   * Called if the current message is not a query. If a transport lacks this method, the answer is a DNS message or
   * nothing.
   */
  refuse?(): void;
  /** Called if the current message will be answered later. The result is then passed to `send`. */
  wayBack(): Way;
  /** True if the client is not reading. Replies then wait in `pending` until the transport calls `Intake.resume`. */
  readonly full: boolean;
  /** Called when `pending` contains unwritten replies. */
  hold(): void;
  /** Called when nothing more will be written for now, to send what is in `out`. */
  flush(): void;
}

/** A query that is waiting for its reply, and then for the client to read it. Reusable. */
export class WaitingQuery {
  query: Query | null = null;
  /** Null until the reply arrives, and also if creating it failed. */
  reply: Reply | null = null;
  outlet: Outlet | null = null;
  way: unknown = null;
}

/**
 * One outlet's queries that are waiting for replies, and its unwritten replies. Only the intake modifies this object.
 */
export class OutletPending {
  /** Number of queries without a reply. */
  awaited = 0;
  /** Total bytes of these queries and replies. */
  bytes = 0;
  /** True if replies have arrived in this turn. */
  due = false;
  closed = false;
  #replies: WaitingQuery[] = [];
  /** Index of the first unwritten reply. */
  #first = 0;

  get size(): number {
    return this.awaited + this.#replies.length - this.#first;
  }

  /**
   * Adds a waiting query.
   * @returns its size in bytes
   */
  begin(query: Query): number {
    const bytes = query.end - query.start;
    this.awaited++;
    this.bytes += bytes;
    return bytes;
  }

  /**
   * Records that a query's reply has arrived.
   * @returns the query's size in bytes
   */
  arrive(waiting: WaitingQuery): number {
    this.awaited--;
    if (!this.closed) {
      this.bytes += replyBytes(waiting, this.#replies.at(-1));
      this.#replies.push(waiting);
    }
    return queryBytes(waiting);
  }

  /** Removes the oldest reply, or returns null if there is none. */
  next(): WaitingQuery | null {
    const waiting = this.#replies[this.#first];
    if (waiting === undefined) return null;
    if (++this.#first === this.#replies.length) {
      this.#replies = [];
      this.#first = 0;
    } else if (this.#first === WRITTEN_MAX) {
      this.#replies.splice(0, this.#first);
      this.#first = 0;
    }
    this.bytes -= queryBytes(waiting) + replyBytes(waiting, this.#replies[this.#first]);
    return waiting;
  }
}

/** Maximum number of entries for written replies that may accumulate before they are removed together. */
const WRITTEN_MAX = 256;

function queryBytes({ query }: WaitingQuery): number {
  return query === null ? 0 : query.end - query.start;
}

/**
 * Returns a reply's size, or 0 if its neighbour shares the same bytes, because many queries often wait for one upstream
 * reply.
 */
function replyBytes({ reply }: WaitingQuery, neighbour: WaitingQuery | undefined): number {
  if (reply === null) return 0;
  const other = neighbour?.reply ?? null;
  const isShared = other !== null && reply.bytes === other.bytes && reply.start === other.start;
  return isShared ? 0 : reply.end - reply.start;
}
