/** Servers under test: ndots and its peers. */
import { execFile, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Load } from './dnsperf.ts';
import { smoke } from './figures.ts';
import { testCertificate, testKey } from '../../test/kit/certificate.ts';
import { printed, start, type Child } from '../../test/kit/child.ts';

/** The duration of a run under load, in seconds. */
export const runSeconds: number = smoke ? 1 : 6;
/** The number of runs, of which the median counts. */
export const rounds: number = smoke ? 1 : 3;

/** A directory that is removed when the benchmark ends. */
export function workDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), 'ndots-bench-'));
  process.on('exit', () => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

export function has(program: string): boolean {
  return (
    spawnSync('sh', ['-c', `command -v ${program} || ls /usr/sbin/${program}`], { stdio: 'ignore' })
      .status === 0
  );
}

/** Reports missing programs and ends the benchmark without failing, because its figures need their peers. */
export function need(...programs: readonly string[]): void {
  const missing = programs.filter((program) => !has(program));
  if (missing.length === 0) return;
  console.log(`skipped: ${missing.join(', ')} not installed`);
  process.exit(0);
}

/** The first line that a program prints for a flag such as `-v`. */
export function versionOf(program: string, flag: string): string {
  const { stdout, stderr } = spawnSync(program, [flag], { encoding: 'utf8' });
  return `${stdout}${stderr}`.split('\n')[0]!.trim();
}

const home = fileURLToPath(new URL('../../', import.meta.url));

export function ndots(
  corefile: string,
  directory: string,
  options: {
    readonly cpu?: number;
    readonly words?: readonly string[];
    readonly env?: NodeJS.ProcessEnv;
  } = {},
): Child {
  const file = join(directory, `Corefile-${Math.round(performance.now() * 1000)}`);
  writeFileSync(file, corefile);
  return start(
    'ndots',
    [join(home, 'bin/ndots'), 'serve', '-conf', file, '-workers', '1', ...(options.words ?? [])],
    options,
  );
}

/**
 * An Unbound with one thread. It either serves `names` (A records) as local data, or forwards everything to
 * `forwardTo`.
 */
export function unbound(
  directory: string,
  port: number,
  names: ReadonlyMap<string, string>,
  options: { readonly cpu?: number; readonly forwardTo?: number } = {},
): Child {
  const file = join(directory, `unbound-${port}.conf`);
  const data = [...names].map(([name, address]) => `  local-data: "${name} 30 IN A ${address}"`);
  const zone = names.size > 0 ? ['  local-zone: "cluster.local." static', ...data] : [];
  const forward =
    options.forwardTo === undefined
      ? []
      : ['forward-zone:', '  name: "."', `  forward-addr: 127.0.0.1@${options.forwardTo}`];
  const lines = [
    'server:',
    `  interface: 127.0.0.1@${port}`,
    '  num-threads: 1',
    '  do-daemonize: no',
    '  username: ""',
    '  chroot: ""',
    `  directory: "${directory}"`,
    '  pidfile: ""',
    '  use-syslog: no',
    '  verbosity: 0',
    '  do-not-query-localhost: no',
    '  module-config: "iterator"',
    '  access-control: 127.0.0.0/8 allow',
    '  so-rcvbuf: 4m',
    ...zone,
    ...forward,
    'remote-control:',
    '  control-enable: no',
    '',
  ];
  writeFileSync(file, lines.join('\n'));
  return start('unbound', ['/usr/sbin/unbound', '-d', '-c', file], options);
}

/** An upstream's ports for TLS and HTTPS. */
export interface EncryptedPorts {
  readonly tls: number;
  readonly https: number;
}

/**
 * A cheap upstream: an Unbound that answers every name below `bench.` with the same address. Over TLS and HTTPS, it
 * uses the tests' certificate for dns.example and 127.0.0.1.
 */
export function wildcardUpstream(
  directory: string,
  port: number,
  cpu: number,
  encrypted: EncryptedPorts | null = null,
): Child {
  const file = join(directory, `upstream-${port}.conf`);
  const lines = [
    'server:',
    `  interface: 127.0.0.1@${port}`,
    ...(encrypted === null
      ? []
      : [
          `  interface: 127.0.0.1@${encrypted.tls}`,
          `  interface: 127.0.0.1@${encrypted.https}`,
          `  tls-port: ${encrypted.tls}`,
          `  https-port: ${encrypted.https}`,
          `  tls-service-pem: "${certificateIn(directory)}.crt"`,
          `  tls-service-key: "${certificateIn(directory)}.key"`,
          '  incoming-num-tcp: 1000',
          '  http-max-streams: 1000',
        ]),
    '  num-threads: 1',
    '  do-daemonize: no',
    '  username: ""',
    '  chroot: ""',
    `  directory: "${directory}"`,
    '  pidfile: ""',
    '  use-syslog: no',
    '  so-rcvbuf: 4m',
    '  access-control: 127.0.0.0/8 allow',
    '  local-zone: "bench." redirect',
    '  local-data: "bench. 60 IN A 192.0.2.1"',
    'remote-control:',
    '  control-enable: no',
    '',
  ];
  writeFileSync(file, lines.join('\n'));
  return start('upstream', ['/usr/sbin/unbound', '-d', '-c', file], { cpu });
}

/**
 * Writes the tests' certificate and key.
 * @returns their common path, without `.crt` and `.key`
 */
export function certificateIn(directory: string): string {
  writeFileSync(join(directory, 'bench.crt'), testCertificate);
  writeFileSync(join(directory, 'bench.key'), testKey);
  return join(directory, 'bench');
}

/** CoreDNS's path, from COREDNS in the environment or from PATH, or null if it was not found. */
export function corednsProgram(): string | null {
  const named = process.env['COREDNS'];
  if (named !== undefined && named !== '') return named;
  return has('coredns') ? 'coredns' : null;
}

export function coredns(program: string, corefile: string, directory: string, cpu: number): Child {
  const file = join(directory, `Corefile-coredns-${Math.round(performance.now() * 1000)}`);
  writeFileSync(file, corefile);
  return start('coredns', [program, '-conf', file], {
    cpu,
    env: { ...process.env, GOMAXPROCS: '1' },
  });
}

/** BIND with one thread that forwards everything. */
export function bindForwarder(
  directory: string,
  port: number,
  upstream: number,
  cpu: number,
): Child {
  const file = join(directory, `named-${port}.conf`);
  writeFileSync(
    file,
    `options { directory "${directory}"; listen-on port ${port} { 127.0.0.1; }; listen-on-v6 { none; }; recursion yes; allow-query { 127.0.0.0/8; }; forward only; forwarders { 127.0.0.1 port ${upstream}; }; dnssec-validation no; pid-file none; session-keyfile none; max-cache-size 64m; recursive-clients 10000; querylog no; };\ncontrols { };\n`,
  );
  return start('bind', ['/usr/sbin/named', '-g', '-n', '1', '-c', file], { cpu });
}

/**
 * dnsdist with its defaults: one UDP thread and no cache.
 * @param server the upstream and its transport, in Lua
 */
export function dnsdist(
  directory: string,
  port: number,
  upstream: number,
  cpu: number,
  server = '',
): Child {
  const file = join(directory, `dnsdist-${port}.conf`);
  writeFileSync(
    file,
    `setLocal("127.0.0.1:${port}")\nnewServer({address="127.0.0.1:${upstream}", checkName="probe.bench.", order=1${server}})\nsetMaxUDPOutstanding(65535)\nsetSecurityPollSuffix("")\n`,
  );
  return start('dnsdist', ['dnsdist', '--supervised', '--disable-syslog', '-C', file], { cpu });
}

/** Compiles a C program in this directory. */
export function compile(source: string, directory: string): string {
  const program = join(directory, source.replace('.c', ''));
  const { status, stderr } = spawnSync(
    'gcc',
    ['-O2', '-o', program, join(home, 'bench/peers', source)],
    { encoding: 'utf8' },
  );
  if (status !== 0) throw new Error(stderr);
  return program;
}

/** The manifests for `count` services named `svc-N.bench`, and the expected answers. */
export function services(
  directory: string,
  count: number,
): { readonly manifests: string; readonly names: ReadonlyMap<string, string> } {
  const names = new Map<string, string>();
  const documents: string[] = ['apiVersion: v1\nkind: Namespace\nmetadata: {name: bench}\n'];
  for (let i = 0; i < count; i++) {
    const address = `10.100.${i >> 8}.${i & 0xff}`;
    names.set(`svc-${i}.bench.svc.cluster.local.`, address);
    documents.push(
      `apiVersion: v1\nkind: Service\nmetadata: {name: svc-${i}, namespace: bench}\nspec:\n  clusterIP: ${address}\n  clusterIPs: [${address}]\n  ports: [{name: http, port: 80, protocol: TCP}]\n`,
    );
  }
  const manifests = join(directory, 'manifests');
  spawnSync('mkdir', ['-p', manifests]);
  writeFileSync(join(manifests, 'services.yaml'), documents.join('---\n'));
  return { manifests, names };
}

/** The kubeadm Corefile on loopback, with objects read from a directory. */
export function kubeadmCorefile(port: number, manifests: string, extra = ''): string {
  return `.:${port} {
    bind 127.0.0.1
    errors
    health 127.0.0.1:${port + 1} {
       lameduck 0s
    }
    ready 127.0.0.1:${port + 2}
    kubernetes cluster.local in-addr.arpa ip6.arpa {
       manifests ${manifests}
       pods insecure
       fallthrough in-addr.arpa ip6.arpa
       ttl 30
    }
    prometheus 127.0.0.1:${port + 3}
    forward . 127.0.0.1:${port + 9} {
       max_concurrent 1000
    }
    cache 30
    loop
    reload
    loadbalance
    ${extra}
}
`;
}

/** A fake API server with a cluster of a given size. */
export async function apiServer(
  port: number,
  words: readonly string[],
  cpu?: number,
): Promise<Child> {
  const child = start(
    'apiserver',
    [process.execPath, join(home, 'test/kit/apiserver/main.ts'), '--port', String(port), ...words],
    cpu === undefined ? {} : { cpu },
  );
  await printed(child, /listening/);
  return child;
}

/** A Corefile that reads objects from an API server on loopback. */
export function apiCorefile(
  port: number,
  api: number,
  pods: 'insecure' | 'verified',
  autopath: string,
): string {
  return `.:${port} {
    bind 127.0.0.1
    errors
    ready 127.0.0.1:${port + 2}
    kubernetes cluster.local in-addr.arpa ip6.arpa {
       endpoint http://127.0.0.1:${api}
       pods ${pods}
       fallthrough in-addr.arpa ip6.arpa
       ttl 30
       startup_timeout 60s
    }
    prometheus 127.0.0.1:${port + 3}
    ${autopath}
    forward . 127.0.0.1:${port + 9}
    cache 30 {
       disable success cluster.local
       disable denial cluster.local
    }
    loadbalance
}
`;
}

/** The results of queries sent at a fixed rate, with their latencies. */
export interface Pace {
  readonly sent: number;
  readonly received: number;
  readonly errors: number;
  /** Microseconds. */
  readonly p50: number;
  readonly p99: number;
  readonly p999: number;
  readonly max: number;
}

/** Generates a steady load in the background, and resolves with the latencies. */
export function pace(
  program: string,
  port: number,
  rate: number,
  seconds: number,
  file: string,
  cpu: number,
): Promise<Pace> {
  return new Promise((resolve, reject) => {
    execFile(
      'taskset',
      ['-c', String(cpu), program, String(port), String(rate), String(seconds), file],
      (error, stdout) => {
        if (error) reject(error);
        else resolve(JSON.parse(stdout) as Pace);
      },
    );
  });
}

/** Prints each server's replies per second and CPU per reply in its median round. */
export function printLoads(middle: Readonly<Record<string, Load>>): void {
  for (const [name, { perSecond, cpuMicros, lost, latencyMs, rcodes }] of Object.entries(middle)) {
    console.log(
      `${name.padEnd(16)} ${perSecond.toFixed(0).padStart(8)} replies/s  ${cpuMicros.toFixed(2).padStart(6)} µs CPU each  ${latencyMs.toFixed(2)} ms  lost ${lost}  ${rcodes}`,
    );
  }
}

/** Formats a ratio with two decimals. */
export function ratio(a: number, b: number): string {
  return (a / b).toFixed(2);
}

/**
 * Writes a question file for `pace`. It has at most 5000 of the fake API server's services, a third of them for AAAA.
 */
export function serviceQuestions(directory: string, services: number): string {
  const file = join(directory, 'names.txt');
  const lines = Array.from(
    { length: Math.min(services, 5000) },
    (_, i) => `service-${i}.team-${i % 100}.svc.cluster.local ${i % 3 === 0 ? 28 : 1}\n`,
  );
  writeFileSync(file, lines.join(''));
  return file;
}
