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
          ? 'A resolver rejects signatures that are in their time (DNSSEC): its clock or its trust anchor is wrong'
          : 'A zone fails DNSSEC validation: its names are answered only without it',
      severity: 'critical',
      confidence: 0.96,
      seen: [
        sentence(
          `${failures} queries were SERVFAIL, and ${count} with CD (checking disabled) ${count === 1 ? 'was' : 'were'} answered: ${listed(names)}`,
        ),
        ...(isSigned
          ? [
              `The signature of ${name} is valid from ${day(inceptionMs)} to ${day(expirationMs)}; the capture is of ${day(atMs)}: ${isExpired ? `it expired on ${day(expirationMs)}` : isValid ? 'it is in its time' : 'its time has not begun'}.`,
            ]
          : ['The answers came without signatures (the query had no DO bit).']),
      ],
      why: isExpired
        ? 'The owner of the zone did not sign it again in time. Resolvers that validate answer SERVFAIL for all its names; others answer.'
        : isValid
          ? 'By the clock of this capture the signatures are in their time, and the resolver still rejects them. Most likely its clock is wrong, so that it says "signature not yet valid" or "expired"; or it has an old trust anchor, or the DS record in the parent does not fit the key of the zone.'
          : 'A resolver that validates answers SERVFAIL for a zone whose signatures are missing, not yet valid or made with another key. Queries with CD skip the validation.',
      fix: isValid
        ? [
            'Check the clock of the resolver that validates (timedatectl, chronyc tracking; val-override-date in Unbound), and its log ("signature before inception date").',
            'Check its trust anchor (unbound-anchor, managed-keys), and the DS record in the parent of the zone.',
          ]
        : [
            `Tell the owner of ${listed([...zones])}: the zone has to be signed again.`,
            'Until then, exempt the zone at the resolver: domain-insecure in Unbound, validate-except in BIND.',
          ],
      prove: `ndots query ${name} @${server} +dnssec is SERVFAIL, and with +cdflag it is answered: compare the times in RRSIG with date -u`,
      disproved: 'the query fails with +cdflag, too: then it is not DNSSEC',
      exchanges: observed.affected.flatMap(({ exchanges }) =>
        exchanges.filter((each) => each.rcode > 0 && names.includes(each.name)),
      ),
    };
  },
};
