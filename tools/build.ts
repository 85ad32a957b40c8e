/**
 * Bundles `src/` into `dist/` (`bundle.ts`): what the package ships, and what `bin/ndots` runs as long as no source is newer.
 * `npm ci` runs it with `--if-possible`: an install that leaves the bundler out succeeds, since sources run as they are, too.
 */
import { rmSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

process.chdir(fileURLToPath(new URL('..', import.meta.url)));
rmSync('dist', { recursive: true, force: true });
try {
  const { bundle } = await import('./bundle.ts');
  await bundle();
  writeFileSync('dist/.built', '');
} catch (error) {
  rmSync('dist', { recursive: true, force: true });
  const { code, message } = error as NodeJS.ErrnoException;
  const why = code === 'ERR_MODULE_NOT_FOUND' ? 'the bundler is not installed' : message;
  if (process.argv.includes('--if-possible'))
    console.error(`dist/ was not built (${why}): bin/ndots runs the sources.`);
  else {
    console.error(`dist/ was not built: ${why}`);
    process.exitCode = 1;
  }
}
