/** Collects datagrams from many sockets and sends them together at the end of the turn. */
import { Memory } from './memory.ts';

/** Maximum number of queued datagrams. */
const DATAGRAMS = 64;
/** Maximum message size, set by messages that clients send over a stream. */
const MESSAGE_MAX = 65_535;

export interface QueuedSocket {
  /**
   * Sends the datagram at `address`, or reports the failure to the owner, which must not send anything during that
   * call. `mark` is an owner-defined value.
   */
  sendNow(address: number, length: number, mark: number): void;
}

/**
 * Up to 64 datagrams from one turn of the event loop, from any number of sockets. Waking the receiver is more than a quarter of the cost of
 * sending. When more datagrams follow immediately, the receiver is already awake and reads them all.
 */
export class SendQueue {
  readonly #slab = new Memory(MESSAGE_MAX, false);
  readonly #sockets: (QueuedSocket | null)[] = Array<QueuedSocket | null>(DATAGRAMS).fill(null);
  readonly #lengths = new Int32Array(DATAGRAMS);
  readonly #marks = new Float64Array(DATAGRAMS);
  #count = 0;
  #at = 0;
  #round = 0;

  /**
   * Makes room, sending the queued datagrams if necessary.
   * @returns the position for a datagram of this size
   */
  reserve(size: number): number {
    if (this.#count === DATAGRAMS || this.#at + size > MESSAGE_MAX) this.flush();
    return this.#at;
  }

  /** Number of batches sent, in 32 bits that wrap around. */
  get round(): number {
    return this.#round;
  }

  get slab(): Uint8Array {
    return this.#slab.bytes;
  }

  /**
   * Adds the bytes at the reserved position.
   * @returns true if it is the first one, so that a flush must be scheduled
   */
  add(socket: QueuedSocket, length: number, mark: number): boolean {
    const i = this.#count++;
    this.#sockets[i] = socket;
    this.#lengths[i] = length;
    this.#marks[i] = mark;
    this.#at += length;
    return i === 0;
  }

  readonly flush = (): void => {
    const count = this.#count;
    let { address } = this.#slab;
    for (let i = 0; i < count; i++) {
      const socket = this.#sockets[i]!;
      const length = this.#lengths[i]!;
      this.#sockets[i] = null;
      socket.sendNow(address, length, this.#marks[i]!);
      address += length;
    }
    this.#count = 0;
    this.#at = 0;
    this.#round = (this.#round + 1) | 0;
  };
}
