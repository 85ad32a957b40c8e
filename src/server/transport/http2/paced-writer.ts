import type { Socket } from 'node:net';

/**
 * Writes to a TLS socket, putting each piece in a separate record while `grouped` is false. A piece is not written
 * until its predecessor has been sent, because the runtime would merge queued pieces.
 */
export class PacedWriter {
  /** True if the client accepts several pieces in one record. */
  grouped = false;
  /** Number of bytes waiting here. */
  bytes = 0;
  readonly #socket: Socket;
  readonly #gather: (socket: Socket) => void;
  readonly #left: () => void;
  readonly #queue: Buffer[] = [];
  #writing = false;

  /**
   * @param gather sends the written bytes at the end of the event loop's turn
   * @param left called when a piece has been sent
   */
  constructor(socket: Socket, gather: (socket: Socket) => void, left: () => void) {
    this.#socket = socket;
    this.#gather = gather;
    this.#left = left;
  }

  /** @returns true if the socket accepted it immediately */
  write(piece: Buffer): boolean {
    if (this.grouped && !this.#writing) {
      this.#gather(this.#socket);
      return this.#socket.write(piece);
    }
    this.#queue.push(piece);
    this.bytes += piece.length;
    this.#next();
    return false;
  }

  /** Writes everything that is waiting in one piece. */
  finish(): void {
    const queue = this.#queue.splice(0);
    this.bytes = 0;
    if (queue.length > 0) this.#socket.write(Buffer.concat(queue));
  }

  #next(): void {
    if (this.#writing || this.#queue.length === 0 || !this.#socket.writable) return;
    const piece = this.grouped ? Buffer.concat(this.#queue.splice(0)) : this.#queue.shift()!;
    this.bytes -= piece.length;
    this.#writing = true;
    this.#socket.write(piece, this.#written);
  }

  #written = (): void => {
    this.#writing = false;
    this.#next();
    this.#left();
  };
}
