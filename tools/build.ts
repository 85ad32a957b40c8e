/**
 * Bundles `src/` into `dist/` (`bundle.ts`), which is the content of the package. `bin/ndots` runs it unless a source
 * file is newer. `--server DIRECTORY` builds only the server, for its image. `npm ci` runs this with `--if-possible`.
 * Installing without the bundler succeeds, because the sources also run unbundled.
 */
import { rmSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

process.chdir(fileURLToPath(new URL('..', import.meta.url)));
const at = process.argv.indexOf('--server');
const directory = at < 0 ? 'dist' : process.argv[at + 1];
if (directory === undefined) throw new Error('--server takes a directory');
rmSync(directory, { recursive: true, force: true });
try {
  const { bundle } = await import('./bundle.ts');
  await bundle(directory, at >= 0);
  if (at < 0) {
    const { buildConsole } = await import('./browser-bundle.ts');
    await buildConsole(`${directory}/console`);
  }
  writeFileSync(`${directory}/.built`, '');
} catch (error) {
  rmSync(directory, { recursive: true, force: true });
  const { code, message } = error as NodeJS.ErrnoException;
  const why = code === 'ERR_MODULE_NOT_FOUND' ? 'the bundler is not installed' : message;
  if (process.argv.includes('--if-possible'))
    console.error(`dist/ was not built (${why}): bin/ndots runs the sources.`);
  else {
    console.error(`dist/ was not built: ${why}`);
    process.exitCode = 1;
  }
}
