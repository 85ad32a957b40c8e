/** Sockets and addresses in a network namespace, as reported by the kernel. */
import { interfaceAddresses } from './interfaces.ts';
import { inNetworkNamespace } from './network-namespace.ts';
import { SocketLookup, type FoundSocket } from './socket-lookup.ts';
import { UdpSocket } from './udp-socket.ts';

/**
 * Opens a socket lookup in the namespace given by a file (`/proc/PID/ns/net`).
 * @throws SystemError, LibcMissing
 */
export function socketsIn(path: string): SocketLookup {
  return inNetworkNamespace(path, () => new SocketLookup());
}

/**
 * Returns the addresses in the namespace, with the interface for IPv6 link-local ones.
 * @throws as `socketsIn`
 */
export function addressesIn(path: string): readonly string[] {
  return inNetworkNamespace(path, () => [...interfaceAddresses().values()].flat());
}

/**
 * Checks that the kernel can find a socket of this program, as it should.
 * @param use receives the socket while it is open
 * @throws SystemError, LibcMissing
 */
export function findsItself(use: (found: FoundSocket) => void = () => undefined): boolean {
  const lookup = new SocketLookup();
  const socket = new UdpSocket({ family: 4 });
  try {
    // Bind to the wildcard address, because a namespace may have no address.
    socket.bind('0.0.0.0', 0);
    const local = { address: '127.0.0.1', port: socket.port };
    const found = lookup.find('udp', local, { address: '127.0.0.1', port: 53 });
    if (found !== null) use(found);
    return found !== null;
  } finally {
    socket.close();
    lookup.close();
  }
}
