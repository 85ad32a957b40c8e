import type { Query } from './query.ts';
import type { Reply } from '../wire/reply.ts';

/**
 * The origin of queries and the destination of replies: a UDP socket or a connection. A transport
 * implements it and passes it to `Intake.take` with each message. It moves bytes and knows nothing
 * of DNS except where a message begins and ends.
 *
 * `Way` is the part of a query that a transport must remember until its reply comes: the client's
 * address for a datagram, the stream of an HTTP request; nothing for connections whose replies may
 * come in any order.
 */
export interface Outlet<Way = unknown> {
  readonly pending: OutletPending;
  /**
   * Fills in the client: `proto`, `family`, `peer`, `peerAt`, `peerPort`, `local` and `localPort`.
   */
  identify(query: Query): void;
  /** Makes room for `size` bytes in `out`, from `at` on, if necessary by sending its content. */
  reserve(size: number): void;
  readonly out: Uint8Array;
  readonly at: number;
  /**
   * Sends the reply at `at` of `out`. `way` is the value of `wayBack`; null: it replies to the
   * current message.
   */
  send(length: number, way: Way | null): void;
  /** Tells that there will be no reply. */
  keepSilent(way: Way | null): void;
  /**
   * Called if the current message is not a query. Without this method the answer is a DNS message,
   * or none.
   */
  refuse?(): void;
  /** Called if the reply to the current message will come later; its result is passed to `send`. */
  wayBack(): Way;
  /**
   * True if the client is not reading: replies wait in `pending` until the transport calls
   * `Intake.resume`.
   */
  readonly full: boolean;
  /** Called when `pending` has replies that are not written yet. */
  hold(): void;
  /** Called when nothing more will be written for now: sends the content of `out`. */
  flush(): void;
}

/** A query that waits for its reply, and then for the client to read it. Reused afterwards. */
export class WaitingQuery {
  query: Query | null = null;
  /** null until it comes, and if making it failed. */
  reply: Reply | null = null;
  outlet: Outlet | null = null;
  way: unknown = null;
}

/**
 * The queries of one outlet that wait for replies, and the replies that are not written yet. Only
 * the intake changes it.
 */
export class OutletPending {
  /** Queries without a reply yet. */
  awaited = 0;
  /** Bytes of all these queries and replies. */
  bytes = 0;
  /** True if replies have come in this turn. */
  due = false;
  closed = false;
  #replies: WaitingQuery[] = [];
  /** Index of the first reply that is not written. */
  #first = 0;

  get size(): number {
    return this.awaited + this.#replies.length - this.#first;
  }

  /** Adds a query that waits. @returns its bytes */
  begin(query: Query): number {
    const bytes = query.end - query.start;
    this.awaited++;
    this.bytes += bytes;
    return bytes;
  }

  /** Records that the reply to a query has come. @returns the query's bytes */
  arrive(waiting: WaitingQuery): number {
    this.awaited--;
    if (!this.closed) {
      this.bytes += replyBytes(waiting, this.#replies.at(-1));
      this.#replies.push(waiting);
    }
    return queryBytes(waiting);
  }

  /** Removes the oldest reply; null if there is none. */
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

/** Maximum number of entries for written replies before they are removed together. */
const WRITTEN_MAX = 256;

function queryBytes({ query }: WaitingQuery): number {
  return query === null ? 0 : query.end - query.start;
}

/**
 * Bytes of a reply, or 0 if its neighbour has the same bytes: many queries often wait for one
 * upstream reply.
 */
function replyBytes({ reply }: WaitingQuery, neighbour: WaitingQuery | undefined): number {
  if (reply === null) return 0;
  const other = neighbour?.reply ?? null;
  const isShared = other !== null && reply.bytes === other.bytes && reply.start === other.start;
  return isShared ? 0 : reply.end - reply.start;
}
