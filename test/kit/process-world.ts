/**
 * A node with a client pod and a name server pod, in separate network namespaces and cgroups. Clients look up names
 * that contain their own process ID, so that tests can identify the sender.
 */
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { realClient } from '../../src/tools/lab/real-clients.ts';
import { mountedCgroups } from '../../src/tools/capture/process/cgroup-tree.ts';
import { printed, start, type Child } from './child.ts';

export const CONTAINER: Readonly<Record<'client' | 'server', string>> = {
  client: 'c1'.repeat(32),
  server: '5e'.repeat(32),
};
/** Concurrent worlds use different addresses, because ndots uses them to distinguish namespaces. */
const NET = `10.${100 + ((process.pid >> 8) % 100)}.${process.pid & 0xff}.`;
/** The name server's address, which also accepts connections. */
export const SERVER: string = `${NET}6`;
type Pod = 'client' | 'server';
/** The service address, which the node translates to the server's address. */
export const SERVICE = '10.96.0.80';
const cgroups = mountedCgroups(readFileSync('/proc/self/mountinfo', 'utf8'));

/** Programs that each look up one name. `go` and `musl` have to be compiled. */
export type ClientKind = 'getent' | 'musl' | 'go' | 'curl';

/** The kinds whose programs are available or can be compiled. */
export async function clientKinds(): Promise<readonly ClientKind[]> {
  const compiled = await Promise.all(
    (['musl', 'go'] as const).map(async (kind) => {
      const { missing } = await realClient(kind, process.env);
      return missing === null ? [kind] : [];
    }),
  );
  return ['getent', 'curl', ...compiled.flat()];
}

/** The reason why such a world cannot be created here, or null if it can. */
export function noProcessWorld(): string | null {
  if (process.getuid?.() !== 0) return 'needs root';
  if (cgroups === null) return 'needs cgroup v2';
  for (const program of ['ip', 'nsenter', 'unshare', 'curl', 'iptables'])
    if (spawnSync('sh', ['-c', `command -v ${program}`]).status !== 0) return `needs ${program}`;
  return spawnSync('unshare', ['-mn', 'true']).status === 0 ? null : 'needs unshare';
}

export class ProcessWorld {
  readonly node: string = `ndots-pn-${process.pid}`;
  readonly #client = `ndots-pc-${process.pid}`;
  readonly #server = `ndots-ps-${process.pid}`;
  readonly #directory = mkdtempSync(join(tmpdir(), 'ndots-process-'));
  readonly #children: Child[] = [];

