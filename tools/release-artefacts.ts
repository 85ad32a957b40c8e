/**
 * Builds and lists all artefacts of a release without publishing anything: `npm run release -- --dry-run [--out
 * DIRECTORY] [--only KIND,…] [PLATFORM…]`. Pushing a tag publishes a release (docs/releases.md).
 *
 * KIND is `package`, `archives`, `chart`, `sbom` or `images`. If an artefact cannot be built because a program is
 * missing, the list shows the reason.
 */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';

const kinds = ['package', 'archives', 'chart', 'sbom', 'images'] as const;
type Kind = (typeof kinds)[number];

const usage = `usage: npm run release -- --dry-run [--out DIRECTORY] [--only ${kinds.join(',')}] [PLATFORM…]`;

interface Request {
  readonly out: string;
  readonly only: readonly Kind[];
  readonly platforms: readonly string[];
}

/** Parses the arguments. If they are invalid, returns the reason as a string. */
function requestOf(args: readonly string[]): Request | string {
  try {
    const { values, positionals } = parseArgs({
      args: [...args],
      options: {
        'dry-run': { type: 'boolean' },
        out: { type: 'string', default: 'release' },
        only: { type: 'string', default: kinds.join(',') },
      },
      allowPositionals: true,
    });
    const only = values.only.split(',');
    const unknown = only.find((name) => !kinds.some((kind) => kind === name));
    if (unknown !== undefined) return `there is no kind of artefact '${unknown}'\n${usage}`;
    if (values['dry-run'] !== true)
      return `only --dry-run works here: a tag publishes, see docs/releases.md\n${usage}`;
    return {
      out: resolve(values.out),
      only: kinds.filter((kind) => only.includes(kind)),
      platforms: positionals,
    };
  } catch (error) {
    return `${(error as Error).message}\n${usage}`;
  }
}

/** Runs a program. Returns null if it succeeded, or the reason why it failed. */
function failure(program: string, words: readonly string[], stdoutTo?: string): string | null {
  const { status, error, stdout, stderr } = spawnSync(program, words, {
    encoding: 'utf8',
    maxBuffer: 1 << 28,
  });
  if (error !== undefined) return `${program} is not installed`;
  if (status !== 0) return `${program} failed: ${stderr.trim().split('\n').at(-1) ?? ''}`;
  if (stdoutTo !== undefined) writeFileSync(stdoutTo, stdout);
  return null;
}

/** Makes the bytes of an archive reproducible. */
const reproducible = ['--sort=name', '--owner=0', '--group=0', '--numeric-owner', '--mtime=@0'];

/**
 * Maps each kind of artefact to a function that builds it into the directory, or returns the reason why it could not.
 */
const builders: Readonly<Record<Kind, (request: Request, version: string) => string | null>> = {
  package: ({ out }) => failure('npm', ['pack', '--ignore-scripts', '--pack-destination', out]),
  archives: ({ out, platforms }, version) =>
    failure(process.execPath, [
      'tools/release.ts',
      '--url',
      `https://ndots.dev/releases/download/v${version}`,
      '--out',
      out,
      ...platforms,
    ]),
  // Does the same as `helm package`, which makes a tar of the chart's directory.
  chart: ({ out }, version) =>
    failure('tar', [
      ...reproducible,
      '-I',
      'gzip -9n',
      '-cf',
      join(out, `ndots-chart-${version}.tgz`),
      '-C',
      'deploy/helm',
      'ndots',
    ]),
  sbom: ({ out }) =>
    failure('npm', ['sbom', '--sbom-format', 'spdx', '--omit', 'dev'], join(out, 'sbom.spdx.json')),
  images: ({ out }, version) =>
    failure('docker', imageWords('deploy/Dockerfile', join(out, `ndots-image-${version}.tar`))) ??
    failure(
      'docker',
      imageWords(
        'deploy/node-cache/Dockerfile',
        join(out, `ndots-node-cache-image-${version}.tar`),
      ),
    ),
};

const imageWords = (file: string, to: string): readonly string[] => [
  'buildx',
  'build',
  '--file',
  file,
  '--output',
  `type=oci,dest=${to}`,
  '.',
];

/** Lists each file's size and checksum, and writes a file with all checksums. */
function list(out: string): void {
  const files = readdirSync(out)
    .filter((file) => file !== 'SHA256SUMS' && statSync(join(out, file)).isFile())
    .toSorted();
  const sums = files.map((file) => {
    const bytes = readFileSync(join(out, file));
    const sum = createHash('sha256').update(bytes).digest('hex');
    console.log(`${file.padEnd(44)} ${(bytes.length / 1e6).toFixed(1).padStart(7)} MB  ${sum}`);
    return `${sum}  ${file}\n`;
  });
  writeFileSync(join(out, 'SHA256SUMS'), sums.join(''));
  console.log(`${'SHA256SUMS'.padEnd(44)} checksums of these ${files.length} files`);
}

function main(): void {
  const request = requestOf(process.argv.slice(2));
  if (typeof request === 'string') {
    console.error(request);
    process.exitCode = 3;
    return;
  }
  const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string };
  if (existsSync(request.out) && readdirSync(request.out).length > 0) {
    console.error(`${request.out} is not empty: remove it, or give another one with --out`);
    process.exitCode = 3;
    return;
  }
  mkdirSync(request.out, { recursive: true });
  const reasons = request.only.map((kind) => [kind, builders[kind](request, version)] as const);
  list(request.out);
  for (const [kind, reason] of reasons) {
    if (reason === null) continue;
    console.error(`not built: ${kind}: ${reason}`);
    process.exitCode = 1;
  }
  console.log('Nothing was published: a tag does that (docs/releases.md).');
}

main();
