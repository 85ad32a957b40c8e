/** Where the programs of a real cluster are. */
import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';

/** Program → the Go package that it is built from. */
const packages = {
  etcd: 'go.etcd.io/etcd/server/v3',
  'kube-apiserver': 'k8s.io/kubernetes/cmd/kube-apiserver',
  kubectl: 'k8s.io/kubernetes/cmd/kubectl',
} as const;

/** The programs, by their names. */
export type ClusterProgram = keyof typeof packages;

/** Where the programs are. */
export type ClusterPrograms = Readonly<Record<ClusterProgram, string>>;

/** Go modules and what is built from them: those of this folder, and of the folder of an older minor an API server alone. */
interface Build {
  readonly folder: string;
  /** Program → its package. */
  readonly programs: Readonly<Record<string, string>>;
}

const newest: Build = { folder: import.meta.dirname, programs: packages };

/** Minors of Kubernetes before the one that go.mod asks for, whose API servers can be had, too. */
const olderMinors = ['1.35', '1.34'] as const;

/** One of `olderMinors`. */
export type OlderMinor = (typeof olderMinors)[number];

/** What tests that run on several play on: the newest (null) and the older ones, or those of them that `KUBERNETES_MINORS` names. */
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
        folder: join(import.meta.dirname, minor),
        programs: { 'kube-apiserver': packages['kube-apiserver'] },
      };

/** A folder with all three, as other projects' tests are given it; it takes the place of building them. */
const given = process.env['KUBEBUILDER_ASSETS'];

/** Why there can be no real API server here; null: there can. @param minor null is the newest */
export function noApiServer(minor: OlderMinor | null = null): string | null {
  if (minor === null && given !== undefined) return null;
  if (existsSync(cachedAt(buildOf(minor)))) return null;
  return spawnSync('go', ['version']).status === 0 ? null : 'go is not installed';
}

/**
 * A real etcd, API server and kubectl: those in the folder `KUBEBUILDER_ASSETS`, or those built from the modules of the
 * go.mod beside this file. Building takes some ten minutes, once: the result is kept under `XDG_CACHE_HOME`.
 * @param minor the API server of an older Kubernetes
 */
export async function clusterPrograms(minor: OlderMinor | null = null): Promise<ClusterPrograms> {
  const folder = given ?? (await built(newest));
  const programs = Object.fromEntries(
    Object.keys(packages).map((name) => [name, join(folder, name)]),
  ) as ClusterPrograms;
  if (minor === null) return programs;
  const older = join(await built(buildOf(minor)), 'kube-apiserver');
  return { ...programs, 'kube-apiserver': older };
}

/**
 * Builds programs of Kubernetes from the modules that the go.mod of a directory pins, once, as `clusterPrograms` does.
 * @param folder of go.mod and go.sum
 * @param names program → its package
 * @returns program → its file
 */
export async function programsOf<Name extends string>(
  folder: string,
  names: Readonly<Record<Name, string>>,
): Promise<Readonly<Record<Name, string>>> {
  const at = await built({ folder, programs: names });
  return Object.fromEntries(Object.keys(names).map((name) => [name, join(at, name)])) as Readonly<
    Record<Name, string>
  >;
}

/** Version of Kubernetes that a go.mod asks for: `v1.36.3`. */
const versionIn = (folder: string): string =>
  /\bk8s\.io\/kubernetes (v\S+)/.exec(readFileSync(join(folder, 'go.mod'), 'utf8'))?.[1] ??
  'v0.0.0';

/** Where a build is kept: what it is made of is in the name. */
function cachedAt({ folder }: Build): string {
  const caches = process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache');
  const hash = createHash('sha256');
  for (const file of ['go.mod', 'go.sum']) hash.update(readFileSync(join(folder, file)));
  const id = hash.digest('hex').slice(0, 12);
  const name = `${versionIn(folder)}-${process.platform}-${process.arch}-${id}`;
  return join(caches, 'ndots', 'cluster', name);
}

async function built(build: Build): Promise<string> {
  const folder = cachedAt(build);
  if (existsSync(folder)) return folder;
  const cache = join(folder, '..');
  mkdirSync(cache, { recursive: true });
  // Built beside and renamed: what is there is whole.
  const unfinished = mkdtempSync(join(cache, 'unfinished-'));
  try {
    for (const [name, from] of Object.entries(build.programs)) {
      console.error(`building ${name} from ${from} (once, kept in ${folder})`);
      await compile(build.folder, from, join(unfinished, name));
    }
    renameSync(unfinished, folder);
  } catch (error) {
    rmSync(unfinished, { recursive: true });
    throw error;
  }
  return folder;
}

async function compile(folder: string, from: string, to: string): Promise<void> {
  const version = versionIn(folder);
  const [major = '', minor = ''] = version.slice(1).split('.');
  const about = Object.entries({ gitVersion: version, gitMajor: major, gitMinor: minor })
    .map(([name, value]) => `-X k8s.io/component-base/version.${name}=${value}`)
    .join(' ');
  const child = spawn('go', ['build', '-trimpath', '-ldflags', `-s -w ${about}`, '-o', to, from], {
    cwd: folder,
    env: { ...process.env, CGO_ENABLED: '0' },
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  const code = await new Promise((resolve, reject) =>
    child.on('exit', resolve).on('error', reject),
  );
  if (code !== 0) throw new Error(`go build ${from} ended with ${String(code)}`);
}
