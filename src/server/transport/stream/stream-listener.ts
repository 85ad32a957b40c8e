/** Listeners for connections: they accept, limit and close them. */
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

/** Granularity of connection time limits in milliseconds. */
const TICK_MS = 100;
const BACKLOG = 1024;
/** Number of connections that may be closed for lack of memory before their memory, a megabyte or two, is collected. */
const COLLECT_EVERY = 32;

/** A client connection, subject to limits on number, time and memory. */
export interface StreamConnection extends EvictableConnection, Holder {}

export interface StreamProtocol {
  readonly proto: Proto;
  /** Protocols offered in the TLS handshake (ALPN, RFC 7301). If empty, the client's extension is ignored. */
  readonly alpn: readonly string[];
  /** Takes over a socket once TLS and any PROXY header have been handled. */
  connect(socket: Socket, host: StreamListener): StreamConnection;
}

/**
 * A listener for connections of any protocol, with or without TLS. It accepts and limits connections, handles TLS and
 * the PROXY header, if any, and then passes the connections to the protocol.
 */
export class StreamListener implements Listener {
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
  /** Null if connections are not encrypted. */
  #handshakes: Handshakes | null = null;
  /** Null if no PROXY headers are expected. */
  #proxied: ProxiedStreams | null = null;
  #limits: ListenerLimits;
  #port: number;
  /** Number of connections closed because memory was short. */
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

  /**
   * Collects everything written to the socket in this turn of the event loop, and then sends it with a single system
   * call.
   */
  gather(socket: Socket): void {
    if (socket.writableCorked > 0) return;
    socket.cork();
    this.whenTurnEnds(() => socket.uncork());
  }

  /** Calls `job` at the end of this turn of the event loop. */
  whenTurnEnds(job: () => void): void {
    if (this.#turnEnd.push(job) === 1) setImmediate(this.#endTurn);
  }

  #endTurn = (): void => {
    const jobs = this.#turnEnd;
    this.#turnEnd = [];
    for (const job of jobs) job();
  };

  /** Called when a client has sent a query. */
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
    // A client may disconnect before its connection is accepted, in which case the connection has no address.
    if (this.#closing || socket.remoteAddress === undefined) socket.destroy();
    else if (this.#proxied === null) this.#begin(socket);
    else this.#proxied.begin(socket);
  };

  /** Continues after the PROXY header, either with TLS or with the protocol. */
  #begin = (socket: Socket): void => {
    if (this.#handshakes === null) this.#accept(socket);
    else this.#handshakes.begin(socket);
  };

  #acceptSecure = (socket: Socket, below: Socket | null): void => {
    if (below !== null) inheritEnds(socket, below);
    this.#accept(socket);
  };

  /** A closed connection's memory has to be collected before it helps. */
  #evictedForMemory(): void {
    if (++this.#evictions % COLLECT_EVERY === 0) collectGrown();
  }

  #accept = (socket: Socket): void => {
    if (this.#closing || socket.destroyed) {
      socket.destroy();
      return;
    }
    // A client may close its side and still wait for replies, but only if it has sent a query.
    socket.allowHalfOpen = true;
    this.counters.accepted.add(1);
    this.counters.connections.add(1);
    const { connections, spared } = this.#limits;
    // Close two for each new one, so that their number decreases while memory is short.
    for (let evicts = 2; evicts > 0 && this.isShort(); evicts--)
      if (this.#connections.evictIdle(spared)) this.#evictedForMemory();
    this.#connections.add(this.#protocol.connect(socket, this), connections);
  };
}

/**
 * Starts a stream server on a port that several threads and processes can share.
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

/** True on systems where SO_REUSEPORT distributes the load. Elsewhere, only one thread listens. */
export const canReusePort: boolean = process.platform === 'linux' || process.platform === 'freebsd';

function closeServer(server: Server): Promise<void> {
  return new Promise((resolve) => {
    if (!server.listening) return resolve();
    server.close(() => resolve());
  });
}
