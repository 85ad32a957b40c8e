/** Servers with different versions of one zone, as the SOA records of their replies show. */
import { TYPE } from '../../../server/wire/iana.ts';
import { isBelow } from '../../../server/wire/within-zone.ts';
import type { Claims } from '../observe/claims.ts';
import { comesAndGoes } from '../observe/comes-and-goes.ts';
import type { NameView } from '../observe/name-view.ts';
import type { Observations } from '../observe/observations.ts';
import { serveTheSame } from '../observe/roles.ts';
import { isOther, type ZoneCopy } from '../observe/zone-copies.ts';
import { clocks, listed, sentence } from '../texts.ts';
import { MIN_SAME_ANSWERS, MIN_VERSIONS_MS } from '../thresholds/answers.ts';
import { ofReplicas, ofUpstreams } from './differing-texts.ts';
import { excluded, unknown, type FindingKind } from './finding.ts';

/** Two versions of one zone at the same time, the newer one first, if one is. */
type Versions = readonly [newer: ZoneCopy, older: ZoneCopy];

/** One server has an old copy of a zone, or a copy from elsewhere, and names differ because of it. */
export const zoneVersions: FindingKind = {
  code: ofReplicas.code,
  title: ofReplicas.title,
  name: 'servers with different versions of a zone',
  inCapture(observed, claims) {
    const { differing } = observed.replyFaults.copies;
    if (differing.length === 0) return unknown('no zone was seen in two versions');
    const found = differing.flatMap((copies) => {
      const versions = versionsOf(copies, observed);
      const names = versions === null ? [] : differingNames(versions[0].zone, observed, claims);
      return versions === null || names.length === 0 ? [] : [{ versions, names }];
    });
    const [first] = found;
    if (first === undefined)
      return excluded(
        'names are the same in all versions of their zones, or the zones changed once',
      );
    for (const { versions } of found)
      for (const { name } of observed.names.list)
        if (isBelow(name, versions[0].zone)) claims.names.add(name);
    const { versions, names } = first;
    const [newer, older] = versions;
    const { zone } = newer;
    const isOwn = observed.domains.isOfCluster(zone) || zone === 'cluster.local.';
    const isStale = newer.primary === older.primary;
    const isHidden = newer.server === older.server;
    const servers = new Set(versions.map(({ server }) => server));
    const keys = new Set(names.map(({ name }) => name));
    const list = [...keys];
    return {
      ...(isOwn ? ofReplicas : ofUpstreams),
      severity: 'critical',
      confidence: isHidden ? 0.88 : 0.94,
      seen: [
        `The zone ${zone.slice(0, -1)} is served in two versions (SOA): ${versionText(newer, isStale)}; ${versionText(older, isStale)}.`,
        ...names.slice(0, MIN_SAME_ANSWERS + 1).map((view) => nameText(view, servers)),
        ...(isHidden
          ? [
              `The capture does not show which ${isOwn ? 'DNS pod' : 'server'} behind ${newer.server} has which version: capture on the node.`,
            ]
          : []),
      ],
      why: isStale
        ? `${isHidden ? 'One of the servers' : older.server} has an old copy of the zone: ${isOwn ? 'it lost its connection to the API server (its watch hangs) or has an old zone file' : 'a secondary server that no longer transfers the zone'}. New names are missing there, and changed names have their old address. A client gets one version or the other by chance.`
        : ofUpstreams.why,
      fix: isStale
        ? [
            isOwn
              ? `Restart ${isHidden ? 'the DNS pods one after the other' : `the DNS pod ${older.server}`}, and look in its log for errors of the API connection (reflector, watch).`
              : `Find out why ${isHidden ? 'one server' : older.server} does not transfer the zone (its log, SOA timers, NOTIFY, rights), and take it out of forward until then.`,
          ]
        : ofUpstreams.fix,
      prove: `ndots query ${zone} SOA @${isHidden ? 'EACH SERVER' : `${older.server}, and @${newer.server}`}: the serial numbers and primaries differ`,
      disproved: 'all servers give the same SOA record a minute later: then the zone changed',
      exchanges: observed.affected.flatMap(({ exchanges }) =>
        exchanges.filter(({ name }) => keys.has(name)),
      ),
      affected: list,
    };
  },
};

