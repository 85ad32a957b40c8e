import { createSocket, type RemoteInfo, type Socket } from 'node:dgram';

import { parseAddress } from '../base/ip.ts';
import { isLater } from '../base/maybe.ts';
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
import { canReusePort } from './stream-listener.ts';
import { MAX_QUERY, MAX_WAITING } from './udp-limits.ts';
import { REPLY_ROOM, writeFailure, writeRejection } from './write-reply.ts';

/** Client addresses whose bytes are remembered. */
const MAX_PEERS = 4096;

/**
 * DNS over UDP at one address through `node:dgram`: works everywhere. On a wildcard address it can't choose the address that
 * a reply leaves from; the batched listener does.
 */
export function plainUdpListener(parts: ListenerParts): Listener {
  return new PlainUdpListener(parts);
}

const arena = Buffer.allocUnsafeSlow(REPLY_ROOM);

class PlainUdpListener implements Listener {
  readonly endpoint: Endpoint;
  readonly counters: ListenerCounters;
  readonly #parts: ListenerParts;
  readonly #family: 4 | 6;
  readonly #query = new Query();
  readonly #peers = new Map<string, Uint8Array>();
  #socket: Socket | null = null;
  #port: number;
  #local = '';
  #waiting = 0;
  #onQuiet: (() => void) | null = null;

  constructor(parts: ListenerParts) {
    this.#parts = parts;
    this.endpoint = parts.endpoint;
    this.#port = parts.endpoint.port;
    this.#family = parts.endpoint.address.includes(':') ? 6 : 4;
    this.counters = parts.counters ?? makeCounters();
  }

  get port(): number {
    return this.#port;
  }

  async open(): Promise<void> {
    const { address, port } = this.endpoint;
    const socket = createSocket({
      type: this.#family === 4 ? 'udp4' : 'udp6',
      ipv6Only: this.#family === 6,
      reusePort: canReusePort,
      // Addresses are never names here: nothing to look up, so a send needs no detour.
      lookup: (host, _, done) => done(null, host, this.#family),
    });
    try {
      await new Promise<void>((resolve, reject) => {
        socket.once('error', reject);
        socket.bind({ address, port, exclusive: true }, () => {
          socket.off('error', reject);
          resolve();
        });
      });
    } catch (error) {
      socket.close();
      throw await bindProblem(error, 'udp', this.endpoint);
    }
    this.#port = socket.address().port;
    this.#local = plainAddress(socket.address().address);
    socket.on('error', (error) => this.#parts.log.error(`udp listener: ${error.message}`));
    socket.on('message', this.#onMessage);
    this.#socket = socket;
  }

  async close(graceMs: number): Promise<void> {
    const socket = this.#socket;
    if (socket === null) return;
    // One more turn for what the system has already handed over.
    await new Promise((resolve) => setImmediate(resolve));
    if (this.#waiting > 0) await this.#quiet(graceMs);
    this.#socket = null;
    await new Promise<void>((resolve) => socket.close(resolve));
  }

  #onMessage = (bytes: Buffer, from: RemoteInfo): void => {
    const { serve, clock, log } = this.#parts;
    const { counters } = this;
    counters.received++;
    const query = this.#query;
    let triage = query.read(bytes, 0, bytes.length);
    if (bytes.length > MAX_QUERY) {
      counters.cut++;
      if (triage === 'serve') triage = 'formerr';
    }
    if (triage !== 'serve') {
      const length = writeRejection(triage, query, arena, 0);
      if (length === 0) counters.ignored++;
      else counters.rejected++;
      this.#send(length, from);
      return;
    }
    query.proto = 'udp';
    query.family = this.#family;
    query.peer = this.#peer(from.address);
    query.peerAt = 0;
    query.peerPort = from.port;
    query.local = this.#local;
    query.localPort = this.#port;
    query.arrived = clock.now();
    if (this.#waiting >= MAX_WAITING) {
      counters.shed++;
      return;
    }
    let reply;
    try {
      reply = serve(query);
    } catch (error) {
      log.error(`udp listener: ${String(error)}`);
      this.#send(writeFailure(query, arena, 0), from);
      return;
    }
    if (isLater(reply)) this.#wait(query.keep(), reply, from);
    else if (reply !== silence) this.#send(stamp(reply, query, arena, 0), from);
  };

  #wait(query: Query, promise: PromiseLike<Reply>, from: RemoteInfo): void {
    this.#waiting++;
    promise.then(
      (reply) => {
        this.#settled();
        if (reply !== silence) this.#send(stamp(reply, query, arena, 0), from);
      },
      (error: unknown) => {
        this.#settled();
        this.#parts.log.error(`udp listener: ${String(error)}`);
        this.#send(writeFailure(query, arena, 0), from);
      },
    );
  }

  #settled(): void {
    if (--this.#waiting === 0) this.#onQuiet?.();
  }

  #send(length: number, to: RemoteInfo): void {
    if (length === 0) return;
    if (this.#socket === null) {
      this.counters.dropped++;
      return;
    }
    const out = Buffer.allocUnsafe(length);
    arena.copy(out, 0, 0, length);
    this.#socket.send(out, 0, length, to.port, to.address, this.#onSent);
  }

  #onSent = (error: Error | null): void => {
    if (error === null) this.counters.sent++;
    else this.counters.dropped++;
  };

  #peer(text: string): Uint8Array {
    let bytes = this.#peers.get(text);
    if (bytes === undefined) {
      if (this.#peers.size >= MAX_PEERS) this.#peers.clear();
      bytes = parseAddress(plainAddress(text)) ?? new Uint8Array(16);
      this.#peers.set(text, bytes);
    }
    return bytes;
  }

  #quiet(graceMs: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = this.#parts.clock.after(graceMs, resolve);
      this.#onQuiet = () => {
        timer.cancel();
        // The last reply's promise has settled, but its bytes leave after the handlers have run.
        setImmediate(resolve);
      };
    });
  }
}
