import { createSocket } from 'node:dgram';
import { createServer } from 'node:net';

import { errorCode } from '../base/error-code.ts';
import { bindProblem, isFamilyMissing } from './bind-problem.ts';
import type { ListenAddress } from './listener.ts';
import { allowLowPort } from '../runtime/low-ports.ts';
import { transports, type SocketKind } from '../wire/transports.ts';
import { concreteAddresses, isWildcard } from './wildcard.ts';

/**
 * Checks that no other process listens on the address, by briefly binding to it without SO_REUSEPORT. Listeners share
 * their ports, so otherwise a second process would start without an error and receive some of the queries. Call this
 * once, before the first listener opens. Later it would find our own sockets.
 * @throws Problem (`address-in-use`, `permission-denied`, `address-not-available`, `listen-failed`)
 */
export async function probeEndpoint(endpoint: ListenAddress): Promise<void> {
  let missing: unknown = null;
  let found = 0;
  allowLowPort(endpoint.port);
  for (const address of concreteAddresses(endpoint.address)) {
    for (const proto of transports[endpoint.scheme].sockets) {
      try {
        await bindOnce(proto, address, endpoint.port);
        found++;
      } catch (error) {
        const problem = await bindProblem(error, proto, { ...endpoint, address });
        if (!isWildcard(endpoint.address) || !isFamilyMissing(error)) throw problem;
        missing ??= problem;
      }
    }
  }
  if (found === 0) throw missing;
}

/** Returns a port on this address that was free a moment ago for both UDP and TCP. */
export async function pickPort(address: string): Promise<number> {
  for (let tries = 50; ; tries--) {
    const port = await bindOnce('udp', address, 0);
    try {
      return await bindOnce('tcp', address, port);
    } catch (error) {
      if (errorCode(error) !== 'EADDRINUSE' || tries === 0) throw error;
    }
  }
}

/**
 * Binds a socket and closes it again.
 * @returns its port
 */
async function bindOnce(proto: SocketKind, address: string, port: number): Promise<number> {
  const six = address.includes(':');
  return new Promise((resolve, reject) => {
    if (proto === 'udp') {
      const socket = createSocket({ type: six ? 'udp6' : 'udp4', ipv6Only: six });
      socket.once('error', (error) => {
        socket.close();
        reject(error);
      });
      socket.bind({ address, port, exclusive: true }, () => {
        const bound = socket.address().port;
        socket.close(() => resolve(bound));
      });
    } else {
      const server = createServer();
      server.once('error', reject);
      server.listen({ host: address, port, exclusive: true, ipv6Only: six }, () => {
        const bound = server.address();
        server.close(() =>
          resolve(bound !== null && typeof bound === 'object' ? bound.port : port),
        );
      });
    }
  });
}
