import { printAddress } from '../base/ip.ts';
import type { Later } from '../base/later.ts';
import { isLater, whenSettled } from '../base/maybe.ts';
import { batchedUdp, packetLoop, type PacketLoop, type Watch } from '../linux/packet-loop.ts';
import { BATCH, CONTROL_SLOT } from '../linux/receive-batch.ts';
import { ADDRESS_AT, NAME_SIZE, NAME_SLOT, readPort } from '../linux/socket-address.ts';
import { inheritSocket, UdpSocket } from '../linux/udp-socket.ts';
import { Query } from '../wire/query.ts';
import { silence, type Reply } from '../wire/reply.ts';
import { stamp } from '../wire/stamp.ts';
import { bindProblem } from './bind-problem.ts';
import {
  makeCounters,
  type Endpoint,
  type Listener,
  type ListenerParts,
  type ListenerCounters,
} from './listener.ts';
import { plainAddress } from './stream-connection.ts';
import { MAX_WAITING, SOCKET_BUFFER } from './udp-limits.ts';
import { roomFor, writeFailure, writeRejection } from './write-reply.ts';

export { batchedUdp };

/** Batches that one socket may take before the event loop has its turn: at most about 3 ms of work. */
const ROUNDS = 8;
const REJECTION_ROOM = 512;
/** Places for waiting queries that are kept for later ones. */
const IDLE_MAX = 256;

/** A query whose reply is awaited, and the way back to its client. Used again when that has gone. */
class Waiting {
  query: Query | null = null;
  reply: Reply | null = null;
  readonly name = new Uint8Array(NAME_SLOT);
  readonly control = new Uint8Array(CONTROL_SLOT);
  controlLength = 0;
}

/** DNS over UDP at one address, many datagrams per system call. Only where `batchedUdp` says so. */
export function batchedUdpListener(parts: ListenerParts): Listener {
  return new BatchedUdpListener(parts);
}

/**
 * Per query nothing is allocated: one `Query` is a view of the receive slab, its client's address stays there as bytes, and
 * the reply is stamped into the send slab. Only a query that has to wait is copied.
 */
class BatchedUdpListener implements Listener {
  readonly endpoint: Endpoint;
  readonly counters: ListenerCounters;
  readonly #parts: ListenerParts;
  readonly #family: 4 | 6;
  readonly #query = new Query();
  readonly #locals: LocalNames;
  #loop: PacketLoop | null = null;
  #socket: UdpSocket | null = null;
  #watch: Watch | null = null;
  #port: number;
  #waiting = 0;
  readonly #idle: Waiting[] = [];
  #late: Waiting[] = [];
  #onQuiet: (() => void) | null = null;

  constructor(parts: ListenerParts) {
    this.#parts = parts;
    this.endpoint = parts.endpoint;
    this.#port = parts.endpoint.port;
    this.#family = parts.endpoint.address.includes(':') ? 6 : 4;
    this.#locals = new LocalNames(this.#family, plainAddress(parts.endpoint.address));
    this.counters = parts.counters ?? makeCounters();
  }

  get port(): number {
    return this.#port;
  }

  async open(): Promise<void> {
    const { address, port } = this.endpoint;
    let socket: UdpSocket | null = null;
    try {
      const options = {
        family: this.#family,
        reusePort: true,
        packetInfo: address === '0.0.0.0' || address === '::',
        buffer: SOCKET_BUFFER,
      };
      socket = inheritSocket(options, address, port);
      if (socket === null) {
        socket = new UdpSocket(options);
        socket.bind(address, port);
      }
      this.#port = socket.port;
    } catch (error) {
      socket?.close();
      throw await bindProblem(error, 'udp', this.endpoint);
    }
    this.#socket = socket;
    this.#loop = packetLoop();
    this.#watch = this.#loop.watch(socket.fd, this.#drain);
  }

  async close(graceMs: number): Promise<void> {
    const socket = this.#socket;
    if (socket === null) return;
    this.#refuseNew(socket);
    this.#drain();
    if (this.#waiting > 0) await this.#quiet(graceMs);
    this.#sendLate();
    this.#watch?.close();
    this.#watch = null;
    this.#socket = null;
    socket.close();
  }

  /**
   * A connected socket gets only what its peer sends, so the system gives new queries to the other sockets of the port, while
   * what it had already queued here can still be read and answered. The peer is one that never sends: the socket itself.
   */
  #refuseNew(socket: UdpSocket): void {
    try {
      const { address } = this.endpoint;
      const self = address === '0.0.0.0' ? '127.0.0.1' : address === '::' ? '::1' : address;
      socket.connect(self, this.#port);
    } catch {
      // No loopback: then what comes until the end of the grace is served.
    }
  }

  #drain = (): void => {
    const loop = this.#loop;
    const socket = this.#socket;
    if (loop === null || socket === null) return;
    for (let round = 0; round < ROUNDS; round++) {
      const count = loop.receiving.receive(socket.fd);
      if (count <= 0) return;
      const now = this.#parts.clock.now();
      this.counters.received += count;
      for (let i = 0; i < count; i++) this.#take(loop, i, now);
      this.#flush(loop, socket.fd);
      if (count < BATCH) return;
    }
  };

