/** A real etcd on loopback, with CoreDNS alongside. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '../../src/server/base/clock.ts';
import { EtcdClient, type EtcdAccess } from '../../src/server/etcd/client.ts';
import { parseEndpoint } from '../../src/server/etcd/endpoint.ts';
import { prefixRange } from '../../src/server/etcd/messages.ts';
import { start, type Child } from './child.ts';
import { freePorts } from './free-ports.ts';

export interface EtcdProgram {
  readonly path: string;
  readonly version: string;
}

/** The `etcd` on the PATH and the one in the `ETCD` variable, each version once. */
export function etcdPrograms(): readonly EtcdProgram[] {
  const found = new Map<string, EtcdProgram>();
  for (const path of ['etcd', process.env['ETCD']]) {
    if (path === undefined) continue;
    const { stdout } = spawnSync(path, ['--version'], { encoding: 'utf8' });
    const [, version] = /etcd Version: (\S+)/.exec(stdout ?? '') ?? [];
    if (version !== undefined) found.set(version, { path, version });
  }
  return [...found.values()];
}

/** The CoreDNS program from `COREDNS` or the PATH, or null if it is not installed. */
export function corednsPath(): string | null {
  const path = process.env['COREDNS'] ?? 'coredns';
  return spawnSync(path, ['-version']).status === 0 ? path : null;
}

export interface EtcdProcess {
  /** `http://127.0.0.1:PORT`. */
  readonly endpoint: string;
  readonly port: number;
  readonly client: EtcdClient;
  /** Kills it immediately, as in a crash. */
  kill(): Promise<void>;
  /** Restarts it with or without its previous data. */
  restart(options?: { readonly empty?: boolean }): Promise<void>;
  readonly child: Child;
  /** Runs the stopped etcd on a private port for as long as `use` runs. */
  elsewhere(use: (client: EtcdClient, endpoint: string) => Promise<void>): Promise<void>;
  put(key: string, value: object | string, lease?: bigint): Promise<void>;
  deleteAll(): Promise<void>;
  stop(): Promise<void>;
}

/** etcd's start options and its client's credentials. */
export interface EtcdOptions {
  /** TLS files. If `ca` is set, clients need a certificate. */
  readonly tls?: { readonly cert: string; readonly key: string; readonly ca?: string };
  readonly access?: Partial<EtcdAccess>;
  readonly words?: readonly string[];
}

/** Starts a single-member etcd and waits until it answers. */
export async function startEtcd(program: string, options: EtcdOptions = {}): Promise<EtcdProcess> {
  const [port, peerPort] = await freePorts(2);
  const data = mkdtempSync(join(tmpdir(), 'ndots-etcd-'));
  const scheme = options.tls === undefined ? 'http' : 'https';
  const endpoint = `${scheme}://127.0.0.1:${port}`;
  const peer = `http://127.0.0.1:${peerPort}`;
  const tls =
    options.tls === undefined
      ? []
      : [
          ...['--cert-file', options.tls.cert, '--key-file', options.tls.key],
          ...(options.tls.ca === undefined
            ? []
            : ['--trusted-ca-file', options.tls.ca, '--client-cert-auth']),
        ];
  const words = [
    ...[program, '--data-dir', data, '--name', 'test', '--log-level', 'error'],
    ...['--listen-client-urls', endpoint, '--advertise-client-urls', endpoint],
    ...['--listen-peer-urls', peer, '--initial-advertise-peer-urls', peer],
    ...['--initial-cluster', `test=${peer}`, '--unsafe-no-fsync', ...tls, ...(options.words ?? [])],
  ];
  const client = new EtcdClient({
    endpoints: [parseEndpoint(endpoint)!],
    tls: null,
    credentials: null,
    ...options.access,
    clock: systemClock,
  });
  const run = async (words: readonly string[], client: EtcdClient): Promise<Child> => {
    // Before 3.5, etcd cannot be started without waiting for the disk.
    const known = /^3\.[0-4]\./.test(versionOf(program))
      ? words.filter((word) => word !== '--unsafe-no-fsync')
      : words;
    const child = start('etcd', known);
    for (let tries = 0; ; tries++) {
      try {
        await client.range({ key: Buffer.from('x'), end: null });
        return child;
      } catch (error) {
        if (tries === 300)
          throw new Error(`etcd does not start:\n${child.output()}`, { cause: error });
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
    }
  };
  let child = await run(words, client);
  const kill = async (): Promise<void> => {
    child.signal('SIGKILL');
    await child.exitCode;
  };
  return {
    endpoint,
    port,
    client,
    kill,
    async restart({ empty = false } = {}) {
      if (empty) rmSync(data, { recursive: true, force: true });
      child = await run(words, client);
    },
    async elsewhere(use) {
      const [other] = await freePorts(1);
      const there = endpoint.replace(String(port), String(other));
      const visitor = new EtcdClient({
        endpoints: [parseEndpoint(there)!],
        tls: null,
        credentials: null,
        clock: systemClock,
      });
      const moved = words.map((word) => (word === endpoint ? there : word));
      child = await run(moved, visitor);
      await use(visitor, there);
      visitor.close();
      await kill();
    },
    get child() {
      return child;
    },
    put(key, value, lease = 0n) {
      const text = typeof value === 'string' ? value : JSON.stringify(value);
      return client.put(Buffer.from(key), Buffer.from(text), lease);
    },
    async deleteAll() {
      await client.delete(prefixRange(Buffer.from('/')));
    },
    async stop() {
      client.close();
      await kill();
      rmSync(data, { recursive: true, force: true });
    },
  };
}

const versions = new Map<string, string>();

function versionOf(program: string): string {
  let version = versions.get(program);
  if (version === undefined) {
    const { stdout } = spawnSync(program, ['--version'], { encoding: 'utf8' });
    version = /etcd Version: (\S+)/.exec(stdout ?? '')?.[1] ?? '';
    versions.set(program, version);
  }
  return version;
}

/** Starts CoreDNS with a Corefile that listens on 127.0.0.1:PORT. */
export async function startCoredns(
  program: string,
  corefile: (port: number) => string,
): Promise<{ readonly port: number; stop(): Promise<void> }> {
  const [port] = await freePorts(1);
  const directory = mkdtempSync(join(tmpdir(), 'ndots-coredns-'));
  const file = join(directory, 'Corefile');
  writeFileSync(file, corefile(port));
  const child = start('coredns', [program, '-conf', file]);
  for (let tries = 0; !/CoreDNS-/.test(child.output()); tries++) {
    if (tries === 400) throw new Error(`coredns does not start:\n${child.output()}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return {
    port,
    async stop() {
      child.signal('SIGKILL');
      await child.exitCode;
      rmSync(directory, { recursive: true, force: true });
    },
  };
}
