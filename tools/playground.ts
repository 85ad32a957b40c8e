/**
 * Bundles the playground into a directory (`release/playground` by default) and prints its sizes: `npm run playground
 * [-- DIRECTORY]`.
 */
import { rmSync } from 'node:fs';
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { buildPlayground, loadedWith } from './browser-bundle.ts';

const given = process.argv[2];
const directory = given === undefined ? 'release/playground' : resolve(given);
process.chdir(fileURLToPath(new URL('..', import.meta.url)));
// A directory given by the user may already contain other files.
if (given === undefined) rmSync(directory, { recursive: true, force: true });
const files = await buildPlayground(directory);
const byName = new Map(files.map((file) => [file.name, file]));
const kib = (bytes: number): string => (bytes / 1024).toFixed(1).padStart(8);

/** Prints the size of files that are loaded together, without those that have already been loaded. */
function report(what: string, names: readonly string[], before: ReadonlySet<string>): void {
  const parts = names.filter((name) => !before.has(name)).map((name) => byName.get(name)!.bytes);
  const plain = parts.reduce((sum, { length }) => sum + length, 0);
  const packed = parts.reduce((sum, bytes) => sum + gzipSync(bytes).length, 0);
  console.log(`${kib(plain)}${kib(packed)}${String(parts.length).padStart(6)}  ${what}`);
}

const page = [...loadedWith(files, 'page.js')];
const worker = [...loadedWith(files, 'engine-worker.js')];
console.log('     KiB    gzip files');
report(
  'the page',
  [...page, ...files.filter(({ imports }) => imports === null).map(({ name }) => name)],
  new Set(),
);
report('the worker', worker, new Set());
for (const engine of ['trace', 'lint', 'diff', 'doctor']) {
  const chunk = byName
    .get('engine-worker.js')!
    .lazy.find((name) => name.startsWith(`${engine}-engine-`))!;
  report(`engine ${engine}, beside the worker`, [...loadedWith(files, chunk)], new Set(worker));
}
report('all', [...byName.keys()], new Set());
console.log(`in ${directory}: serve it by HTTP, as in: npx serve ${directory}`);
