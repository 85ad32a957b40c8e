/** Zones whose servers are slow: a server answers their names late, and other external names quickly. */
import { RCODE } from '../../../server/wire/iana.ts';
import { commonZone, isBelow } from '../../../server/wire/within-zone.ts';
import { latencyOf, type SeenExchange } from '../../capture/pair/seen-exchange.ts';
import { listed } from '../texts.ts';
import { UNCACHED } from '../thresholds/answers.ts';
import { FELT_MS, LATE_MS, MIN_CASES } from '../thresholds/evidence.ts';
import { LATE_QUANTILE, SLOW_ZONE } from '../thresholds/lateness.ts';
import type { Claims } from './claims.ts';
import { lateReplies, slowLookups } from './late-replies.ts';
import type { Observations } from './observations.ts';
import { isForForwarders, upstreams } from './roles.ts';
import type { ServerView } from './server-view.ts';
import { zonesOfServers } from './zone-servers.ts';

export interface SlowZone {
  /** The server that passes on the late replies. Empty for a log. */
  readonly address: string;
  /** With a final dot. */
  readonly zone: string;
  readonly late: readonly SeenExchange[];
  readonly names: readonly string[];
  /** Queries for names in the zone, and those that got SERVFAIL. */
  readonly asked: number;
  readonly failed: number;
  readonly others: number;
}

/** Null if no server is late for (nearly) all names in one zone and quick for others. */
export function slowZoneAmong(
  servers: readonly ServerView[],
  observed: Observations,
  claims: Claims,
): SlowZone | null {
  const behind = upstreams(observed);
  const felt = [
    ...slowLookups(observed).flatMap(({ exchanges }) => exchanges),
    ...observed.givenUp.rejected.map(({ exchange }) => exchange),
  ].filter(
    (each) =>
      (latencyOf(each) ?? 0) >= FELT_MS &&
      !claims.isOfSilence(each) &&
      !claims.names.has(each.name),
  );
  const all = felt.filter(({ rcode }) => rcode !== RCODE.SERVFAIL);
  const lost = new Set(observed.losses.map(({ name }) => name));
  // A server that waits for a late upstream is late, too.
  for (const { address } of servers.toSorted(
    (one, other) => Number(behind.has(other.address)) - Number(behind.has(one.address)),
  )) {
    const late = [...new Set(all.filter(({ server }) => server.address === address))];
    const names = [...new Set(late.map(({ name }) => name))];
    // Names that always fail are of the same zone, or of another fault.
    const withFailed = felt.flatMap(({ name, server }) => (server.address === address ? name : []));
    const wide = withFailed.length === 0 ? '' : withFailed.reduce(commonZone);
    const zone = names.length === 0 || wide.split('.').length > 2 ? wide : names.reduce(commonZone);
    if (
      late.length < SLOW_ZONE.late ||
      zone.split('.').length <= 2 ||
      names.some((name) => lost.has(name))
    )
      continue;
    const others = new Set<string>();
    let [asked, quick, failed] = [0, 0, 0];
    for (const { name, servers: of } of observed.names.list)
      for (const [server, outcomes] of of)
        if (server === address && (name === zone || isBelow(name, zone))) {
          asked += outcomes.asked;
          failed += outcomes.servfail;
        } else if (server === address && !observed.domains.isOfCluster(name)) {
          others.add(name);
          quick += outcomes.found + outcomes.nodata;
        }
    // One other name is enough if it is answered again and again, and the zone has several names. The
    // clients of an upstream have caches, so each of its answers for the other name is a fresh one.
    const isCompared =
      others.size >= SLOW_ZONE.others ||
      ((names.length > 1 || isForForwarders(observed, address)) && quick >= SLOW_ZONE.quick);
    if (!isCompared || late.length + failed < SLOW_ZONE.share * asked) continue;
    return { address, zone, late, names, asked, failed, others: others.size };
  }
  return null;
}

/** Describes slow names that no cache keeps for long, so each lookup waits. Empty if there are none. */
export function lowTtlText({ names }: Observations, slow: readonly string[]): readonly string[] {
  const own = new Set(slow);
  const found = names.list.flatMap(({ name, sets }) => {
    if (sets === null || !own.has(name)) return [];
    const { ttl, count } = sets;
    return ttl <= UNCACHED.ttl && count >= SLOW_ZONE.late ? [{ name, ttl }] : [];
  });
  const [first] = found;
  return first === undefined
    ? []
    : [
        `The answers for ${listed([...new Set(found.map(({ name }) => name))])} have a TTL of ${first.ttl} s, so caches do not help, and each lookup waits for that long (see ND4020).`,
      ];
}

/** Servers that are queried for only one zone, as a forward in the Corefile does. */
export interface LateZoneServers {
  readonly zone: string;
  readonly addresses: readonly string[];
  /** Their late replies. */
  readonly late: readonly SeenExchange[];
}

/** Null if these servers are not late, or have several zones: then the path to all of them is slow. */
export function lateZoneServers(
  servers: readonly ServerView[],
  observed: Observations,
): LateZoneServers | null {
  const zones = zonesOfServers(observed);
  const slow = servers.filter(
    (view) => zones.has(view.address) && view.quantile(LATE_QUANTILE) >= LATE_MS,
  );
  const addresses = slow.map(({ address }) => address);
  const [zone, ...others] = new Set(addresses.map((address) => zones.get(address)!));
  const late = lateReplies(observed).filter(({ server }) => addresses.includes(server.address));
  return zone === undefined || others.length > 0 || late.length < MIN_CASES
    ? null
    : { zone, addresses, late };
}

/** Describes unanswered health checks of these servers; null if there are none. */
export function healthText({ names }: Observations, addresses: readonly string[]): string | null {
  let [asked, lost] = [0, 0];
  for (const { name, servers } of names.list)
    if (name === '.')
      for (const [address, outcomes] of servers)
        if (addresses.includes(address)) {
          asked += outcomes.asked;
          lost += outcomes.lost;
        }
  return asked < MIN_CASES || lost < asked
    ? null
    : `They answered none of ${asked} health checks (NS for the root), so forward considers them down.`;
}
