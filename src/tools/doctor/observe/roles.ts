/** Finds a capture’s clients, DNS servers and upstreams. */
import { netHolds, parseAddress, parseNet } from '../../../server/base/ip.ts';
import { resolverOf } from '../../capture/fingerprint/named-resolver.ts';
import type { ClientView } from './client-view.ts';
import type { Observations } from './observations.ts';

/**
 * True if two servers are interchangeable: some client uses both, by their own addresses or by that
 * of a Service.
 */
export function serveTheSame(
  { servers, backends }: Observations,
  one: string,
  other: string,
): boolean {
  const clientsOf = (server: string): readonly string[] => [
    ...(servers.get(server)?.clients ?? []),
    ...(backends.get(server)?.clients ?? []),
  ];
  const theirs = new Set(clientsOf(other));
  return clientsOf(one).some((client) => theirs.has(client));
}

/**
 * Servers that are queried for cluster names: those that found some, and those that did not find
 * some.
 */
export function askedForCluster({ names, domains }: Observations): {
  readonly found: ReadonlySet<string>;
  readonly other: ReadonlySet<string>;
} {
  const [withSome, without] = [new Set<string>(), new Set<string>()];
  for (const { name, servers } of names.list)
    if (domains.isOfCluster(name))
      for (const [address, { found }] of servers) (found > 0 ? withSome : without).add(address);
  return { found: withSome, other: without };
}

/** Servers that get only external names, while others get cluster names: their upstreams. */
export function upstreams({ names, domains }: Observations): ReadonlySet<string> {
  const inside = new Set<string>();
  const all = new Set<string>();
  for (const { name, servers } of names.list) {
    const isInside = domains.isOfCluster(name);
    for (const [address] of servers) {
      all.add(address);
      if (isInside) inside.add(address);
    }
  }
  return new Set(inside.size === 0 ? [] : [...all].filter((address) => !inside.has(address)));
}

/**
 * True if the client is a name server that forwards, or, where several share an address, may be
 * one.
 */
export function isServer(
  { servers, backends, serverNames }: Observations,
  address: string,
): boolean {
  return (
    servers.get(address) !== undefined ||
    backends.get(address) !== undefined ||
    serverNames.has(address)
  );
}

/** True if the client is a name server, or behaves like one by querying for other clients. */
export function isForwarder(observed: Observations, address: string): boolean {
  const view = observed.clients.get(address);
  return (
    isServer(observed, address) ||
    (view !== undefined && resolverOf(view.recognition, view.lookups).kinds[0] === 'forwarder')
  );
}

/** True if all clients of this server query it for their own clients, so it is an upstream. */
export function isForForwarders(observed: Observations, server: string): boolean {
  const clients = [...(observed.servers.get(server)?.clients ?? [])];
  return clients.length > 0 && clients.every((client) => isForwarder(observed, client));
}

/**
 * True if known name servers query every server that this client queries. The client is most likely another name server,
 * and its own clients are not in the capture.
 */
export function queriesUpstreams(observed: Observations, address: string): boolean {
  const view = observed.clients.get(address);
  if (view === undefined || view.servers.size === 0) return false;
  return [...view.servers.keys()].every((server) =>
    [...(observed.servers.get(server)?.clients ?? [])].some(
      (client) => client !== address && isServer(observed, client),
    ),
  );
}

/** Clients that are not name servers, or all clients if the capture has only name servers. */
export function programs(observed: Observations): readonly ClientView[] {
  const { list } = observed.clients;
  const theirs = list.filter(({ address }) => !isServer(observed, address));
  return theirs.length > 0 ? theirs : list;
}

/** Counts these by their role in the capture: `3 clients`, `1 client and 2 DNS servers`. */
export function askersText(observed: Observations, addresses: Iterable<string>): string {
  const all = [...new Set(addresses)];
  const servers = all.filter((address) => isServer(observed, address)).length;
  const clients = all.length - servers;
  const counted = (count: number, word: string): readonly string[] =>
    count === 0 ? [] : [`${count} ${word}${count === 1 ? '' : 's'}`];
  return [...counted(clients, 'client'), ...counted(servers, 'DNS server')].join(' and ');
}

const linkLocal = [parseNet('169.254.0.0/16')!, parseNet('fe80::/10')!];

/** True for an address that exists only on the node, such as its cache’s. */
export function isLinkLocal(address: string): boolean {
  const bytes = parseAddress(address);
  return bytes !== null && linkLocal.some((net) => netHolds(net, bytes));
}
