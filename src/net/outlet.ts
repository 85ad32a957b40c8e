import type { Query } from '../wire/query.ts';
import type { Reply } from '../wire/reply.ts';

/**
 * Where queries come from and their replies go: a UDP socket, a connection. A transport implements it and hands it to
 * `Intake.take` with each message. It moves bytes and knows nothing of DNS but where a message begins and ends.
 *
 * `Way` is what a transport has to remember of one query until its reply comes: the client's address of a datagram, the
 * stream of an HTTP request; nothing for connections whose replies may come in any order.
 */
export interface Outlet<Way = unknown> {
  readonly pending: OutletPending;
  /** Says who asks: fills in `proto`, `family`, `peer`, `peerAt`, `peerPort`, `local` and `localPort`. */
  identify(query: Query): void;
  /** Makes room for `size` bytes in `out`, from `at` on, by sending what stands there if need be. */
  reserve(size: number): void;
  readonly out: Uint8Array;
  readonly at: number;
  /** A reply stands in `out` at `at`. `way` is what `wayBack` gave; null: it is for the message being taken. */
  send(length: number, way: Way | null): void;
  /** There will be no reply. */
  keepSilent(way: Way | null): void;
  /** The message being taken is no query. Where this is missing the answer is a DNS message, or silence. */
  refuse?(): void;
  /** The reply to the message being taken comes later. */
  wayBack(): Way;
  /** The client does not read: replies wait in `pending` until the transport calls `Intake.resume`. */
  readonly full: boolean;
  /** Replies have come into `pending` and are not written yet. */
  hold(): void;
  /** Nothing more is written for now: what stands in `out` is to leave. */
  flush(): void;
}

/** A query that waits: for its reply, and then for the client to take it. Used again when it has left. */
export class WaitingQuery {
  query: Query | null = null;
  /** null while it is awaited, and when it failed. */
  reply: Reply | null = null;
  outlet: Outlet | null = null;
  way: unknown = null;
}

/** The queries of one outlet that wait, and the replies that wait for it. Only the intake changes it. */
export class OutletPending {
  /** Queries whose replies have not come. */
  awaited = 0;
  /** Bytes of all queries that wait, and of the replies that are not written yet. */
  bytes = 0;
  /** Replies have come in this turn. */
  due = false;
  closed = false;
  #replies: WaitingQuery[] = [];
  /** The first of them that is not written. */
  #first = 0;

  /** Queries that are not answered yet. */
  get size(): number {
    return this.awaited + this.#replies.length - this.#first;
  }

  /** A query begins to wait. @returns its bytes */
  begin(query: Query): number {
    const bytes = query.end - query.start;
    this.awaited++;
    this.bytes += bytes;
    return bytes;
  }

  /** Its reply has come. @returns the query's bytes */
  arrive(waiting: WaitingQuery): number {
    this.awaited--;
    if (!this.closed) {
      this.bytes += replyBytes(waiting, this.#replies.at(-1));
      this.#replies.push(waiting);
    }
    return queryBytes(waiting);
  }

  /** Takes out the reply that came first; null if there is none. */
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

/** So many places of replies that are written are kept before they are cleared away together. */
const WRITTEN_MAX = 256;

function queryBytes({ query }: WaitingQuery): number {
  return query === null ? 0 : query.end - query.start;
}

/** Bytes of a reply, unless a neighbour stands on the same ones: many queries often wait for one upstream reply. */
function replyBytes({ reply }: WaitingQuery, neighbour: WaitingQuery | undefined): number {
  if (reply === null) return 0;
  const other = neighbour?.reply ?? null;
  const isShared = other !== null && reply.bytes === other.bytes && reply.start === other.start;
  return isShared ? 0 : reply.end - reply.start;
}
