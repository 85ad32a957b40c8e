/** The table of models: `NAME[@VERSION]`, the newest version if none is given. */
import type { Client } from './client.ts';
import { glibc } from './glibc.ts';
import { cares } from './c-ares.ts';
import { go } from './go.ts';
import { musl } from './musl.ts';

export const clients: readonly Client[] = [
  glibc('2.41'),
  glibc('2.36'),
  musl('1.2.5'),
  musl('1.2.3'),
  go('1.24'),
  go('1.19'),
  cares('1.34'),
  cares('1.18'),
];

/** The model of that label; null = there is none. */
export function findClient(label: string): Client | null {
  const [name, version] = label.split('@');
  return (
    clients.find((client) => client.name === name && (version === undefined || client.version === version)) ?? null
  );
}
