/** Zones that are forwarded to a server of their own (stub domains). */
import { commonZone, isWithin } from '../../../server/wire/within-zone.ts';
import type { SeenExchange } from '../../capture/pair/seen-exchange.ts';
import { MIN_CASES } from '../thresholds/evidence.ts';
import { MIN_OUTSIDE_NAMES } from '../thresholds/silence.ts';
import { CLOSED } from './icmp-errors.ts';
import type { Observations } from './observations.ts';

/**
 * The zone of these failed queries, if their clients query other servers only for names outside of
 * it. (If resolv.conf or forward listed several servers, each would get the same names.) Otherwise
 * null.
 */
export function stubZone(
  { servers, names }: Observations,
  address: string,
  losses: readonly Pick<SeenExchange, 'name' | 'client'>[],
): string | null {
  const lost = new Set(losses.map(({ name }) => name));
  if (lost.size === 0) return null;
  const zone = [...lost].reduce(commonZone);
  if (zone === '.') return null;
  const theirs = new Set(losses.map(({ client }) => client.address));
  const others = new Set(
    servers.list.flatMap((other) =>
      other.address !== address && [...other.clients].some((client) => theirs.has(client))
        ? other.address
        : [],
    ),
  );
  const elsewhere = names.list.filter(({ servers: of }) =>
    [...of].some(([server]) => others.has(server)),
  );
  const outside = new Set(elsewhere.flatMap(({ name }) => (isWithin(name, zone) ? [] : name)));
  if (outside.size < MIN_OUTSIDE_NAMES) return null;
  return elsewhere.some(({ name }) => isWithin(name, zone)) ? null : zone;
}

export function stubText(zone: string, server: string): string {
  return `Only queries for names in ${zone.slice(0, -1)} go to ${server}, and no other server gets them, so the zone is forwarded there (a stub domain).`;
}

/** True if the host of the address is up, but no process listens on port 53. */
export function isClosed({ unreachable }: Observations, address: string): boolean {
  const errors = unreachable.get(address);
  return errors !== undefined && errors.count >= MIN_CASES && CLOSED.has(errors.code);
}
