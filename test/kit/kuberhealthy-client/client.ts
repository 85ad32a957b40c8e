/** Kuberhealthy's own clients, versions 2 and 3, built from their Go modules. */
import { spawnSync } from 'node:child_process';
import {
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

const modules = {
  2: {
    path: 'github.com/kuberhealthy/kuberhealthy/v2',
    version: 'v2.7.1',
    client: 'pkg/checks/external/checkclient',
  },
  3: {
    path: 'github.com/kuberhealthy/kuberhealthy/v3',
    version: 'v3.0.9',
    client: 'pkg/checkclient',
  },
} as const;

/** A directory with the sources of both versions in `v2` and `v3`, for when the Go module proxy does not have them. */
const sources = process.env['KUBERHEALTHY_SOURCES'];

const directory = join(
  process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'),
  'ndots',
  'kuberhealthy',
);

/** The program that reports through one version's client. It reports OK, or its arguments as errors. Built once. */
export function reporterProgram(version: 2 | 3): string {
  const { path, version: tag, client } = modules[version];
  const program = join(directory, `reporter-${tag}`);
  if (existsSync(program)) return program;
  const work = mkdtempSync(join(tmpdir(), 'ndots-kuberhealthy-'));
  try {
    // Copied into the module, because the versions that it requires only apply there.
    cpSync(sourceOf(version), work, { recursive: true });
    spawnSync('chmod', ['-R', 'u+w', work]);
    mkdirSync(join(work, 'cmd', 'reporter'), { recursive: true });
    const template = readFileSync(join(import.meta.dirname, 'main.go.txt'), 'utf8');
    writeFileSync(
      join(work, 'cmd', 'reporter', 'main.go'),
      template.replace('CLIENT', `${path}/${client}`),
    );
    go(['build', '-mod=mod', '-trimpath', '-o', join(work, 'reporter'), './cmd/reporter'], work);
    mkdirSync(directory, { recursive: true });
    copyFileSync(join(work, 'reporter'), `${program}.new`);
    renameSync(`${program}.new`, program);
    return program;
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

function sourceOf(version: 2 | 3): string {
  if (sources !== undefined) return resolve(sources, `v${version}`);
  const { path, version: tag } = modules[version];
  const found = JSON.parse(go(['mod', 'download', '-json', `${path}@${tag}`], tmpdir())) as {
    Dir: string;
  };
  return found.Dir;
}

function go(words: readonly string[], cwd: string): string {
  const env = { ...process.env, CGO_ENABLED: '0', GOFLAGS: '' };
  const { status, stdout, stderr } = spawnSync('go', words, { cwd, env, encoding: 'utf8' });
  if (status !== 0) throw new Error(`go ${words.join(' ')}: ${stderr}`);
  return stdout;
}

/** The reason why the clients cannot be built here, or null if they can. */
export function noReporter(): string | null {
  const wanted = ([2, 3] as const).filter(
    (version) => !existsSync(join(directory, `reporter-${modules[version].version}`)),
  );
  if (wanted.length === 0) return null;
  if (spawnSync('go', ['version']).status !== 0) return 'go is not installed';
  if (sources !== undefined) return null;
  for (const version of wanted)
    try {
      sourceOf(version);
    } catch {
      const { path, version: tag } = modules[version];
      return `the Go module proxy does not have ${path} ${tag}: KUBERHEALTHY_SOURCES=DIR with v2/ and v3/`;
    }
  return null;
}
