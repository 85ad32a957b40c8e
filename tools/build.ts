/**
 * Compiles `src/` one to one into `dist/`: what the package ships, and what `bin/ndots` runs as long as no source is newer.
 * `npm ci` runs it with `--if-possible`: an install that leaves the compiler out succeeds, since sources run as they are, too.
 */
import { spawnSync } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

process.chdir(fileURLToPath(new URL('..', import.meta.url)));
rmSync('dist', { recursive: true, force: true });
const { status, error } = spawnSync('node_modules/.bin/tsc', ['-p', 'tsconfig.build.json'], {
  stdio: 'inherit',
});
if (status === 0) writeFileSync('dist/.built', '');
else {
  rmSync('dist', { recursive: true, force: true });
  const why = error === undefined ? 'the compiler found errors' : 'TypeScript is not installed';
  if (process.argv.includes('--if-possible'))
    console.error(`dist/ was not built (${why}): bin/ndots runs the sources.`);
  else {
    console.error(`dist/ was not built: ${why}.`);
    process.exitCode = 1;
  }
}
