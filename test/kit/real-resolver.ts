/**
 * Runs a real resolver in a pod's network namespace against the scripted server. Returns its queries in the same format
 * as the recorded runs.
 */
import { execFileSync, spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { AddressFamily } from '../../src/tools/resolver/client.ts';
import {
  rulesOf,
  type MeasuredQuery,
  type MeasuredResult,
  type Run,
  type Scenario,
} from './measured.ts';

const kit = new URL('.', import.meta.url).pathname;

/** The c-ares client, which runs in Node. The others are compiled (src/tools/lab/real-clients.ts). */
export const nodeClient: string = join(kit, '../../src/tools/lab/clients/resolve.mjs');

/** Scenarios for real runs. Those that were recorded are in test/resolvers/measured. */
export function readScenarios(): Scenario[] {
  const file = new URL('../resolvers/scenarios.json', import.meta.url);
  return JSON.parse(readFileSync(file, 'utf8')) as Scenario[];
}

export function cannotIsolate(): string | null {
  if (process.getuid?.() !== 0) return 'needs root for network namespaces';
  const name = `ndots-probe-${process.pid}`;
  const made = spawnSync('ip', ['netns', 'add', name]);
  if (made.status !== 0) return 'ip netns is not available';
  spawnSync('ip', ['netns', 'del', name]);
  return null;
}

export function hasProgram(name: string): boolean {
  return spawnSync('sh', ['-c', `command -v ${name}`]).status === 0;
}

/** A directory for compiled programs, which is removed at the end. */
export function buildDirectory(): { readonly path: string; remove(): void } {
  const path = mkdtempSync(join(tmpdir(), 'ndots-real-'));
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) };
}

/** A program's pod, its servers and its task. */
export interface Surroundings {
  readonly name: string;
  readonly families: readonly AddressFamily[];
  readonly repeat: number;
  readonly resolv: string;
  readonly nsswitch: string;
  readonly hosts: string;
  /** The contents of the HOSTALIASES file. */
  readonly hostAliases: string | null;
  readonly env: Readonly<Record<string, string>>;
  /** Servers that answer, and addresses where no program listens. */
  readonly listen: readonly string[];
  readonly closed: readonly string[];
  readonly answers: object;
}

/** A scenario's setup in the form that programs here need. */
export function surroundingsOf(scenario: Scenario): Surroundings {
  return {
    name: scenario.name,
    families: [4, 6],
    repeat: scenario.repeat ?? 1,
    resolv: scenario.resolv,
    nsswitch: scenario.nss === '' ? '' : `hosts: ${scenario.nss}\n`,
    hosts: scenario.hosts,
    hostAliases: null,
    env: scenario.env ?? {},
    listen: scenario.listen,
    closed: scenario.closed ?? [],
    answers: { rules: rulesOf(scenario), notcp: scenario.notcp ?? [] },
  };
}

let count = 0;
/** The pod has its own host name. */
const named = 'hostname mypod && exec "$@"';

/** Runs `command NAME FAMILY COUNT`, which prints one line of JSON per lookup. */
export async function runReal(
  pod: Surroundings,
  client: string,
  command: readonly string[],
): Promise<Run & { readonly signal: string | null }> {
  const name = `ndots${process.pid % 10000}-${count++}`;
  const etc = join('/etc/netns', name);
  const work = mkdtempSync(join(tmpdir(), 'ndots-run-'));
  let server: ChildProcess | null = null;
  try {
    mkdirSync(etc, { recursive: true });
    writeFileSync(join(etc, 'resolv.conf'), pod.resolv);
    writeFileSync(join(etc, 'nsswitch.conf'), pod.nsswitch);
    writeFileSync(join(etc, 'hosts'), pod.hosts);
    const aliases = join(work, 'aliases');
    if (pod.hostAliases !== null) writeFileSync(aliases, pod.hostAliases);
    makeNamespace(name, pod);
    const script = join(work, 'script.json');
    const log = join(work, 'log');
    writeFileSync(script, JSON.stringify(pod.answers));
    server = await startServer(name, script, log, pod.listen);
    const family = pod.families.length === 2 ? '0' : String(pod.families[0]);
    const words = [...command, pod.name, family, String(pod.repeat)];
    const env = { ...pod.env, ...(pod.hostAliases === null ? {} : { HOSTALIASES: aliases }) };
    const inside = ['netns', 'exec', name, 'unshare', '--uts', 'sh', '-c', named, 'sh', ...words];
    const { stdout, signal } = await run('ip', inside, env);
    // The answer to the last query may not have been logged yet.
    await new Promise((resolve) => setTimeout(resolve, 30));
    const result = stdout
      .split('\n')
      .filter((line) => line.startsWith('{'))
      .map((line) => JSON.parse(line) as MeasuredResult);
    return { client, result, seq: '', queries: existsSync(log) ? readLog(log) : [], signal };
  } finally {
    server?.kill();
    spawnSync('ip', ['netns', 'del', name]);
    rmSync(etc, { recursive: true, force: true });
    rmSync(work, { recursive: true, force: true });
  }
}

function makeNamespace(name: string, { listen, closed }: Surroundings): void {
  execFileSync('ip', ['netns', 'add', name]);
  const inside = (...words: string[]): void => {
    execFileSync('ip', ['-n', name, ...words]);
  };
  inside('link', 'set', 'lo', 'up');
  inside('link', 'add', 'eth0', 'type', 'veth', 'peer', 'name', 'eth1');
  inside('addr', 'add', '10.244.0.10/24', 'dev', 'eth0');
  inside('link', 'set', 'eth0', 'up');
  inside('link', 'set', 'eth1', 'up');
  inside('route', 'add', 'default', 'via', '10.244.0.1');
  const servers = new Set([...listen, ...closed].filter((one) => !isLoopback(one)));
  for (const server of servers) {
    const length = server.includes(':') ? 128 : 32;
    inside('addr', 'add', `${server}/${length}`, 'dev', 'lo', ...(length === 128 ? ['nodad'] : []));
  }
}

function isLoopback(address: string): boolean {
  return address === '::1' || address.startsWith('127.');
}

function startServer(
  namespace: string,
  script: string,
  log: string,
  listen: readonly string[],
): Promise<ChildProcess> {
  const program = join(kit, 'scripted-server.ts');
  const words = ['netns', 'exec', namespace, process.execPath, program, script, log, ...listen];
  const child = spawn('ip', words, { stdio: ['ignore', 'pipe', 'inherit'] });
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (code) =>
      reject(new Error(`the scripted server ended with ${code ?? 'a signal'}`)),
    );
    child.stdout.once('data', () => resolve(child));
  });
}

function run(
  program: string,
  words: readonly string[],
  env: Readonly<Record<string, string>>,
): Promise<{ readonly stdout: string; readonly signal: string | null }> {
  const child = spawn(program, words, {
    env: { ...process.env, GODEBUG: '', ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
    timeout: 120_000,
  });
  let stdout = '';
  child.stdout.setEncoding('utf8');
  child.stdout.on('data', (text: string) => (stdout += text));
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (_, signal) => resolve({ stdout, signal }));
  });
}

function readLog(log: string): MeasuredQuery[] {
  const rows = readFileSync(log, 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as MeasuredQuery);
  const first = rows[0]?.[0] ?? 0;
  const ports = new Map<string, number>();
  return rows.map((row) => {
    const key = `${row[1]} ${row[3]}`;
    const port = ports.get(key) ?? ports.size + 1;
    ports.set(key, port);
    return [row[0] - first, row[1], row[2], port, row[4], row[5], row[6], row[7], row[8], row[9]];
  });
}
