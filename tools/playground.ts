/** `npm run playground [-- DIRECTORY]`: bundles the playground into a directory (default `release/playground`) and prints its sizes. */
import { rmSync } from 'node:fs';
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { buildPlayground } from './playground-bundle.ts';

const given = process.argv[2];
const folder = given === undefined ? 'release/playground' : resolve(given);
process.chdir(fileURLToPath(new URL('..', import.meta.url)));
// A directory that a person named may hold something else.
if (given === undefined) rmSync(folder, { recursive: true, force: true });
const files = await buildPlayground(folder);
const kib = (bytes: number): string => (bytes / 1024).toFixed(1).padStart(8);
console.log('     KiB    gzip');
for (const { name, bytes } of files
  .toSorted((a, b) => b.bytes.length - a.bytes.length)
  .slice(0, 20))
  console.log(`${kib(bytes.length)}${kib(gzipSync(bytes).length)}  ${name}`);
console.log(`${files.length} files in ${folder}: serve them by HTTP, as in: npx serve ${folder}`);
