/** Receives a listener's messages and returns their replies. */
import { bugText, type Log } from '../base/log.ts';
import { isLater, type Later, type Maybe, whenSettled } from '../base/maybe.ts';
import type { Clock } from '../base/clock.ts';
import { RCODE } from '../wire/iana.ts';
import { Query } from './query.ts';
import type { Proto, Triage } from '../wire/query-message.ts';
import { overloaded, silence, type Reply, type Rest } from '../wire/reply.ts';
import { stamp, stampRoom } from '../wire/stamp.ts';
import type { ListenerCounters } from './listener-counters.ts';
import type { Serve } from './listener.ts';
import { oneATurn } from './one-a-turn.ts';
import { WaitingQuery, type Outlet } from './outlet.ts';
import { REJECTION_ROOM, writeFailure, writeRejection } from './write-reply.ts';

export interface IntakeParts {
  readonly proto: Proto;
  readonly serve: Serve;
  readonly clock: Clock;
  readonly log: Log;
  readonly counters: ListenerCounters;
  readonly limits: IntakeLimits;
}

/** Limits for all clients of one listener together. */
export interface IntakeLimits {
  /** Maximum number of queries waiting for their replies. */
  readonly waiting: number;
  /** Maximum bytes held by these queries. */
  readonly heldBytes: number;
}

/**
 * Milliseconds to pause before each further message of a multi-message reply (a zone transfer) while other queries are
 * arriving.
 */
const GIVE_WAY_MS = 1;
/** Number of queries received by all listeners on this thread. */
let taken = 0;

/** Maximum number of used `WaitingQuery` objects that are retained for reuse. */
const SPARE_MAX = 256;

/**
 * Processes queries from bytes to bytes, in the same way for every transport: parse, classify, identify the client,
 * serve, write the reply (now or later), and count. Listeners only move bytes. They call `take` for each message and
 * pass an `Outlet` for its reply. A query that is answered immediately allocates nothing here, while one that has to
 * wait is copied. If too many queries are already waiting, a new one is refused and the others stay.
 */
export class Intake {
  readonly counters: ListenerCounters;
  readonly proto: Proto;
  readonly #serve: Serve;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #query = new Query();
  #limits: IntakeLimits;
  #waiting = 0;
  #waitingBytes = 0;
  readonly #spare: WaitingQuery[] = [];
  /** Outlets with replies in this turn. */
  #due: Outlet[] = [];
  #onQuiet: (() => void) | null = null;
  /** The value of `taken` when the most recent message of a multi-message reply was created. */
  #takenAtPart = 0;

  constructor({ proto, serve, clock, log, counters, limits }: IntakeParts) {
    this.proto = proto;
    this.counters = counters;
    this.#serve = serve;
    this.#clock = clock;
    this.#log = log;
    this.#limits = limits;
  }

  adopt(limits: IntakeLimits): void {
    this.#limits = limits;
  }

  /**
   * Processes the message `bytes[start, end)`, which may be overwritten once this returns.
   * @param now time of arrival, in monotonic milliseconds
   * @param whole false if the message was longer than the receive buffer
   * @returns true if it was a query, even a malformed one. Other messages do not extend a connection's deadline
   */
  take(
    outlet: Outlet,
    bytes: Uint8Array,
    start: number,
    end: number,
    now: number,
    whole = true,
  ): boolean {
    const query = this.#query;
    this.counters.received.add(1);
    taken++;
    let triage = query.read(bytes, start, end);
    if (!whole) {
      this.counters.cut.add(1);
      if (triage === 'serve') triage = 'formerr';
    }
    if (triage !== 'serve') return this.#reject(outlet, triage);
    outlet.identify(query);
    query.arrived = now;
    query.mayWait =
      this.#waiting < this.#limits.waiting && this.#waitingBytes < this.#limits.heldBytes;
    let reply: Maybe<Reply> | null;
    try {
      reply = this.#serve(query);
    } catch (error) {
      this.#log.error(`${this.proto} listener: ${String(error)}`);
      reply = null;
    }
    if (reply === null || !isLater(reply)) {
      if (reply !== null && reply.errors === overloaded.errors) this.counters.shed.add(1);
      this.#write(outlet, query, reply, null);
      if (reply !== null && reply.rest !== null) this.#follow(outlet, query, reply.rest, null);
    } else if (query.mayWait) {
      this.#wait(outlet, query.keep(), reply);
    } else {
      this.counters.shed.add(1);
      whenSettled(reply, ignore, ignore, null);
      this.#write(outlet, query, overloaded, null);
    }
    return true;
  }

  /** Writes the replies that are waiting for this outlet until it is full again. */
  resume(outlet: Outlet): void {
    while (!outlet.full) {
      const waiting = outlet.pending.next();
      if (waiting === null) break;
      const { query, reply, way } = waiting;
      this.#write(outlet, query!, reply, way);
      this.#release(waiting);
      if (reply !== null && reply.rest !== null) this.#follow(outlet, query!, reply.rest, way);
    }
    outlet.flush();
  }

  /** Called when the outlet is closed. Any replies that arrive later are dropped. */
  drop(outlet: Outlet): void {
    const { pending } = outlet;
    pending.closed = true;
    for (let left = pending.next(); left !== null; left = pending.next()) {
      this.counters.dropped.add(1);
      this.#release(left);
    }
  }

  /** Resolves when no queries are waiting any more, or after `graceMs`. */
  quiet(graceMs: number): Promise<void> {
    if (this.#waiting === 0 && this.#due.length === 0) return Promise.resolve();
    return new Promise((resolve) => {
      const timer = this.#clock.after(graceMs, resolve);
      this.#onQuiet = () => {
        timer.cancel();
        resolve();
      };
    });
  }

