/** The reasons that servers give for their failures: Extended DNS Errors (RFC 8914) in the packets. */
import { addressTypes, EDE, errorName, TYPE } from '../../../server/wire/iana.ts';
import type { StatedReason } from '../observe/reply-faults.ts';
import type { Observations } from '../observe/observations.ts';
import { wrong } from '../observe/outcomes.ts';
import { registeredDomainOf } from '../observe/domain-of-name.ts';
import { isOfBarred } from '../observe/barred.ts';
import { refusalRule } from '../observe/refusal-rule.ts';
import { failedInSilence } from '../observe/consequences.ts';
import { notStale } from '../observe/stale-domains.ts';
import { isWithin } from '../../../server/wire/within-zone.ts';
import { excluded, unknown, type FoundCause, type FindingKind } from './finding.ts';
import { between, listed, minute, sentence, shownBy } from '../texts.ts';
import { type Claims } from '../observe/claims.ts';
import { MIN_CASES, RARE_SHARE } from '../thresholds/evidence.ts';
import { STATED_TEXT_LENGTH } from '../thresholds/errors.ts';

interface Kind {
  readonly code: string;
  readonly title: string;
  readonly name: string;
  readonly codes: ReadonlySet<number>;
  /** True if replies without an error count, too. */
  readonly whole: boolean;
  readonly confidence: number;
  readonly why: string;
  fix(names: string, server: string): readonly string[];
  prove(name: string, server: string): string;
  readonly disproved: string;
}

const dnssec: Kind = {
  code: 'ND4035',
  title: 'A resolver that validates DNSSEC rejects a zone’s signatures',
  name: 'DNSSEC failures',
  codes: new Set([
    ...[EDE.UNSUPPORTED_DNSKEY_ALGORITHM, EDE.UNSUPPORTED_DS_DIGEST, EDE.DNSSEC_INDETERMINATE],
    ...[EDE.DNSSEC_BOGUS, EDE.SIGNATURE_EXPIRED, EDE.SIGNATURE_NOT_YET_VALID, EDE.DNSKEY_MISSING],
    ...[EDE.RRSIGS_MISSING, EDE.NO_ZONE_KEY_BIT, EDE.NSEC_MISSING],
    ...[EDE.SIGNATURE_EXPIRED_BEFORE_VALID, EDE.UNSUPPORTED_NSEC3_ITERATIONS],
  ]),
  whole: false,
  confidence: 0.95,
  why: 'A resolver that validates answers SERVFAIL for a zone whose signatures are expired, missing or made with another key. The zone’s owner forgot to re-sign it or rolled a key without its DS record, or the resolver’s clock is wrong. Other zones are not affected, and resolvers that do not validate answer.',
  fix: (names) => [
    `Tell the owner of the zone with ${names} to re-sign it, or to remove the DS record from its parent.`,
    'Check the validating resolver’s clock (timedatectl).',
    'Until then, exempt the zone there: domain-insecure in Unbound, validate-except in BIND, rndc nta ZONE.',
  ],
  prove: (name, server) =>
    `ndots query ${name} @${server} +dnssec gets SERVFAIL with the same code, but is answered with +cdflag`,
  disproved: 'the query also fails with +cdflag (then DNSSEC is not the cause)',
};

