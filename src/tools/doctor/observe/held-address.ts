/** Programs that keep an address long after its TTL, and do not query its name again. */
import { TYPE } from '../../../server/wire/iana.ts';
import { clock, listed, sentence, took } from '../texts.ts';
import { MIN_CASES } from '../thresholds/evidence.ts';
import { TTL_MARGIN_MS } from '../thresholds/transport.ts';
import type { AnswerSet } from './answer-sets.ts';
import type { Contact } from './contacts.ts';
import type { FailedContact } from './failed-contacts.ts';
import type { Observations } from './observations.ts';

/** Connections to an address that a program keeps. */
export interface HeldAddress {
  readonly title: string;
  /** The kept address, and the connections to it by client. */
  readonly server: string;
  readonly clients: ReadonlyMap<string, number>;
  /** The address that the name has now; omitted: the capture does not show one. */
  readonly newer?: string;
  readonly seen: readonly string[];
  readonly why: string;
  readonly fix: readonly string[];
}

/** The connections that one client opened to an address too late. */
interface LateOpenings {
  readonly client: string;
  readonly count: number;
  readonly lastMs: number;
  /** The time of the lookup that returned the address. */
  readonly lookupMs: number;
  readonly ttl: number;
  /** True if the client, perhaps another program on it, queried the name again and got another address. */
  readonly isRenewed: boolean;
}

/** The first of these connections that goes to an address whose lookup is too old; null: none does. */
export function heldAddress(
  observed: Observations,
  failing: readonly FailedContact[],
): HeldAddress | null {
  for (const { contact, name, otherWorks } of failing) {
    if (name === null) continue;
    const change = leftAt(observed, name, contact.server);
    // Without a connection to the new address, only a single change after a time of success shows an old one.
    const untried = contact.accepted > 0 ? (change?.onlyNewer ?? null) : null;
    const newer = otherWorks ?? untried;
    const left = newer === null ? null : change;
    const late = [...contact.clients.keys()].flatMap(
      (client) => lateOpenings(observed, contact, client, name, left) ?? [],
    );
    const [first, ...others] = late;
    if (first === undefined) continue;
    const { client, count, lastMs, lookupMs, ttl, isRenewed } = first;
    const clients = listed(late.map((each) => each.client));
    return {
      title: isRenewed
        ? 'A program keeps connecting to an old address beyond its TTL, although DNS returns the new one'
        : newer === null
          ? 'A program connects to an address long after its TTL, without querying the name again'
          : 'A program keeps connecting to an old address and never queries the name again',
      server: contact.server,
      clients: new Map(late.map((each) => [each.client, each.count])),
      ...(newer === null ? {} : { newer }),
      seen: [
        isRenewed
          ? `DNS last returned ${contact.server} for ${name} at ${clock(lookupMs)}, with a TTL of ${ttl} s. Since this TTL expired, ${client} has opened ${count} connections to it, the last one ${took(lastMs - lookupMs)} after that answer.`
          : `${client} last queried ${name} at ${clock(lookupMs)} and got a TTL of ${ttl} s. Since this TTL expired, it has opened ${count} connections to ${contact.server}, the last one ${took(lastMs - lookupMs)} after the lookup, without another query.`,
        `${contact.clients.get(client) ?? 0} connections from ${client} to ${contact.server} port ${contact.port} failed.`,
        ...(others.length === 0
          ? []
          : [`The same applies to ${listed(others.map((each) => each.client))}.`]),
        ...(newer === null
          ? []
          : [
              `DNS returns ${newer} for this name${isRenewed ? '' : ' to clients that query it'}${otherWorks === null ? `, but the capture has no connection to that address.${isRenewed ? ' Lookups by the same client got it, so another program there (or the same one, which ignores it) queries DNS.' : ''}` : `, and connections to that address succeed.${isRenewed ? ' Lookups by the same client got it, so another program there follows the change.' : ''}`}`,
            ]),
      ],
      why: sentence(
        `The program on ${clients} keeps the address in its own cache and ignores the TTL. The JVM does so for ever if networkaddress.cache.ttl is -1 (or a security manager is set); connection pools, nginx without a resolver, and programs that look names up only at start do the same. DNS is not at fault${newer === null ? '. If the name has another address by now, the program does not notice' : ': the name has moved, and only this program does not notice'}`,
      ),
      fix: [
        `Restart the program on ${clients} to make it look up ${name} again.`,
        'Limit its cache: networkaddress.cache.ttl=30 (java.security, or -Dsun.net.inetaddr.ttl=30) for the JVM, a maximum connection age in pools, resolver with valid= in nginx.',
        'Avoid the change: keep the Service when it is redeployed, since a Service that is deleted and created again gets another ClusterIP.',
      ],
    };
  }
  return null;
}

/** The last answer with an address that a name no longer has. */
interface LeftAddress {
  readonly lastMs: number;
  readonly ttl: number;
  /** The address that all later answers contain, and no earlier one; null: there are several. */
  readonly onlyNewer: string | null;
}

/** Null if the name still has the address, or its answers return to it. */
function leftAt({ names }: Observations, name: string, oldAddress: string): LeftAddress | null {
  // A name has addresses of both families at the same time.
  const type = oldAddress.includes(':') ? TYPE.AAAA : TYPE.A;
  const sets = names.get(name, type)?.sets?.list ?? [];
  // Only the first addresses of a set are known.
  if (sets.some(({ addresses, size }) => size > addresses.length)) return null;
  const [old, newer] = [true, false].map((isOld) =>
    sets.filter(({ addresses }) => addresses.includes(oldAddress) === isOld),
  ) as [AnswerSet[], AnswerSet[]];
  if (old.length === 0) return null;
  const last = old.reduce((one, other) => (other.lastMs > one.lastMs ? other : one));
  const since = newer.filter(({ lastMs }) => lastMs > last.lastMs);
  const answers = since.reduce((sum, { count }) => sum + count, 0);
  const isTurned = since.some(({ firstMs }) => firstMs < last.firstMs);
  if (answers < MIN_CASES || isTurned) return null;
  const [address] = since[0]!.addresses;
  const isOnce =
    since.length === newer.length && newer.every((set) => set.addresses[0] === address);
  return { lastMs: last.lastMs, ttl: last.lastTtl, onlyNewer: isOnce ? address! : null };
}

/**
 * Null if the client opened few connections after the TTL.
 * @param left null if the address is not known to be an old one
 */
function lateOpenings(
  { contacts: { lookups } }: Observations,
  contact: Contact,
  client: string,
  name: string,
  left: LeftAddress | null,
): LateOpenings | null {
  const last = lookups.of(client, name);
  if (last === undefined) return null;
  const isRenewed = left !== null && last.repliedMs > left.lastMs;
  const { lookupMs, ttl } = isRenewed
    ? { lookupMs: left.lastMs, ttl: left.ttl }
    : { lookupMs: last.repliedMs, ttl: last.ttl };
  const untilMs = lookupMs + ttl * 1000 + TTL_MARGIN_MS;
  const late = contact.openings.filter((each) => each.client === client && each.ms > untilMs);
  if (late.length < MIN_CASES) return null;
  return { client, count: late.length, lastMs: late.at(-1)!.ms, lookupMs, ttl, isRenewed };
}
