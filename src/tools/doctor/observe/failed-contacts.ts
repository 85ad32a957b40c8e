/** Describes connections that failed after their lookup. */
import { ALERT } from '../../capture/read/packets/payload-code.ts';
import { listed, minute, share, took } from '../texts.ts';
import { MIN_CASES, OUTAGE_SHARE } from '../thresholds/evidence.ts';
import type { Contact, ContactFailure } from './contacts.ts';
import type { NameView } from './name-view.ts';
import type { Observations } from './observations.ts';
import { isServer } from './roles.ts';
import { specialUse } from './special-address.ts';

/** The DNS over TLS port, where the connection itself is DNS (RFC 7858). */
export const DNS_OVER_TLS = 853;
/** The client found the certificate out of date (RFC 8446, section 6.2). */
const CERTIFICATE_EXPIRED = 45;
/** Descriptions of TLS alerts (RFC 8446, section 6). */
const ALERTS: ReadonlyMap<number, string> = new Map([
  [40, 'handshake_failure'],
  [42, 'bad_certificate'],
  [45, 'certificate_expired'],
  [46, 'certificate_unknown'],
  [47, 'illegal_parameter'],
  [48, 'unknown_ca'],
  [49, 'access_denied'],
  [70, 'protocol_version'],
  [71, 'insufficient_security'],
  [80, 'internal_error'],
  [112, 'unrecognized_name'],
  [116, 'certificate_required'],
  [120, 'no_application_protocol'],
]);

export interface FailedContact {
  readonly contact: Contact;
  readonly failed: number;
  readonly how: ContactFailure;
  /** A name whose answers contain the address; null if the capture has none. */
  readonly name: string | null;
  /** True if the client is a DNS server, so the connection is part of its work. */
  readonly isOfDns: boolean;
  /** The loopback server, a proxy in the pod, that returned the address; null if there is none. */
  readonly proxy: string | null;
  /** Another of the name’s addresses, whose connections succeed. */
  readonly otherWorks: string | null;
  /** `34 of 34 (100 %) connections from 10.244.1.7 to 10.96.88.64 port 443 (api.) got no reply to their SYN`. */
  readonly text: string;
}

/** Addresses whose connections fail, beginning with those that have a name in the capture. */
export function failedContacts(
  observed: Observations,
  isWanted: (contact: Contact) => boolean = () => true,
): readonly FailedContact[] {
  const all = observed.contacts.at(observed.lastMs);
  const failing = all.filter(({ opened, failures }) => {
    const failed = sum(failures.values());
    return failed >= MIN_CASES && failed >= OUTAGE_SHARE * opened;
  });
  const wanted = failing.filter(isWanted);
  if (wanted.length === 0) return [];
  const views = new Map<string, NameView>();
  for (const view of observed.names.list)
    for (const address of addressesOf(view)) if (!views.has(address)) views.set(address, view);
  const found = wanted.map((contact): FailedContact => {
    const failed = sum(contact.failures.values());
    const view = views.get(contact.server);
    const answers = new Set(view === undefined ? [] : addressesOf(view));
    const other = all.find(
      ({ server, port, accepted, failures }) =>
        answers.has(server) && port === contact.port && accepted > 0 && failures.size === 0,
    );
    const name = view?.name ?? null;
    const [[how]] = [...contact.failures].toSorted(([, one], [, two]) => two - one) as [
      [ContactFailure, number],
    ];
    return {
      ...{ contact, failed, how, name },
      isOfDns:
        contact.port === DNS_OVER_TLS ||
        [...contact.clients.keys()].some((client) => isServer(observed, client)),
      proxy: [...(view?.servers ?? [])].map(([server]) => server).find(isProxy) ?? null,
      otherWorks: other?.server ?? null,
      text: textOf(contact, failed, how, name),
    };
  });
  return found.toSorted(
    (one, other) =>
      Number(other.name !== null) - Number(one.name !== null) || other.failed - one.failed,
  );
}

/** The number of accepted connections to addresses from this capture’s answers. */
export function reachedContacts(observed: Observations): number {
  const contacts = observed.contacts.at(observed.lastMs).filter(({ accepted }) => accepted > 0);
  if (contacts.length === 0) return 0;
  const answers = new Set(observed.names.list.flatMap(addressesOf));
  return contacts.reduce(
    (sum, { server, accepted }) => sum + (answers.has(server) ? accepted : 0),
    0,
  );
}

