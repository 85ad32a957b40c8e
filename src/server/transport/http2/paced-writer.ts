import type { Socket } from 'node:net';

/**
 * Writes to a TLS socket, each piece in a separate record while `grouped` is false. A piece waits
 * until the previous piece has left, because the runtime joins waiting pieces.
 */
export class PacedWriter {
  /** The client takes several pieces in one record. */
  grouped = false;
  /** Bytes that wait here. */
  bytes = 0;
  readonly #socket: Socket;
  readonly #gather: (socket: Socket) => void;
  readonly #left: () => void;
  readonly #queue: Buffer[] = [];
  #writing = false;

  /**
   * @param gather sends the written bytes at the end of the event loop's turn @param left called
   * when a piece has left
   */
  constructor(socket: Socket, gather: (socket: Socket) => void, left: () => void) {
    this.#socket = socket;
    this.#gather = gather;
    this.#left = left;
  }

  /** @returns whether the socket has accepted it without delay */
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

  /** Writes all that waits, in one. */
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
