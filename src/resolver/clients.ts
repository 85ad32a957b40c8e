/** The table of models: `NAME[@VERSION]`, the newest version if none is given. */
import { cares } from './c-ares.ts';
import type { Client } from './client.ts';
import { glibc } from './glibc.ts';
import { go } from './go.ts';
import { busybox, nslookup } from './debug-tools.ts';
import { evdns } from './evdns.ts';
import { cgo, curl, getentAhosts, getentHosts, java, node, python } from './libc-clients.ts';
import { nodeResolve } from './node-resolve.ts';
import { resolved } from './resolved-stub.ts';
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
  cgo,
  node,
  nodeResolve,
  java,
  python,
  curl,
  evdns,
  getentAhosts,
  getentHosts,
  nslookup,
  busybox,
  resolved,
];

/** Every label that `findClient` knows, for messages and completion. */
export const clientLabels: readonly string[] = clients.map(labelOf);

function labelOf(client: Client): string {
  return client.version === '' ? client.name : `${client.name}@${client.version}`;
}

/** The model of that label; null = there is none. */
export function findClient(label: string): Client | null {
  const [name, version] = label.split('@');
  return (
    clients.find(
      (client) => client.name === name && (version === undefined || client.version === version),
    ) ?? null
  );
}
