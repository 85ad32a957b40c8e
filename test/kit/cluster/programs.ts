/** Locates the programs of a real cluster. */
import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';

/** Maps a program to its Go package. */
const packages = {
  etcd: 'go.etcd.io/etcd/server/v3',
  'kube-apiserver': 'k8s.io/kubernetes/cmd/kube-apiserver',
  kubectl: 'k8s.io/kubernetes/cmd/kubectl',
} as const;

export type ClusterProgram = keyof typeof packages;

export type ClusterPrograms = Readonly<Record<ClusterProgram, string>>;

/**
 * Go modules and the programs built from them. This directory has all of them, while the directories for older minors
 * only have an API server.
 */
interface Build {
  readonly directory: string;
  readonly programs: Readonly<Record<string, string>>;
}

const newest: Build = { directory: import.meta.dirname, programs: packages };

/** Kubernetes minors older than the one in go.mod that also have an API server here. */
const olderMinors = ['1.35', '1.34'] as const;

export type OlderMinor = (typeof olderMinors)[number];

/**
 * The versions for tests that run on several of them: the newest (null) and the older ones, or those in
 * `KUBERNETES_MINORS`.
 */
export const testedMinors: readonly (OlderMinor | null)[] = [
  null,
  ...olderMinors.filter((minor) => {
    const chosen = process.env['KUBERNETES_MINORS'];
    return chosen === undefined || chosen.split(',').includes(minor);
  }),
];

const buildOf = (minor: OlderMinor | null): Build =>
  minor === null
    ? newest
    : {
        directory: join(import.meta.dirname, minor),
        programs: { 'kube-apiserver': packages['kube-apiserver'] },
      };

/** A directory with all three programs, as other projects' tests use it. If this is set, nothing is built. */
const given = process.env['KUBEBUILDER_ASSETS'];

/**
 * The reason why no real API server is available, or null if there is one.
 * @param minor an older minor version, or null for the newest
 */
export function noApiServer(minor: OlderMinor | null = null): string | null {
  if (minor === null && given !== undefined) return null;
  if (existsSync(cachedAt(buildOf(minor)))) return null;
  return spawnSync('go', ['version']).status === 0 ? null : 'go is not installed';
}

/**
 * A real etcd, API server and kubectl. They are in the directory `KUBEBUILDER_ASSETS`, or built from the modules in the
 * go.mod next to this file. The first build takes about ten minutes. The result is cached in `XDG_CACHE_HOME`.
 * @param minor use an older Kubernetes' API server
 */
export async function clusterPrograms(minor: OlderMinor | null = null): Promise<ClusterPrograms> {
  const directory = given ?? (await built(newest));
  const programs = Object.fromEntries(
    Object.keys(packages).map((name) => [name, join(directory, name)]),
  ) as ClusterPrograms;
  if (minor === null) return programs;
  const older = join(await built(buildOf(minor)), 'kube-apiserver');
  return { ...programs, 'kube-apiserver': older };
}

/**
 * Builds Kubernetes programs once from the modules pinned in a directory's go.mod, as `clusterPrograms` does.
 * @param directory the directory with go.mod and go.sum
 * @param names maps a program to its package
 * @returns maps a program to its file
 */
export async function programsOf<Name extends string>(
  directory: string,
  names: Readonly<Record<Name, string>>,
): Promise<Readonly<Record<Name, string>>> {
  const at = await built({ directory, programs: names });
  return Object.fromEntries(Object.keys(names).map((name) => [name, join(at, name)])) as Readonly<
    Record<Name, string>
  >;
}

/** The Kubernetes version in a go.mod: `v1.36.3`. */
const versionIn = (directory: string): string =>
  /\bk8s\.io\/kubernetes (v\S+)/.exec(readFileSync(join(directory, 'go.mod'), 'utf8'))?.[1] ??
  'v0.0.0';

/** The path where a build is cached. It includes a hash of its sources. */
function cachedAt({ directory }: Build): string {
  const caches = process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache');
  const hash = createHash('sha256');
  for (const file of ['go.mod', 'go.sum']) hash.update(readFileSync(join(directory, file)));
  const id = hash.digest('hex').slice(0, 12);
  const name = `${versionIn(directory)}-${process.platform}-${process.arch}-${id}`;
  return join(caches, 'ndots', 'cluster', name);
}

async function built(build: Build): Promise<string> {
  const directory = cachedAt(build);
  if (existsSync(directory)) return directory;
  const cache = join(directory, '..');
  mkdirSync(cache, { recursive: true });
  // Build next to the target and rename the result, so that it is always complete.
  const unfinished = mkdtempSync(join(cache, 'unfinished-'));
  try {
    for (const [name, from] of Object.entries(build.programs)) {
      console.error(`building ${name} from ${from} (once, kept in ${directory})`);
      await compile(build.directory, from, join(unfinished, name));
    }
    renameSync(unfinished, directory);
  } catch (error) {
    rmSync(unfinished, { recursive: true });
    throw error;
  }
  return directory;
}

async function compile(directory: string, from: string, to: string): Promise<void> {
  const version = versionIn(directory);
  const [major = '', minor = ''] = version.slice(1).split('.');
  const about = Object.entries({ gitVersion: version, gitMajor: major, gitMinor: minor })
    .map(([name, value]) => `-X k8s.io/component-base/version.${name}=${value}`)
    .join(' ');
  const child = spawn('go', ['build', '-trimpath', '-ldflags', `-s -w ${about}`, '-o', to, from], {
    cwd: directory,
    env: { ...process.env, CGO_ENABLED: '0' },
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  const code = await new Promise((resolve, reject) =>
    child.on('exit', resolve).on('error', reject),
  );
  if (code !== 0) throw new Error(`go build ${from} ended with ${String(code)}`);
}
