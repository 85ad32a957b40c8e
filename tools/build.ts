/**
 * Compiles `src/` one to one into `dist/`: what the package ships, and what `bin/ndots` runs as long as no source is newer.
 * `npm ci` runs it; it needs a second or two.
 */
import { spawnSync } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

process.chdir(fileURLToPath(new URL('..', import.meta.url)));
rmSync('dist', { recursive: true, force: true });
const { status } = spawnSync('node_modules/.bin/tsc', ['-p', 'tsconfig.build.json'], {
  stdio: 'inherit',
});
if (status === 0) writeFileSync('dist/.built', '');
else {
  // Sources run as they are, too: an install must not fail for it.
  rmSync('dist', { recursive: true, force: true });
  console.error('dist/ was not built; bin/ndots runs the sources.');
}
