/** Zones whose own servers send signatures that are not yet valid or no longer valid. */
import { isWithin } from '../../../server/wire/within-zone.ts';
import { listed, minute, sentence } from '../texts.ts';
import { MIN_CASES } from '../thresholds/evidence.ts';
import { excluded, unknown, type FindingKind } from './finding.ts';

export const wrongSignatureTimes: FindingKind = {
  code: 'ND4035',
  title: 'A resolver that validates DNSSEC rejects a zone’s signatures',
  name: 'DNSSEC failures',
  inCapture(observed, claims) {
    const { zones } = observed.signatures;
    if (zones.size === 0) return unknown('no zone’s own servers were seen to send signatures');
    const [worst] = zones.list
      .filter(
        ({ valid, early, expired, names }) =>
          valid === 0 &&
          early + expired >= MIN_CASES &&
          // A resolver that rejects them is reported already.
          ![...names].some((name) => claims.names.has(name)),
      )
      .toSorted((one, other) => other.early + other.expired - one.early - one.expired);
    if (worst === undefined)
      return excluded('the signatures that zones’ own servers send are valid, or were reported');
    const { zone, servers, names, early, expired, atMs, inceptionMs, expirationMs } = worst;
    for (const { name } of observed.names.list) if (isWithin(name, zone)) claims.names.add(name);
    const isEarly = early >= expired;
    return {
      title: isEarly
        ? `The DNSSEC signatures of ${zone} are not yet valid, so validating resolvers reject them`
        : `The DNSSEC signatures of ${zone} have expired, so validating resolvers reject them`,
      subject: zone,
      severity: 'critical',
      confidence: 0.93,
      seen: [
        sentence(
          `${early + expired} authoritative answers from ${listed([...servers])} contain only signatures that are ${isEarly ? 'not yet valid' : 'no longer valid'}: ${listed([...names])}`,
        ),
        `The last one is valid from ${minute(inceptionMs)} to ${minute(expirationMs)}, and it was sent at ${minute(atMs)} by the clock of this capture.`,
      ],
      why: isEarly
        ? 'The inception of these signatures is in the future. The clock of the machine that signs the zone is ahead, or the clock of this capture (and perhaps of the resolver) is behind. Resolvers that validate answer SERVFAIL for every name of the zone, while others resolve them.'
        : 'The zone was not signed again in time, because the signer has stopped or its clock is behind. Resolvers that validate answer SERVFAIL for every name of the zone, while others resolve them.',
      fix: [
        `Compare the clock of the machine that signs ${zone} with UTC (timedatectl, chronyc tracking), correct it, and sign the zone again.`,
        'Check the clocks of the resolver and of the machine with this capture in the same way.',
        'Until then, exempt the zone at the resolver: domain-insecure in Unbound, validate-except in BIND.',
      ],
      prove: `run ndots query ${zone} SOA @${[...servers][0]!} +dnssec +norecurse, and compare the times in RRSIG with date -u`,
      disproved:
        'date -u shows a time within the signatures’ validity (then this capture’s clock is wrong)',
      exchanges: observed.affectedExchanges(({ name }) => isWithin(name, zone)),
      affected: [...names],
    };
  },
};
