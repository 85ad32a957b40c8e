/** The IDs of servers, which are addresses, with the port unless it is DNS's own. */
import { printHostPort } from '../../server/base/ip.ts';
import type { Peer } from '../../server/wire/exchange.ts';

const DNS_PORT = 53;

/** @param port 0 if unknown */
export function serverId(address: string, port: number): string {
  return port === DNS_PORT || port === 0 ? address : printHostPort(address, port);
}

/** The inverse of `serverId`. */
export function endpointOfServer(id: string): Peer {
  const [, v6, v4, port] = /^(?:\[(.+)\]|([^:]+)):(\d+)$/.exec(id) ?? [];
  return { address: v6 ?? v4 ?? id, port: port === undefined ? DNS_PORT : Number(port) };
}
