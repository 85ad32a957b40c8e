/** A client connection over TCP or TLS, with length-prefixed messages. */
import type { Socket } from 'node:net';
import { releaseBytes } from '../../runtime/release-bytes.ts';
import { ClientConnection } from './client-connection.ts';
import type { StreamListener } from './stream-listener.ts';
import { arena } from '../write-reply.ts';

/** Initial buffer size for a message that arrives in pieces. The buffer grows with the bytes received. */
const FIRST_PIECE = 512;
/** Size of the buffer for one turn's replies that share a TLS record, enough for about ten of normal size. */
const GATHERED = 1024;

/**
 * A connection whose messages are preceded by two length bytes (RFC 1035 section 4.2.2, RFC 7766). Queries are answered
 * as they arrive, and a pending reply does not delay the others. All replies from one turn are sent in a single write.
 */
export class FramedConnection extends ClientConnection {
  /** The part of an incomplete message received so far, including the length bytes. */
  #piece: Buffer | null = null;
  #pieceFilled = 0;
  #served = 0;
  readonly #encrypted: boolean;
  /** The replies from this turn that will be sent in one TLS record. */
  #gathered: Buffer | null = null;
  #gatheredBytes = 0;

  constructor(socket: Socket, host: StreamListener) {
    super(socket, host);
    this.#encrypted = 'encrypted' in socket;
  }

  protected get heldBeside(): number {
    // With TLS, unread replies are in memory twice, once in plain text and once encrypted.
    return (this.#piece?.length ?? 0) + (this.#encrypted ? super.unsent : 0);
  }

  protected get stuck(): boolean {
    return false;
  }

  protected stopInput(abrupt: boolean): void {
    this.#dropPiece();
    if (!abrupt) this.socket.pause();
  }

  protected consume(chunk: Buffer, now: number): number {
    const { maxQueries } = this.host.limits;
    let at = 0;
    while (at < chunk.length && !this.stopped()) {
      if (maxQueries >= 0 && this.#served >= maxQueries) {
        this.ended = true;
        this.socket.pause();
        return chunk.length;
      }
      const size = chunk.length - at >= 2 ? (chunk[at]! << 8) | chunk[at + 1]! : -1;
      if (this.#piece === null && size >= 0 && chunk.length - at - 2 >= size) {
        this.#serve(chunk, at + 2, at + 2 + size, now);
        at += 2 + size;
      } else {
        at += this.#gather(chunk, at, now);
      }
    }
    return at;
  }

  /**
   * Adds bytes to the incomplete message, and serves it once it is complete.
   * @returns the number of bytes used
   */
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
      releaseBytes(piece);
    }
    return at - begin;
  }

  #dropPiece(): void {
    if (this.#piece !== null) releaseBytes(this.#piece);
    this.#piece = null;
    this.#pieceFilled = 0;
  }

  #grow(least: number, most: number): void {
    const bigger = Buffer.allocUnsafeSlow(Math.min(most, Math.max(least, this.#piece!.length * 4)));
    this.#piece!.copy(bigger, 0, 0, this.#pieceFilled);
    releaseBytes(this.#piece!);
    this.#piece = bigger;
  }

  #serve(bytes: Buffer, start: number, end: number, now: number): void {
    this.#served++;
    this.count();
    if (this.host.intake.take(this, bytes, start, end, now)) this.fresh = true;
  }

  get at(): number {
    return this.written + 2;
  }

  reserve(size: number): void {
    if (this.written + 2 + size > arena.length) this.write();
  }

  send(length: number): void {
    arena[this.written] = length >> 8;
    arena[this.written + 1] = length & 0xff;
    this.written += 2 + length;
    this.host.counters.sent.add(1);
    // A tiny query can have a large reply, so the limit counts unread bytes rather than queries.
    if (this.written + this.unsent > this.host.limits.unreadBytes) this.write();
  }

  protected override get unsent(): number {
    return super.unsent + this.#gatheredBytes;
  }

  /** TLS passes on each record separately, even if many arrive at once. Their replies are combined into one record. */
  protected override leave(size: number): boolean {
    if (!this.#encrypted) return super.leave(size);
    if (this.#gatheredBytes + size > GATHERED) this.#release();
    if (size > GATHERED) return super.leave(size);
    if (this.#gathered === null) {
      this.#gathered = Buffer.allocUnsafe(GATHERED);
      this.host.whenTurnEnds(this.#release);
    }
    arena.copy(this.#gathered, this.#gatheredBytes, 0, size);
    this.#gatheredBytes += size;
    return true;
  }

  #release = (): void => {
    const bytes = this.#gathered;
    if (bytes === null) return;
    const size = this.#gatheredBytes;
    this.#gathered = null;
    this.#gatheredBytes = 0;
    if (this.socket.writable) this.wrote(this.socket.write(bytes.subarray(0, size)));
  };

  protected override end(): void {
    this.#release();
    super.end();
  }

  keepSilent(): void {
    // The remaining queries may still be answered.
  }

  wayBack(): null {
    return null;
  }
}
