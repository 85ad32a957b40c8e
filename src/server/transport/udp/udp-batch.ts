/** The UDP listener that receives and sends many datagrams with one system call. */
import type { Timer } from '../../base/clock.ts';
import { printAddress } from '../../base/ip.ts';
import { packetLoop, type PacketLoop, type SocketWatch } from '../../runtime/packet-loop.ts';
import { BATCH, CONTROL_SLOT, type ReceiveBatch } from '../../runtime/receive-batch.ts';
import type { SendBatch } from '../../runtime/send-batch.ts';
import { ADDRESS_AT, NAME_SIZE, NAME_SLOT, readPort } from '../../runtime/socket-address.ts';
import { inheritSocket, UdpSocket } from '../../runtime/udp-socket.ts';
import type { Query } from '../query.ts';
import { bindProblem } from '../bind-problem.ts';
import { SOCKET_BUFFER } from '../limits/limits.ts';
import type { Listener, ListenerParts } from '../listener.ts';
import type { Outlet } from '../outlet.ts';
import type { ProxiedDatagrams } from './proxied-datagrams.ts';
import { UdpListener } from './udp-listener.ts';
import { bareAddress } from '../connection-ends.ts';

/**
 * Number of batches that a socket may receive before the event loop continues, about 3 ms of work for ordinary queries.
 */
const ROUNDS = 8;
/** Milliseconds after which the event loop continues in any case. */
const TURN_MS = 5;
/**
 * Milliseconds after which a datagram waiting in the socket gets no reply. By then, its client has given up or retried:
 * glibc, Go and musl do so after 5 s, and c-ares after 2 s. Replying to the oldest queries would only delay all the
 * others as well.
 */
const STALE_MS = 4000;
/** Milliseconds between a full batch and a check of the kernel's count of lost datagrams. */
const LOST_MS = 1000;
/** Maximum number of used `WayBack` objects that are retained for reuse. */
const SPARE_MAX = 256;

/** A waiting query's client: its sockaddr, and the packet info with the address it queried. */
class WayBack {
  readonly name: Uint8Array<ArrayBuffer> = new Uint8Array(NAME_SLOT);
  readonly control: Uint8Array<ArrayBuffer> = new Uint8Array(CONTROL_SLOT);
  controlLength = 0;
}

/** DNS over UDP on one address, processing many datagrams per system call. Use it only if `batchedUdp` permits. */
export function batchedUdpListener(parts: ListenerParts): BatchedUdpListener {
  return new BatchedUdpListener(parts);
}

/**
 * No memory is allocated per query. The client's address stays in the receive slab as bytes, and the reply is written
 * into the send slab.
 */
class BatchedUdpListener extends UdpListener implements Listener, Outlet<WayBack> {
  readonly #locals: LocalNames;
  #loop: PacketLoop | null = null;
  #receiving!: ReceiveBatch;
  #sending!: SendBatch;
  #socket: UdpSocket | null = null;
  #watch: SocketWatch | null = null;
  /** Number of datagrams read at once. It is lower while queries are unusually expensive. */
  #most = BATCH;
  /** The last time the socket was empty. Everything in it now arrived later. */
  #emptyAt = 0;
  /** Number of lost datagrams counted so far. */
  #lost = 0;
  #lookForLost: Timer | null = null;
  /** Index of the current datagram in the batch. */
  #present = 0;
  readonly #spare: WayBack[] = [];

  constructor(parts: ListenerParts) {
    super(parts);
    this.#locals = new LocalNames(this.family, bareAddress(parts.endpoint.address));
  }

  async open(): Promise<void> {
    const { address, port } = this.endpoint;
    let socket: UdpSocket | null = null;
    try {
      const options = {
        family: this.family,
        reusePort: true,
        packetInfo: address === '0.0.0.0' || address === '::',
        buffer: SOCKET_BUFFER,
      };
      socket = inheritSocket(options, address, port);
      this.#emptyAt = socket === null ? this.parts.clock.now() : -Infinity;
      if (socket === null) {
        socket = new UdpSocket(options);
        socket.bind(address, port);
      }
      // From the first call on, the kernel notes when datagrams arrive.
      socket.lastCameAt();
      this.#lost = socket.lost;
    } catch (error) {
      socket?.close();
      throw await bindProblem(error, 'udp', this.endpoint);
    }
    this.#socket = socket;
    this.#loop = packetLoop();
    this.#receiving = this.#loop.receiving;
    this.#sending = this.#loop.sending;
    this.#watch = this.#loop.watch(socket.fd, this.#drain);
    this.opened(socket.port);
  }

  async close(graceMs: number): Promise<void> {
    const socket = this.#socket;
    if (socket === null) return;
    this.#refuseNew(socket);
    const { clock } = this.parts;
    const end = clock.now() + graceMs;
    while (this.#drain() && clock.now() < end)
      await new Promise((resolve) => setImmediate(resolve));
    await this.intake.quiet(Math.max(0, end - clock.now()));
    this.intake.drop(this);
    this.#lookForLost?.cancel();
    this.#countLost();
    this.#watch?.close();
    this.#watch = null;
    this.#socket = null;
    this.#loop = null;
    socket.close();
  }

  /**
   * Connects the socket to a peer that never sends: itself. A connected socket receives only from its peer. The kernel
   * therefore gives new queries to the other sockets on the port, while queries already queued here can still be read
   * and answered.
   */
  #refuseNew(socket: UdpSocket): void {
    try {
      const { address } = this.endpoint;
      const self = address === '0.0.0.0' ? '127.0.0.1' : address === '::' ? '::1' : address;
      socket.connect(self, this.port);
    } catch {
      // If there is no loopback address, queries are served until the grace period ends.
    }
  }

