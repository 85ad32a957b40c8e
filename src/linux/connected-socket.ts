/** UDP sockets to one peer, through the system's own calls. */
import { ERRNO, libc, SystemError } from './libc.ts';
import { Memory } from './memory.ts';
import { DATAGRAM_MAX, packetLoop, type Watch } from './packet-loop.ts';
import { SendQueue, type QueuedSocket } from './send-queue.ts';
import { UdpSocket } from './udp-socket.ts';

const MSG_DONTWAIT = 0x40;
const MSG_TRUNC = 0x20;

/** Who owns a socket. */
export interface SocketOwner {
  /** The datagram is `bytes[0, length)`, valid during the call only. `cut`: it was longer. */
  onDatagram(bytes: Uint8Array, length: number, cut: boolean): void;
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
 * A UDP socket that is connected to one peer. There are many of them, one per source port, and each has a datagram at a time:
 * so they are sent and received one by one, through memory that all sockets of the thread share. What is sent in one turn
 * leaves at its end.
 */
export class ConnectedSocket implements QueuedSocket {
  readonly #socket: UdpSocket;
  readonly #owner: SocketOwner;
  readonly #watch: Watch;
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

  /** Takes one datagram, or error; what else there is comes with the next turn. */
  #drain = (): void => {
    const { received } = buffers();
    const flags = MSG_DONTWAIT | MSG_TRUNC;
    const length = libc().recv(this.#socket.fd, received.address, DATAGRAM_MAX, flags);
    if (length >= 0) {
      const cut = length > DATAGRAM_MAX;
      return this.#owner.onDatagram(received.bytes, cut ? DATAGRAM_MAX : length, cut);
    }
    const errno = libc().errno();
    if (errno !== ERRNO.EAGAIN && errno !== ERRNO.EINTR)
      this.#owner.onError(new SystemError('read', errno));
  };
}

interface Buffers {
  readonly received: Memory;
  readonly sending: SendQueue;
}

let present: Buffers | null = null;

/** Of this thread, kept. */
function buffers(): Buffers {
  return (present ??= {
    received: new Memory(DATAGRAM_MAX, false),
    sending: new SendQueue(),
  });
}
