/** Programs that keep an address long after its TTL, and do not query its name again. */
import { clock, sentence, took } from '../texts.ts';
import { MIN_CASES } from '../thresholds/evidence.ts';
import { TTL_MARGIN_MS } from '../thresholds/transport.ts';
import type { FailedContact } from './failed-contacts.ts';
import type { Observations } from './observations.ts';

/** Connections to an address that a program keeps. */
export interface HeldAddress {
  readonly title: string;
  /** The address that the name has now; omitted: the capture does not show one. */
  readonly newer?: string;
  readonly seen: readonly string[];
  readonly why: string;
  readonly fix: readonly string[];
}

/** The first of these connections that goes to an address whose lookup is too old; null: none does. */
export function heldAddress(
  { contacts: { lookups } }: Observations,
  failing: readonly FailedContact[],
): HeldAddress | null {
  for (const { contact, name, otherWorks } of failing) {
    if (name === null) continue;
    for (const client of contact.clients.keys()) {
      const last = lookups.of(client, name);
      if (last === undefined) continue;
      const untilMs = last.repliedMs + last.ttl * 1000 + TTL_MARGIN_MS;
      const late = contact.openings.filter((each) => each.client === client && each.ms > untilMs);
      if (late.length < MIN_CASES) continue;
      return {
        title:
          otherWorks === null
            ? 'A program connects to an address long after its TTL, without querying the name again'
            : 'A program keeps connecting to an old address and never queries the name again',
        ...(otherWorks === null ? {} : { newer: otherWorks }),
        seen: [
          `${client} last queried ${name} at ${clock(last.repliedMs)} and got a TTL of ${last.ttl} s. Since this TTL expired, it has opened ${late.length} connections to ${contact.server}, the last one ${took(late.at(-1)!.ms - last.repliedMs)} after the lookup, without another query.`,
          ...(otherWorks === null
            ? []
            : [
                `DNS returns ${otherWorks} for this name to clients that query it, and connections to that address succeed.`,
              ]),
        ],
        why: sentence(
          `The program on ${client} keeps the address in its own cache and ignores the TTL. The JVM does so for ever if networkaddress.cache.ttl is -1 (or a security manager is set); connection pools, nginx without a resolver, and programs that look names up only at start do the same. DNS is not at fault${otherWorks === null ? '. If the name has another address by now, the program does not notice' : ': the name has moved, and only this program does not notice'}`,
        ),
        fix: [
          `Restart the program on ${client} to make it look up ${name} again.`,
          'Limit its cache: networkaddress.cache.ttl=30 (java.security, or -Dsun.net.inetaddr.ttl=30) for the JVM, a maximum connection age in pools, resolver with valid= in nginx.',
          'Avoid the change: keep the Service when it is redeployed, since a Service that is deleted and created again gets another ClusterIP.',
        ],
      };
    }
  }
  return null;
}
