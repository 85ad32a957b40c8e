/** The role of an address that sends a flood of new names: a program, or a server that passes them on. */
import { resolverOf } from '../../capture/fingerprint/named-resolver.ts';
import type { SeenExchange } from '../../capture/pair/seen-exchange.ts';
import type { Claims, NameFlood } from './claims.ts';
import { MADE_UP } from '../thresholds/search.ts';
import type { NameView } from './name-view.ts';
import type { Observations } from './observations.ts';
import { isForwarder } from './roles.ts';

export type FloodSender = 'program' | 'server' | 'unknown';

/** @param flood the views of each name, by name */
export function floodSender(
  observed: Observations,
  address: string,
  flood: readonly (readonly NameView[])[],
): FloodSender {
  if (isForwarder(observed, address) || isOneOfSeveral(observed, address, flood)) return 'server';
  const view = observed.clients.get(address);
  if (view === undefined) return 'unknown';
  const isKnown = resolverOf(view.recognition, view.lookups).kinds.length > 0;
  // Only pods have search paths, and servers pass on names that are complete.
  return isKnown || view.wasted > 0 ? 'program' : 'unknown';
}

/**
 * True if several clients send the same of these names to one server. Only the program knows a
 * random name, so these clients are servers that it uses in turn.
 */
function isOneOfSeveral(
  { clients }: Observations,
  address: string,
  flood: readonly (readonly NameView[])[],
): boolean {
  const own = clients.get(address)?.servers;
  if (own === undefined) return false;
  const hasSameServer = (other: string): boolean =>
    other !== address &&
    [...(clients.get(other)?.servers.keys() ?? [])].some((server) => own.has(server));
  const shared = flood.filter((views) => {
    const askers = new Set(views.flatMap(({ lastClients }) => lastClients));
    return askers.has(address) && [...askers].some(hasSameServer);
  });
  return shared.length >= MADE_UP.shared * flood.length;
}

/** The flood, if its queries are among these losses. */
export function floodAmong({ flood }: Claims, losses: readonly SeenExchange[]): NameFlood | null {
  const theirs = new Set(flood?.losses);
  return losses.some((loss) => theirs.has(loss)) ? flood : null;
}

/** Describes the flood in a finding about the limit that it exceeds. */
export function floodText(flood: NameFlood | null): readonly string[] {
  if (flood === null) return [];
  const { client, names, domain, isPassedOn } = flood;
  return [
    `${isPassedOn ? `A client behind ${client}` : client} exceeds the limit for everyone: it queries ${names} different names below ${domain}, each about once (ND2018).`,
  ];
}

export function floodFix(flood: NameFlood | null): readonly string[] {
  if (flood === null) return [];
  const { client, domain, isPassedOn } = flood;
  return [
    isPassedOn
      ? `First find the client behind ${client} that queries the names below ${domain}, and slow it down.`
      : `First slow down ${client}, since its new names below ${domain} use up the limit. Find its pod with kubectl get pods -A -o wide | grep ${client}`,
  ];
}
