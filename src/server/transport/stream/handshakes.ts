import type { Socket } from 'node:net';
import type { Server as TlsServer, TlsOptions, TLSSocket } from 'node:tls';

import { whyFailed } from '../../base/why-failed.ts';
import { builtins } from '../../base/builtins.ts';
import { Problem } from '../../base/problem.ts';
import type { Clock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import { ConnectionTable, type EvictableConnection } from '../limits/connection-table.ts';
import { KeyLog } from './key-log.ts';
import type { ListenerLimits } from '../limits/limits.ts';
import type { ListenerCounters } from '../listener-counters.ts';
import type { ClientAuth, ListenerTls } from '../listener.ts';
import { ticketKeys, ticketPeriod } from './ticket-keys.ts';
import { Timed, type TimerWheel } from '../timer-wheel.ts';

/** The listener's functions for handshakes. */
export interface HandshakeHost {
  readonly limits: ListenerLimits;
  readonly counters: ListenerCounters;
  readonly wheel: TimerWheel;
  readonly clock: Clock;
  readonly log: Log;
  /** See `ListenerParts`. */
  readonly isShort: () => boolean;
}

/** Maximum number of concurrent handshakes while memory is short. Each takes about 50 KiB. */
const SHORT_MAX = 64;

/**
 * Performs a listener's TLS handshakes. Unfinished handshakes have their own limits in number and time, so half-open
 * connections never cost a client that uses TLS its connection.
 */
export class Handshakes {
  readonly #host: HandshakeHost;
  readonly #alpn: readonly string[];
  readonly #ready: (socket: TLSSocket, below: Socket | null) => void;
  readonly #table: ConnectionTable<Handshake>;
  /**
   * Keyed by both addresses and ports, because the runtime offers no other way to get from a TLS socket to its TCP
   * socket.
   */
  readonly #byEnds = new Map<string, Handshake>();
  #server: TlsServer;
  #tls: ListenerTls | null = null;
  #period = 0;

  /**
   * @param tls null if no certificate is configured, which is a problem
   * @param alpn the protocols offered to clients; if empty, their ALPN extension is ignored
   * @param ready receives the TLS socket after a successful handshake, and the TCP socket below it
   * @throws Problem (`tls-missing`, `tls-certificate`)
   */
  constructor(
    host: HandshakeHost,
    tls: ListenerTls | null,
    alpn: readonly string[],
    ready: (socket: TLSSocket, below: Socket | null) => void,
  ) {
    this.#host = host;
    this.#alpn = alpn;
    this.#ready = ready;
    this.#table = new ConnectionTable(() => host.counters.evicted.add(1));
    this.#server = this.#makeServer(tls);
  }

  /**
   * Switches to a different certificate, starting with the next handshake.
   * @throws Problem (`tls-missing`, `tls-certificate`)
   */
  adopt(tls: ListenerTls | null): void {
    this.#server = this.#makeServer(tls);
  }

  begin(socket: Socket): void {
    const key = ends(socket);
    const { counters, wheel, limits, isShort } = this.#host;
    const handshake = new Handshake(socket, (state) => {
      wheel.cancel(handshake);
      this.#byEnds.delete(key);
      this.#table.delete(handshake);
      counters.handshakes.add(-1);
      if (state !== 'done') counters.failedHandshakes.add(1);
      if (state === 'late') counters.timedOut.add(1);
    });
    const most = isShort() ? Math.min(SHORT_MAX, limits.handshakes) : limits.handshakes;
    this.#table.add(handshake, most);
    this.#byEnds.set(key, handshake);
    counters.handshakes.add(1);
    wheel.set(handshake, limits.readTimeoutMs);
    this.#renewTickets();
    this.#server.emit('connection', socket);
  }

  destroy(): void {
    for (const handshake of this.#table) handshake.destroy();
  }

  /** Switches to the current period's ticket keys if a new period has begun. */
  #renewTickets(): void {
    const period = ticketPeriod(this.#host.clock.wall());
    if (period === this.#period || this.#tls === null) return;
    this.#period = period;
    const keys = ticketKeys(this.#tls, period);
    if (keys !== null) this.#server.setTicketKeys(keys);
  }

  /**
   * Creates a TLS server that never listens and has connections passed to it. Handshakes are timed here, so the
   * server's own time limit is effectively disabled.
   */
  #makeServer(tls: ListenerTls | null): TlsServer {
    const options = {
      ...contextOf(tls),
      ...(this.#alpn.length > 0 && { ALPNProtocols: [...this.#alpn] }),
      handshakeTimeout: 0x7fffffff,
    };
    const server = usable(() => builtins.tls().createServer(options));
    this.#tls = tls;
    // Ticket keys are set before the next handshake.
    this.#period = -1;
    server.on('secureConnection', (socket) => {
      const handshake = this.#byEnds.get(ends(socket));
      if (isWelcome(socket, tls!.clientAuth)) {
        handshake?.succeeded();
        this.#ready(socket, handshake?.socket ?? null);
      } else {
        socket.destroy();
      }
    });
    const secrets = tls?.keyLog ?? null;
    if (secrets !== null) {
      const keyLog = new KeyLog(secrets, this.#host.log);
      server.on('keylog', (line) => keyLog.append(line));
    }
    // The runtime leaves the socket of a failed handshake open.
    server.on('tlsClientError', (_, socket) => socket.destroy());
    return server;
  }
}

/** A connection with an unfinished TLS handshake. */
class Handshake extends Timed implements EvictableConnection {
  readonly busy = false;
  readonly socket: Socket;
  #over: ((state: 'done' | 'failed' | 'late') => void) | null;

  constructor(socket: Socket, over: (state: 'done' | 'failed' | 'late') => void) {
    super();
    this.socket = socket;
    this.#over = over;
    socket.once('close', this.#failed);
  }

  succeeded(): void {
    this.socket.off('close', this.#failed);
    this.#end('done');
  }

  override expire(): void {
    this.#end('late');
    this.socket.destroy();
  }

  finish(): void {
    this.destroy();
  }

  destroy(): void {
    this.#end('failed');
    this.socket.destroy();
  }

  #failed = (): void => this.#end('failed');

  #end(state: 'done' | 'failed' | 'late'): void {
    const over = this.#over;
    this.#over = null;
    over?.(state);
  }
}

/** Returns true if the client has presented the required certificate. */
function isWelcome(socket: TLSSocket, clientAuth: ClientAuth): boolean {
  switch (clientAuth) {
    case 'nocert':
    case 'request':
      return true;
    case 'require':
      return socket.getPeerX509Certificate() !== undefined;
    case 'verify_if_given':
      return socket.authorized || socket.getPeerX509Certificate() === undefined;
    case 'require_and_verify':
      return socket.authorized;
  }
}

function ends({ remoteAddress, remotePort, localAddress }: Socket): string {
  return `${remoteAddress} ${remotePort} ${localAddress}`;
}

/**
 * TLS 1.2 and later, with the listener's certificate and without renegotiation, as in Go's servers and hence in
 * CoreDNS.
 */
function contextOf(tls: ListenerTls | null): TlsOptions {
  if (tls === null) {
    throw new Problem({
      code: 'tls-missing',
      text: 'this listener needs a certificate',
      remedy: 'Add "tls CERT KEY" to the server block.',
    });
  }
  return {
    minVersion: 'TLSv1.2',
    secureOptions: builtins.crypto().constants.SSL_OP_NO_RENEGOTIATION,
    cert: tls.certificate,
    key: tls.key,
    requestCert: tls.clientAuth !== 'nocert',
    // The client's certificate is verified after the handshake (`clientAuth`).
    rejectUnauthorized: false,
    ...(tls.authority !== null && { ca: tls.authority }),
  };
}

/** @throws Problem (`tls-certificate`) if the certificate and key do not match */
function usable<T>(make: () => T): T {
  try {
    return make();
  } catch (error) {
    if (error instanceof Problem) throw error;
    throw new Problem({
      code: 'tls-certificate',
      text: `the TLS certificate can't be used: ${whyFailed(error)}`,
      hint: 'The key does not match the certificate, or one of the files is not PEM.',
      remedy: 'Compare "openssl x509 -noout -pubkey -in CERT" with "openssl pkey -pubout -in KEY".',
      cause: error,
    });
  }
}
