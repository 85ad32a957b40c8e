/** What all connections of clients have in common: room, turns, deadlines, an orderly end. */
import type { Socket } from 'node:net';

import { releaseBytes } from '../base/release-bytes.ts';
import { passedThrough } from '../base/settle-memory.ts';
import type { Query } from '../wire/query.ts';
import { Ends } from './ends.ts';
import { haltReading } from './halted-reading.ts';
import { Pending, type Outlet } from './outlet.ts';
import type { StreamConnection, StreamHost } from './stream-listener.ts';
import { Timed } from './timer-wheel.ts';
import { turns, type TurnTaker } from './turns.ts';
import { arena } from './write-reply.ts';

/** What is read of one connection before others have their turn, bytes; and how many queries of a turn that is worth. */
const LONG_READ = 65_536;
const LONG_READ_QUERIES = 32;
/** Nothing is waited for longer than this, milliseconds: the server's own deadlines are shorter. */
const PATIENCE_MS = 60_000;

/**
 * One client's connection: takes its bytes while there is room for what they ask, sends what is written for it, and ends in
 * order when its time or its use is over. What the bytes mean is up to the classes that extend it.
 */
export abstract class ClientConnection
  extends Timed
  implements StreamConnection, Outlet, TurnTaker
{
  readonly pending: Pending = new Pending();
  readonly out: Uint8Array = arena;
  protected readonly host: StreamHost;
  protected readonly socket: Socket;
  /** Bytes in the arena; 0 whenever a turn is over. */
  protected written = 0;
  /** A query has come since the deadline was set last: what is ignored buys no time. */
  protected fresh = false;
  /** The client has taken something of what it keeps waiting. */
  protected moved = false;
  /** No more queries are taken: the client ended, a limit is reached, or the listener closes. */
  protected ended = false;
  /** Nothing is served any more: what has been written is leaving, then the connection ends. */
  protected closing = false;
  readonly #ends: Ends;
  /**
   * Bytes that came but wait: for the connection's turn, which `turns` gives it; or until there is room again, and whatever makes
   * room calls `flush`. Nothing more is read meanwhile.
   */
  #rest: Buffer | null = null;
  /** The client does not read; what is written for it waits. */
  #blocked = false;
  /** Queries left of this turn. */
  #turn = 0;
  /** Bytes of it. */
  #read = 0;
  /** Goes on reading; null: nothing keeps it from that. */
  #goOnReading: (() => void) | null = null;
  /** The next turn is to come: `turns` knows. */
  #queued = false;
  /** What the deadline that is set is for. */
  #waitsFor: 'query' | 'reply' | 'client' = 'query';
  /** What the host was told last. */
  #toldHeld = 0;

  constructor(socket: Socket, host: StreamHost) {
    super();
    this.host = host;
    this.socket = socket;
    this.#ends = new Ends(socket);
    socket.on('data', this.#onData);
    socket.on('end', this.#onEnd);
    socket.on('drain', () => this.unblock());
    socket.on('error', () => socket.destroy());
    socket.on('close', this.#onClose);
    host.wheel.set(this, host.limits.readTimeoutMs);
  }

  /**
   * Serves what is whole in `chunk`, as long as `stopped` is false, and keeps what is not whole.
   * @returns bytes that need not come again
   */
  protected abstract consume(chunk: Buffer, now: number): number;
  /** Bytes kept besides those that this class knows of: a message that is not finished, replies that may not leave yet. */
  protected abstract get heldBeside(): number;
  /** Whether the client lets replies not leave that could be sent. */
  protected abstract get stuck(): boolean;
  /** No more queries are to be taken: `abrupt` if the client can send none, else it may be told. */
  protected abstract stopInput(abrupt: boolean): void;
  abstract readonly at: number;
  abstract send(length: number, way: unknown): void;
  abstract keepSilent(way: unknown): void;
  abstract wayBack(): unknown;
  abstract reserve(size: number): void;

  /** Whether replies are awaited or not yet taken by the client. */
  get busy(): boolean {
    return this.pending.size > 0 || this.stuck || this.unsent > 0;
  }

  /**
   * Bytes kept for the client: its queries that wait and their replies, replies it has not read, a message it has not
   * finished, queries that wait for room.
   */
  get held(): number {
    return this.pending.bytes + this.unsent + (this.#rest?.length ?? 0) + this.heldBeside;
  }

  /** Bytes that have been written and that the system has not taken yet. */
  protected get unsent(): number {
    return this.socket.writableLength;
  }

  get full(): boolean {
    return this.#blocked;
  }

  identify(query: Query): void {
    this.#ends.identify(query, this.host.intake.proto);
  }

  /** Takes no more queries; ends once the replies in flight have left. */
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
    // The system tells of the end later: until then hundreds of others may be ended for want of room, too.
    this.stopInput(true);
    this.#rest = null;
  }

  override expire(): void {
    if (this.#queued) {
      // It has asked in time: that others have their turn before is not its fault.
      this.host.wheel.set(this, this.host.limits.idleTimeoutMs);
      return;
    }
    this.host.counters.timedOut.add(1);
    // A client that reads gets a proper end; one that does not is cut off.
    if (this.closing || this.busy) this.destroy();
    else this.finish();
  }

  hold(): void {
    this.#tellHeld();
  }

  /** Replies have been written, and perhaps there is room again for what had to wait. */
  flush(): void {
    this.write();
    this.#goOn();
  }

  /** One query of this turn is taken. */
  protected count(): void {
    this.#turn--;
    turns.count();
  }

  /** No more is to be consumed now. */
  protected stopped(): boolean {
    return this.closing || this.#turn <= 0 || this.#crowded();
  }

  /** What stands in the arena leaves. */
  protected write(): void {
    const size = this.written;
    if (size === 0) return;
    this.written = 0;
    if (this.closing || !this.socket.writable) return;
    this.wrote(this.leave(size));
  }

  /** Sends the first `size` bytes of the arena. @returns false: `unblock` follows once they have left */
  protected leave(size: number): boolean {
    return this.socket.write(written(size));
  }

  /** Bytes have been given to the socket. @param taken false: `unblock` follows once they have left */
  protected wrote(taken: boolean): void {
    if (!taken && this.unsent > this.host.limits.unreadBytes) this.#blocked = true;
    this.#tellHeld();
  }

  /** The client has read on. */
  protected unblock(): void {
    if (!this.#blocked) return;
    this.#blocked = false;
    this.host.intake.resume(this);
  }

  /** Sets the deadline that fits what the connection is doing now; ends it when all is done. */
  protected settle(): void {
    if (this.closing) return;
    const { wheel, limits } = this.host;
    if (this.#blocked || this.stuck) {
      // What the client says meanwhile buys it no time, only what it takes does.
      if (this.#waitsFor !== 'client' || this.moved) wheel.set(this, limits.writeTimeoutMs);
      this.#waitsFor = 'client';
      this.moved = false;
    } else if (this.pending.size > 0) {
      wheel.set(this, PATIENCE_MS);
      this.#waitsFor = 'reply';
    } else if (this.ended && this.#rest === null) {
      this.end();
    } else if (this.fresh || this.#waitsFor !== 'query') {
      // A message that comes in pieces does not get more time with every piece.
      wheel.set(this, limits.idleTimeoutMs);
      this.#waitsFor = 'query';
      this.fresh = false;
    }
    this.#tellHeld();
  }

  /** Ends the connection once what has been written has left. */
  protected end(): void {
    this.closing = true;
    this.socket.end();
    // What the client still sends is thrown away, so that it sees our end rather than a reset.
    this.socket.resume();
    this.host.wheel.set(this, this.host.limits.writeTimeoutMs);
  }

  #onData = (chunk: Buffer): void => {
    if (this.closing) return;
    this.host.touch(this);
    this.#turn = turns.allowance;
    // What several TLS connections sent may stand in the same memory, and some of it may not be read yet.
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
    // A client may close its side and still wait for replies (half-close).
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

  /** @param alone whether nobody else's bytes stand in the memory of `chunk` */
  #take(chunk: Buffer, alone: boolean): void {
    const used = this.consume(chunk, this.host.clock.now());
    if (used < chunk.length && !this.closing) {
      this.#rest = restOf(chunk, used, alone);
      this.socket.pause();
      if (!this.#crowded()) this.#waitTurn();
    } else if (alone) {
      releaseBytes(chunk);
    }
    this.write();
    this.settle();
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
    // Who is crowded waits again once there is room.
    if (rest === null || this.closing || this.#crowded()) return;
    this.#turn = turns.allowance;
    this.#rest = null;
    this.#take(rest, true);
    if (this.#rest === null && !this.ended) this.socket.resume();
  }

  /** There may be room for what had to wait. */
  #goOn(): void {
    if (!this.closing && !this.#crowded()) {
      if (this.#rest !== null) this.#waitTurn();
      else if (!this.ended) this.socket.resume();
    }
    this.settle();
  }

  /** Replies have to leave before more queries are taken. */
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

/** The first `size` bytes of the arena, in memory of their own. */
export function written(size: number): Buffer {
  const bytes = Buffer.allocUnsafe(size);
  arena.copy(bytes, 0, 0, size);
  return bytes;
}

/** What is left of a chunk, alone in memory that is not much larger than that. */
function restOf(chunk: Buffer, used: number, alone: boolean): Buffer {
  const left = chunk.length - used;
  if (alone && left > chunk.buffer.byteLength >> 1) return chunk.subarray(used);
  const rest = Buffer.allocUnsafeSlow(left);
  chunk.copy(rest, 0, used);
  if (alone) releaseBytes(chunk);
  return rest;
}
