/** Where the programs of a real cluster are. */
import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';

/** Program → the Go package that it is built from. */
const packages = {
  etcd: 'go.etcd.io/etcd/server/v3',
  'kube-apiserver': 'k8s.io/kubernetes/cmd/kube-apiserver',
  kubectl: 'k8s.io/kubernetes/cmd/kubectl',
} as const;

export type ClusterProgram = keyof typeof packages;

/** Where the programs are. */
export type ClusterPrograms = Readonly<Record<ClusterProgram, string>>;

const source = import.meta.dirname;
const module = readFileSync(join(source, 'go.mod'), 'utf8');

/** Version of Kubernetes that go.mod asks for: `v1.36.3`. */
const version = /\bk8s\.io\/kubernetes (v\S+)/.exec(module)?.[1] ?? 'v0.0.0';

/** A folder with all three, as other projects' tests are given it; it takes the place of building them. */
const given = process.env['KUBEBUILDER_ASSETS'];

/** Why there can be no real API server here; null: there can. */
export function noApiServer(): string | null {
  if (given !== undefined) return null;
  return spawnSync('go', ['version']).status === 0 ? null : 'go is not installed';
}

/**
 * A real etcd, API server and kubectl: those in the folder `KUBEBUILDER_ASSETS`, or those built from the modules of the
 * go.mod beside this file. Building takes some ten minutes, once: the result is kept under `XDG_CACHE_HOME`.
 */
export async function clusterPrograms(): Promise<ClusterPrograms> {
  const folder = given ?? (await builtPrograms());
  return Object.fromEntries(
    Object.keys(packages).map((name) => [name, join(folder, name)]),
  ) as ClusterPrograms;
}

async function builtPrograms(): Promise<string> {
  const caches = process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache');
  const cache = join(caches, 'ndots', 'cluster');
  const sums = readFileSync(join(source, 'go.sum'));
  const id = createHash('sha256').update(module).update(sums).digest('hex').slice(0, 12);
  const folder = join(cache, `${version}-${process.platform}-${process.arch}-${id}`);
  if (existsSync(folder)) return folder;
  mkdirSync(cache, { recursive: true });
  // Built beside and renamed: what is there is whole.
  const unfinished = mkdtempSync(join(cache, 'unfinished-'));
  for (const [name, from] of Object.entries(packages)) {
    console.error(`building ${name} from ${from} (once, kept in ${folder})`);
    await build(from, join(unfinished, name));
  }
  renameSync(unfinished, folder);
  return folder;
}

async function build(from: string, to: string): Promise<void> {
  const [major = '', minor = ''] = version.slice(1).split('.');
  const about = Object.entries({ gitVersion: version, gitMajor: major, gitMinor: minor })
    .map(([name, value]) => `-X k8s.io/component-base/version.${name}=${value}`)
    .join(' ');
  const child = spawn('go', ['build', '-trimpath', '-ldflags', `-s -w ${about}`, '-o', to, from], {
    cwd: source,
    env: { ...process.env, CGO_ENABLED: '0' },
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  const code = await new Promise((resolve, reject) =>
    child.on('exit', resolve).on('error', reject),
  );
  if (code !== 0) throw new Error(`go build ${from} ended with ${String(code)}`);
}