  #take(loop: PacketLoop, i: number, now: number): void {
    const { receiving, sending } = loop;
    const query = this.#query;
    const start = i * receiving.slot;
    let triage = query.read(receiving.slab, start, start + receiving.length(i));
    if (receiving.isCut(i)) {
      this.counters.cut++;
      if (triage === 'serve') triage = 'formerr';
    }
    receiving.forReply(i, this.#family);
    if (triage !== 'serve') {
      if (!sending.hasRoom(REJECTION_ROOM)) this.#flush(loop, this.#socket!.fd);
      const length = writeRejection(triage, query, sending.slab, sending.at);
      if (length === 0) this.counters.ignored++;
      else {
        this.counters.rejected++;
        sending.addReply(length, receiving, i);
      }
      return;
    }
    const family = this.#family;
    const nameAt = i * NAME_SLOT;
    query.proto = 'udp';
    query.family = family;
    query.peer = receiving.names;
    query.peerAt = nameAt + ADDRESS_AT[family];
    query.peerPort = readPort(receiving.names, nameAt);
    query.local = this.#locals.print(receiving.controls, receiving.localAt(i, family));
    query.localPort = this.#port;
    query.arrived = now;
    this.#serve(loop, i, query);
  }

  #serve(loop: PacketLoop, i: number, query: Query): void {
    const { receiving, sending } = loop;
    if (this.#waiting >= MAX_WAITING) {
      this.counters.shed++;
      return;
    }
    let reply;
    try {
      reply = this.#parts.serve(query);
    } catch (error) {
      this.#parts.log.error(`udp listener: ${String(error)}`);
      if (!sending.hasRoom(REJECTION_ROOM)) this.#flush(loop, this.#socket!.fd);
      sending.addReply(writeFailure(query, sending.slab, sending.at), receiving, i);
      return;
    }
    if (isLater(reply)) {
      this.#wait(loop, i, query.keep(), reply);
    } else if (reply !== silence) {
      if (!sending.hasRoom(roomFor(reply))) this.#flush(loop, this.#socket!.fd);
      sending.addReply(stamp(reply, query, sending.slab, sending.at), receiving, i);
    }
  }

  #flush(loop: PacketLoop, fd: number): void {
    const { sending } = loop;
    if (sending.count === 0) return;
    this.counters.sent += sending.flush(fd);
    this.counters.dropped += sending.failed;
  }

  #wait(loop: PacketLoop, i: number, query: Query, reply: Promise<Reply> | Later<Reply>): void {
    const waiting = this.#idle.pop() ?? new Waiting();
    waiting.query = query;
    loop.receiving.copyWayBack(i, waiting.name, waiting.control);
    waiting.controlLength = loop.receiving.controlLength(i);
    this.#waiting++;
    whenSettled(reply, this.#onReply, this.#onError, waiting);
  }

  #onReply = (reply: Reply, waiting: Waiting): void => {
    waiting.reply = reply;
    this.#arrive(waiting);
  };

  #onError = (error: unknown, waiting: Waiting): void => {
    this.#parts.log.error(`udp listener: ${String(error)}`);
    this.#arrive(waiting);
  };

  /** What arrives in one turn leaves together, once all promises of the turn have settled. */
  #arrive(waiting: Waiting): void {
    this.#late.push(waiting);
    if (this.#late.length === 1) process.nextTick(this.#sendLate);
  }

  #sendLate = (): void => {
    const late = this.#late;
    if (late.length === 0) return;
    this.#late = [];
    this.#waiting -= late.length;
    const loop = this.#loop;
    const socket = this.#socket;
    if (loop === null || socket === null) {
      this.counters.dropped += late.length;
      return;
    }
    const { sending } = loop;
    for (const waiting of late) {
      const { reply, name, control, controlLength } = waiting;
      const query = waiting.query!;
      waiting.query = null;
      waiting.reply = null;
      if (this.#idle.length < IDLE_MAX) this.#idle.push(waiting);
      if (reply === silence) continue;
      const room = reply === null ? REJECTION_ROOM : roomFor(reply);
      if (!sending.hasRoom(room)) this.#flush(loop, socket.fd);
      const { slab, at } = sending;
      const length = reply === null ? writeFailure(query, slab, at) : stamp(reply, query, slab, at);
      sending.addTo(length, name, NAME_SIZE[this.#family], control, controlLength);
    }
    this.#flush(loop, socket.fd);
    if (this.#waiting === 0) this.#onQuiet?.();
  };

  #quiet(graceMs: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = this.#parts.clock.after(graceMs, resolve);
      this.#onQuiet = () => {
        timer.cancel();
        resolve();
      };
    });
  }
}

/** The text of the addresses that queries are sent to: mostly the same one as before. */
class LocalNames {
  readonly #size: 4 | 16;
  readonly #fixed: string;
  readonly #last = new Uint8Array(16);
  #lastText: string;

  /** @param fixed what the socket is bound to: the answer when the packet does not say more */
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
