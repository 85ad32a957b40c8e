/**
 * Runs a real resolver in a network namespace shaped like a pod, against the scripted server, and gives back what it
 * put on the wire in the form of the recorded runs.
 */
import { execFileSync, spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { MeasuredQuery, MeasuredResult, Run, Scenario } from './measured.ts';

const kit = new URL('.', import.meta.url).pathname;

export const sources = {
  c: join(kit, 'real-clients/lookup.c'),
  go: join(kit, 'real-clients/go'),
  node: join(kit, 'real-clients/resolve.mjs'),
};

/** Own scenarios for real runs; recorded ones are in test/resolvers/measured. */
export function readScenarios(): Scenario[] {
  const file = new URL('../resolvers/scenarios.json', import.meta.url);
  return JSON.parse(readFileSync(file, 'utf8')) as Scenario[];
}

/** Why namespaces cannot be used here; null = they can. */
export function cannotIsolate(): string | null {
  if (process.getuid?.() !== 0) return 'needs root for network namespaces';
  const name = `ndots-probe-${process.pid}`;
  const made = spawnSync('ip', ['netns', 'add', name]);
  if (made.status !== 0) return 'ip netns is not available';
  spawnSync('ip', ['netns', 'del', name]);
  return null;
}

/** Whether a program can be started. */
export function hasProgram(name: string): boolean {
  return spawnSync('sh', ['-c', `command -v ${name}`]).status === 0;
}

/** A folder for compiled programs, removed at the end. */
export function buildFolder(): { readonly path: string; remove(): void } {
  const path = mkdtempSync(join(tmpdir(), 'ndots-real-'));
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) };
}

let count = 0;

export async function runReal(
  scenario: Scenario,
  client: string,
  command: readonly string[],
): Promise<Run> {
  const name = `ndots${process.pid % 10000}-${count++}`;
  const etc = join('/etc/netns', name);
  const work = mkdtempSync(join(tmpdir(), 'ndots-run-'));
  let server: ChildProcess | null = null;
  try {
    mkdirSync(etc, { recursive: true });
    writeFileSync(join(etc, 'resolv.conf'), scenario.resolv);
    writeFileSync(
      join(etc, 'nsswitch.conf'),
      scenario.nss === '' ? '' : `hosts: ${scenario.nss}\n`,
    );
    writeFileSync(join(etc, 'hosts'), scenario.hosts);
    makeNamespace(name, scenario);
    const script = join(work, 'script.json');
    const log = join(work, 'log');
    writeFileSync(
      script,
      JSON.stringify({ rules: rulesOf(scenario), notcp: scenario.notcp ?? [] }),
    );
    server = await startServer(name, script, log, scenario.listen);
    const words = [...command, scenario.name, '0', String(scenario.repeat ?? 1)];
    const { stdout } = await run('ip', ['netns', 'exec', name, ...words], scenario.env ?? {});
    // The answer to the last query may still be on its way into the log.
    await new Promise((resolve) => setTimeout(resolve, 30));
    const result = stdout
      .split('\n')
      .filter((line) => line.startsWith('{'))
      .map((line) => JSON.parse(line) as MeasuredResult);
    return { client, result, seq: '', queries: existsSync(log) ? readLog(log) : [] };
  } finally {
    server?.kill();
    spawnSync('ip', ['netns', 'del', name]);
    rmSync(etc, { recursive: true, force: true });
    rmSync(work, { recursive: true, force: true });
  }
}

function makeNamespace(name: string, scenario: Scenario): void {
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
  const servers = [...scenario.listen, ...(scenario.closed ?? [])];
  for (const server of servers) inside('addr', 'add', `${server}/32`, 'dev', 'lo');
}

function rulesOf(scenario: Scenario): object[] {
  return Object.entries(scenario.zone).map(([key, answer]) => {
    const [, server, name, type] = /^(?:@(\S+) )?(\S+) (\S+)$/.exec(key) ?? [];
    return server === undefined ? { name, type, answer } : { server, name, type, answer };
  });
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
): Promise<{ readonly stdout: string }> {
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
    child.once('close', () => resolve({ stdout }));
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
