/** Listeners for connections: accepting them, limiting them, closing them. */
import { createServer, type Server, type Socket } from 'node:net';

import type { Clock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import { collectGrown } from '../../runtime/memory-policy.ts';
import type { Proto } from '../../wire/query-message.ts';
import { transports } from '../../wire/transports.ts';
import { bindProblem } from '../bind-problem.ts';
import { ConnectionTable, type EvictableConnection } from '../limits/connection-table.ts';
import { Handshakes } from './handshakes.ts';
import { inheritEnds } from '../connection-ends.ts';
import { HeldBytes, type Holder } from '../limits/held-bytes.ts';
import { Intake } from '../intake.ts';
import type { ListenerLimits } from '../limits/limits.ts';
import type { ListenerCounters } from '../listener-counters.ts';
import type { ListenAddress, Listener, ListenerParts, ListenerTerms } from '../listener.ts';
import { ProxiedStreams } from '../proxy/proxied-stream.ts';
import { TimerWheel } from '../timer-wheel.ts';
import { turns } from './turns.ts';
import { whyFailed } from '../../base/why-failed.ts';

/** Granularity of connections' time limits in milliseconds. */
const TICK_MS = 100;
const BACKLOG = 1024;
/**
 * After so many connections that were closed because memory was short, a megabyte or two, their
 * memory is collected.
 */
const COLLECT_EVERY = 32;

/** A client's connection: limited in number, in time and in memory. */
export interface StreamConnection extends EvictableConnection, Holder {}

/** The protocol that is spoken on the connections of a listener. */
export interface StreamProtocol {
  readonly proto: Proto;
  /**
   * Protocols offered in the TLS handshake (ALPN, RFC 7301); empty: the client's extension is
   * ignored.
   */
  readonly alpn: readonly string[];
  /** Takes over a socket once TLS and PROXY headers are dealt with. */
  connect(socket: Socket, host: StreamHost): StreamConnection;
}

/** The common part of the connections of one listener. */
export interface StreamHost {
  readonly intake: Intake;
  readonly clock: Clock;
  readonly log: Log;
  readonly limits: ListenerLimits;
  readonly counters: ListenerCounters;
  readonly wheel: TimerWheel;
  readonly held: HeldBytes<Holder>;
  /**
   * Sends everything that is written to the socket in this turn of the event loop with one system
   * call at its end.
   */
  gather(socket: Socket): void;
  /** Calls `job` at the end of this turn of the event loop. */
  whenTurnEnds(job: () => void): void;
  /** Called when a client has sent a query. */
  touch(connection: StreamConnection): void;
  /** Called when a connection is closed. */
  forget(connection: StreamConnection): void;
}

/**
 * A listener for connections of any protocol, with or without TLS. It accepts and limits them and
 * hands them to the protocol, after the TLS handshake and the PROXY header where there are such.
 */
export class StreamListener implements Listener, StreamHost {
  readonly endpoint: ListenAddress;
  readonly clock: Clock;
  readonly log: Log;
  readonly intake: Intake;
  readonly counters: ListenerCounters;
  readonly wheel: TimerWheel;
  readonly held: HeldBytes<Holder>;
  /** See `ListenerParts`. */
  readonly isShort: () => boolean;
  readonly #protocol: StreamProtocol;
  readonly #server: Server;
  readonly #connections: ConnectionTable<StreamConnection>;
  /** null: connections are not encrypted. */
  #handshakes: Handshakes | null = null;
  /** null: PROXY headers are not expected. */
  #proxied: ProxiedStreams | null = null;
  #limits: ListenerLimits;
  #port: number;
  /** Connections that were closed because memory was short. */
  #evictions = 0;
  #closing = false;
  /** Jobs to run at the end of this turn of the event loop. */
  #turnEnd: (() => void)[] = [];

  /** @throws Problem (`tls-missing`, `tls-certificate`) */
  constructor(parts: ListenerParts, protocol: StreamProtocol) {
    const { endpoint, terms, clock, log } = parts;
    this.endpoint = endpoint;
    this.clock = clock;
    this.log = log;
    this.counters = parts.counters(protocol.proto);
    this.wheel = new TimerWheel(clock, TICK_MS);
    this.held = new HeldBytes(terms.limits.heldBytes, () => this.counters.evicted.add(1));
    this.#connections = new ConnectionTable(() => this.counters.evicted.add(1));
    this.isShort = parts.isShort ?? (() => false);
    this.#protocol = protocol;
    this.#port = endpoint.port;
    this.#limits = terms.limits;
    this.intake = new Intake({
      ...parts,
      proto: protocol.proto,
      counters: this.counters,
      limits: terms.limits,
    });
    this.adopt(terms);
    this.#server = createServer({ noDelay: true }, this.#onSocket);
  }

  get port(): number {
    return this.#port;
  }

  get limits(): ListenerLimits {
    return this.#limits;
  }

  async open(): Promise<void> {
    this.#closing = false;
    this.#port = await listen(this.#server, this.endpoint);
    this.#server.on('error', (error) =>
      this.log.error(`${this.#protocol.proto} listener: ${whyFailed(error)}`),
    );
  }

  adopt({ limits, tls, proxy }: ListenerTerms): void {
    const { tls: encrypted } = transports[this.endpoint.scheme];
    if (encrypted === 'always' || (encrypted === 'optional' && tls !== null)) {
      if (this.#handshakes === null)
        this.#handshakes = new Handshakes(this, tls, this.#protocol.alpn, this.#acceptSecure);
      else this.#handshakes.adopt(tls);
    } else {
      this.#handshakes?.destroy();
      this.#handshakes = null;
    }
    if (proxy === null) {
      this.#proxied?.destroy();
      this.#proxied = null;
    } else if (this.#proxied === null) {
      this.#proxied = new ProxiedStreams(this, proxy, this.#begin);
    } else this.#proxied.adopt(proxy);
    this.#limits = limits;
    this.held.budget = limits.heldBytes;
    this.intake.adopt(limits);
  }

  async close(graceMs: number): Promise<void> {
    this.#closing = true;
    const closed = closeServer(this.#server);
    this.#proxied?.destroy();
    this.#handshakes?.destroy();
    await this.#connections.close(this.clock, graceMs);
    await closed;
    this.wheel.stop();
  }

  gather(socket: Socket): void {
    if (socket.writableCorked > 0) return;
    socket.cork();
    this.whenTurnEnds(() => socket.uncork());
  }

  whenTurnEnds(job: () => void): void {
    if (this.#turnEnd.push(job) === 1) setImmediate(this.#endTurn);
  }

  #endTurn = (): void => {
    const jobs = this.#turnEnd;
    this.#turnEnd = [];
    for (const job of jobs) job();
  };

  touch(connection: StreamConnection): void {
    this.#connections.touch(connection);
  }

  forget(connection: StreamConnection): void {
    this.held.forget(connection);
    this.#connections.delete(connection);
    this.counters.connections.add(-1);
  }

  #onSocket = (socket: Socket): void => {
    socket.on('error', () => socket.destroy());
    turns.hurry();
    // A client may be gone before its connection is accepted; it has no address then.
    if (this.#closing || socket.remoteAddress === undefined) socket.destroy();
    else if (this.#proxied === null) this.#begin(socket);
    else this.#proxied.begin(socket);
  };

  /** Continues with TLS or the protocol after the PROXY header. */
  #begin = (socket: Socket): void => {
    if (this.#handshakes === null) this.#accept(socket);
    else this.#handshakes.begin(socket);
  };

  #acceptSecure = (socket: Socket, below: Socket | null): void => {
    if (below !== null) inheritEnds(socket, below);
    this.#accept(socket);
  };

  /** The memory of a closed connection must be collected before memory is less short. */
  #evictedForMemory(): void {
    if (++this.#evictions % COLLECT_EVERY === 0) collectGrown();
  }

  #accept = (socket: Socket): void => {
    if (this.#closing || socket.destroyed) {
      socket.destroy();
      return;
    }
    // A client may close its side and still wait for replies, but only after it has sent a query.
    socket.allowHalfOpen = true;
    this.counters.accepted.add(1);
    this.counters.connections.add(1);
    const { connections, spared } = this.#limits;
    // Two for the new one: as long as memory is short, there have to be fewer and fewer.
    for (let evicts = 2; evicts > 0 && this.isShort(); evicts--)
      if (this.#connections.evictIdle(spared)) this.#evictedForMemory();
    this.#connections.add(this.#protocol.connect(socket, this), connections);
  };
}

/**
 * Starts a stream server so that several threads and processes can share the port.
 * @returns the port in use
 * @throws Problem
 */
async function listen(server: Server, endpoint: ListenAddress): Promise<number> {
  const { address, port } = endpoint;
  try {
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(
        {
          host: address,
          port,
          backlog: BACKLOG,
          ipv6Only: true,
          exclusive: true,
          reusePort: canReusePort,
        },
        () => {
          server.off('error', reject);
          resolve();
        },
      );
    });
  } catch (error) {
    throw await bindProblem(error, 'tcp', endpoint);
  }
  const bound = server.address();
  return bound !== null && typeof bound === 'object' ? bound.port : port;
}

/** Systems whose SO_REUSEPORT spreads the load; elsewhere one thread listens. */
export const canReusePort: boolean = process.platform === 'linux' || process.platform === 'freebsd';

function closeServer(server: Server): Promise<void> {
  return new Promise((resolve) => {
    if (!server.listening) return resolve();
    server.close(() => resolve());
  });
}
