/** Connections to other services while DNS fails, which show that a client's network works. */
import { listed } from '../texts.ts';
import type { Observations } from './observations.ts';

/** A client, and a server that accepts its connections. */
export interface Opening {
  readonly client: string;
  readonly server: string;
}

/** The connections that these clients opened in that time, to servers that none of them failed to reach. */
export function openedDuring(
  { contacts, lastMs }: Observations,
  clients: readonly string[],
  fromMs: number,
  toMs: number,
): readonly Opening[] {
  return contacts
    .at(lastMs)
    .filter((contact) => contact.accepted > 0 && !clients.some((each) => contact.clients.has(each)))
    .flatMap(({ server, openings }) =>
      openings.flatMap(({ client, ms }) =>
        clients.includes(client) && ms >= fromMs && ms <= toMs ? { client, server } : [],
      ),
    );
}

/** Evidence that only DNS failed for these clients. */
export function openedText(opened: number, clients: readonly string[]): string {
  return `${opened} other connections from ${listed(clients)} were accepted during this time, so only DNS failed.`;
}
