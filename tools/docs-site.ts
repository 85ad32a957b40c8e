/**
 * Builds the documentation site into `site/`: `npm run docs [-- --base /PATH/]`. Any static host can serve that directory.
 *
 * The generator has a lockfile of its own in `tools/site`, and is installed into `.site` on the first run, so that `npm ci`
 * stays small. The playground is part of the site, at `playground/`. A link between pages that leads nowhere fails the build. `SOURCE_URL` is the address of the sources, for links
 * to them.
 */
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { buildPlayground } from './browser-bundle.ts';

/** The directory of the generator and its packages; git ignores it. */
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
