/** The reasons that servers give for their failures: Extended DNS Errors (RFC 8914) in the packets. */
import { addressTypes, EDE, errorName, TYPE } from '../../../server/wire/iana.ts';
import type { StatedReason } from '../observe/reply-faults.ts';
import type { Observations } from '../observe/observations.ts';
import { wrong } from '../observe/outcomes.ts';
import { isOfBarred } from '../observe/barred.ts';
import { failedInSilence } from '../observe/consequences.ts';
import { excluded, unknown, type FindingKind } from './finding.ts';
import { clock, listed, sentence, shownBy } from '../texts.ts';
import { type Claims } from '../observe/claims.ts';
import { MIN_CASES, RARE_SHARE } from '../thresholds/evidence.ts';

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
    `Tell the owner of the zone of ${names} to re-sign it, or to remove the DS record in its parent.`,
    'Check the validating resolver’s clock (timedatectl).',
    'Until then, exempt the zone there: domain-insecure in Unbound, validate-except in BIND, rndc nta ZONE.',
  ],
  prove: (name, server) =>
    `ndots query ${name} @${server} +dnssec is SERVFAIL with the same code, and with +cdflag it is answered`,
  disproved: 'the query also fails with +cdflag, so DNSSEC is not the cause',
};

const filtered: Kind = {
  code: 'ND4036',
  title: 'A filter blocks names, says the server that answers instead',
  name: 'names that a filter blocks',
  codes: new Set([...[EDE.FORGED_ANSWER, EDE.BLOCKED, EDE.CENSORED, EDE.FILTERED, EDE.PROHIBITED]]),
  whole: true,
  confidence: 0.93,
  why: 'The resolver upstream has a list of names that it does not answer, for safety, by law or by contract, or it counts this client among those that get filtered replies (Prohibited). The reply looks like a missing name, a refusal or an address of the filter; only the Extended DNS Error says what it is.',
  fix: (names, server) => [
    `Remove ${names} from the list on ${server}, or use another resolver for them (a server block with forward).`,
    'For Prohibited, allow the addresses of the DNS pods (or of their nodes, after masquerading) there.',
  ],
  prove: (name, server) => `ndots query ${name} @${server}, and @9.9.9.10 (without a filter)`,
  disproved: 'an unfiltered resolver gives the same reply',
};

const unreachable: Kind = {
  code: 'ND4037',
  title: 'A server says itself why it fails (Extended DNS Error)',
  name: 'failures that name their reason',
  codes: new Set([
    ...[EDE.OTHER, EDE.CACHED_ERROR, EDE.NOT_READY, EDE.NOT_AUTHORITATIVE, EDE.NOT_SUPPORTED],
    ...[EDE.NO_REACHABLE_AUTHORITY, EDE.NETWORK_ERROR, EDE.INVALID_DATA, EDE.TOO_EARLY],
  ]),
  whole: false,
  confidence: 0.86,
  why: 'The server could not get an answer itself. No Reachable Authority and Network Error: the name servers of the zone, or the upstream, do not answer it. Not Ready: it has just started and has no data yet. Invalid Data: a zone or a reply cannot be used. Cached Error: it repeats a failure that it has stored. Not Authoritative: the name is not in a zone of this server, and it does not ask others.',
  fix: (names, server) => [
    `Check the servers for ${names}, and whether ${server} reaches them: firewall, route, a server that is down.`,
    'If one server answers these names elsewhere, forward their zone there.',
  ],
  prove: (name, server) =>
    `ndots query ${name} @${server}: the same code, while other names are answered`,
  disproved: 'the servers of the zone answer when they are asked from the same place',
};

const staleAnswers: Kind = {
  code: 'ND4038',
  title: 'A cache answers with expired records, because its upstream does not answer',
  name: 'answers that have expired',
  codes: new Set([EDE.STALE_ANSWER, EDE.STALE_NXDOMAIN, EDE.SYNTHESIZED]),
  whole: true,
  confidence: 0.85,
  why: 'serve-stale (RFC 8767) keeps names working while their servers are away: the answers were once right. Programs connect to the old addresses, and the names fail when the stale time is over.',
  fix: (names, server) => [
    `Determine why ${server} cannot refresh ${names}: its upstream, or the zone’s servers, do not answer.`,
  ],
  prove: (name, server) =>
    `ndots query ${name} @${server}: a TTL of 30 s or less, and the same code`,
  disproved: 'the servers of the zone answer, and the reply has no such code a minute later',
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
        // A rule about the client (ND4010) does not go by names.
        .filter((each) => kind !== filtered || !isOfClient(each, observed))
        .toSorted((one, other) => other.count - one.count);
      const [first] = reasons;
      if (first === undefined) return excluded(shownBy(0, replyFaults.read));
      const names = namesOf(reasons, observed, claims, kind);
      if (names.length === 0) return excluded('the failures that state a reason are explained');
      const failed = names.reduce((sum, each) => sum + failuresOf(observed, each), 0);
      const count = reasons.reduce((sum, each) => sum + each.count, 0);
      const isStale = kind === staleAnswers;
      const isFelt = failed >= MIN_CASES && failed >= RARE_SHARE * total.asked;
      for (const each of names) if (!isStale) claims.names.add(each);
      const servers = [
        ...new Set(reasons.flatMap((each) => each.servers.list.map(({ key }) => key))),
      ];
      return {
        code,
        title,
        severity: isFelt && !isStale ? 'critical' : 'warning',
        confidence: kind.confidence,
        seen: [
          ...reasons.map(
            (each) =>
              `${each.count} ${each.count === 1 ? 'reply carries' : 'replies carry'} Extended DNS Error ${reasonText(each)}, from ${listed(each.servers.list.map(({ key }) => key))}, between ${clock(each.firstMs)} and ${clock(each.lastMs)}.`,
          ),
          sentence(`Names: ${listed(names)}`),
          ...(failed > count
            ? [
                `In all, ${failed} queries for these names failed, because a server in between does not pass the reason on.`,
              ]
            : []),
        ],
        why: kind.why,
        fix: kind.fix(listed(names), servers[0]!),
        prove: kind.prove(names[0]!, servers[0]!),
        disproved: kind.disproved,
        exchanges: reasons.flatMap(({ samples }) => samples),
      };
    },
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

/** `7 (Signature Expired): "signature expired 20251126"`. */
function reasonText({ code, text }: StatedReason): string {
  const known = errorName(code);
  return `${code}${known === null ? '' : ` (${known})`}${text === '' ? '' : `: "${text.slice(0, 120)}"`}`;
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