const filtered: Kind = {
  code: 'ND4036',
  title: 'A filter blocks names, as the Extended DNS Errors in the replies show',
  name: 'names that a filter blocks',
  codes: new Set([...[EDE.FORGED_ANSWER, EDE.BLOCKED, EDE.CENSORED, EDE.FILTERED, EDE.PROHIBITED]]),
  whole: true,
  confidence: 0.93,
  why: 'The upstream resolver has a list of names that it does not answer, for safety, by law or by contract, or it gives this client filtered replies (Prohibited). If the reply is REFUSED within a millisecond, the list is more likely that of a DNS proxy on the node, which a network policy with DNS rules (such as toFQDNs) puts in front of certain pods. The reply looks like a missing name, a refusal or the filter’s own address. Only the Extended DNS Error shows the reason.',
  fix: (names, server) => [
    `Remove ${names} from the list on ${server}, or use another resolver for them (a server block with forward).`,
    'If only some pods are refused, look for a network policy with DNS rules that selects them, and allow the names there.',
    'If the code is Prohibited, allow the DNS pods’ addresses there (or their nodes’, after masquerading).',
  ],
  prove: (name, server) =>
    `run ndots query ${name} @${server}, then again with @9.9.9.10 (which does not filter)`,
  disproved: 'an unfiltered resolver gives the same reply',
};

const unreachable: Kind = {
  code: 'ND4037',
  title: 'A server states the reason for its failures (Extended DNS Error)',
  name: 'failures with a stated reason',
  codes: new Set([
    ...[EDE.OTHER, EDE.CACHED_ERROR, EDE.NOT_READY, EDE.NOT_AUTHORITATIVE, EDE.NOT_SUPPORTED],
    ...[EDE.NO_REACHABLE_AUTHORITY, EDE.NETWORK_ERROR, EDE.INVALID_DATA, EDE.TOO_EARLY],
  ]),
  whole: false,
  confidence: 0.86,
  why: 'The server could not get an answer itself. No Reachable Authority and Network Error mean that the zone’s name servers, or the upstream, do not answer it. Not Ready means that it has just started and has no data yet. Invalid Data means that a zone or a reply cannot be used. Cached Error is a stored failure. Not Authoritative means that the server does not have the zone and does not query others.',
  fix: (names, server) => [
    `Check whether the servers for ${names} are up, and whether ${server} can reach them (firewall, routes).`,
    'If another server answers these names, forward their zone to it.',
  ],
  prove: (name, server) =>
    `ndots query ${name} @${server} returns the same code, while other names are answered`,
  disproved: 'the zone’s servers answer when they are queried from the same place',
};

const staleAnswers: Kind = {
  code: 'ND4038',
  title: 'A cache serves expired records because its upstream does not answer',
  name: 'expired answers',
  codes: new Set([EDE.STALE_ANSWER, EDE.STALE_NXDOMAIN, EDE.SYNTHESIZED]),
  whole: true,
  confidence: 0.85,
  why: 'serve-stale (RFC 8767) keeps names working with their last known answers while their servers are away. Programs connect to the old addresses, and the names fail when the stale period ends.',
  fix: (names, server) => [
    `Find out why the upstream, or the zone’s servers, do not answer ${server} for ${names}`,
  ],
  prove: (name, server) =>
    `ndots query ${name} @${server} returns the same code and a TTL of 30 s or less`,
  disproved: 'the zone’s servers answer, and a minute later the reply no longer has this code',
};

