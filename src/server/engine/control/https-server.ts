/** HTTPS for plugins. The certificate may be renewed at any time, and handshakes are limited. */
import type { Server as HttpServer, ServerOptions } from 'node:http';
import type { SecureContextOptions } from 'node:tls';
import { builtins } from '../../base/builtins.ts';
import { bugText, type Log } from '../../base/log.ts';
import { HandshakeBound } from '../../transport/stream/handshake-bound.ts';
import type { HttpTls } from '../contract/control-context.ts';

/** The parts an HTTPS server needs in addition to the options it shares with HTTP servers. */
export interface SecureParts {
  readonly tls: HttpTls;
  readonly log: Log;
  /** Maximum number of connections in a handshake. Beyond it, the oldest is closed. */
  readonly handshakes: number;
  /** Time limit for a handshake, in milliseconds. */
  readonly timeoutMs: number;
  /** Called when a connection is closed to make room for another. */
  readonly evicted: () => void;
}

/** A server, and a function that closes all its connections immediately. */
export interface CutServer {
  readonly server: HttpServer;
  cut(): void;
}

/**
 * Creates a server that is not listening yet.
 * @throws Error if there is no usable certificate
 */
export function makeSecureServer(
  options: ServerOptions,
  { tls, log, handshakes, timeoutMs, evicted }: SecureParts,
): CutServer {
  const { requestCert, rejectUnauthorized } = tls;
  const first = tls.load();
  const server = builtins.https().createServer({
    ...options,
    ...first,
    requestCert,
    rejectUnauthorized,
    handshakeTimeout: timeoutMs,
  });
  const renew = renewal(first, tls, log, (context) => server.setSecureContext(context));
  const shaking = new HandshakeBound(server, handshakes, evicted);
  server.prependListener('connection', renew);
  server.prependListener('secureConnection', (socket) => {
    if (!tls.welcome(socket)) socket.destroy();
  });
  return {
    server,
    cut() {
      // The runtime does not close connections whose handshake is unfinished.
      shaking.cut();
      server.closeAllConnections();
    },
  };
}

/**
 * Checks the certificate's files and uses them if they have changed. While they are being replaced, or if certificate
 * and key do not match, the previous certificate stays in use. Each such state is logged once, however many connections
 * arrive.
 */
function renewal(
  first: SecureContextOptions,
  tls: HttpTls,
  log: Log,
  use: (context: SecureContextOptions) => void,
): () => void {
  let inUse = JSON.stringify(first);
  let told = '';
  return () => {
    try {
      const context = tls.load();
      const text = JSON.stringify(context);
      if (text !== inUse) use(context);
      inUse = text;
      told = '';
    } catch (error) {
      const why = bugText(error);
      if (why !== told) log.warning(`certificate of an HTTP address: ${why}`);
      told = why;
    }
  };
}
