/** Behaviour shared by all client connections: memory limits, fair turns, deadlines and an orderly end. */
import type { Socket } from 'node:net';

import { releaseBytes } from '../../runtime/release-bytes.ts';
import { passedThrough } from '../../runtime/memory-policy.ts';
import type { Query } from '../query.ts';
import { ConnectionEnds } from '../connection-ends.ts';
import { haltReading } from './halted-reading.ts';
import { OutletPending, type Outlet } from '../outlet.ts';
import type { StreamConnection, StreamListener } from './stream-listener.ts';
import { Timed } from '../timer-wheel.ts';
import { turns, type TurnTaker } from './turns.ts';
import { arena } from '../write-reply.ts';

/** Number of bytes read from one connection before others get their turn, and the number of queries this counts as. */
const LONG_READ = 65_536;
const LONG_READ_QUERIES = 32;
/**
 * Milliseconds after which others get their turn. This is checked only once every few queries, because a query costs
 * microseconds unless its answer is large or has to be searched for.
 */
const LONG_SERVE_MS = 5;
const LOOK_EVERY = 4;
/**
 * Size from which a reply's memory is freed as soon as the kernel has accepted it. Otherwise, garbage from large
 * replies would amount to several times the clients' unread data.
 */
const LARGE = 2048;
/** The longest wait for anything, in milliseconds. The server's own deadlines are shorter. */
const PATIENCE_MS = 60_000;

/**
 * A client's connection. It reads queries while there is room for replies, and sends the replies. It closes gracefully
 * when its time is up or its work is done. Subclasses implement the protocol.
 */
