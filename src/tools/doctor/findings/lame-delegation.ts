/** Servers that zones are delegated to and that do not serve them. */
import { isWithin } from '../../../server/wire/within-zone.ts';
import type { Delegation } from '../observe/delegations.ts';
import { zoneOf } from '../observe/domain-of-name.ts';
import type { Observations } from '../observe/observations.ts';
import { listed, sentence } from '../texts.ts';
import { MIN_CASES } from '../thresholds/evidence.ts';
import { excluded, unknown, type FindingKind } from './finding.ts';

/** A server refuses resolvers that follow a delegation to it. */
export const lameDelegation: FindingKind = {
  code: 'ND4010',
  title: 'A name server refuses to answer',
  name: 'servers that refuse',
  inCapture(observed, claims) {
    const { delegations } = observed.replyFaults;
    const [worst] = delegations.refusals.list
      .filter(({ count }) => count >= MIN_CASES)
      .toSorted((one, other) => other.count - one.count);
    if (worst === undefined) return excluded('no server refused a query without RD');
    const { server, count, names, samples } = worst;
    const zones = new Map<string, Delegation | null>();
    for (const name of names) {
      const delegation = delegations.of(name);
      zones.set(delegation?.zone ?? `${zoneOf(name)}.`, delegation);
    }
    // Without any referral, the client may not follow delegations at all.
    if ([...zones.values()].every((each) => each === null))
      return unknown('no referral to a server that refuses was seen');
    const keys = [...zones.keys()];
    for (const { name } of observed.names.list)
      if (keys.some((zone) => isWithin(name, zone))) claims.names.add(name);
    const texts = [...zones].flatMap(([zone, delegation]) =>
      delegation === null ? [] : delegationText(zone, delegation, server, observed),
    );
    return {
      code: this.code,
      title: 'A zone is delegated to a server that does not serve it (lame delegation)',
      subject: server,
      severity: 'critical',
      confidence: 0.95,
      seen: [
        sentence(
          `${server} refused ${count} queries of resolvers that follow delegations (without RD), for names in ${listed(keys)}`,
        ),
        ...texts,
      ],
      why: `The parent zone names ${server} as a server of ${listed(keys)}, and that server is not authoritative for it: the zone was removed there, has expired, or moved. A resolver tries the other servers of the zone, which takes time; without another one the names are SERVFAIL.`,
      fix: [
        `Have the owner of ${listed(keys)} load the zone on ${server} again, or remove that server from the NS records, in the parent zone (registrar), too.`,
        'Until then, a server block for the zone that forwards to a server that has it, if there is one.',
      ],
      prove: `ndots query ${keys[0]} SOA @${server}: REFUSED`,
      disproved: `${server} answers for ${keys[0]} with authority (aa)`,
      exchanges: samples,
    };
  },
};

/** The servers that a delegation names, and those that answer. */
function delegationText(
  zone: string,
  { servers }: Delegation,
  server: string,
  { names }: Observations,
): string {
  const fine = new Set(
    names.list.flatMap(({ name, servers: theirs }) =>
      isWithin(name, zone)
        ? [...theirs].flatMap(([address, { found }]) =>
            found > 0 && address !== server && servers.has(address) ? address : [],
          )
        : [],
    ),
  );
  return fine.size > 0
    ? `${zone} is delegated to ${listed([...servers])}; ${listed([...fine])} ${fine.size === 1 ? 'answers' : 'answer'} for it.`
    : `${zone} is delegated to ${listed([...servers])}${servers.size > 1 ? ', and none of them answers for it' : ' alone'}: its names always fail.`;
}
