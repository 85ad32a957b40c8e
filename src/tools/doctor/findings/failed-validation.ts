/** Names that fail but are answered without DNSSEC validation. */
import type { NameView } from '../observe/name-view.ts';
import type { Observations } from '../observe/observations.ts';
import { registeredDomainOf } from '../observe/domain-of-name.ts';
import { excluded, unknown, type FindingKind } from './finding.ts';
import { listed } from '../texts.ts';

/** SERVFAIL, but an answer with CD (checking disabled). The answer's signatures show why. */
export const failedValidation: FindingKind = {
  code: 'ND4035',
  title: 'A resolver that validates DNSSEC rejects a zone’s signatures',
  name: 'DNSSEC failures',
  inCapture(observed, claims) {
    if (observed.signatures.unchecked.names.size === 0)
      return unknown('no query had the CD bit set (checking disabled)');
    const failing = observed.names.list.filter(({ outcomes }) => outcomes.servfail > 0);
    const byName = Map.groupBy(failing, ({ name }) => name);
    const found = observed.signatures.unchecked.names.list.filter(
      ({ name, hosts }) =>
        !claims.names.has(name) && failsAt(byName.get(name) ?? [], hosts, observed),
    );
    const [first] = found.toSorted((one, other) => other.expirationMs - one.expirationMs);
    if (first === undefined)
      return excluded('names that are answered with the CD bit do not fail without it');
    const zones = new Set(found.map(({ name }) => registeredDomainOf(name)));
    const theirs = failing.filter(({ name }) => zones.has(registeredDomainOf(name)));
    const names = [...new Set(theirs.map(({ name }) => name))];
    for (const name of names) claims.names.add(name);
    const failures = theirs.reduce((sum, { outcomes }) => sum + outcomes.servfail, 0);
    const { inceptionMs, expirationMs, atMs, count, name, server } = first;
    const isSigned = expirationMs > 0;
    const isExpired = isSigned && expirationMs < atMs;
    const isValid = isSigned && !isExpired && inceptionMs <= atMs;
    const day = (ms: number): string => new Date(ms).toISOString().slice(0, 10);
    return {
      title: isExpired
        ? 'A zone’s DNSSEC signatures have expired, so validating resolvers answer SERVFAIL'
        : isValid
          ? 'A resolver rejects valid DNSSEC signatures because its clock or trust anchor is wrong'
          : 'A zone fails DNSSEC validation, so its names are answered only when validation is off',
      severity: 'critical',
      confidence: 0.96,
      seen: [
        `${failures} queries got SERVFAIL, while ${count} with the CD bit (checking disabled) ${count === 1 ? 'was' : 'were'} answered. They are for ${listed(names)}`,
        isSigned
          ? `The signature of ${name} is valid from ${day(inceptionMs)} to ${day(expirationMs)}. The capture was taken on ${day(atMs)}, when it ${isExpired ? `had already expired` : isValid ? 'was valid' : 'was not yet valid'}.`
          : 'The answers contained no signatures, because the queries did not set the DO bit.',
      ],
      why: isExpired
        ? 'The zone’s owner did not sign it again in time. Validating resolvers answer SERVFAIL for all its names, while others still resolve them.'
        : isValid
          ? 'By this capture’s clock, the signatures are valid, but the resolver still rejects them. Most likely its clock is wrong, so it considers them expired or not yet valid. Otherwise, it has an old trust anchor, or the DS record in the parent zone does not match the zone’s key.'
          : 'A validating resolver answers SERVFAIL for a zone whose signatures are missing, not yet valid or made with another key. Queries with the CD bit skip validation.',
      fix: isValid
        ? [
            'Check the validating resolver’s clock (timedatectl, chronyc tracking; val-override-date in Unbound), and its log ("signature before inception date").',
            'Check its trust anchor (unbound-anchor, managed-keys), and the DS record in the parent zone.',
          ]
        : [
            `Tell the owner of ${listed([...zones])} that the zone has to be signed again.`,
            'Until then, exempt the zone at the resolver: domain-insecure in Unbound, validate-except in BIND.',
          ],
      prove: `ndots query ${name} @${server} +dnssec gets SERVFAIL but is answered with +cdflag; compare the times in RRSIG with date -u`,
      disproved: 'the query also fails with +cdflag (then DNSSEC is not the cause)',
      exchanges: observed.affectedExchanges((each) => each.rcode > 0 && names.includes(each.name)),
    };
  },
};

/**
 * True if one of these servers fails for the name. It has the answer, since it sent it or got it,
 * so nothing but validation can be at fault. Another server may lack an upstream.
 */
function failsAt(
  views: readonly NameView[],
  hosts: ReadonlySet<string>,
  { serverNames }: Observations,
): boolean {
  return views.some(({ servers }) =>
    [...servers].some(
      ([address, { servfail }]) =>
        servfail > 0 && (hosts.has(address) || hosts.has(serverNames.hostOf(address))),
    ),
  );
}
