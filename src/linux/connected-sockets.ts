import { ERRNO, libc, SystemError } from './libc.ts';
import { Memory } from './memory.ts';
import { DATAGRAM_MAX, packetLoop, type Watch } from './packet-loop.ts';
import { forgetDescriptor, noteDescriptor } from './held-by-thread.ts';
import { UdpSocket, type UdpSocketOptions } from './udp-socket.ts';

const EPOLL_CLOEXEC = 0o2000000;
const EPOLL_CTL_ADD = 1;
const EPOLL_CTL_DEL = 2;
const EPOLLIN = 1;
/** Words of a struct epoll_event (packed on x86-64), and where its data begins. */
const EVENT = process.arch === 'x64' ? { WORDS: 3, DATA: 1 } : { WORDS: 4, DATA: 2 };
/** Sockets that one system call tells of, and such calls in a row before others have their turn. */
const EVENTS = 64;
const ROUNDS = 4;

/** The longest message that is sent (of what a client sent over a stream). */
const MESSAGE_MAX = 65_535;

const MSG_DONTWAIT = 0x40;
const MSG_TRUNC = 0x20;

/** Who owns a socket of the set. */
export interface SocketOwner {
  /** The datagram is `bytes[0, length)`, valid during the call only. `cut`: it was longer. */
  onDatagram(bytes: Uint8Array, length: number, cut: boolean): void;
  /** The system says that something sent earlier did not arrive (an ICMP message came). */
  onError(error: SystemError): void;
}

/**
 * UDP sockets that are each connected to one peer, as many as there are source ports. They are watched together, by an epoll
 * instance inside the event loop's own: a call from outside JavaScript per socket would cost more than the datagram.
 */
export class ConnectedSockets {
  readonly #epoll: number;
  readonly #watch: Watch;
  readonly #events = new Memory(EVENTS * EVENT.WORDS * 4);
  readonly #received = new Memory(DATAGRAM_MAX, false);
  readonly #sent = new Memory(MESSAGE_MAX, false);
  readonly #owners: (SocketOwner | null)[] = [];
  readonly #descriptors: number[] = [];
  readonly #free: number[] = [];
  #sockets = 0;
  #held = 0;

  /** @throws SystemError, LibcMissing */
  constructor() {
    this.#epoll = libc().epollCreate(EPOLL_CLOEXEC);
    if (this.#epoll < 0) throw new SystemError('epoll_create1', libc().errno());
    noteDescriptor(this.#epoll);
    this.#watch = packetLoop().watch(this.#epoll, this.#drain);
    this.#watch.unref();
  }

  /** Opens a socket from `source` (empty: whatever address fits) to the peer. @throws SystemError */
  open(
    options: UdpSocketOptions,
    source: string,
    host: string,
    port: number,
    owner: SocketOwner,
  ): ConnectedSocket {
    const socket = new UdpSocket(options);
    try {
      if (source !== '') socket.bind(source, 0);
      socket.connect(host, port);
      return new ConnectedSocket(this, socket, this.#add(socket.fd, owner));
    } catch (error) {
      socket.close();
      throw error;
    }
  }

  /** While anybody holds it, it keeps the event loop alive. */
  hold(): void {
    if (this.#held++ === 0) this.#watch.ref();
  }

  release(): void {
    if (--this.#held === 0) this.#watch.unref();
  }

  get out(): Uint8Array {
    return this.#sent.bytes;
  }

  /** Sends the first bytes of `out`. @returns 0, or the number of the error */
  send(fd: number, length: number): number {
    for (;;) {
      if (libc().send(fd, this.#sent.address, length, MSG_DONTWAIT) >= 0) return 0;
      const errno = libc().errno();
      if (errno !== ERRNO.EINTR) return errno;
    }
  }

  /** Takes the socket out; it is not closed. */
  remove(fd: number, index: number): void {
    libc().epollControl(this.#epoll, EPOLL_CTL_DEL, fd, this.#events.address);
    this.#owners[index] = null;
    this.#free.push(index);
    // After this turn: a drain may be running.
    if (--this.#sockets === 0) setImmediate(this.#closeIdle);
  }

  #closeIdle = (): void => {
    if (this.#sockets > 0 || present !== this) return;
    present = null;
    this.#watch.close();
    forgetDescriptor(this.#epoll);
    libc().close(this.#epoll);
    for (const memory of [this.#events, this.#received, this.#sent]) memory.free();
  };

  #add(fd: number, owner: SocketOwner): number {
    const index = this.#free.pop() ?? this.#owners.length;
    const { words, address } = this.#events;
    words[0] = EPOLLIN;
    words[EVENT.DATA] = index;
    words[EVENT.DATA + 1] = fd;
    if (libc().epollControl(this.#epoll, EPOLL_CTL_ADD, fd, address) < 0) {
      this.#free.push(index);
      throw new SystemError('epoll_ctl', libc().errno());
    }
    this.#owners[index] = owner;
    this.#descriptors[index] = fd;
    this.#sockets++;
    return index;
  }

  #drain = (): void => {
    const { words, address } = this.#events;
    for (let round = 0; round < ROUNDS; round++) {
      const count = libc().epollWait(this.#epoll, address, EVENTS, 0);
      for (let i = 0; i < count; i++) {
        const data = i * EVENT.WORDS + EVENT.DATA;
        this.#take(words[data]!, words[data + 1]!);
      }
      if (count < EVENTS) return;
    }
  };

  /** One datagram, or error, of one socket; what else it has comes with the next round. */
  #take(index: number, fd: number): void {
    // Who was called earlier in this round may have closed it, and another one may have taken its place.
    const owner = this.#owners[index] ?? null;
    if (owner === null || this.#descriptors[index] !== fd) return;
    const length = libc().recv(fd, this.#received.address, DATAGRAM_MAX, MSG_DONTWAIT | MSG_TRUNC);
    if (length >= 0) {
      const cut = length > DATAGRAM_MAX;
      return owner.onDatagram(this.#received.bytes, cut ? DATAGRAM_MAX : length, cut);
    }
    const errno = libc().errno();
    if (errno !== ERRNO.EAGAIN && errno !== ERRNO.EINTR)
      owner.onError(new SystemError('read', errno));
  }
}

/** One socket of the set. */
export class ConnectedSocket {
  readonly #set: ConnectedSockets;
  readonly #socket: UdpSocket;
  readonly #index: number;
  #open = true;

  constructor(set: ConnectedSockets, socket: UdpSocket, index: number) {
    this.#set = set;
    this.#socket = socket;
    this.#index = index;
  }

  /** Where a datagram to be sent is written. */
  get out(): Uint8Array {
    return this.#set.out;
  }

  /** The local address and port, `10.0.0.1:40000`. @throws SystemError */
  get local(): string {
    return this.#socket.local;
  }

  /** Sends the first bytes of the set's `out`. @returns 0, or the number of the error */
  send(length: number): number {
    return this.#set.send(this.#socket.fd, length);
  }

  close(): void {
    if (!this.#open) return;
    this.#open = false;
    this.#set.remove(this.#socket.fd, this.#index);
    this.#socket.close();
  }
}

let present: ConnectedSockets | null = null;

/** This thread's set, which goes when its last socket has gone. @throws SystemError, LibcMissing */
export function connectedSockets(): ConnectedSockets {
  return (present ??= new ConnectedSockets());
}
