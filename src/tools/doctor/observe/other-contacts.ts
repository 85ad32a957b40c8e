/** Connections to other services while DNS fails, which show that a client's network works. */
import type { Observations } from './observations.ts';

/** The number of connections that these clients opened in that time, to servers that none of them failed to reach. */
export function acceptedDuring(
  { contacts, lastMs }: Observations,
  clients: readonly string[],
  fromMs: number,
  toMs: number,
): number {
  return contacts
    .at(lastMs)
    .filter((contact) => contact.accepted > 0 && !clients.some((each) => contact.clients.has(each)))
    .flatMap(({ openings }) => openings)
    .filter(({ client, ms }) => clients.includes(client) && ms >= fromMs && ms <= toMs).length;
}
