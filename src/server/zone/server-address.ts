import { holdsAt } from '../base/copy-bytes.ts';
import { parseAddress, parseHostPort, plainAddress } from '../base/ip.ts';
import type { RemoteServer } from '../transport/one-exchange.ts';

/** Parses an address with an optional port (53 by default). Returns null if it is malformed. */
export function parseServer(text: string): RemoteServer | null {
  const found = parseHostPort(text);
  return found === null ? null : { host: found.host, port: found.port ?? 53 };
}

/** Returns true if a client's address (4 or 16 bytes) is that of the server. */
export function isServer(
  server: RemoteServer,
  address: Uint8Array,
  at: number,
  family: 4 | 6,
): boolean {
  const own = parseAddress(plainAddress(server.host));
  const size = family === 4 ? 4 : 16;
  return own !== null && own.length === size && holdsAt(address, at, own);
}
