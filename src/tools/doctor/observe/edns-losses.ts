/** Servers that do not answer queries with EDNS, but answer those without it. */
import { deadNames } from './dead-names.ts';
import type { SeenExchange } from '../../capture/pair/seen-exchange.ts';
import type { ClientView } from './client-view.ts';
import type { Observations } from './observations.ts';
import { lossRate } from './outcomes.ts';
import type { ServerView } from './server-view.ts';
import { SPARED_SHARE } from '../thresholds/evidence.ts';
import { UNLIKELY_DEAD } from '../thresholds/silence.ts';
import { EDNS_LOST } from '../thresholds/transport.ts';

/**
 * True if losses depend on EDNS and not on its clients: some client is answered without EDNS, or
 * all clients lose their queries with EDNS.
 */
export function isDeaf({ address, edns, plain }: ServerView, observed: Observations): boolean {
  const { clients } = observed;
  if (lossRate(edns) < EDNS_LOST || lossRate(plain) > SPARED_SHARE) return false;
  if (edns.asked > edns.lost && goesByName(address, observed)) return false;
  const theirs = clients.list.filter(({ servers }) => servers.has(address));
  const users = theirs.filter(({ withEdns }) => withEdns > 0);
  return theirs.some(asksBoth) || (users.length >= 2 && users.length < theirs.length - 1);
}

/** True if the server loses all queries for certain names, for example those with large answers. */
function goesByName(address: string, observed: Observations): boolean {
  const losses = observed.losses.filter(
    ({ server, udpSize }) => udpSize > 0 && server.address === address,
  );
  return deadNames(observed, losses).some(({ chance }) => chance < UNLIKELY_DEAD);
}

/**
 * True if these lost queries all have EDNS, and their servers answer (nearly) no query that has it.
 */
export function goByEdns(observed: Observations, losses: readonly SeenExchange[]): boolean {
  if (losses.some(({ udpSize }) => udpSize === 0)) return false;
  const asked = new Set(losses.map(({ server }) => server.address));
  return [...asked].every((address) => {
    const server = observed.servers.get(address);
    return server !== undefined && isDeaf(server, observed);
  });
}

/** True if some client is answered by the server without EDNS, and never with it. */
export function isProvenDeaf(server: ServerView, observed: Observations): boolean {
  return (
    isDeaf(server, observed) &&
    observed.clients.list.some((client) => client.servers.has(server.address) && asksBoth(client))
  );
}

/** True if the client queries both with EDNS and without it. */
export function asksBoth({ withEdns, outcomes }: ClientView): boolean {
  return withEdns > 0 && withEdns < outcomes.asked;
}
