/** Starts and stops listening for an HTTP or HTTPS server. */
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';

/**
 * Starts listening.
 * @param reusePort true if other sockets of this user may listen there too
 * @returns the actual port, even if port 0 was given
 * @throws the system error if it cannot listen
 */
export function listenHttp(
  server: Server,
  host: string,
  port: number,
  reusePort = false,
): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen({ host, port, reusePort }, () => {
      server.off('error', reject);
      // A failed accept affects only that client and must not end the process.
      server.on('error', () => undefined);
      resolve((server.address() as AddressInfo).port);
    });
  });
}

/**
 * Stops accepting connections. Resolves once the requests in progress have been answered, or after `graceMs`.
 * @param cut called before the remaining connections are closed
 */
export async function endHttp(server: Server, graceMs: number, cut?: () => void): Promise<void> {
  const closed = new Promise((resolve) => server.close(resolve));
  server.closeIdleConnections();
  const timer = setTimeout(() => {
    cut?.();
    server.closeAllConnections();
  }, graceMs);
  await closed;
  clearTimeout(timer);
}