  /**
   * Serves the received datagrams.
   * @returns true if there may be more, which are read in a later turn
   */
  #drain = (): boolean => {
    const socket = this.#socket;
    if (socket === null) return false;
    const { clock } = this.parts;
    const receiving = this.#receiving;
    const intake = this.intake;
    const began = clock.now();
    let now = began;
    for (let round = 0; round < ROUNDS; round++) {
      const most = this.#most;
      const count = receiving.receive(socket.fd, most);
      const stale = count > 0 && this.#isStale(socket, now);
      if (count < most) this.#emptyAt = now;
      if (count <= 0) return false;
      if (stale) {
        this.counters.stale.add(count);
        if (count < most) return false;
        continue;
      }
      for (let i = 0; i < count; i++) {
        let start = i * receiving.slot;
        receiving.forReply(i, this.family);
        this.#present = i;
        const end = start + receiving.length(i);
        if (this.proxied !== null) {
          if (!this.#takeHeader(this.proxied, start, end)) continue;
          ({ start } = this.proxied);
        }
        intake.take(this, receiving.slab, start, end, now, !receiving.isCut(i));
      }
      this.flush();
      if (count < most) return false;
      this.#lookForLost ??= clock.after(LOST_MS, this.#countLost);
      const before = now;
      now = clock.now();
      if (now - before > TURN_MS) this.#most = Math.max(1, most >> 1);
      else if (most < BATCH) this.#most = most * 2;
      if (now - began > TURN_MS) return true;
    }
    return true;
  };

  /** Returns true if all the datagrams just read, including the last one, have been waiting too long. */
  #isStale(socket: UdpSocket, now: number): boolean {
    if (now - this.#emptyAt <= STALE_MS) return false;
    const cameAt = socket.lastCameAt();
    return cameAt > 0 && this.parts.clock.wall() - cameAt > STALE_MS;
  }

  /** @returns true if the datagram contains a message, whether or not a PROXY header precedes it */
  #takeHeader(proxied: ProxiedDatagrams, start: number, end: number): boolean {
    const receiving = this.#receiving;
    const family = this.family;
    const nameAt = this.#present * NAME_SLOT;
    const addressAt = nameAt + ADDRESS_AT[family];
    const { names, slab } = receiving;
    return proxied.take(slab, start, end, names, addressAt, family, readPort(names, nameAt));
  }

  /** After a burst, some datagrams may have been dropped for lack of buffer space. */
  #countLost = (): void => {
    this.#lookForLost = null;
    const socket = this.#socket;
    if (socket === null) return;
    const { lost } = socket;
    this.counters.lost.add((lost - this.#lost) >>> 0);
    this.#lost = lost;
  };

  identify(query: Query): void {
    const receiving = this.#receiving;
    const family = this.family;
    const nameAt = this.#present * NAME_SLOT;
    query.proto = 'udp';
    query.family = family;
    query.peer = receiving.names;
    query.peerAt = nameAt + ADDRESS_AT[family];
    query.peerPort = readPort(receiving.names, nameAt);
    const localAt = receiving.localAt(this.#present, family);
    query.local = this.#locals.print(receiving.controls, localAt);
    query.localPort = this.port;
    this.proxied?.identify(query);
  }

  get out(): Uint8Array {
    return this.#sending.slab;
  }

  get at(): number {
    return this.#sending.at;
  }

  reserve(size: number): void {
    if (!this.#sending.hasRoom(size)) this.flush();
  }

  send(length: number, way: WayBack | null): void {
    if (way === null) {
      this.#sending.addReply(length, this.#receiving, this.#present);
    } else {
      const size = NAME_SIZE[this.family];
      this.#sending.addTo(length, way.name, size, way.control, way.controlLength);
      this.keepSilent(way);
    }
  }

  keepSilent(way: WayBack | null): void {
    if (way !== null && this.#spare.length < SPARE_MAX) this.#spare.push(way);
  }

  wayBack(): WayBack {
    const way = this.#spare.pop() ?? new WayBack();
    const receiving = this.#receiving;
    receiving.copyWayBack(this.#present, way.name, way.control);
    way.controlLength = receiving.controlLength(this.#present);
    return way;
  }

  flush(): void {
    const sending = this.#sending;
    const socket = this.#socket;
    if (socket === null || sending.count === 0) return;
    this.counters.sent.add(sending.flush(socket.fd));
    if (sending.failed > 0) this.counters.dropped.add(sending.failed);
  }
}

/** Local addresses that queries are sent to, as text. Only the last one is cached, because it is usually the same. */
class LocalNames {
  readonly #size: 4 | 16;
  readonly #fixed: string;
  readonly #last = new Uint8Array(16);
  #lastText: string;

  /** @param fixed the address that the socket is bound to, used for packets without packet info */
  constructor(family: 4 | 6, fixed: string) {
    this.#size = family === 4 ? 4 : 16;
    this.#fixed = fixed;
    this.#lastText = family === 4 ? '0.0.0.0' : '::';
  }

  print(bytes: Uint8Array, at: number): string {
    if (at < 0) return this.#fixed;
    let i = 0;
    while (i < this.#size && this.#last[i] === bytes[at + i]) i++;
    if (i === this.#size) return this.#lastText;
    for (i = 0; i < this.#size; i++) this.#last[i] = bytes[at + i]!;
    this.#lastText = printAddress(bytes, at, this.#size);
    return this.#lastText;
  }
}
