/** Programs' TCP connections after the lookup, by server address. */
import { ALERT, CLIENT_HELLO, REQUEST } from '../../capture/read/packets/payload-code.ts';
import type { CertificateValidity } from '../../capture/read/packets/tls-certificate.ts';
import { LONG_WAIT_MS } from '../thresholds/evidence.ts';
import { CONNECT_OPEN_MS, COPY_MS, HTTP_SERVER_ERROR } from '../thresholds/transport.ts';
import { BoundedMap } from './bounded-map.ts';
import { LastLookups } from './last-lookups.ts';

/** The most addresses and ports to list, and the most connections to follow at a time. */
const CONTACTS_MAX = 2000;
const FOLLOWED_MAX = 20_000;
const CLIENTS_MAX = 100;
/** Openings of one contact that are remembered. */
const OPENINGS_MAX = 200;
/** Translated addresses of one contact that are remembered. */
const BEHIND_MAX = 8;
/** A TLS handshake, the request, and one more. */
const TURNS_MAX = 3;

/**
 * The failure of a connection: its SYN got no reply, RST or ICMP. It was reset after a request. It
 * had a TLS alert, or a handshake that the client left after the server's first message. It had an
 * HTTP status from 500 on. The reply to a request was late, or there was none.
 */
export type ContactFailure =
  | 'silent'
  | 'refused'
  | 'unreachable'
  | 'reset'
  | 'alert'
  | 'handshake'
  | 'status'
  | 'late'
  | 'unanswered';

export interface Contact {
  readonly server: string;
  readonly port: number;
  opened: number;
  /** Repeats of first packets (SYN) that got no reply. */
  repeated: number;
  /** Clients and times of the first ones that were opened. */
  readonly openings: { readonly client: string; readonly ms: number }[];
  accepted: number;
  /** Addresses to which the first packets were translated; the first few. */
  readonly behind: Set<string>;
  /** Failed connections by client. */
  readonly clients: Map<string, number>;
  readonly failures: Map<ContactFailure, number>;
  code: number;
  isServersAlert: boolean;
  /** The longest time between a request and its reply, milliseconds. */
  waitedMs: number;
  /** The last certificate of the server outside of its validity, and when it was sent; null if there was none. */
  untimely: UntimelyCertificate | null;
}

/** A certificate that is not yet or no longer valid. Milliseconds since 1970. */
export interface UntimelyCertificate extends CertificateValidity {
  readonly atMs: number;
}

interface Followed {
  readonly contact: Contact;
  readonly client: string;
  readonly ms: number;
  /** The time of the first packet's last repeat. */
  sentMs: number;
  state: 'opening' | 'open' | 'failed';
  /** The time of the request that waits for its reply; null if there is none. */
  askedMs: number | null;
  /** The first request, if it is of a kind that gets a reply. */
  first: 'tls' | 'http' | null;
  /** Turns: a reply after a request. */
  replies: number;
  /** Null while it has not failed. */
  how: ContactFailure | null;
}

/** Follows connections from their first packet to the first failure. */
export class Contacts {
  readonly lookups: LastLookups = new LastLookups();
  readonly #contacts: BoundedMap<string, Contact> = new BoundedMap(CONTACTS_MAX);
  readonly #followed = new Map<string, Followed>();
  /** The ends of the last connection with this sequence number, and its time. */
  readonly #sequences = new Map<number, { readonly key: string; readonly ms: number }>();
  #lastMs = -Infinity;

