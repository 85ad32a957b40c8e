/**
 * Runs the fake API server as a program at a pod's address, over TLS: `node cluster-server.ts SETTINGS.json`. It reads
 * one JSON command per line from standard input, and prints `done N` after the Nth.
 */
import { readFileSync } from 'node:fs';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { createInterface } from 'node:readline';
import type { PemIdentity } from './authority.ts';
import type { Fault } from './apiserver/faults.ts';
import { ApiServer } from './apiserver/server.ts';
import type { KubeJson } from './apiserver/store.ts';
import type { ClusterObjects } from './cluster-objects.ts';

/** The server's initial state. `tokens` are accepted. */
export interface ClusterServerSettings {
  readonly address: string;
  readonly port: number;
  readonly tls: PemIdentity;
  readonly tokens: readonly string[];
  readonly objects: ClusterObjects;
}

export type ClusterCommand =
  | { readonly put: string; readonly object: KubeJson }
  | { readonly delete: string; readonly namespace: string; readonly name: string }
  | { readonly tokens: readonly string[] }
  /** Stops listening and cuts all open connections. */
  | { readonly go: 'down' }
  | { readonly go: 'up' }
  /** Ends watches and discards their history. */
  | { readonly go: 'relist' }
  | { readonly fault: Fault | null };

const settings = JSON.parse(readFileSync(process.argv[2]!, 'utf8')) as ClusterServerSettings;
const server = await ApiServer.start({ tls: settings.tls, tokens: settings.tokens });
for (const [plural, objects] of Object.entries(settings.objects)) {
  for (const object of objects) server.put(plural, object);
}

// The server itself only listens on loopback, so this proxy listens on its address in the cluster.
const open = new Set<Socket>();
let listening: Server | null = null;

function up(): Promise<void> {
  const made = createServer((client) => {
    const inside = connect(server.port, '127.0.0.1');
    for (const socket of [client, inside]) {
      open.add(socket);
      socket.on('error', () => undefined);
      socket.on('close', () => {
        open.delete(socket);
        client.destroy();
        inside.destroy();
      });
    }
    client.pipe(inside).pipe(client);
  });
  listening = made;
  return new Promise((resolve) => {
    made.listen(settings.port, settings.address, resolve);
  });
}

function down(): Promise<void> {
  return new Promise((resolve) => {
    listening?.close(() => resolve());
    for (const socket of open) socket.destroy();
  });
}

async function obey(command: ClusterCommand): Promise<void> {
  if ('put' in command) server.put(command.put, command.object);
  else if ('delete' in command) server.delete(command.delete, command.namespace, command.name);
  else if ('tokens' in command) {
    server.tokens = command.tokens;
    server.dropWatches();
  } else if ('fault' in command) {
    server.faults.clear();
    if (command.fault !== null) server.faults.add({ fault: command.fault });
    server.dropWatches();
  } else if (command.go === 'relist') {
    server.compact();
    server.dropWatches();
  } else await (command.go === 'up' ? up() : down());
}

await up();
process.stdout.write(`listening ${settings.address}:${settings.port}\n`);
let count = 0;
for await (const line of createInterface({ input: process.stdin })) {
  await obey(JSON.parse(line) as ClusterCommand);
  process.stdout.write(`done ${++count}\n`);
}
