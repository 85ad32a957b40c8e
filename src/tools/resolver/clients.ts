/** The table of models: `NAME[@VERSION]`, where the version defaults to the newest. */
import { cares } from './c-ares.ts';
import type { Client, ClientLine } from './client.ts';
import { busybox, nslookup } from './debug-tools.ts';
import { evdns } from './evdns.ts';
import { glibc } from './glibc.ts';
import { go } from './go.ts';
import { cgo, curl, getentAhosts, getentHosts, java, node, python } from './libc-clients.ts';
import { musl } from './musl.ts';
import { nodeResolve } from './node-resolve.ts';
import { resolved } from './resolved-stub.ts';

/** All clients with their known releases. */
export const clientLines: readonly ClientLine[] = [
  glibc,
  musl,
  go,
  cares,
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

/** Older releases that differ enough from the newest one to be worth including when all clients are compared. */
const alsoShown: Readonly<Record<string, readonly string[]>> = {
  glibc: ['2.36'],
  musl: ['1.2.3'],
  go: ['1.19'],
  'c-ares': ['1.18.1'],
};

/** The clients selected by `--client all`, which are the newest release of each and a few older ones. */
export const clients: readonly Client[] = clientLines.flatMap((line) => [
  line.at(null),
  ...(alsoShown[line.name] ?? []).map((version) => line.at(version)),
]);

/** Used in messages and completion. */
export const clientLabels: readonly string[] = clients.map(labelOf);

/** `glibc@2.36`, or just the name if there are no versions. */
export function labelOf(client: Client): string {
  return client.version === '' ? client.name : `${client.name}@${client.version}`;
}

/**
 * Null if there is no such client. An unknown version is replaced by the nearest one, which the first step of its
 * traces reports.
 */
export function findClient(label: string): Client | null {
  const [name, version = null] = label.split('@');
  if (version !== null && !/^\d+(\.\d+)*$/.test(version)) return null;
  return clientLines.find((line) => line.name === name)?.at(version) ?? null;
}
