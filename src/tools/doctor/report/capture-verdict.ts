/** The verdict in a capture report that has no critical findings. */
import { count } from '../../../server/base/counted.ts';
import { printElapsed } from '../../../server/base/elapsed.ts';
import { typeName } from '../../../server/wire/iana.ts';
import { isLost, latencyOf, sentSpan } from '../../capture/pair/seen-exchange.ts';
import type { Diagnosis } from '../diagnosis.ts';
import {
  addressDoubt,
  DNS_OVER_TLS,
  failedContacts,
  onlyIpv6Fails,
  reachedContacts,
} from '../observe/failed-contacts.ts';
import type { Observations } from '../observe/observations.ts';
import { wrong } from '../observe/outcomes.ts';
import { isReverseLookup } from '../observe/reverse-lookup.ts';
import { upstreams } from '../observe/roles.ts';
import { isServiceConfig } from '../observe/service-config.ts';
import { between, keysOf, listed, sentence, tally } from '../texts.ts';
import {
  FELT_SHARE,
  LATE_MS,
  MANY_ERRORS,
  MIN_CASES,
  MIN_QUERIES,
  RARE_SHARE,
  SLOW_QUANTILE,
} from '../thresholds/evidence.ts';
import {
  FAILED_LOOKUPS_SHARE,
  MIN_TROUBLES,
  NOTICED_MS,
  RETRY_WAIT_MS,
} from '../thresholds/verdict.ts';

/** The parts of a verdict that need the observations’ details (`forgetDetails`). */
export interface VerdictDetails {
  /** The reason that the capture does not prove that DNS works; null if there is none. */
  readonly doubt: string | null;
  /** A sentence about connections to the answered addresses; null if there are too few. */
  readonly afterLookup: string | null;
  readonly upstreams: ReadonlySet<string>;
}

export function verdictDetails(observed: Observations): VerdictDetails {
  return {
    doubt: doubtOf(observed),
    afterLookup: afterLookup(observed),
    upstreams: upstreams(observed),
  };
}

/** The verdict if nothing critical was found. */
export function captureVerdict(
  observed: Observations,
  { findings, excluded }: Diagnosis,
  details: VerdictDetails = verdictDetails(observed),
): string {
  const { total, servers, cut } = observed;
  if (cut.messages > 0 && excluded.length === 0)
    return `Nothing critical was found, but the capture has only the beginning of ${cut.messages} of ${cut.of} messages. It shows that replies arrived, but not their content. Capture whole packets (tcpdump -s 0).`;
  if (total.asked < MIN_QUERIES)
    return 'Nothing critical was found, but there are too few queries for a verdict.';
  const isCold = findings.some(({ code, severity }) => code === 'ND4003' && severity === 'info');
  const behind = isCold ? details.upstreams : new Set();
  const slowest = Math.max(
    ...servers.list
      .filter(({ address }) => !behind.has(address))
      .map((server) => server.quantile(SLOW_QUANTILE)),
  );
  if (slowest >= NOTICED_MS)
    return `Nothing critical was found, but one reply in ten took ${printElapsed(slowest / 2)} or more, so programs have to wait.`;
  // Programs do not notice findings that only count something.
  if (findings.some(({ severity, counted }) => severity === 'warning' && counted === undefined))
    return 'Nothing critical was found, but there are warnings.';
  // No message was read, so these are log lines.
  if (cut.of === 0)
    return `Nothing critical was found, as far as logs show. The server answered nine of ten queries within ${printElapsed(slowest)}. A log shows only the server’s answers, while a capture also shows queries and replies that are lost in transit.`;
  if (total.lost >= MIN_TROUBLES && total.lost >= RARE_SHARE * total.asked)
    return `Nothing critical was found, but ${total.lost} of ${total.asked} queries got no reply. Programs waited for them, but they are too few to show a cause. Capture for longer, or on the node.`;
  const errors = total.servfail + total.refused + total.error;
  // REFUSED, FORMERR and NOTIMP are final for a program, however many other queries it has.
  const refusals = total.refused + total.error;
  const { servfail } = total;
  const isMuch = errors >= MIN_TROUBLES && errors >= RARE_SHARE * total.asked;
  if (isMuch || refusals >= MANY_ERRORS || servfail >= MANY_ERRORS)
    return `Nothing critical was found, but ${errors} of ${total.asked} replies are errors, which may make programs fail.`;
  const { doubt } = details;
  if (doubt !== null) return `Nothing critical was found, but ${doubt}`;
  if (findings.some(({ code }) => code === 'ND4046'))
    return 'Nothing critical was found, but a DNS server creates IPv6 addresses (DNS64), and this capture does not show whether connections to them succeed. Capture in a pod with an IPv6 address.';
  const replied =
    total.lost === 0 ? 'every query' : `${total.asked - total.lost} of ${total.asked} queries`;
  const times = `got a reply, nine of ten within ${printElapsed(slowest)}.`;
  // Replies alone do not prove that the answers are right.
  return details.afterLookup === null
    ? `${replied.replace('every', 'Every')} ${times} This does not prove that the answers are correct, because the capture has hardly any connections to the addresses in them. If programs fail or hang, capture all ports where they run.`
    : `Not DNS, as far as this shows: ${replied} ${times} ${details.afterLookup}${needlessText(findings)}`;
}

