import type { Socket } from 'node:net';
import type { Server as TlsServer, TlsOptions, TLSSocket } from 'node:tls';

import { whyFailed } from '../base/why-failed.ts';
import { builtins } from '../base/builtins.ts';
import { Problem } from '../base/problem.ts';
import type { Clock } from '../base/clock.ts';
import type { Log } from '../base/log.ts';
import { ConnectionTable, type EvictableConnection } from './connection-table.ts';
import { KeyLog } from './key-log.ts';
import type { ListenerLimits } from './limits.ts';
import type { ListenerCounters } from './listener-counters.ts';
import type { ClientAuth, ListenerTls } from './listener.ts';
import { ticketKeys, ticketPeriod } from './ticket-keys.ts';
import { Timed, type TimerWheel } from './timer-wheel.ts';

/** What handshakes need of their listener. */
export interface HandshakeHost {
  readonly limits: ListenerLimits;
  readonly counters: ListenerCounters;
  readonly wheel: TimerWheel;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * Leads connections through the TLS handshake. They are bounded apart from those that have it behind them, in number and in
 * time: half-open ones never cost a client that speaks TLS its connection.
 */
export class Handshakes {
  readonly #host: HandshakeHost;
  readonly #alpn: readonly string[];
  readonly #ready: (socket: TLSSocket, below: Socket | null) => void;
  readonly #table: ConnectionTable<Handshake>;
  /** By the ends of the connection: the runtime gives no other way from the encrypted socket to the one below. */
  readonly #byEnds = new Map<string, Handshake>();
  #server: TlsServer;
  #tls: ListenerTls | null = null;
  #period = 0;

  /**
   * @param tls null: there is none, which is a problem
   * @param alpn what clients may choose from; none: whatever they say is ignored
   * @param ready takes the socket of each handshake that succeeds, and the one below
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

  /** From the next handshake on. @throws Problem (`tls-missing`, `tls-certificate`) */
  adopt(tls: ListenerTls | null): void {
    this.#server = this.#makeServer(tls);
  }

  begin(socket: Socket): void {
    const key = ends(socket);
    const { counters, wheel, limits } = this.#host;
    const handshake = new Handshake(socket, (state) => {
      wheel.cancel(handshake);
      this.#byEnds.delete(key);
      this.#table.delete(handshake);
      counters.handshakes.add(-1);
      if (state !== 'done') counters.failedHandshakes.add(1);
      if (state === 'late') counters.timedOut.add(1);
    });
    this.#table.add(handshake, limits.handshakes);
    this.#byEnds.set(key, handshake);
    counters.handshakes.add(1);
    wheel.set(handshake, limits.readTimeoutMs);
    this.#renewTickets();
    this.#server.emit('connection', socket);
  }

  /** Ends all that are under way. */
  destroy(): void {
    for (const handshake of this.#table) handshake.destroy();
  }

  /** Keys of another period, from the first handshake in it on. */
  #renewTickets(): void {
    const period = ticketPeriod(this.#host.clock.wall());
    if (period === this.#period || this.#tls === null) return;
    this.#period = period;
    const keys = ticketKeys(this.#tls, period);
    if (keys !== null) this.#server.setTicketKeys(keys);
  }

  /** It never listens: connections are given to it. Their time is measured here, so its own limit is out of reach. */
  #makeServer(tls: ListenerTls | null): TlsServer {
    const options = {
      ...contextOf(tls),
      ...(this.#alpn.length > 0 && { ALPNProtocols: [...this.#alpn] }),
      handshakeTimeout: 0x7fffffff,
    };
    const server = usable(() => builtins.tls().createServer(options));
    this.#tls = tls;
    // Those of the period are set before the next handshake.
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
    // The runtime leaves the socket of a handshake that failed to us.
    server.on('tlsClientError', (_, socket) => socket.destroy());
    return server;
  }
}

/** One connection that has not shown yet that it speaks TLS. */
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

/** Whether the client has shown what it must. */
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

/** TLS 1.2 and later, with the listener's certificate; no second handshake on a connection (as Go's servers, so CoreDNS's). */
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
    // Whether the client's certificate will do is decided when the handshake is done (`clientAuth`).
    rejectUnauthorized: false,
    ...(tls.authority !== null && { ca: tls.authority }),
  };
}

/** @throws Problem (`tls-certificate`) if certificate and key do not fit */
function usable<T>(make: () => T): T {
  try {
    return make();
  } catch (error) {
    if (error instanceof Problem) throw error;
    throw new Problem({
      code: 'tls-certificate',
      text: `the TLS certificate can't be used: ${whyFailed(error)}`,
      hint: 'The key does not belong to the certificate, or one of the files is not PEM.',
      remedy: 'Compare "openssl x509 -noout -pubkey -in CERT" with "openssl pkey -pubout -in KEY".',
      cause: error,
    });
  }
}