  constructor() {
    const script = `set -e
      for n in ${this.node} ${this.#client} ${this.#server}; do ip netns add $n; ip -n $n link set lo up; done
      ip -n ${this.node} link add vc type veth peer name eth0 netns ${this.#client}
      ip -n ${this.node} link add vs type veth peer name eth0 netns ${this.#server}
      ip -n ${this.node} address add ${NET}1/30 dev vc
      ip -n ${this.node} address add ${NET}5/30 dev vs
      ip -n ${this.#client} address add ${NET}2/30 dev eth0
      ip -n ${this.#server} address add ${SERVER}/30 dev eth0
      ip -n ${this.node} link set vc up; ip -n ${this.node} link set vs up
      ip -n ${this.#client} link set eth0 up; ip -n ${this.#server} link set eth0 up
      ip -n ${this.#client} route add default via ${NET}1
      ip -n ${this.#server} route add default via ${NET}5
      ip netns exec ${this.node} sysctl -qw net.ipv4.ip_forward=1
      ip netns exec ${this.node} iptables -t nat -A PREROUTING -d ${SERVICE} -p tcp --dport 80 -j DNAT --to-destination ${SERVER}:80`;
    const made = spawnSync('sh', ['-c', script], { encoding: 'utf8' });
    if (made.status !== 0) throw new Error(made.stderr);
    for (const directory of [this.#root, this.#cgroup('client'), this.#cgroup('server')])
      mkdirSync(directory);
    writeFileSync(
      join(this.#directory, 'resolv.conf'),
      `nameserver ${SERVER}\noptions timeout:2\n`,
    );
    writeFileSync(join(this.#directory, 'nsswitch.conf'), 'hosts: dns\n');
  }

  get #root(): string {
    return join(cgroups!, `ndots-test-${process.pid}`);
  }

  #cgroup(of: Pod): string {
    return join(this.#root, `cri-containerd-${CONTAINER[of]}.scope`);
  }

  /** @param address the address in its answers */
  async serve(delayMs: number, address: string = SERVICE): Promise<Child> {
    const program = [process.execPath, resolve('test/kit/delayed-answers.ts')];
    const server = this.#start('server', this.#server, [...program, `${delayMs}`, address]);
    await printed(server, /answers/, 60_000);
    return server;
  }

  /** A file for captures with long output. */
  get outputFile(): string {
    return join(this.#directory, 'output');
  }

  /** Starts a capture on the node and writes its standard output to a file. */
  captureToFile(...words: readonly string[]): Promise<Child> {
    const into = ['sh', '-c', `exec "$@" > ${this.outputFile}`, 'sh'];
    return this.captureBy([...into, resolve('bin/ndots')], ...words);
  }

  capture(...words: readonly string[]): Promise<Child> {
    return this.captureBy([resolve('bin/ndots')], ...words);
  }

  async captureBy(program: readonly string[], ...words: readonly string[]): Promise<Child> {
    const namespace = ['--netns', `/run/netns/${this.node}`];
    const child = start('ndots', [...program, 'capture', ...namespace, ...words]);
    this.#children.push(child);
    await printed(child, /Ctrl-C|^ndots capture: .*[a-z-]+:/m, 60_000);
    return child;
  }

  /** Runs a program in the client pod and returns its standard output. */
  async run(script: string): Promise<string> {
    const files = ['resolv.conf', 'nsswitch.conf'].map(
      (name) => `mount --bind ${join(this.#directory, name)} /etc/${name}`,
    );
    const child = this.#start('client', this.#client, [
      ...['unshare', '-m', 'sh', '-c', [...files, script].join('\n')],
    ]);
    await child.exitCode;
    return child.output();
  }

  /** Performs a number of lookups one after the other, each in a separate program. */
  async lookups(kind: ClientKind, count: number): Promise<string> {
    const words =
      kind === 'getent'
        ? 'getent ahosts p$$.n$1.truth.test'
        : kind === 'curl'
          ? 'curl -s -m 2 http://p$$.n$1.truth.test/'
          : `${await clientWords(kind)} p$$.n$1.truth.test 0 1`;
    return this.run(
      `i=0; while [ $i -lt ${count} ]; do sh -c 'exec ${words} >/dev/null 2>&1' sh $i; i=$((i+1)); done; true`,
    );
  }

  #start(pod: Pod, namespace: string, words: readonly string[]): Child {
    const enter = `echo $$ > ${this.#cgroup(pod)}/cgroup.procs && exec nsenter --net=/run/netns/${namespace} "$@"`;
    const child = start(pod, ['sh', '-c', enter, 'sh', ...words]);
    this.#children.push(child);
    return child;
  }

  async stop(): Promise<void> {
    for (const each of this.#children) await each.stop();
    for (const name of [this.#client, this.#server, this.node])
      spawnSync('ip', ['netns', 'delete', name]);
    for (const directory of [this.#cgroup('client'), this.#cgroup('server'), this.#root])
      for (let tries = 0; tries < 50; tries++)
        try {
          rmdirSync(directory);
          break;
        } catch {
          // Its last process is exiting.
          await new Promise((done) => setTimeout(done, 100));
        }
    rmSync(this.#directory, { recursive: true });
  }
}

async function clientWords(kind: 'musl' | 'go'): Promise<string> {
  const client = await realClient(kind, process.env);
  if (client.missing !== null) throw new Error(client.missing);
  return client.words.join(' ');
}
