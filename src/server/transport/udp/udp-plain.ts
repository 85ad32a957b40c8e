/** The UDP listener that needs nothing but the runtime (`node:dgram`). */
import { createSocket, type RemoteInfo, type Socket } from 'node:dgram';

import { parseAddress } from '../../base/ip.ts';
import { DATAGRAM_MAX } from '../../runtime/packet-loop.ts';
import type { Query } from '../query.ts';
import { bindProblem } from '../bind-problem.ts';
import type { Listener, ListenerParts } from '../listener.ts';
import type { Outlet } from '../outlet.ts';
import { UdpListener } from './udp-listener.ts';
import { bareAddress } from '../connection-ends.ts';
import { canReusePort } from '../stream/stream-listener.ts';
import { arena } from '../write-reply.ts';
import { whyFailed } from '../../base/why-failed.ts';

/** Maximum number of clients whose addresses are cached as bytes. */
const PEERS_MAX = 4096;

/**
 * DNS over UDP on one address through `node:dgram`, which works everywhere. Unlike the batched listener, it cannot
 * choose a reply's source address if it listens on a wildcard address.
 */
export function plainUdpListener(parts: ListenerParts): PlainUdpListener {
  return new PlainUdpListener(parts);
}

class PlainUdpListener extends UdpListener implements Listener, Outlet<RemoteInfo> {
  readonly out: Uint8Array = arena;
  readonly at = 0;
  readonly #peers = new Map<string, Uint8Array>();
  #socket: Socket | null = null;
  #local = '';
  /** The sender of the current datagram. */
  #present: RemoteInfo | null = null;

  async open(): Promise<void> {
    const { address, port } = this.endpoint;
    const socket = createSocket({
      type: this.family === 4 ? 'udp4' : 'udp6',
      ipv6Only: this.family === 6,
      reusePort: canReusePort,
      // Addresses here are never names, so `send` can skip the lookup.
      lookup: (host, _, done) => done(null, host, this.family),
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
    this.#local = bareAddress(socket.address().address);
    socket.on('error', (error) => this.parts.log.error(`udp listener: ${whyFailed(error)}`));
    socket.on('message', this.#onMessage);
    this.#socket = socket;
    this.opened(socket.address().port);
  }

  async close(graceMs: number): Promise<void> {
    const socket = this.#socket;
    if (socket === null) return;
    // One turn for datagrams that the system has already delivered, and another for those sent by handlers of the last
    // replies.
    await new Promise((resolve) => setImmediate(resolve));
    await this.intake.quiet(graceMs);
    await new Promise((resolve) => setImmediate(resolve));
    this.intake.drop(this);
    this.#socket = null;
    await new Promise<void>((resolve) => socket.close(resolve));
  }

  #onMessage = (bytes: Buffer, from: RemoteInfo): void => {
    this.#present = from;
    const whole = bytes.length <= DATAGRAM_MAX;
    const proxied = this.proxied;
    const { length } = bytes;
    if (proxied !== null) {
      const peer = this.#peer(from.address);
      if (!proxied.take(bytes, 0, length, peer, 0, this.family, from.port)) return;
    }
    const start = proxied === null ? 0 : proxied.start;
    this.intake.take(this, bytes, start, length, this.parts.clock.now(), whole);
  };

  identify(query: Query): void {
    const { address, port } = this.#present!;
    query.proto = 'udp';
    query.family = this.family;
    query.peer = this.#peer(address);
    query.peerAt = 0;
    query.peerPort = port;
    query.local = this.#local;
    query.localPort = this.port;
    this.proxied?.identify(query);
  }

  wayBack(): RemoteInfo {
    return this.#present!;
  }

  reserve(): void {
    // Each reply is sent right away, so the arena is always empty.
  }

  send(length: number, way: RemoteInfo | null): void {
    const { port, address } = way ?? this.#present!;
    const bytes = Buffer.allocUnsafe(length);
    arena.copy(bytes, 0, 0, length);
    this.#socket?.send(bytes, 0, length, port, address, this.#onSent);
  }

  keepSilent(): void {
    // A datagram that is not a query requires no answer.
  }

  flush(): void {
    // There is never anything to send.
  }

  #onSent = (error: Error | null): void => {
    if (error === null) this.counters.sent.add(1);
    else this.counters.dropped.add(1);
  };

  #peer(text: string): Uint8Array {
    let bytes = this.#peers.get(text);
    if (bytes === undefined) {
      if (this.#peers.size >= PEERS_MAX) this.#peers.clear();
      bytes = parseAddress(bareAddress(text)) ?? new Uint8Array(16);
      this.#peers.set(text, bytes);
    }
    return bytes;
  }
}
