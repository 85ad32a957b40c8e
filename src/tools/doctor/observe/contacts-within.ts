/** Connections to addresses of one kind, regardless of their ports and names. */
import { MIN_CASES, OUTAGE_SHARE } from '../thresholds/evidence.ts';
import type { Observations } from './observations.ts';

export interface ContactSum {
  readonly opened: number;
  readonly accepted: number;
  readonly failed: number;
  /** Failed connections by client. */
  readonly clients: ReadonlyMap<string, number>;
  /** Addresses with failed connections, with their ports. */
  readonly failing: readonly { readonly server: string; readonly port: number }[];
}

/** Adds up the connections to the selected addresses. */
export function contactsWithin(
  { contacts, lastMs }: Observations,
  isWanted: (server: string) => boolean,
): ContactSum {
  const theirs = contacts.at(lastMs).filter(({ server }) => isWanted(server));
  const clients = new Map<string, number>();
  for (const contact of theirs)
    for (const [client, count] of contact.clients)
      clients.set(client, (clients.get(client) ?? 0) + count);
  const failed = [...clients.values()].reduce((sum, count) => sum + count, 0);
  return {
    opened: theirs.reduce((sum, { opened }) => sum + opened, 0),
    accepted: theirs.reduce((sum, { accepted }) => sum + accepted, 0),
    ...{ failed, clients },
    failing: theirs.flatMap(({ server, port, failures }) =>
      failures.size > 0 ? [{ server, port }] : [],
    ),
  };
}

/** True if a large part of the connections fails. */
export function isFailing({ opened, failed }: ContactSum): boolean {
  return failed >= MIN_CASES && failed >= OUTAGE_SHARE * opened;
}
