/**
 * Builds the documentation site into `site/`, which any static host can serve: `npm run docs [-- --base /PATH/]`.
 *
 * The generator has its own lockfile in `tools/site` and is installed to `.site` on the first run, which keeps `npm ci`
 * small. The site includes the playground at `playground/`. A dead link between pages fails the build. `SOURCE_URL` is
 * the base address for links to sources.
 */
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { buildPlayground } from './browser-bundle.ts';

/** The directory with the generator and its packages, which git ignores. */
const PLACE = '.site';

const { values } = parseArgs({ options: { base: { type: 'string', default: '/' } } });
if (!/^\/(?:[\w./-]*\/)?$/.test(values.base)) {
  console.error(`--base ${values.base} has to begin and end with a slash, for example /ndots/`);
  process.exit(3);
}

function must(program: string, words: readonly string[]): void {
  const { status } = spawnSync(program, words, {
    cwd: PLACE,
    stdio: 'inherit',
    env: { ...process.env, SITE_BASE: values.base, SITE_HOME: process.cwd() },
  });
  if (status !== 0) process.exit(status ?? 1);
}

cpSync('tools/site', PLACE, { recursive: true });
if (!existsSync(`${PLACE}/node_modules/vitepress`)) must('npm', ['ci']);
must('npx', ['vitepress', 'build', '.']);
await buildPlayground('site/playground');
console.log('The site is in site/: serve that directory.');
