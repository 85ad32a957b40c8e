/** UDP sockets to one peer, through the system's own calls. */
import { ERRNO, libc, SystemError } from './libc.ts';
import { DATAGRAM_MAX, packetLoop, type SocketWatch } from './packet-loop.ts';
import { ReceiveBatch } from './receive-batch.ts';
import { SendQueue, type QueuedSocket } from './send-queue.ts';
import { UdpSocket } from './udp-socket.ts';

const MSG_DONTWAIT = 0x40;
/** Datagrams that a socket takes at a time; then the others have their turn. */
const AT_A_TIME = 16;

/** Who owns a socket. */
export interface SocketOwner {
  /** Datagrams that it waits for: so many are looked for at a time, and one when it waits for none. */
  readonly waiting: number;
  /** The datagram is `bytes[start, end)`, valid during the call only. `cut`: it was longer. */
  onDatagram(bytes: Uint8Array, start: number, end: number, cut: boolean): void;
  /** The system says that something sent earlier did not arrive (an ICMP message came). */
  onError(error: SystemError): void;
  /**
   * A datagram met an error as it was to leave. To be taken note of only: nothing may be sent before the call is over.
   * @param mark what it was sent with
   * @param left whether it left all the same: then the error is that of one which was sent earlier
   */
  onUnsent(mark: number, error: SystemError, left: boolean): void;
}

/**
 * A UDP socket that is connected to one peer. There are many of them, one per source port, and each has few datagrams at a time:
 * so these are sent one by one, and received as many as are waited for, through memory that all sockets of the thread share. What
 * is sent in one turn leaves at its end.
 */
export class ConnectedSocket implements QueuedSocket {
  readonly #socket: UdpSocket;
  readonly #owner: SocketOwner;
  readonly #watch: SocketWatch;
  #open = true;

  /** @param source the local address; empty: whatever fits. @throws SystemError, LibcMissing */
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

  /** Where a datagram to be sent is written, from `reserve` on. */
  get out(): Uint8Array {
    return buffers().sending.slab;
  }

  /** Makes room for a datagram. @returns where in `out` it begins */
  reserve(size: number): number {
    return buffers().sending.reserve(size);
  }

  /** Sends what was written where `reserve` said, at the end of the turn. @param mark for `onUnsent` */
  send(length: number, mark: number): void {
    const { sending } = buffers();
    if (sending.add(this, length, mark)) packetLoop().whenTurnEnds(sending.flush);
  }

  sendNow(address: number, length: number, mark: number): void {
    if (!this.#open) return;
    const errno = this.#send(address, length);
    if (errno === 0) return;
    // An error that the system kept for the next call may be that of an earlier datagram: this one is sent once more.
    const left = this.#send(address, length) === 0;
    this.#owner.onUnsent(mark, new SystemError('write', errno), left);
  }

  /** @returns 0, or the number of the error */
  #send(address: number, length: number): number {
    for (;;) {
      if (libc().send(this.#socket.fd, address, length, MSG_DONTWAIT) >= 0) return 0;
      const errno = libc().errno();
      if (errno !== ERRNO.EINTR) return errno;
    }
  }

  /** The local address and port, `10.0.0.1:40000`. @throws SystemError */
  get local(): string {
    return this.#socket.local;
  }

  /** Keeps the event loop alive, or (the state at first) lets it end. */
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

  /** Takes what is waited for, or one error; what else there is comes with the next turn. */
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

/** Number of the batch that the next datagram leaves with: what is sent in one turn, 64 at most. */
export function sendingRound(): number {
  return buffers().sending.round;
}

let present: Buffers | null = null;

/** Of this thread, kept. */
function buffers(): Buffers {
  return (present ??= {
    received: new ReceiveBatch(DATAGRAM_MAX, { count: AT_A_TIME, senders: false }),
    sending: new SendQueue(),
  });
}