function ruleOf(kind: Kind): FindingKind {
  const { code, title, name } = kind;
  return {
    ...{ code, title, name },
    inCapture(observed, claims) {
      const { replyFaults, total } = observed;
      if (replyFaults.read === 0) return unknown('the capture has no whole reply');
      const reasons = replyFaults.reasons.list
        .filter(({ code: each }) => kind.codes.has(each))
        .filter(({ failed }) => kind.whole || failed > 0)
        // A rule about the client (ND4010) does not depend on names.
        .filter(
          (each) => kind !== filtered || !(isOfClient(each, observed) || isOfRule(each, observed)),
        )
        .toSorted((one, other) => other.count - one.count);
      const [first] = reasons;
      if (first === undefined) return excluded(shownBy(0, replyFaults.read));
      const names = namesOf(reasons, observed, claims, kind);
      if (names.length === 0) return excluded('the failures that state a reason are explained');
      const failed = names.reduce((sum, each) => sum + failuresOf(observed, each), 0);
      const count = reasons.reduce((sum, each) => sum + each.count, 0);
      const isStale = kind === staleAnswers;
      const beside = isStale ? notStale(observed) : { names: [], queries: 0 };
      const isFelt = failed >= MIN_CASES && failed >= RARE_SHARE * total.asked;
      for (const each of names) if (!isStale) claims.names.add(each);
      if (kind === dnssec) explainZones(observed, claims, names);
      const servers = [
        ...new Set(reasons.flatMap((each) => each.servers.list.map(({ key }) => key))),
      ];
      const wrongly = kind === dnssec ? wronglyRejected(reasons, names, servers, observed) : null;
      return {
        title: wrongly?.title ?? title,
        severity: (isFelt && !isStale) || beside.queries >= MIN_CASES ? 'critical' : 'warning',
        confidence: kind.confidence,
        seen: [
          ...(wrongly?.seen ?? []),
          ...reasons.map(
            (each) =>
              `${each.count} ${each.count === 1 ? 'reply carries' : 'replies carry'} Extended DNS Error ${reasonText(each)}, from ${listed(each.servers.list.map(({ key }) => key))}, ${between(each.firstMs, each.lastMs)}.`,
          ),
          sentence(`The affected names are ${listed(names)}`),
          beside.queries > 0 &&
            sentence(
              `In the same domain, ${beside.queries} queries without an expired record in the cache failed or got no reply. They are for ${listed(beside.names)}`,
            ),
          failed > count &&
            `In total, ${failed} queries for these names failed, because a server in between does not pass on the reason.`,
        ],
        why: wrongly?.why ?? kind.why,
        fix: wrongly?.fix ?? kind.fix(listed(names), servers[0]!),
        prove: kind.prove(names[0]!, servers[0]!),
        disproved: kind.disproved,
        exchanges: reasons.flatMap(({ samples }) => samples),
      };
    },
  };
}

/** Marks the zones' other failing names as explained: not every query gets the reason. */
function explainZones(observed: Observations, claims: Claims, names: readonly string[]): void {
  const zones = new Set(names.map(registeredDomainOf));
  for (const { name, outcomes } of observed.names.list)
    if (outcomes.servfail > 0 && zones.has(registeredDomainOf(name))) claims.names.add(name);
}

/**
 * Texts for resolvers that reject valid signatures. Null if neither the signatures in this capture nor another
 * validating resolver show that they are valid.
 */
function wronglyRejected(
  reasons: readonly StatedReason[],
  names: readonly string[],
  rejecting: readonly string[],
  { signatures, names: views }: Observations,
): Pick<FoundCause, 'title' | 'seen' | 'why' | 'fix'> | null {
  const early = reasons.some((each) => each.untimely === 'early');
  if (!early && reasons.every((each) => each.untimely === null)) return null;
  const signed = signatures.zones.list.find(
    ({ zone, valid, early: before, expired }) =>
      valid > 0 && before + expired === 0 && names.every((name) => isWithin(name, zone)),
  );
  const validating = new Set(
    names.flatMap((name) => [...(signatures.validated.get(name)?.servers ?? [])]),
  );
  // Servers that forward pass on both the failures and the bit.
  for (const { name, servers } of views.list)
    if (names.includes(name))
      for (const [server, { servfail }] of servers) if (servfail > 0) validating.delete(server);
  if (signed === undefined && validating.size === 0) return null;
  const those = listed(rejecting);
  const [has, its] = rejecting.length === 1 ? ['has', 'its clock'] : ['have', 'their clocks'];
  return {
    title: `A resolver rejects valid DNSSEC signatures because its clock is ${early ? 'behind' : 'ahead'}: ${those}`,
    seen: [
      signed !== undefined &&
        `The signatures of ${signed.zone} in this capture are valid: ${listed([...signed.servers])} sent them at ${minute(signed.atMs)}, and they are valid from ${minute(signed.inceptionMs)} to ${minute(signed.expirationMs)}.`,
      validating.size > 0 &&
        sentence(
          `${listed([...validating])} ${validating.size === 1 ? 'validates' : 'validate'} the same names (AD bit)`,
        ),
      `${those} ${rejecting.length === 1 ? 'reports' : 'report'} that signatures ${early ? 'are not yet valid' : 'have expired'}.`,
    ],
    why: `${those} ${has} a wrong clock. By ${its}, the signatures ${early ? 'are not yet valid' : 'have expired'}, so every name in a signed zone gets SERVFAIL. The zone itself is signed correctly, and other resolvers answer.`,
    fix: [
      `Correct the clock of ${those}: compare date -u there with UTC, and check NTP (timedatectl, chronyc tracking; val-override-date in Unbound).`,
      `Until then, remove ${those} from forward, or from the list of resolvers.`,
      !early && 'If the clock is right, flush the cache, which may contain old signatures.',
    ],
  };
}

