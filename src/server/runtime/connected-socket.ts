/** UDP sockets connected to one peer, implemented with system calls. */
import { ERRNO, libc, MSG_DONTWAIT, SystemError } from './libc.ts';
import { DATAGRAM_MAX, packetLoop, type SocketWatch } from './packet-loop.ts';
import { ReceiveBatch } from './receive-batch.ts';
import { SendQueue, type QueuedSocket } from './send-queue.ts';
import { UdpSocket } from './udp-socket.ts';

/** Maximum number of datagrams received from a socket before other sockets get their turn. */
const AT_A_TIME = 16;

export interface SocketOwner {
  /** Number of expected datagrams. At most this many are read at a time, or one if none is expected. */
  readonly waiting: number;
  /** The datagram is `bytes[start, end)`, valid only during the call. `cut` is true if it was longer. */
  onDatagram(bytes: Uint8Array, start: number, end: number, cut: boolean): void;
  /** Called when the system reports, after an ICMP message, that an earlier datagram did not arrive. */
  onError(error: SystemError): void;
  /**
   * Called when a send failed. The owner may only record it and must not send anything during the call.
   * @param mark the value passed to `send`
   * @param left true if the datagram was sent, so the error belongs to an earlier one
   */
  onUnsent(mark: number, error: SystemError, left: boolean): void;
}

/**
 * A UDP socket connected to one peer. There are many such sockets, one per source port, each with little traffic.
 * Datagrams are sent individually at the end of the turn, and received in batches into memory shared by all sockets of
 * the thread.
 */
export class ConnectedSocket implements QueuedSocket {
  readonly #socket: UdpSocket;
  readonly #owner: SocketOwner;
  readonly #watch: SocketWatch;
  #open = true;

  /**
   * @param source local address; empty: chosen by the system
   * @throws SystemError, LibcMissing
   */
  constructor(source: string, host: string, port: number, owner: SocketOwner) {
    this.#owner = owner;
    this.#socket = new UdpSocket({ family: host.includes(':') ? 6 : 4 });
    try {
      if (source !== '') this.#socket.bind(source, 0);
      this.#socket.connect(host, port);
      this.#watch = packetLoop().watch(this.#socket.fd, this.#drain);
    } catch (error) {
      this.#socket.close();
      throw error;
    }
    this.#watch.unref();
  }

  /** Buffer for outgoing datagrams; write at the index returned by `reserve`. */
  get out(): Uint8Array {
    return buffers().sending.slab;
  }

  /**
   * Makes room for a datagram.
   * @returns its index in `out`
   */
  reserve(size: number): number {
    return buffers().sending.reserve(size);
  }

  /**
   * Sends the datagram at the reserved index at the end of the turn.
   * @param mark passed to `onUnsent`
   */
  send(length: number, mark: number): void {
    const { sending } = buffers();
    if (sending.add(this, length, mark)) packetLoop().whenTurnEnds(sending.flush);
  }

  sendNow(address: number, length: number, mark: number): void {
    if (!this.#open) return;
    const errno = this.#send(address, length);
    if (errno === 0) return;
    // The error may belong to an earlier datagram and have been stored by the system, so send this one again.
    const left = this.#send(address, length) === 0;
    this.#owner.onUnsent(mark, new SystemError('write', errno), left);
  }

  /** @returns 0, or the error number */
  #send(address: number, length: number): number {
    for (;;) {
      if (libc().send(this.#socket.fd, address, length, MSG_DONTWAIT) >= 0) return 0;
      const errno = libc().errno();
      if (errno !== ERRNO.EINTR) return errno;
    }
  }

  /**
   * Returns the local address and port, `10.0.0.1:40000`.
   * @throws SystemError
   */
  get local(): string {
    return this.#socket.local;
  }

  /** Keeps the event loop alive, or lets it end (the initial state). */
  ref(): void {
    this.#watch.ref();
  }

  unref(): void {
    this.#watch.unref();
  }

  close(): void {
    this.#open = false;
    this.#watch.close();
    this.#socket.close();
  }

  /** Reads as many datagrams as are expected, or one error. The rest is read in the next turn. */
  #drain = (): void => {
    const { received } = buffers();
    const { waiting } = this.#owner;
    const count = received.receive(this.#socket.fd, waiting > 0 ? waiting : 1);
    if (count < 0) {
      if (count !== -ERRNO.EAGAIN) this.#owner.onError(new SystemError('read', -count));
      return;
    }
    for (let i = 0, start = 0; i < count && this.#open; i++, start += received.slot)
      this.#owner.onDatagram(received.slab, start, start + received.length(i), received.isCut(i));
  };
}

interface Buffers {
  readonly received: ReceiveBatch;
  readonly sending: SendQueue;
}

/** Returns the number of the batch that the next datagram joins. A batch is everything sent in one turn, up to 64. */
export function sendingRound(): number {
  return buffers().sending.round;
}

let present: Buffers | null = null;

function buffers(): Buffers {
  return (present ??= {
    received: new ReceiveBatch(DATAGRAM_MAX, { count: AT_A_TIME, senders: false }),
    sending: new SendQueue(),
  });
}
