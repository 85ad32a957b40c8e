/** Servers that zones are delegated to but that do not serve them. */
import { isWithin } from '../../../server/wire/within-zone.ts';
import type { Delegation } from '../observe/delegations.ts';
import { registeredDomainOf } from '../observe/domain-of-name.ts';
import type { Observations } from '../observe/observations.ts';
import { serversOfNames } from '../observe/servers-of-names.ts';
import { listed } from '../texts.ts';
import { MIN_CASES } from '../thresholds/evidence.ts';
import { excluded, unknown, type FindingKind } from './finding.ts';

export const lameDelegation: FindingKind = {
  code: 'ND4010',
  title: 'A name server refuses to answer',
  name: 'servers that refuse',
  inCapture(observed, claims) {
    const { delegations } = observed.replyFaults;
    const [worst] = delegations.refusals.list
      .filter(
        ({ count, names }) =>
          count >= MIN_CASES && ![...names].every((name) => claims.names.has(name)),
      )
      .toSorted((one, other) => other.count - one.count);
    if (worst === undefined) return excluded('no server refused a query without RD');
    const { server, count, names, samples } = worst;
    const zones = new Map<string, Delegation | null>();
    for (const name of names) {
      const delegation = delegations.of(name);
      zones.set(delegation?.zone ?? `${registeredDomainOf(name)}.`, delegation);
    }
    // Without any referral, the client may not follow delegations at all.
    if ([...zones.values()].every((each) => each === null))
      return unknown('no referral to a refusing server was seen');
    const keys = [...zones.keys()];
    for (const { name } of observed.names.list)
      if (keys.some((zone) => isWithin(name, zone))) claims.names.add(name);
    const texts = [...zones].flatMap(([zone, delegation]) =>
      delegation === null ? [] : delegationText(zone, delegation, server, observed),
    );
    return {
      title: 'A zone is delegated to a server that does not serve it (lame delegation)',
      subject: server,
      severity: 'critical',
      confidence: 0.95,
      seen: [
        `${server} refused ${count} queries from resolvers that follow delegations (without RD), for names in ${listed(keys)}`,
        ...texts,
      ],
      why: `The parent zone lists ${server} as a server for ${listed(keys)}, but that server is not authoritative for it, because the zone was removed there, expired or moved. A resolver tries the zone’s other servers, which takes time. If there are none, the names get SERVFAIL.`,
      fix: [
        `Ask the owner of ${listed(keys)} to load the zone on ${server} again, or to remove that server from the NS records in both the zone and its parent (registrar).`,
        'Until then, add a server block for the zone that forwards to a server that has it, if there is one.',
      ],
      prove: `ndots query ${keys[0]} SOA @${server} gets REFUSED`,
      disproved: `${server} answers ${keys[0]} authoritatively (with the AA bit)`,
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
  const answering = serversOfNames(
    names.list.filter(({ name }) => isWithin(name, zone)),
    ({ found }) => found > 0,
  );
  const fine = [...answering].filter((address) => address !== server && servers.has(address));
  return fine.length > 0
    ? `${zone} is delegated to ${listed([...servers])}, and ${listed(fine)} ${fine.length === 1 ? 'answers' : 'answer'} for it.`
    : `${zone} is delegated to ${listed([...servers])}${servers.size > 1 ? ', none of which answers for it' : ' only'}, so its names always fail.`;
}