/**
 * True if the reason is about the client: it is refused for every name, or REFUSED says that it is
 * not authorized (RFC 8914 section 4.19).
 */
function isOfClient(reason: StatedReason, observed: Observations): boolean {
  return (
    isOfBarred(reason, observed) ||
    (reason.code === EDE.PROHIBITED &&
      reason.names.list.some(
        ({ name, type }) => (observed.names.get(name, type)?.outcomes.refused ?? 0) > 0,
      ))
  );
}

/** True if some clients are refused names that others can resolve (ND4010). */
function isOfRule({ names: { list } }: StatedReason, observed: Observations): boolean {
  const views = list.flatMap(({ name, type }) => observed.names.get(name, type) ?? []);
  const refused = views.filter(({ outcomes }) => outcomes.refused > 0);
  if (refused.length < views.length || refused.length === 0) return false;
  return (refusalRule(observed, refused)?.denied.length ?? 0) > 0;
}

/** `7 (Signature Expired): "signature expired 20251126"`. */
function reasonText({ code, text }: StatedReason): string {
  const known = errorName(code);
  return `${code}${known === null ? '' : ` (${known})`}${text === '' ? '' : `: "${shortened(text)}"`}`;
}

/** Drops the middle of a long text, because its end often has the actual cause. */
function shortened(text: string): string {
  const half = STATED_TEXT_LENGTH / 2;
  return text.length <= STATED_TEXT_LENGTH ? text : `${text.slice(0, half)} … ${text.slice(-half)}`;
}

/** Names with these reasons whose failures nothing else explains. */
function namesOf(
  reasons: readonly StatedReason[],
  observed: Observations,
  claims: Claims,
  kind: Kind,
): readonly string[] {
  const isOfSilence = failedInSilence(observed, claims);
  const names = reasons.flatMap((reason) =>
    reason.names.list.flatMap(({ name, type }) =>
      !claims.names.has(name) &&
      (kind.whole || !isOfSilence(name, type)) &&
      !isAnswered(kind, name, type, observed)
        ? name
        : [],
    ),
  );
  return [...new Set(names)];
}

/** True if a filter that blocks AAAA gives A of the same name: it does not block the name. */
function isAnswered({ code }: Kind, name: string, type: number, { names }: Observations): boolean {
  if (code !== filtered.code || type !== TYPE.AAAA) return false;
  return (names.get(name, TYPE.A)?.outcomes.found ?? 0) > 0;
}

/** Queries for the name, of addresses, that failed or were denied. */
function failuresOf({ names }: Observations, name: string): number {
  return addressTypes.reduce((sum, type) => {
    const outcomes = names.get(name, type)?.outcomes;
    return outcomes === undefined ? sum : sum + wrong(outcomes) - outcomes.lost + outcomes.nxdomain;
  }, 0);
}

/** In the order in which they are tried. */
export const statedReasons: readonly FindingKind[] = [
  ruleOf(dnssec),
  ruleOf(filtered),
  ruleOf(unreachable),
  ruleOf(staleAnswers),
];