  /** Replies to a message that plugins must not see, the way CoreDNS's DNS library does. */
  #reject(outlet: Outlet, triage: Exclude<Triage, 'serve'>): boolean {
    if (outlet.refuse !== undefined) {
      this.counters.rejected.add(1);
      outlet.refuse();
      return true;
    }
    if (triage === 'ignore') {
      this.counters.ignored.add(1);
      return false;
    }
    this.counters.rejected.add(1);
    if (this.proto === 'udp' && !this.#mayReject(outlet, triage)) {
      outlet.keepSilent(null);
      return true;
    }
    outlet.reserve(REJECTION_ROOM);
    outlet.send(writeRejection(triage, this.#query, outlet.out, outlet.at), null);
    return true;
  }

  /** Returns true if the error may be sent. If the source address was forged, it would hit an innocent host. */
  #mayReject(outlet: Outlet, triage: 'formerr' | 'notimp'): boolean {
    const query = this.#query;
    outlet.identify(query);
    query.rejection = triage === 'formerr' ? RCODE.FORMERR : RCODE.NOTIMP;
    try {
      return this.#serve(query) !== silence;
    } catch (error) {
      this.#log.error(`${this.proto} listener: ${bugText(error)}`);
      return true;
    }
  }

  /** @param reply null if the server threw despite its contract, in which case SERVFAIL is the last resort */
  #write(outlet: Outlet, query: Query, reply: Reply | null, way: unknown): void {
    if (reply === silence) {
      outlet.keepSilent(way);
      return;
    }
    outlet.reserve(reply === null ? REJECTION_ROOM : stampRoom(reply, query));
    const { out, at } = outlet;
    const length = reply === null ? 0 : this.#stamp(reply, query, out, at);
    outlet.send(length === 0 ? writeFailure(query, out, at) : length, way);
  }

  /** @returns 0 if a bug prevents the reply from being written, because a single query must not end the process */
  #stamp(reply: Reply, query: Query, out: Uint8Array, at: number): number {
    try {
      return stamp(reply, query, out, at);
    } catch (error) {
      this.#log.error(`${this.proto} listener: a reply cannot be written: ${bugText(error)}`);
      return 0;
    }
  }

  #wait(outlet: Outlet, query: Query, reply: Promise<Reply> | Later<Reply>): void {
    const waiting = this.#enter(outlet, query, outlet.wayBack());
    whenSettled(reply, this.#onReply, this.#onError, waiting);
  }

  #enter(outlet: Outlet, query: Query, way: unknown): WaitingQuery {
    const waiting = this.#spare.pop() ?? new WaitingQuery();
    waiting.query = query;
    waiting.outlet = outlet;
    waiting.way = way;
    this.#waiting++;
    this.counters.waiting.add(1);
    this.#waitingBytes += outlet.pending.begin(query);
    return waiting;
  }

  /**
   * Continues a multi-message reply. The next message is created in a later turn, after all other pending work, and
   * only once the client has read the previous one. If other queries are arriving, there is also a pause, because the
   * kernel's work for a large transfer would delay them.
   */
  #follow(outlet: Outlet, query: Query, rest: Rest, way: unknown): void {
    if (this.proto !== 'tcp' && this.proto !== 'tls') return;
    const waiting = this.#enter(outlet, query.keep(), way);
    const next = (): void => {
      if (outlet.pending.closed) return this.#arrive(waiting);
      try {
        const reply = rest();
        if (reply === null) oneATurn(next);
        else this.#onReply(reply, waiting);
      } catch (error) {
        this.#onError(error, waiting);
      }
    };
    const isAlone = taken === this.#takenAtPart;
    this.#takenAtPart = taken;
    if (isAlone) oneATurn(next);
    else this.#clock.after(GIVE_WAY_MS, () => oneATurn(next));
  }

  #onReply = (reply: Reply, waiting: WaitingQuery): void => {
    waiting.reply = reply;
    this.#arrive(waiting);
  };

  #onError = (error: unknown, waiting: WaitingQuery): void => {
    this.#log.error(`${this.proto} listener: ${String(error)}`);
    this.#arrive(waiting);
  };

  /** Queues a reply. All replies from one turn are written together, once the turn's promises have settled. */
  #arrive(waiting: WaitingQuery): void {
    const outlet = waiting.outlet!;
    const { pending } = outlet;
    this.#waiting--;
    this.counters.waiting.add(-1);
    this.#waitingBytes -= pending.arrive(waiting);
    if (pending.closed) {
      this.counters.dropped.add(1);
      this.#release(waiting);
      if (this.#waiting === 0) this.#onQuiet?.();
    } else if (!pending.due) {
      pending.due = true;
      if (this.#due.push(outlet) === 1) process.nextTick(this.#sendDue);
    }
  }

  #sendDue = (): void => {
    const due = this.#due;
    this.#due = [];
    // Add up the bytes held by all outlets before writing the first reply.
    for (const outlet of due) {
      outlet.pending.due = false;
      outlet.hold();
    }
    for (const outlet of due) this.resume(outlet);
    if (this.#waiting === 0) this.#onQuiet?.();
  };

  #release(waiting: WaitingQuery): void {
    waiting.query = null;
    waiting.reply = null;
    waiting.outlet = null;
    waiting.way = null;
    if (this.#spare.length < SPARE_MAX) this.#spare.push(waiting);
  }
}

function ignore(): void {
  // The outlet is closed, so no client is waiting for the reply.
}
