/** Programs that are built from their public Go modules. */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';

/** Why none can be built here; null: it can. */
export function noGo(): string | null {
  return spawnSync('go', ['version']).status === 0 ? null : 'go is not installed';
}

/**
 * Where a program is; it is built once, which may take minutes, and kept under `XDG_CACHE_HOME`.
 * @param from its package: `helm.sh/helm/v3/cmd/helm`
 * @throws if it cannot be built
 */
export function goProgram(name: string, from: string, version: string): string {
  return kept(name, version, ['install', `${from}@${version}`], '.');
}

/**
 * The same with the versions of all its modules pinned: a go.mod with one tool, and its go.sum.
 * @param folder of the two
 * @throws if it cannot be built
 */
export function pinnedGoProgram(name: string, folder: string): string {
  const text = readFileSync(join(folder, 'go.mod'), 'utf8');
  const [, from = ''] = /^tool (\S+)$/m.exec(text) ?? [];
  const [, version = ''] = /^require \S+ (v\S+)$/m.exec(text) ?? [];
  return kept(name, version, ['install', from], folder);
}

/** Whether `goProgram` has been built before. */
export const isBuilt = (name: string, version: string): boolean =>
  existsSync(join(folderOf(name, version), name));

const folderOf = (name: string, version: string): string => {
  const caches = process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache');
  return join(caches, 'ndots', `${name}-${version}`);
};

function kept(name: string, version: string, words: readonly string[], cwd: string): string {
  const folder = folderOf(name, version);
  const program = join(folder, name);
  if (existsSync(program)) return program;
  mkdirSync(folder, { recursive: true });
  console.error(`building ${name} ${version} (once, kept in ${folder})`);
  const { status } = spawnSync('go', words, {
    cwd,
    env: { ...process.env, GOBIN: folder, CGO_ENABLED: '0' },
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  if (status !== 0) throw new Error(`${name} could not be built: go install ended with ${status}`);
  return program;
}
