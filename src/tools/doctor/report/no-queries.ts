/** Captures without queries, which may still show the cause of a problem. */
import type { Reading } from '../../capture/read/reading.ts';
import type { Contact } from '../observe/contacts.ts';
import { DNS_OVER_TLS, failedContacts } from '../observe/failed-contacts.ts';
import type { Observations } from '../observe/observations.ts';
import { failsOften } from '../observe/server-connections.ts';
import { stuckText, stuckWhy } from '../observe/stuck-connections.ts';
import { MAX_LISTED_CONTACTS } from '../thresholds/transport.ts';
import { MIN_UNANSWERED_REQUESTS } from '../thresholds/verdict.ts';

/**
 * True if there are no queries, counters, log lines or failed connections to name servers, including
 * TLS connections.
 */
export function isWithoutDns({ totals }: Reading, observed: Observations): boolean {
  if (totals.exchanges > 0 || observed.counters.lines > 0 || observed.logged.lines > 0)
    return false;
  if (failedContacts(observed, isOverTls).length > 0) return false;
  return !observed.connections.at(totals.lastMs).some(failsOften);
}

const isOverTls = ({ port }: Contact): boolean => port === DNS_OVER_TLS;

/** Hints for a user who expected queries. */
export function withoutDnsHints(
  { totals, families }: Reading,
  { neighbours, contacts, stuckConnections }: Observations,
): readonly string[] {
  const overTls = contacts.at(totals.lastMs).filter(isOverTls);
  const [only, other] = families[4] === 0 ? ['IPv6', 'IPv4'] : ['IPv4', 'IPv6'];
  const stuck = stuckConnections.list.slice(0, MAX_LISTED_CONTACTS);
  const isOneFamily = families[4] + families[6] > 0 && families[4] * families[6] === 0;
  return [
    ...stuck.map((sender) => `${stuckText(sender)} ${stuckWhy}`),
    ...neighbours.list
      .filter(({ asked, answered }) => asked >= MIN_UNANSWERED_REQUESTS && answered === 0)
      .slice(0, 5)
      .map(
        ({ address, asked }) =>
          `No host answered ${asked} ARP requests for ${address}. If that is your name server or the gateway to it, this is the cause.`,
      ),
    ...overTls
      .slice(0, 5)
      .map(
        ({ server, opened }) =>
          `${opened} connections went to ${server} port ${DNS_OVER_TLS} (DNS over TLS), so their queries are encrypted. Capture at the DNS pods, whose clients query them without TLS.`,
      ),
    ...(isOneFamily && overTls.length === 0 && stuck.length === 0
      ? [
          `All ${families[4] + families[6]} packets are ${only}. A pod that has only ${only} addresses cannot query a name server at an ${other} address, so its kernel sends nothing. Compare the nameserver lines in /etc/resolv.conf with the pod’s addresses.`,
        ]
      : []),
    ...(totals.frames > 0
      ? ['If name servers use ports other than 53 and 5353, specify them with --port PORT,…']
      : []),
  ];
}
