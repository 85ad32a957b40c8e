/** `--client`: selects the client. */
import { didYouMean, Problem } from '../../server/base/problem.ts';
import type { Client } from '../../tools/resolver/client.ts';
import { clientLabels, clients, findClient } from '../../tools/resolver/clients.ts';

/**
 * The clients with these labels, where `all` selects every client.
 * @throws Problem with a suggestion
 */
export function clientsNamed(labels: readonly string[]): readonly Client[] {
  return labels.includes('all') ? clients : labels.map(clientNamed);
}

/**
 * The client with this label, such as `glibc` or `glibc@2.36`.
 * @throws Problem with a suggestion
 */
export function clientNamed(label: string): Client {
  const client = findClient(label);
  if (client !== null) return client;
  throw new Problem({
    code: 'usage',
    text: `there is no client "${label}"`,
    hint: didYouMean(label, [...clients.map((known) => known.name), ...clientLabels]),
    remedy: `Known: ${clientLabels.join(' ')}`,
  });
}