  /**
   * A first packet, its repeat, or the same one after a translation of addresses. @param sequence
   * its sequence number, which a translation keeps
   */
  opening(
    client: string,
    port: number,
    server: string,
    serverPort: number,
    timeMs: number,
    sequence: number,
  ): void {
    this.#lastMs = Math.max(this.#lastMs, timeMs);
    const key = `${client} ${port} ${server} ${serverPort}`;
    const same = this.#sequences.get(sequence);
    if (same !== undefined && same.key !== key && Math.abs(timeMs - same.ms) < COPY_MS) {
      if (timeMs >= same.ms) {
        const translated = this.#followed.get(same.key)?.contact.behind;
        if (translated !== undefined && translated.size < BEHIND_MAX) translated.add(server);
        return;
      }
      // A capture from behind the translation was read first.
      this.#forget(same.key);
    }
    if (this.#sequences.size >= FOLLOWED_MAX) this.#sequences.clear();
    if (same?.key !== key) this.#sequences.set(sequence, { key, ms: timeMs });
    const known = this.#followed.get(key);
    if (known?.state === 'opening' && timeMs >= known.sentMs + COPY_MS) {
      known.contact.repeated++;
      known.sentMs = timeMs;
    }
    if (known !== undefined && (known.state === 'opening' || timeMs < known.ms + COPY_MS)) return;
    if (known !== undefined) this.#settle(known);
    const contact = this.#contacts.at(`${server} ${serverPort}`, () => ({
      ...{ server, port: serverPort, opened: 0, accepted: 0, repeated: 0, openings: [] },
      ...{ clients: new Map(), failures: new Map(), code: 0, isServersAlert: false, waitedMs: 0 },
      ...{ untimely: null, behind: new Set() },
    }));
    if (contact === null) return;
    contact.opened++;
    if (contact.openings.length < OPENINGS_MAX) contact.openings.push({ client, ms: timeMs });
    this.#followed.delete(key);
    this.#followed.set(key, {
      ...{ contact, client, ms: timeMs, sentMs: timeMs },
      state: 'opening',
      ...{ askedMs: null, first: null, replies: 0, how: null },
    });
    if (this.#followed.size <= FOLLOWED_MAX) return;
    const [[oldest, followed]] = this.#followed as unknown as [[string, Followed]];
    this.#settle(followed);
    this.#followed.delete(oldest);
  }

  accepted(client: string, port: number, server: string, serverPort: number): void {
    const known = this.#followed.get(`${client} ${port} ${server} ${serverPort}`);
    if (known?.state !== 'opening') return;
    known.state = 'open';
    known.contact.accepted++;
  }

  /** The server, or a host on the path (ICMP), ended it. */
  ended(
    client: string,
    port: number,
    server: string,
    serverPort: number,
    by: 'refused' | 'unreachable',
  ): void {
    const known = this.#followed.get(`${client} ${port} ${server} ${serverPort}`);
    if (known === undefined) return;
    if (known.state === 'opening') fail(known, by);
    else if (known.askedMs !== null && known.replies === 0) fail(known, 'reset');
  }

  /** A segment with data. @param code see `payloadCode` */
  payload(
    from: string,
    port: number,
    to: string,
    toPort: number,
    code: number,
    timeMs: number,
  ): void {
    if (this.#followed.size === 0) return;
    const asked = this.#followed.get(`${from} ${port} ${to} ${toPort}`);
    const known = asked ?? this.#followed.get(`${to} ${toPort} ${from} ${port}`);
    if (known === undefined || known.state !== 'open') return;
    this.#lastMs = Math.max(this.#lastMs, timeMs);
    const { contact } = known;
    if (code >= ALERT || code >= HTTP_SERVER_ERROR) {
      contact.code = code;
      contact.isServersAlert = asked === undefined;
      fail(known, code >= ALERT ? 'alert' : 'status');
    } else if (asked !== undefined) {
      known.askedMs ??= timeMs;
      if (code === CLIENT_HELLO) known.first ??= 'tls';
      else if (code === REQUEST) known.first ??= 'http';
    } else {
      if (known.askedMs !== null) this.#waited(known, timeMs - known.askedMs);
      known.askedMs = null;
    }
  }

  certificate(
    server: string,
    port: number,
    { fromMs, toMs }: CertificateValidity,
    atMs: number,
  ): void {
    const contact = this.#contacts.get(`${server} ${port}`);
    if (contact !== undefined)
      contact.untimely = atMs < fromMs || atMs > toMs ? { fromMs, toMs, atMs } : null;
  }

  /** All contacts, when the last message of the capture came at `messageMs`. */
  at(messageMs: number): readonly Contact[] {
    const lastMs = Math.max(messageMs, this.#lastMs);
    for (const followed of this.#followed.values())
      if (lastMs - (followed.askedMs ?? followed.ms) >= CONNECT_OPEN_MS) this.#settle(followed);
    return this.#contacts.list.filter(({ opened }) => opened > 0);
  }

  clear(): void {
    this.#followed.clear();
    this.#sequences.clear();
    this.#contacts.clear();
    this.lookups.clear();
  }

  /** Takes a connection back that is seen under its other addresses. */
  #forget(key: string): void {
    const known = this.#followed.get(key);
    if (known === undefined) return;
    this.#followed.delete(key);
    const { contact, client, ms, state, how } = known;
    contact.opened--;
    if (state !== 'opening' && how !== 'silent' && how !== 'refused' && how !== 'unreachable')
      contact.accepted--;
    const at = contact.openings.findIndex((each) => each.client === client && each.ms === ms);
    if (at >= 0) contact.openings.splice(at, 1);
    if (how === null) return;
    lower(contact.failures, how);
    lower(contact.clients, client);
  }

  #waited(followed: Followed, ms: number): void {
    followed.replies++;
    // Later ones may belong to a program that waits for events.
    if (ms < LONG_WAIT_MS || followed.replies > TURNS_MAX) return;
    const { contact } = followed;
    contact.waitedMs = Math.max(contact.waitedMs, ms);
    fail(followed, 'late');
  }

  /** Handles connections that got nothing more. */
  #settle(followed: Followed): void {
    if (followed.state === 'opening') fail(followed, 'silent');
    else if (followed.state === 'open' && followed.askedMs !== null && followed.first !== null)
      // In TLS 1.3 the client's alert is encrypted.
      fail(
        followed,
        followed.first === 'tls' && followed.replies === 1 ? 'handshake' : 'unanswered',
      );
  }
}

/** Only the first failure of a connection counts. */
function fail(followed: Followed, how: ContactFailure): void {
  const { contact, client, state } = followed;
  if (state === 'failed') return;
  followed.state = 'failed';
  followed.how = how;
  contact.failures.set(how, (contact.failures.get(how) ?? 0) + 1);
  if (contact.clients.size < CLIENTS_MAX || contact.clients.has(client))
    contact.clients.set(client, (contact.clients.get(client) ?? 0) + 1);
}

function lower<K>(counts: Map<K, number>, key: K): void {
  const count = counts.get(key) ?? 0;
  if (count > 1) counts.set(key, count - 1);
  else counts.delete(key);
}