/** Two versions that two servers give for some time, or one address in turns; null: there are none. */
function versionsOf(copies: readonly ZoneCopy[], observed: Observations): Versions | null {
  const often = copies.filter(({ count }) => count >= MIN_SAME_ANSWERS);
  const pairs = often.flatMap((one, at) =>
    often.slice(at + 1).flatMap((other): Versions[] => {
      if (!isOther(one, other)) return [];
      const isHidden = one.server === other.server;
      const isHere = isHidden
        ? Math.min(one.returned, other.returned) >= MIN_SAME_ANSWERS
        : overlapMs(one, other) >= MIN_VERSIONS_MS &&
          serveTheSame(observed, one.server, other.server);
      return isHere ? [one.serial >= other.serial ? [one, other] : [other, one]] : [];
    }),
  );
  // A server that hands on both versions is not the one that has them.
  const single = pairs.filter((pair) =>
    pair.every(({ server }) => often.filter((each) => each.server === server).length === 1),
  );
  return single[0] ?? pairs.find(([one, other]) => one.server === other.server) ?? pairs[0] ?? null;
}

function overlapMs(one: ZoneCopy, other: ZoneCopy): number {
  return Math.min(one.lastMs, other.lastMs) - Math.max(one.firstMs, other.firstMs);
}

/** Names of the zone that are found and missing, or have several addresses, in no turns of time. */
function differingNames(
  zone: string,
  { names }: Observations,
  claims: Claims,
): readonly NameView[] {
  return names.list.filter((view) => {
    const { name, type, outcomes, sets } = view;
    if (type !== TYPE.A || outcomes.found === 0 || !isBelow(name, zone)) return false;
    if (claims.names.has(name) || comesAndGoes(view)) return false;
    const missing = outcomes.nxdomain + (names.get(name, TYPE.AAAA)?.outcomes.nxdomain ?? 0);
    const alternates = (sets?.list ?? []).filter(({ returned }) => returned > 0).length > 1;
    const isByServer =
      sets !== null && new Set(sets.list.map(({ hash }) => hash)).size > 1 && hasSteady(view);
    return missing > 0 || alternates || isByServer;
  });
}

/** True if one server always gives the one address, and another one another. */
function hasSteady({ sets }: NameView): boolean {
  const byServer = [...Map.groupBy(sets!.list, ({ server }) => server).values()];
  const single = byServer.flatMap((own) => (own.length === 1 ? own : []));
  return new Set(single.map(({ hash }) => hash)).size > 1;
}

function versionText(
  { server, primary, serial, count, firstMs, lastMs }: ZoneCopy,
  isStale: boolean,
): string {
  const what = isStale ? `serial ${serial}` : `that of ${primary.slice(0, -1)}, serial ${serial}`;
  return `${server} gives ${what} (${count} replies, ${clocks(firstMs, lastMs).join(' to ')})`;
}

/** What the servers of the versions say about a name. */
function nameText(
  { name, outcomes, servers, sets }: NameView,
  ofVersions: ReadonlySet<string>,
): string {
  const parts = (sets?.list ?? []).flatMap(({ server, addresses, count }) =>
    ofVersions.has(server) ? `${addresses.join(' ')} from ${server} (${count} times)` : [],
  );
  for (const [server, { nxdomain }] of servers)
    if (nxdomain > 0 && ofVersions.has(server))
      parts.push(`NXDOMAIN from ${server} (${nxdomain} times)`);
  if (outcomes.nxdomain === 0 && new Set(sets?.list.map(({ hash }) => hash)).size < 2)
    parts.push('its AAAA query gets NXDOMAIN at times');
  return sentence(`${name} is ${parts.join('; ')}`);
}
