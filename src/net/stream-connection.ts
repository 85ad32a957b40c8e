import type { Socket } from 'node:net';

import { parseAddress } from '../base/ip.ts';
import { isLater } from '../base/maybe.ts';
import { Query, type Proto } from '../wire/query.ts';
import { silence, type Reply } from '../wire/reply.ts';
import { stamp } from '../wire/stamp.ts';
import type { HeldBytes, Holder } from './held-bytes.ts';
import type { ListenerParts, ListenerCounters } from './listener.ts';
import { Timed, type TimerWheel } from './timer-wheel.ts';
import { REPLY_ROOM, roomFor, writeFailure, writeRejection } from './write-reply.ts';

/** Queries of one connection that may wait for their replies; then nothing more is read from it. */
const MAX_IN_FLIGHT = 256;
/** Replies of one connection that wait for the client to read, bytes; then nothing more is read from it. */
const MAX_UNREAD = 256 * 1024;
/** The first size of the buffer for a message that comes in pieces; it grows with what really came. */
const FIRST_PIECE = 512;
/** A header and the longest question, with room to spare. */
const REJECTION_ROOM = 512;
/** Nothing is waited for longer than this, milliseconds: the server's own deadlines are shorter. */
const PATIENCE_MS = 60_000;

/** What connections of one listener share. */
export interface StreamHost {
  readonly parts: ListenerParts;
  readonly proto: Proto;
  readonly counters: ListenerCounters;
  readonly wheel: TimerWheel;
  readonly heldBytes: HeldBytes<StreamConnection>;
  /** A connection did something: it is the youngest again. */
  touch(connection: StreamConnection): void;
  forget(connection: StreamConnection): void;
}

/** All that is read and written at once, in any connection of this thread: nothing here outlives a turn. */
const reused = new Query();
const arena = Buffer.allocUnsafeSlow(REPLY_ROOM);

/**
 * One connection that carries messages with two length bytes before each (RFC 1035 section 4.2.2, RFC 7766). Queries are
 * answered as they come; a reply that must wait does not hold up the others. A turn's replies leave in one write.
 */
export class StreamConnection extends Timed implements Holder {
  readonly #host: StreamHost;
  readonly #socket: Socket;
  readonly #peer: Uint8Array;
  readonly #peerPort: number;
  readonly #local: string;
  readonly #localPort: number;
  /** Bytes that came but wait until there is room again. */
  #rest: Buffer | null = null;
  /** A message that has come in part, length bytes included. */
  #piece: Buffer | null = null;
  #pieceFilled = 0;
  #inFlight = 0;
  #served = 0;
  /** A query has come since the deadline was set last: what is ignored buys no time. */
  #fresh = false;
  /** The client does not read; waiting for `drain`. */
  #blocked = false;
  /** No more queries are taken: the client ended, the limit is reached, or the listener closes. */
  #ended = false;
  #closing = false;
  /** The deadline that is set is one for replies, in flight or unread: another follows when they are gone. */
  #patient = false;
  /** What the host was told last. */
  #toldHeld = 0;
  #arenaUsed = 0;
  /** Replies of promises, to leave at the end of the turn. */
  #late: { query: Query; reply: Reply | null }[] = [];

