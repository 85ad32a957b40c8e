/** Datagrams that wait for the end of their turn, to leave from many sockets one behind the other. */
import { Memory } from './memory.ts';

/** Datagrams that wait at most. */
const DATAGRAMS = 64;
/** The longest message that is sent: what a client sent over a stream. */
const MESSAGE_MAX = 65_535;

/** A socket that a datagram is to leave from. */
export interface QueuedSocket {
  /** Sends what lies at `address`, or tells its owner why not, who sends nothing then. `mark` is the owner's name for it. */
  sendNow(address: number, length: number, mark: number): void;
}

/**
 * Up to 64 datagrams of one turn, from any sockets. A datagram that leaves wakes whoever waits for it, which is
 * more than a quarter of the call's cost; when the next ones follow at once it is awake already, and takes them all.
 */
export class SendQueue {
  readonly #slab = new Memory(MESSAGE_MAX, false);
  readonly #sockets: (QueuedSocket | null)[] = Array<QueuedSocket | null>(DATAGRAMS).fill(null);
  readonly #lengths = new Int32Array(DATAGRAMS);
  readonly #marks = new Float64Array(DATAGRAMS);
  #count = 0;
  #at = 0;
  #round = 0;

  /** Makes room: what is there leaves if another datagram of this size would not fit. @returns where it is to be written */
  reserve(size: number): number {
    if (this.#count === DATAGRAMS || this.#at + size > MESSAGE_MAX) this.flush();
    return this.#at;
  }

  /** How often all were sent, as 32 bits: it changes with each batch, and begins anew. */
  get round(): number {
    return this.#round;
  }

  /** Where datagrams are written. */
  get slab(): Uint8Array {
    return this.#slab.bytes;
  }

  /** Adds what was written where `reserve` said. @returns whether it is the first one: somebody has to flush */
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