export abstract class ClientConnection
  extends Timed
  implements StreamConnection, Outlet, TurnTaker
{
  readonly pending: OutletPending = new OutletPending();
  readonly out: Uint8Array = arena;
  protected readonly host: StreamListener;
  protected readonly socket: Socket;
  /** Number of bytes in the shared output buffer (`arena`), always 0 at the end of a turn. */
  protected written = 0;
  /**
   * True if a query has arrived since the deadline was last set. Bytes that do not form a query do not extend the
   * deadline.
   */
  protected fresh = false;
  /** True if the client has read part of the waiting replies. */
  protected moved = false;
  /** No more queries are read, because the client closed its side, a limit was reached or the listener is closing. */
  protected ended = false;
  /** Nothing more is served, and the connection closes as soon as all output has been sent. */
  protected closing = false;
  readonly #ends: ConnectionEnds;
  /**
   * Received bytes that have not been consumed yet. The connection is waiting for its turn (`turns` will call it) or
   * for room (`flush` will be called when there is some). Until then, reading stops.
   */
  #rest: Buffer | null = null;
  /** The client is not reading, so output is waiting in the socket. */
  #blocked = false;
  /** Number of queries that may still be served in this turn. */
  #turn = 0;
  #beganAt = 0;
  /** Bytes read since the connection's last turn. */
  #read = 0;
  /** Resumes reading after a long read was halted. Null if reading is not halted. */
  #goOnReading: (() => void) | null = null;
  /** True if `turns` has queued the next turn. */
  #queued = false;
  /** The reason for the current deadline. */
  #waitsFor: 'query' | 'reply' | 'client' = 'query';
  /** Number of held bytes that was last reported to the host. */
  #toldHeld = 0;

  constructor(socket: Socket, host: StreamListener) {
    super();
    this.host = host;
    this.socket = socket;
    this.#ends = new ConnectionEnds(socket);
    socket.on('data', this.#onData);
    socket.on('end', this.#onEnd);
    socket.on('drain', () => this.unblock());
    socket.on('error', () => socket.destroy());
    socket.on('close', this.#onClose);
    host.wheel.set(this, host.limits.readTimeoutMs);
  }

  /**
   * Serves the complete messages in `chunk` while `stopped` is false, and stores an incomplete one.
   * @returns the number of bytes consumed; the rest is passed in again later
   */
  protected abstract consume(chunk: Buffer, now: number): number;
  /** Bytes held by a subclass: an incomplete message, and replies held back by the peer's flow control. */
  protected abstract get heldBeside(): number;
  /** True if the peer's flow control is holding back finished replies. */
  protected abstract get stuck(): boolean;
  /**
   * Stops reading queries. If `abrupt`, the client cannot send any more. Otherwise, the protocol may ask the client to
   * stop.
   */
  protected abstract stopInput(abrupt: boolean): void;
  abstract readonly at: number;
  abstract send(length: number, way: unknown): void;
  abstract keepSilent(way: unknown): void;
  abstract wayBack(): unknown;
  abstract reserve(size: number): void;

  /** True if replies are pending, or the client has not read them all. */
  get busy(): boolean {
    return this.pending.size > 0 || this.stuck || this.unsent > 0;
  }

  /**
   * Number of bytes held for the client: waiting queries and their replies, unread replies, an incomplete message and
   * unconsumed input.
   */
  get held(): number {
    return this.pending.bytes + this.unsent + (this.#rest?.length ?? 0) + this.heldBeside;
  }

  /** Number of bytes written to the socket that the system has not accepted yet. */
  protected get unsent(): number {
    return this.socket.writableLength;
  }

  get full(): boolean {
    return this.#blocked;
  }

  identify(query: Query): void {
    this.#ends.identify(query, this.host.intake.proto);
  }

  /** Stops reading queries, and closes once the replies in flight have been sent. */
  finish(): void {
    if (this.closing) return;
    this.ended = true;
    this.#rest = null;
    this.stopInput(false);
    this.write();
    this.settle();
  }

  destroy(): void {
    this.closing = true;
    this.host.intake.drop(this);
    this.socket.destroy();
    // The close event comes later. In the meantime, the table might evict hundreds of other connections to make room.
    this.stopInput(true);
    this.#rest = null;
  }

  override expire(): void {
    if (this.#queued) {
      // The client sent its query in time. That the query is waiting for its turn is not the client's fault.
      this.host.wheel.set(this, this.host.limits.idleTimeoutMs);
      return;
    }
    this.host.counters.timedOut.add(1);
    // A client that is reading gets a graceful close, while one that is not is cut off.
    if (this.closing || this.busy) this.destroy();
    else this.finish();
  }

  hold(): void {
    this.#tellHeld();
  }

  /** Called when replies have been written, so there may now be room for input that had to wait. */
  flush(): void {
    this.write();
    this.#goOn();
  }

  protected count(): void {
    this.#turn--;
    turns.count();
    if (this.#turn % LOOK_EVERY === 0 && this.host.clock.now() - this.#beganAt > LONG_SERVE_MS)
      this.#turn = 0;
  }

  /** Returns true if no more input may be consumed for now. */
  protected stopped(): boolean {
    return this.closing || this.#turn <= 0 || this.#crowded();
  }

  protected write(): void {
    const size = this.written;
    if (size === 0) return;
    this.written = 0;
    if (this.closing || !this.socket.writable) return;
    this.wrote(this.leave(size));
  }

  /**
   * Sends the first `size` bytes of the arena.
   * @returns false if the socket's buffer is full, in which case `unblock` is called once it has drained
   */
  protected leave(size: number): boolean {
    const bytes = written(size);
    if (size < LARGE) return this.socket.write(bytes);
    return this.socket.write(bytes, () => releaseBytes(bytes));
  }

  /**
   * Called after bytes have been written to the socket.
   * @param taken false if the socket's buffer is full, in which case `unblock` is called once it has drained
   */
  protected wrote(taken: boolean): void {
    if (!taken && this.unsent > this.host.limits.unreadBytes) this.#blocked = true;
    this.#tellHeld();
  }

  /** Called when the client has read more and the socket's buffer has drained. */
  protected unblock(): void {
    if (!this.#blocked) return;
    this.#blocked = false;
    this.host.intake.resume(this);
  }

  /** Sets the deadline for the connection's current state, or closes the connection if everything is done. */
  protected settle(): void {
    if (this.closing) return;
    const { wheel, limits } = this.host;
    if (this.#blocked || this.stuck) {
      // This deadline is extended only when the client reads, not when it writes.
      if (this.#waitsFor !== 'client' || this.moved) wheel.set(this, limits.writeTimeoutMs);
      this.#waitsFor = 'client';
      this.moved = false;
    } else if (this.pending.size > 0) {
      wheel.set(this, PATIENCE_MS);
      this.#waitsFor = 'reply';
    } else if (this.ended && this.#rest === null) {
      this.end();
    } else if (this.fresh || this.#waitsFor !== 'query') {
      // A message that arrives in pieces is not given more time with each piece.
      wheel.set(this, limits.idleTimeoutMs);
      this.#waitsFor = 'query';
      this.fresh = false;
    }
    this.#tellHeld();
  }

  /** Closes the connection once all output has been sent. */
  protected end(): void {
    this.closing = true;
    this.socket.end();
    // Discard further input. If it were left unread, the kernel would send a reset instead of closing gracefully.
    this.socket.resume();
    this.host.wheel.set(this, this.host.limits.writeTimeoutMs);
  }

  #onData = (chunk: Buffer): void => {
    if (this.closing) return;
    this.host.touch(this);
    this.#turn = turns.allowance;
    // Input from several TLS connections may share the same memory, and part of it may be unread.
    const { length } = chunk;
    const isAlone = length === chunk.buffer.byteLength;
    this.#take(chunk, isAlone);
    if (!isAlone) passedThrough(length);
    this.#read += length;
    if (this.#read < LONG_READ || this.#goOnReading !== null || this.socket.destroyed) return;
    this.#goOnReading = haltReading(this.socket);
    if (this.#goOnReading !== null) this.#waitTurn();
  };

  #onEnd = (): void => {
    // A client may close its side and still wait for replies (a half-close).
    this.ended = true;
    this.stopInput(true);
    if (this.#rest === null) this.settle();
  };

  #onClose = (): void => {
    this.host.wheel.cancel(this);
    this.host.intake.drop(this);
    this.stopInput(true);
    this.#rest = null;
    this.ended = true;
    this.closing = true;
    this.host.forget(this);
  };

  /** @param alone true if the memory of `chunk` holds only this connection's bytes */
  #take(chunk: Buffer, alone: boolean): void {
    const { clock } = this.host;
    const now = clock.now();
    this.#beganAt = now;
    const used = this.consume(chunk, now);
    if (used < chunk.length && !this.closing) {
      this.#rest = restOf(chunk, used, alone);
      this.socket.pause();
      if (!this.#crowded()) this.#waitTurn();
    } else if (alone) {
      releaseBytes(chunk);
    }
    this.write();
    this.settle();
    turns.spend(clock.now() - now);
  }

  #waitTurn(): void {
    if (this.#queued) return;
    this.#queued = true;
    turns.wait(this);
  }

  takeTurn(): void {
    this.#queued = false;
    this.#read = 0;
    if (this.#goOnReading !== null) {
      turns.count(LONG_READ_QUERIES);
      this.#goOnReading();
      this.#goOnReading = null;
    }
    const rest = this.#rest;
    // Input held back by unsent replies is consumed once there is room.
    if (rest === null || this.closing || this.#crowded()) return;
    this.#turn = turns.allowance;
    this.#rest = null;
    this.#take(rest, true);
    if (this.#rest === null && !this.ended) this.socket.resume();
  }

  /** Consumes the waiting input if there is room for its replies now. */
  #goOn(): void {
    if (!this.closing && !this.#crowded()) {
      if (this.#rest !== null) this.#waitTurn();
      else if (!this.ended) this.socket.resume();
    }
    this.settle();
  }

  /** Returns true if replies must be sent before more queries are read. */
  #crowded(): boolean {
    return this.full || this.pending.size >= this.host.limits.pipelined;
  }

  #tellHeld(): void {
    const { held } = this;
    if (held === this.#toldHeld) return;
    this.#toldHeld = held;
    this.host.held.tell(this, held);
  }
}

/** Returns a copy of the arena's first `size` bytes, in separate memory if there are at least `LARGE` of them. */
export function written(size: number): Buffer {
  // The data these replies are built from is outside the heap too.
  if (size >= LARGE) passedThrough(size);
  const bytes = size < LARGE ? Buffer.allocUnsafe(size) : Buffer.allocUnsafeSlow(size);
  arena.copy(bytes, 0, 0, size);
  return bytes;
}

/** Returns the unconsumed rest of a chunk, in memory of its own that is not much larger. */
function restOf(chunk: Buffer, used: number, alone: boolean): Buffer {
  const left = chunk.length - used;
  if (alone && left > chunk.buffer.byteLength >> 1) return chunk.subarray(used);
  const rest = Buffer.allocUnsafeSlow(left);
  chunk.copy(rest, 0, used);
  if (alone) releaseBytes(chunk);
  return rest;
}
