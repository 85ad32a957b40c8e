/** Names that no server answers, as opposed to silent sockets. */
import type { Observations } from '../observe/observations.ts';
import { type Claims } from '../observe/claims.ts';
import { deadNames, type DeadNames } from '../observe/dead-names.ts';
import { excluded, unknown, type FindingKind } from './finding.ts';
import { failedContacts } from '../observe/failed-contacts.ts';
import { keysOf, listed } from '../texts.ts';
import { addressTypes, typeName } from '../../../server/wire/iana.ts';
import { isBelow } from '../../../server/wire/within-zone.ts';
import { sentSpan } from '../../capture/pair/seen-exchange.ts';
import { waitingForThese } from '../observe/consequences.ts';
import { MIN_CASES, UNFRAGMENTED_BYTES } from '../thresholds/evidence.ts';
import { UNLIKELY_DEAD } from '../thresholds/silence.ts';
import { MIN_NAMES_OF_ONE, MIN_SIDE_NAMES } from '../thresholds/transport.ts';

export const droppedName: FindingKind = {
  code: 'ND3010',
  title: 'Queries for certain names get no reply, from any client',
  name: 'names that no server answers',
  inCapture(observed, claims) {
    if (observed.names.size < 2) return unknown('the capture contains queries for only one name');
    takeHealthChecks(observed, claims);
    const dead = deadNames(observed, claims.open).filter(
      (each) =>
        (each.chance < UNLIKELY_DEAD || isOutside(each, observed)) &&
        each.losses.length >= MIN_CASES &&
        !isOfOne(each, observed) &&
        (!isOfHosts(each, claims) || isOutside(each, observed)),
    );
    // If a server does not answer its clients because it waits for another one, that one is the cause.
    const [found] = dead.toSorted((one, other) => other.losses.length - one.losses.length);
    if (found === undefined)
      return excluded(
        claims.open.length === 0
          ? 'every query was answered, or another finding explains the losses'
          : 'the names that get no reply are answered on other sockets, or are queried too rarely to tell',
      );
    const { server, losses, names, answered } = found;
    // A top-level domain is too general to name.
    const suffix = found.suffix.split('.').length > 2 ? found.suffix : '';
    const outside = isOutside(found, observed);
    const types = keysOf(losses, ({ type }) => typeName(type));
    const isLarge =
      !losses.some(({ type }) => addressTypes.includes(type)) &&
      losses.every(({ udpSize }) => udpSize > UNFRAGMENTED_BYTES);
    const own = outside ? failedContacts(observed).find(({ isOfDns }) => isOfDns) : undefined;
    claims.take(losses);
    claims.take(found.cut);
    claims.take(waitingForThese(claims, losses));
    return {
      title: outside ? 'External names get no reply, while cluster names do' : this.title,
      severity: 'critical',
      // A failed connection of the server is the cause, and comes first.
      confidence: own === undefined ? 0.85 : 0.7,
      seen: [
        `${losses.length} queries for ${listed(names)} got no reply, however often they were repeated.`,
        `During that time, ${server} answered ${answered.length} other ${answered.length === 1 ? 'name' : 'names'}${outside ? ', all of them cluster names' : ''}.`,
        own !== undefined &&
          `A DNS server’s own connections fail, which explains the losses: ${own.text}`,
        isLarge &&
          `All of them are ${listed(types)} queries that allow replies larger than one packet (EDNS), so it is possible that only their answers are lost, as fragments (ND3012).`,
        suffix !== '' && names.length > 1 && `All of these names end in ${suffix}`,
      ],
      why: outside
        ? `${server} forwards queries for external names but gets no reply in time, because its upstream is down, unreachable or does not answer it. It waits longer than its clients do. Cluster names are answered from memory.`
        : 'Losses that depend on the name are caused by something that reads names. Either the upstream for this zone does not answer, or a filter drops the query. The server in between waits longer than its clients do.',
      fix: [
        outside &&
          `Capture at ${server}, or at the DNS pods behind it, to find the upstream that does not answer. From there, query each forward upstream in the Corefile over the configured transport (UDP, TCP or TLS).`,
        `Check whether ${suffix === '' ? 'these names have' : `${suffix} has`} a separate forward in the Corefile, whether a firewall filters by name, and whether one of the zone’s servers is down.`,
        isLarge &&
          'If the answer is larger than one packet (TXT, DNSKEY), its fragments may be dropped in transit. Compare dig +bufsize=4096 with +bufsize=1232 (which uses TCP), and set bufsize 1232 in the Corefile.',
        'If a search domain inherited from the nodes creates these names, remove it from the nodes’ resolv.conf (kubelet --resolv-conf), since no program needs them.',
        'Make the server give up sooner than its clients (forward { max_connect_attempts } or a shorter timeout), so that they get SERVFAIL and move on.',
      ],
      prove: `run ndots query ${names[0]} @${server}, then query its upstream directly`,
      disproved: 'the same server answers another client for the same name',
      exchanges: losses,
    };
  },
};

/**
 * Claims health checks of servers that answer other names but never the root. Forwarders query the
 * root when such a server is late or fails for other names, so it is not a name that is lost.
 */
function takeHealthChecks(observed: Observations, claims: Claims): void {
  const checks = claims.open.filter(({ name }) => name === '.');
  claims.take(deadNames(observed, checks).flatMap(({ losses }) => losses));
}

/** True if other names of the same domain, which one program visits once each, are answered. */
function isOfHosts({ names }: DeadNames, { flood }: Claims): boolean {
  return flood?.isReal === true && names.every((name) => isBelow(name, flood.domain));
}

/**
 * True if only one client loses these queries, the names are unrelated, and it gets no reply at
 * all. The losses may then depend on the client.
 */
function isOfOne(
  { server, names, suffix, losses }: DeadNames,
  { flows, clients }: Observations,
): boolean {
  const [client, ...others] = new Set(losses.map((loss) => loss.client.address));
  if (others.length > 0 || suffix !== '' || names.length < MIN_NAMES_OF_ONE || clients.size < 2)
    return false;
  const { fromMs } = sentSpan(losses);
  return !flows.to(server).some((flow) => flow.client === client && flow.lastAnsweredMs >= fromMs);
}

/** True if these are all external names. */
function isOutside(
  { names, answered, chanceOfThese }: DeadNames,
  { domains }: Observations,
): boolean {
  return (
    (names.length >= MIN_SIDE_NAMES || (names.length > 1 && chanceOfThese < UNLIKELY_DEAD)) &&
    answered.length >= MIN_SIDE_NAMES &&
    !names.some((name) => domains.isOfCluster(name)) &&
    answered.every((name) => domains.isOfCluster(name))
  );
}
