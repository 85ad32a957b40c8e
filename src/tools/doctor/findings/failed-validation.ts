/** Names that fail, and are answered without DNSSEC validation. */
import { zoneOf } from '../observe/domain-of-name.ts';
import { excluded, unknown, type FindingKind } from './finding.ts';
import { listed, sentence } from '../texts.ts';

/** SERVFAIL, and an answer with CD: the signatures of the answer tell why. */
export const failedValidation: FindingKind = {
  code: 'ND4035',
  title: 'The signatures of a zone do not validate (DNSSEC), says the server that checks them',
  name: 'DNSSEC failures',
  inCapture(observed, claims) {
    if (observed.unchecked.names.size === 0) return unknown('no query had CD (checking disabled)');
    const failing = observed.names.list.filter(({ outcomes }) => outcomes.servfail > 0);
    const failingNames = new Set(failing.map(({ name }) => name));
    const found = observed.unchecked.names.list.filter(
      ({ name }) => failingNames.has(name) && !claims.names.has(name),
    );
    const [first] = found.toSorted((one, other) => other.expirationMs - one.expirationMs);
    if (first === undefined)
      return excluded('names that are answered with CD do not fail without it');
    const zones = new Set(found.map(({ name }) => zoneOf(name)));
    const theirs = failing.filter(({ name }) => zones.has(zoneOf(name)));
    const names = [...new Set(theirs.map(({ name }) => name))];
    for (const name of names) claims.names.add(name);
    const failures = theirs.reduce((sum, { outcomes }) => sum + outcomes.servfail, 0);
    const { inceptionMs, expirationMs, atMs, count, name, server } = first;
    const isSigned = expirationMs > 0;
    const isExpired = isSigned && expirationMs < atMs;
    const isValid = isSigned && !isExpired && inceptionMs <= atMs;
    const day = (ms: number): string => new Date(ms).toISOString().slice(0, 10);
    return {
      code: this.code,
      title: isExpired
        ? 'The signatures of a zone have expired (DNSSEC), so a resolver that validates answers SERVFAIL'
        : isValid
          ? 'A resolver rejects signatures that are currently valid (DNSSEC): its clock or its trust anchor is wrong'
          : 'A zone fails DNSSEC validation: its names are answered only without it',
      severity: 'critical',
      confidence: 0.96,
      seen: [
        sentence(
          `${failures} queries got SERVFAIL, while ${count} with CD (checking disabled) ${count === 1 ? 'was' : 'were'} answered: ${listed(names)}`,
        ),
        ...(isSigned
          ? [
              `The signature of ${name} is valid from ${day(inceptionMs)} to ${day(expirationMs)}; the capture was taken on ${day(atMs)}${isExpired ? `: it expired on ${day(expirationMs)}` : isValid ? ', so it was valid' : ', so it was not yet valid'}.`,
            ]
          : ['The answers came without signatures (the query had no DO bit).']),
      ],
      why: isExpired
        ? 'The owner of the zone did not sign it again in time. Validating resolvers answer SERVFAIL for all its names; others still answer.'
        : isValid
          ? 'By this capture’s clock the signatures are valid, but the resolver still rejects them. Most likely its clock is wrong, so that it says "signature not yet valid" or "expired". Otherwise it has an old trust anchor, or the DS record in the parent does not match the zone’s key.'
          : 'A validating resolver answers SERVFAIL for a zone whose signatures are missing, not yet valid or made with another key. Queries with CD skip the validation.',
      fix: isValid
        ? [
            'Check the validating resolver’s clock (timedatectl, chronyc tracking; val-override-date in Unbound), and its log ("signature before inception date").',
            'Check its trust anchor (unbound-anchor, managed-keys), and the DS record in the parent zone.',
          ]
        : [
            `Tell the owner of ${listed([...zones])}that the zone has to be signed again.`,
            'Until then, exempt the zone at the resolver: domain-insecure in Unbound, validate-except in BIND.',
          ],
      prove: `ndots query ${name} @${server} +dnssec is SERVFAIL, but with +cdflag it is answered; compare the times in RRSIG with date -u`,
      disproved: 'the query also fails with +cdflag (so DNSSEC is not the cause)',
      exchanges: observed.affected.flatMap(({ exchanges }) =>
        exchanges.filter((each) => each.rcode > 0 && names.includes(each.name)),
      ),
    };
  },
};
