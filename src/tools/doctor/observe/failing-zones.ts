/** Zones that a server has no answers for: it cannot refresh them, or is refused by their servers. */
import { TYPE } from '../../../server/wire/iana.ts';
import { isWithin } from '../../../server/wire/within-zone.ts';
import { sentSpan } from '../../capture/pair/seen-exchange.ts';
import { listed } from '../texts.ts';
import { MIN_CASES } from '../thresholds/evidence.ts';
import type { NameView } from './name-view.ts';
import type { Observations } from './observations.ts';

/** Types that a secondary server queries at its primary server. */
const transferTypes: ReadonlySet<number> = new Set([TYPE.SOA, TYPE.AXFR, TYPE.IXFR]);

export interface ExpiredZone {
  readonly zone: string;
  readonly server: string;
  /** The primary server, which does not reply. */
  readonly primary: string;
  readonly queries: number;
  /** The first query without a reply, milliseconds since 1970. */
  readonly sinceMs: number;
  /** True if the primary server replied before that. */
  readonly isKnown: boolean;
}

/** Zones that servers ask their primary servers for (SOA, transfers), without any reply from some moment on. */
export function expiredZones(observed: Observations): readonly ExpiredZone[] {
  const lost = observed.losses.filter(({ type }) => transferTypes.has(type));
  const groups = Map.groupBy(
    lost,
    ({ name, client, server }) => `${name} ${client.address} ${server.address}`,
  );
  return [...groups.values()].flatMap((all) => {
    const { name: zone, client, server } = all[0]!;
    const view = observed.servers.get(server.address);
    if (all.length < MIN_CASES || view === undefined) return [];
    const { fromMs: sinceMs } = sentSpan(all);
    const isKnown = view.lastReplyMs > -Infinity;
    return !isKnown || view.lastReplyMs <= sinceMs
      ? {
          ...{ zone, server: client.address, primary: server.address },
          ...{ queries: all.length, sinceMs, isKnown },
        }
      : [];
  });
}

/**
 * Why a server behind the failing one does not answer for these names: it refuses them, or it is
 * the primary server of an expired zone; null: neither is seen.
 */
export function causeBeyond(
  observed: Observations,
  names: readonly NameView[],
): { readonly title: string; readonly seen: string; readonly fix: string } | null {
  const zone = expiredZones(observed).find(
    (each) =>
      observed.names.list.some(({ servers }) => servers.has(each.server)) &&
      names.every(({ name }) => isWithin(name, each.zone)),
  );
  if (zone !== undefined)
    return {
      title: `${zone.server} cannot refresh the zone ${zone.zone}`,
      seen: `${zone.server} asked ${zone.primary} ${zone.queries} times for the zone (SOA or a transfer) and got no reply, so its copy has most likely expired.`,
      fix: `Make the primary server ${zone.primary} reply to ${zone.server} again (check whether it runs, its address, and firewalls). Then make ${zone.server} refresh the zone (BIND: rndc refresh ${zone.zone}).`,
    };
  const refusals = new Map<string, number>();
  for (const { servers } of names)
    for (const [address, { refused, found, servfail }] of servers)
      if (refused > 0 && found === 0 && servfail === 0)
        refusals.set(address, (refusals.get(address) ?? 0) + refused);
  const lame = [...refusals].filter(([, count]) => count >= MIN_CASES);
  if (lame.length === 0) return null;
  const list = listed(lame.map(([address]) => address));
  return {
    title: `${list} refuses them (lame delegation)`,
    seen: `${listed(lame.map(([address, count]) => `${address} answered REFUSED ${count} times`))} for these names: it does not serve their zone.`,
    fix: `Correct the delegation, or the forward for this zone, which leads to ${list}; or make ${list} serve the zone.`,
  };
}