/** A sentence about a program that needlessly repeats one lookup; empty if there is none. */
function needlessText(findings: Diagnosis['findings']): string {
  const repeated = findings.find(
    ({ code, severity }) => code === 'ND2021' && severity === 'warning',
  );
  return repeated === undefined
    ? ''
    : ` But ${listed(repeated.affected ?? [])} could save most of these queries, because it looks up one name again and again (ND2021).`;
}

/** The external names that slow lookups waited for; empty if cluster names are also slow. */
function slowNames({ affected, domains }: Observations): string {
  const late = affected
    .flatMap(({ exchanges }) => exchanges)
    .filter((each) => (latencyOf(each) ?? 0) >= LATE_MS);
  if (late.length === 0 || late.some(({ name }) => domains.isOfCluster(name))) return '';
  const { fromMs, toMs } = sentSpan(late);
  const times = toMs > fromMs ? `, ${between(fromMs, toMs, 'fine')}` : '';
  const questions = tally(late, ({ name, type, client }) => `${client.address} ${type} ${name}`);
  if (questions.every(([, count]) => count === 1))
    return ` Each waited once for an external name (${listed(keysOf(late, ({ name }) => name))}), because nothing was cached yet or the upstream is sometimes slow.`;
  return ` All of them waited for external names${times} (${listed(keysOf(late, ({ name }) => name))}), so the upstream or the network path to it is sometimes slow or loses queries. Capture at the DNS pod.`;
}

/** Describes the failed connections, or counts the accepted ones; null if there are too few. */
function afterLookup(observed: Observations): string | null {
  const failing = failedContacts(observed);
  if (onlyIpv6Fails(observed, failing))
    return sentence(
      `IPv6 does not work, because ${failing[0]!.text}, while IPv4 connections succeed`,
    );
  if (failing.length > 0)
    return sentence(`The connection after the lookup fails: ${failing[0]!.text}`);
  if (reachedContacts(observed) < MIN_CASES) return null;
  const contacts = observed.contacts
    .at(observed.lastMs)
    .filter(({ port }) => port !== DNS_OVER_TLS);
  const opened = contacts.reduce((sum, contact) => sum + contact.opened, 0);
  const accepted = contacts.reduce((sum, contact) => sum + contact.accepted, 0);
  return accepted < opened
    ? 'If programs still fail or hang, check the services that they call, or capture where the programs run.'
    : `All ${opened} TCP connections after the lookups were accepted. If programs are still slow, the delay is before the lookup or in their servers.`;
}

function doubtOf(observed: Observations): string | null {
  const { lookups, slowLookups, failedLookups, askedAgain, losses, givenUp } = observed;
  const isOften = slowLookups >= MIN_TROUBLES && slowLookups >= RARE_SHARE * lookups;
  if (isOften || (slowLookups >= MIN_CASES && slowLookups >= FELT_SHARE * lookups))
    return `${slowLookups} of ${lookups} lookups took a second or more, so their programs had to wait.${slowNames(observed)}`;
  const again = askedAgain.unexplained(losses).length;
  if (again >= MIN_CASES)
    return `${again} queries were repeated after their reply had passed. The replies may be lost between here and the clients, so capture there.`;
  const contacts = failedContacts(observed);
  const ofDns = contacts.find(({ isOfDns }) => isOfDns);
  if (ofDns !== undefined) return sentence(`a DNS server’s own connections fail: ${ofDns.text}`);
  const local = contacts.find(({ proxy }) => proxy !== null);
  if (local !== undefined)
    return sentence(
      `a DNS proxy in the pod, ${local.proxy}, gave an address that fails: ${local.text}`,
    );
  const moved = contacts.find(({ otherWorks }) => otherWorks !== null);
  if (moved !== undefined)
    return `${moved.text}, while connections to ${moved.otherWorks}, another address of this name, succeed. The first may be out of date.`;
  const isIpv6 = onlyIpv6Fails(observed, contacts);
  for (const contact of contacts) {
    const doubt = isIpv6 && contact.name === null ? null : addressDoubt(observed, contact);
    if (doubt !== null) return sentence(`${contact.text}, and ${doubt}`);
  }
  const refused = givenUp.rejected.length;
  if (refused >= MIN_CASES)
    return `${refused} replies arrived at ports that their clients had already closed, so the programs had stopped waiting.`;
  const isMissing =
    failedLookups.count >= MIN_CASES && failedLookups.count >= FAILED_LOOKUPS_SHARE * lookups;
  // Failing connections are what programs notice.
  if (isMissing && contacts.length === 0)
    return `${failedLookups.count} of ${lookups} lookups ended without an address.`;
  const failing = alwaysFailing(observed);
  if (failing.length > 0)
    return sentence(
      `no query for ${listed(failing)} was answered, so programs that need it always fail`,
    );
  const waits = observed.affected
    .filter(({ exchanges }) => exchanges.some(isLost))
    .map(({ startMs, endMs }) => endMs - startMs)
    .filter((ms) => ms >= RETRY_WAIT_MS);
  if (waits.length > 0)
    return `${waits.length} of ${count(lookups, 'lookup', 'lookups')} waited ${printElapsed(Math.max(...waits))} because a query or its reply was lost. Capture for longer to learn why.`;
  return null;
}

/** Names and types that got an error or no reply every time. */
function alwaysFailing({ names }: Observations): readonly string[] {
  return names.list.flatMap(({ name, type, outcomes }) =>
    outcomes.asked >= MIN_CASES &&
    wrong(outcomes) === outcomes.asked &&
    !isServiceConfig(name, type) &&
    !isReverseLookup(name, type)
      ? `${name} ${typeName(type)} (${outcomes.asked} queries)`
      : [],
  );
}
