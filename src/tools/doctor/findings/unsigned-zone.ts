/** Zones that a server serves without signatures, although their parent has a DS record for them. */
import { isWithin } from '../../../server/wire/within-zone.ts';
import type { NameView } from '../observe/name-view.ts';
import type { Outcomes } from '../observe/outcomes.ts';
import type { Observations } from '../observe/observations.ts';
import { keysOf, listed, sentence } from '../texts.ts';
import { MIN_CASES } from '../thresholds/evidence.ts';
import { excluded, unknown, type FindingKind } from './finding.ts';

/** A resolver that validates rejects a zone's unsigned copy. */
export const unsignedZone: FindingKind = {
  code: 'ND4035',
  title: 'A resolver that validates DNSSEC rejects a zone’s signatures',
  name: 'DNSSEC failures',
  inCapture(observed, claims) {
    const { zones, answers } = observed.signatures.unsigned;
    if (zones.size === 0) return unknown('no DS record was seen, so no zone has to be signed');
    const { unsigned: all } = observed.signatures;
    const answersOf = Map.groupBy(answers.list, ({ name }) => all.zoneOf(name)?.zone);
    const failingOf = failingNames(observed);
    const found = zones.list.flatMap(({ zone, servers }) => {
      // A server that passes on other servers’ answers may omit their signatures.
      const own = (answersOf.get(zone) ?? []).filter(
        ({ server, isAuthoritative }) => isAuthoritative || !servers.has(server),
      );
      const sources = new Set(own.map(({ server }) => server));
      const unsigned = [...sources].filter((server) => {
        const theirs = own.filter((each) => each.server === server);
        return (
          theirs.every(({ signed }) => signed === 0) && theirs.some((each) => each.unsigned > 0)
        );
      });
      const failing = failingOf.get(zone) ?? [];
      const failures = failing.reduce((sum, { outcomes }) => sum + outcomes.servfail, 0);
      if (unsigned.length === 0 || failures < MIN_CASES) return [];
      if (failing.some(({ name }) => claims.names.has(name))) return [];
      const theirs = own.filter(({ server }) => unsigned.includes(server));
      return [{ zone, parents: [...servers], unsigned, theirs, failing, failures }];
    });
    const [first] = found.toSorted((one, other) => other.failures - one.failures);
    if (first === undefined)
      return excluded('no zone that has to be signed is both unsigned and fails');
    const { zone, parents, unsigned, theirs, failing, failures } = first;
    for (const { name } of observed.names.list) if (isWithin(name, zone)) claims.names.add(name);
    const count = theirs.reduce((sum, each) => sum + each.unsigned, 0);
    const withoutKey = theirs.reduce((sum, each) => sum + each.withoutKey, 0);
    const serversWith = (test: (outcomes: Outcomes) => boolean): readonly string[] =>
      keysOf(
        failing.flatMap(({ servers }) =>
          [...servers].filter(([server, each]) => test(each) && !unsigned.includes(server)),
        ),
        ([server]) => server,
      );
    const failingAt = serversWith(({ servfail }) => servfail > 0);
    const answering = serversWith(({ found: yes, servfail }) => yes > 0 && servfail === 0);
    const domain = zone.slice(0, -1);
    const names = keysOf(failing, ({ name }) => name);
    return {
      title: `${domain} has a DS record but is served unsigned, so a validating resolver rejects it`,
      subject: zone,
      severity: 'critical',
      confidence: 0.95,
      seen: [
        `${listed(unsigned)} answered ${count} queries for names in ${domain} without a signature (RRSIG), although the queries asked for one (DO bit).${withoutKey === 0 ? '' : ` It returned no key for ${withoutKey} DNSKEY queries.`}`,
        `${listed(parents)} returned a DS record for ${domain}, so resolvers that validate expect signatures.`,
        sentence(
          `${failures} queries got SERVFAIL${failingAt.length === 0 ? '' : ` from ${listed(failingAt)}`}. They are for ${listed(names)}`,
        ),
        answering.length > 0 &&
          `${listed(answering)} does not validate, and answers the same names.`,
      ],
      why: `The public zone ${domain} is signed, and its parent has a DS record for it. ${listed(unsigned)} serves another copy of the zone without signatures, as private (split-horizon) zones often are. A resolver that validates DNSSEC treats these answers as forged and returns SERVFAIL for every name in the zone. Resolvers that do not validate are not affected.`,
      fix: [
        `Exempt ${domain} from validation at the resolver (a negative trust anchor): domain-insecure: "${domain}" in Unbound, validate-except or rndc nta in BIND.`,
        `Or sign the zone at ${listed(unsigned)}, with keys that match the DS record in the parent zone.`,
        'Or use a name for the private zone that is not below a signed zone.',
      ],
      prove: `ndots query ${names[0]!} @${unsigned[0]!} +dnssec has no RRSIG, while ndots query ${zone} DS @${parents[0]!} has an answer`,
      disproved: `the resolver also fails with +cdflag (then validation is not the cause)`,
      exchanges: observed.affectedExchanges((each) => each.rcode > 0 && names.includes(each.name)),
    };
  },
};

/** Names that get SERVFAIL, by the zone that has to be signed. */
function failingNames({
  names,
  signatures,
}: Observations): ReadonlyMap<string | undefined, readonly NameView[]> {
  const failing = names.list.filter(({ outcomes }) => outcomes.servfail > 0);
  return Map.groupBy(failing, ({ name }) => signatures.unsigned.zoneOf(name)?.zone);
}
