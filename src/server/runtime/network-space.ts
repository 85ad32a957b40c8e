/** The sockets and addresses of a network namespace, as the kernel reports them. */
import { interfaceAddresses } from './interfaces.ts';
import { inNetworkNamespace } from './network-namespace.ts';
import { SocketLookup, type FoundSocket } from './socket-lookup.ts';
import { UdpSocket } from './udp-socket.ts';

/** Sockets of the namespace of that file (`/proc/PID/ns/net`). @throws SystemError, LibcMissing */
export function socketsIn(path: string): SocketLookup {
  return inNetworkNamespace(path, () => new SocketLookup());
}

/** Addresses of the namespace, IPv6 link-local ones with their interface. @throws as `socketsIn` */
export function addressesIn(path: string): readonly string[] {
  return inNetworkNamespace(path, () => [...interfaceAddresses().values()].flat());
}

/**
 * True if the kernel finds a socket of this program, as it must.
 * @param use gets the socket while it is open
 * @throws SystemError, LibcMissing
 */
export function findsItself(use: (found: FoundSocket) => void = () => undefined): boolean {
  const lookup = new SocketLookup();
  const socket = new UdpSocket({ family: 4 });
  try {
    // Any address: a namespace may have none.
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