  constructor(host: StreamHost, socket: Socket) {
    super();
    this.#host = host;
    this.#socket = socket;
    this.#peer = parseAddress(plainAddress(socket.remoteAddress)) ?? new Uint8Array(4);
    this.#peerPort = socket.remotePort ?? 0;
    this.#local = plainAddress(socket.localAddress);
    this.#localPort = socket.localPort ?? 0;
    socket.on('data', this.#onData);
    socket.on('end', this.#onEnd);
    socket.on('drain', this.#onDrain);
    socket.on('error', () => socket.destroy());
    socket.on('close', this.#onClose);
    host.wheel.set(this, host.parts.limits.readTimeoutMs);
  }

  /** Whether replies are awaited or not yet read by the client. */
  get busy(): boolean {
    return this.#inFlight > 0 || this.#socket.writableLength > 0;
  }

  /** Bytes kept for the client: replies it has not read, a message it has not finished, queries that wait for room. */
  get held(): number {
    return this.#socket.writableLength + (this.#rest?.length ?? 0) + (this.#piece?.length ?? 0);
  }

  /** Takes no more queries; ends once the replies in flight have left. */
  finish(): void {
    this.#ended = true;
    this.#rest = null;
    this.#piece = null;
    this.#socket.pause();
    this.#settle();
  }

  destroy(): void {
    this.#closing = true;
    this.#socket.destroy();
  }

  override expire(): void {
    this.#host.counters.timedOut++;
    // A client that reads gets a proper end; one that does not is cut off.
    if (this.#closing || this.busy) this.#socket.destroy();
    else this.finish();
  }

  #onData = (chunk: Buffer): void => {
    if (this.#ended) return;
    this.#host.touch(this);
    this.#take(chunk);
  };

  #onEnd = (): void => {
    // A client may close its side and still wait for replies (half-close).
    this.#ended = true;
    this.#piece = null;
    if (this.#rest === null) this.#settle();
  };

  #onDrain = (): void => {
    this.#blocked = false;
    this.#goOn();
  };

  #onClose = (): void => {
    this.#host.wheel.cancel(this);
    this.#host.heldBytes.forget(this);
    this.#rest = null;
    this.#piece = null;
    this.#late = [];
    this.#ended = true;
    this.#closing = true;
    this.#host.forget(this);
  };

  /** Takes up what had to wait. */
  #goOn(): void {
    if (this.#full()) return;
    const rest = this.#rest;
    if (rest !== null) {
      this.#rest = null;
      this.#take(rest);
    } else {
      if (!this.#ended) this.#socket.resume();
      this.#settle();
    }
  }

  #full(): boolean {
    return this.#blocked || this.#inFlight >= MAX_IN_FLIGHT;
  }

  /** Serves the messages in `chunk`; keeps what is not whole or has no room yet. */
  #take(chunk: Buffer): void {
    const { limits, clock } = this.#host.parts;
    const now = clock.now();
    let at = 0;
    while (at < chunk.length && !this.#closing) {
      if (limits.maxQueries >= 0 && this.#served >= limits.maxQueries) {
        this.#ended = true;
        this.#socket.pause();
        break;
      }
      if (this.#full()) {
        this.#rest = chunk.subarray(at);
        this.#socket.pause();
        break;
      }
      const size = chunk.length - at >= 2 ? (chunk[at]! << 8) | chunk[at + 1]! : -1;
      if (this.#piece === null && size >= 0 && chunk.length - at - 2 >= size) {
        this.#serve(chunk, at + 2, at + 2 + size, now);
        at += 2 + size;
      } else {
        at += this.#gather(chunk, at, now);
      }
    }
    this.#flush();
    this.#settle();
  }

  /** Adds bytes to the message that comes in pieces and serves it once whole. @returns how many were taken */
  #gather(chunk: Buffer, at: number, now: number): number {
    this.#piece ??= Buffer.allocUnsafeSlow(FIRST_PIECE);
    const begin = at;
    while (at < chunk.length) {
      const wanted = this.#pieceFilled < 2 ? 2 : 2 + ((this.#piece[0]! << 8) | this.#piece[1]!);
      const take = Math.min(wanted - this.#pieceFilled, chunk.length - at);
      if (this.#pieceFilled + take > this.#piece.length)
        this.#grow(this.#pieceFilled + take, wanted);
      chunk.copy(this.#piece, this.#pieceFilled, at, at + take);
      this.#pieceFilled += take;
      at += take;
      if (this.#pieceFilled < wanted || wanted === 2) continue;
      break;
    }
    if (this.#pieceFilled < 2) return at - begin;
    const whole = 2 + ((this.#piece[0]! << 8) | this.#piece[1]!);
    if (this.#pieceFilled === whole) {
      const piece = this.#piece;
      this.#piece = null;
      this.#pieceFilled = 0;
      this.#serve(piece, 2, whole, now);
    }
    return at - begin;
  }

  #grow(least: number, most: number): void {
    const bigger = Buffer.allocUnsafeSlow(Math.min(most, Math.max(least, this.#piece!.length * 4)));
    this.#piece!.copy(bigger, 0, 0, this.#pieceFilled);
    this.#piece = bigger;
  }

  #serve(bytes: Buffer, start: number, end: number, now: number): void {
    const { counters, parts, proto } = this.#host;
    counters.received++;
    this.#served++;
    const query = reused;
    const triage = query.read(bytes, start, end);
    if (triage !== 'serve') {
      this.#reserve(REJECTION_ROOM);
      const length = writeRejection(triage, query, arena, this.#arenaUsed + 2);
      if (length === 0) counters.ignored++;
      else {
        counters.rejected++;
        this.#fresh = true;
      }
      this.#frame(length);
      return;
    }
    this.#fresh = true;
    query.proto = proto;
    query.family = this.#peer.length === 4 ? 4 : 6;
    query.peer = this.#peer;
    query.peerAt = 0;
    query.peerPort = this.#peerPort;
    query.local = this.#local;
    query.localPort = this.#localPort;
    query.arrived = now;
    let reply;
    try {
      reply = parts.serve(query);
    } catch (error) {
      parts.log.error(`${proto} listener: ${String(error)}`);
      this.#reply(query, null);
      return;
    }
    if (isLater(reply)) this.#wait(query.keep(), reply);
    else this.#reply(query, reply);
  }

  #wait(query: Query, promise: PromiseLike<Reply>): void {
    this.#inFlight++;
    promise.then(
      (reply) => this.#arrive(query, reply),
      (error: unknown) => {
        this.#host.parts.log.error(`${this.#host.proto} listener: ${String(error)}`);
        this.#arrive(query, null);
      },
    );
  }

  #arrive(query: Query, reply: Reply | null): void {
    this.#inFlight--;
    if (this.#closing) {
      this.#host.counters.dropped++;
      return;
    }
    this.#late.push({ query, reply });
    if (this.#late.length === 1) process.nextTick(this.#sendLate);
  }

  #sendLate = (): void => {
    const late = this.#late;
    this.#late = [];
    for (const { query, reply } of late) this.#reply(query, reply);
    this.#flush();
    this.#goOn();
  };

  /** Puts a reply into the turn's write; null is SERVFAIL. */
  #reply(query: Query, reply: Reply | null): void {
    if (reply === silence) return;
    if (reply === null) {
      this.#reserve(REJECTION_ROOM);
      this.#frame(writeFailure(query, arena, this.#arenaUsed + 2));
      return;
    }
    this.#reserve(roomFor(reply) + 2);
    this.#frame(stamp(reply, query, arena, this.#arenaUsed + 2));
  }

  /** Makes room in the arena, by writing out what is there if need be. */
  #reserve(room: number): void {
    if (this.#arenaUsed + room > arena.length) this.#flush();
  }

  #frame(length: number): void {
    if (length === 0) return;
    arena[this.#arenaUsed] = length >> 8;
    arena[this.#arenaUsed + 1] = length & 0xff;
    this.#arenaUsed += 2 + length;
    this.#host.counters.sent++;
    // One tiny query may ask for a big reply: the unread bytes are bounded, not the queries.
    if (this.#arenaUsed + this.#socket.writableLength > MAX_UNREAD >> 1) this.#flush();
  }

  #flush(): void {
    const size = this.#arenaUsed;
    if (size === 0) return;
    this.#arenaUsed = 0;
    if (this.#closing || !this.#socket.writable) return;
    const out = Buffer.allocUnsafe(size);
    arena.copy(out, 0, 0, size);
    if (!this.#socket.write(out) && this.#socket.writableLength > MAX_UNREAD >> 1) {
      this.#blocked = true;
    }
    this.#tellHeld();
  }

  /** Sets the deadline that fits what the connection is doing now; ends it when all is done. */
  #settle(): void {
    if (this.#closing) return;
    const { wheel, parts } = this.#host;
    if (this.#blocked) {
      wheel.set(this, parts.limits.writeTimeoutMs);
      this.#patient = true;
    } else if (this.#inFlight > 0 || this.#late.length > 0) {
      wheel.set(this, PATIENCE_MS);
      this.#patient = true;
    } else if (this.#ended && this.#rest === null) {
      this.#closing = true;
      this.#socket.end();
      // What the client still sends is thrown away, so that it sees our end rather than a reset.
      this.#socket.resume();
      wheel.set(this, parts.limits.writeTimeoutMs);
    } else if (this.#fresh || this.#patient) {
      // A message that comes in pieces does not get more time with every piece.
      wheel.set(this, parts.limits.idleTimeoutMs);
      this.#patient = false;
      this.#fresh = false;
    }
    this.#tellHeld();
  }

  #tellHeld(): void {
    const { held } = this;
    if (held === this.#toldHeld) return;
    this.#toldHeld = held;
    this.#host.heldBytes.tell(this, held);
  }
}

/** Without the zone, and IPv4 in its own form. */
export function plainAddress(text: string | undefined): string {
  if (text === undefined) return '';
  const zone = text.indexOf('%');
  const address = zone < 0 ? text : text.slice(0, zone);
  return address.startsWith('::ffff:') && address.includes('.') ? address.slice(7) : address;
}
