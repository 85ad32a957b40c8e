/** Builds programs from their public Go modules. */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';

/** The reason why programs cannot be built here, or null if they can. */
export function noGo(): string | null {
  return spawnSync('go', ['version']).status === 0 ? null : 'go is not installed';
}

/**
 * Returns a program's path. It is built once, which may take minutes, and is cached in `XDG_CACHE_HOME`.
 * @param from its package, such as `helm.sh/helm/v3/cmd/helm`
 * @throws if it cannot be built
 */
export function goProgram(name: string, from: string, version: string): string {
  return kept(name, version, ['install', `${from}@${version}`], '.');
}

/**
 * Does the same for a program whose modules are all pinned by a go.mod with one tool and its go.sum.
 * @param directory the directory with both files
 * @throws if it cannot be built
 */
export function pinnedGoProgram(name: string, directory: string): string {
  const text = readFileSync(join(directory, 'go.mod'), 'utf8');
  const [, from = ''] = /^tool (\S+)$/m.exec(text) ?? [];
  const [, version = ''] = /^require \S+ (v\S+)$/m.exec(text) ?? [];
  return kept(name, version, ['install', from], directory);
}

/** True if `goProgram` has already built it. */
export const isBuilt = (name: string, version: string): boolean =>
  existsSync(join(directoryOf(name, version), name));

const directoryOf = (name: string, version: string): string => {
  const caches = process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache');
  return join(caches, 'ndots', `${name}-${version}`);
};

function kept(name: string, version: string, words: readonly string[], cwd: string): string {
  const directory = directoryOf(name, version);
  const program = join(directory, name);
  if (existsSync(program)) return program;
  mkdirSync(directory, { recursive: true });
  console.error(`building ${name} ${version} (once, kept in ${directory})`);
  const { status } = spawnSync('go', words, {
    cwd,
    env: { ...process.env, GOBIN: directory, CGO_ENABLED: '0' },
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  if (status !== 0) throw new Error(`${name} could not be built: go install ended with ${status}`);
  return program;
}
