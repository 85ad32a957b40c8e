/** Collects datagrams of many sockets and sends them together at the end of the turn. */
import { Memory } from './memory.ts';

/** Datagrams that wait at most. */
const DATAGRAMS = 64;
/** Maximum length of a message: the longest that a client can send over a stream. */
const MESSAGE_MAX = 65_535;

/** A socket from which a datagram is to be sent. */
export interface QueuedSocket {
  /**
   * Sends the datagram at `address`, or reports the failure to its owner, which must not send anything
   * during that call. `mark` is the owner's value.
   */
  sendNow(address: number, length: number, mark: number): void;
}

/**
 * Up to 64 datagrams of one turn, from any sockets. Sending a datagram wakes its receiver, which is
 * more than a quarter of the call's cost. When more datagrams follow at once, the receiver is awake
 * already and reads them all.
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
   * Makes room, if necessary by sending the content.
   * @returns the position for a datagram of this size
   */
  reserve(size: number): number {
    if (this.#count === DATAGRAMS || this.#at + size > MESSAGE_MAX) this.flush();
    return this.#at;
  }

  /** Counts the batches sent, in 32 bits that wrap around. */
  get round(): number {
    return this.#round;
  }

  /** The memory for datagrams. */
  get slab(): Uint8Array {
    return this.#slab.bytes;
  }

  /**
   * Adds the bytes at the reserved place. @returns whether it is the first one, so that a flush
   * must be scheduled
   */
  add(socket: QueuedSocket, length: number, mark: number): boolean {
    const i = this.#count++;
    this.#sockets[i] = socket;
    this.#lengths[i] = length;
    this.#marks[i] = mark;
    this.#at += length;
    return i === 0;
  }

  /** Sends all. */
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
