/** The table of models: `NAME[@VERSION]`, the newest version if none is given. */
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

/** Older releases that differ so much from the newest one that a comparison of all clients includes them. */
const alsoShown: Readonly<Record<string, readonly string[]>> = {
  glibc: ['2.36'],
  musl: ['1.2.3'],
  go: ['1.19'],
  'c-ares': ['1.18.1'],
};

/** The clients of `--client all`: the newest release of each, and a few older ones. */
export const clients: readonly Client[] = clientLines.flatMap((line) => [
  line.at(null),
  ...(alsoShown[line.name] ?? []).map((version) => line.at(version)),
]);

/** For messages and completion. */
export const clientLabels: readonly string[] = clients.map(labelOf);

/** `glibc@2.36`, or the name alone if there are no versions. */
export function labelOf(client: Client): string {
  return client.version === '' ? client.name : `${client.name}@${client.version}`;
}

/**
 * Null if there is none. An unknown version is replaced by the nearest one, and its traces begin with a step
 * that reports it.
 */
export function findClient(label: string): Client | null {
  const [name, version = null] = label.split('@');
  if (version !== null && !/^\d+(\.\d+)*$/.test(version)) return null;
  return clientLines.find((line) => line.name === name)?.at(version) ?? null;
}