/** Last labels of external names. A namespace may also have such a name. */
const EXTERNAL = /^(?:com|net|org|io|dev|app|cloud|info|gov|edu|[a-z]{2})$/;

/**
 * The reason that the answer may be at fault rather than the server at its address; null if there is none.
 */
export function addressDoubt(
  { domains }: Observations,
  { contact, name }: FailedContact,
): string | null {
  if (name === null) return 'no lookup in this capture gave this address';
  const use = specialUse(contact.server);
  if (use !== null) return `${contact.server}, the answer for ${name}, ${use}`;
  const domain = domains.domainOf(name);
  const typed = domain === null ? '' : name.slice(0, -domain.length);
  if (EXTERNAL.test(typed.split('.').at(-2) ?? '') && typed.split('.').length > 2)
    return `the search path completed ${name}, so the address does not belong to the external name ${typed}`;
  return null;
}

/** True if all IPv6 connections fail, while IPv4 connections are accepted. */
export function onlyIpv6Fails(
  { contacts, lastMs }: Observations,
  failing: readonly FailedContact[],
): boolean {
  const accepted = contacts.at(lastMs).filter((each) => each.accepted > 0);
  return (
    failing.length > 0 &&
    failing.every(({ contact }) => contact.server.includes(':') && contact.accepted === 0) &&
    accepted.length > 0 &&
    !accepted.some(({ server }) => server.includes(':'))
  );
}

/** A loopback address with a port other than the DNS port. */
function isProxy(server: string): boolean {
  return /^(?:127\.|\[::1\]:)/.test(server) && server.includes(':');
}

function addressesOf({ addresses, sets }: NameView): readonly string[] {
  return [...addresses, ...(sets?.list ?? []).flatMap((set) => set.addresses)];
}

function textOf(
  contact: Contact,
  failed: number,
  how: ContactFailure,
  name: string | null,
): string {
  const { server, port, opened, clients } = contact;
  const called = name ?? 'no answer here has this address';
  return `${share(failed, opened)} connections from ${listed([...clients.keys()], 2)} to ${server} port ${port} (${called}) ${outcomes(contact)[how]}`;
}

/**
 * Describes a certificate that is out of date, if connections fail in their handshake; null if the
 * capture does not show one.
 */
export function certificateText({ contact, how }: Pick<FailedContact, 'contact' | 'how'>): {
  readonly isExpired: boolean;
  readonly text: string;
} | null {
  const { untimely, code, isServersAlert } = contact;
  if (how !== 'alert' && how !== 'handshake') return null;
  if (untimely === null)
    return how === 'alert' && code === ALERT + CERTIFICATE_EXPIRED && !isServersAlert
      ? {
          isExpired: true,
          text: 'The clients’ alert says that the certificate has expired or is not yet valid.',
        }
      : null;
  const { fromMs, toMs, atMs } = untimely;
  const isExpired = atMs > toMs;
  return {
    isExpired,
    text: `The certificate that ${contact.server} sent ${isExpired ? `expired on ${minute(toMs)}` : `is not valid before ${minute(fromMs)}`}, and this connection was made at ${minute(atMs)}.`,
  };
}

function outcomes(contact: Contact): Readonly<Record<ContactFailure, string>> {
  const { code, isServersAlert, waitedMs } = contact;
  return {
    silent: 'got no reply to their SYN',
    refused: 'were refused (RST)',
    unreachable: 'were rejected in transit (ICMP)',
    reset: 'were reset after the request',
    alert: `ended with a TLS alert from the ${isServersAlert ? 'server' : 'client'} (${ALERTS.get(code - ALERT) ?? code - ALERT})`,
    handshake: 'ended in the TLS handshake, after the server’s first message',
    status: `got HTTP ${code}`,
    late: `waited for the first reply, up to ${took(waitedMs)}`,
    unanswered: 'got no reply to their request',
  };
}

function sum(counts: Iterable<number>): number {
  let all = 0;
  for (const count of counts) all += count;
  return all;
}
