/** The page's files, either bundled or, if there is no build, from the sources. */
import { existsSync, readdirSync } from 'node:fs';
import { extname, join } from 'node:path';
import { Problem } from '../../../server/base/problem.ts';

export interface ConsoleAsset {
  readonly type: string;
  readonly path: string;
}

/** By file name: `console.js`. */
export type ConsoleAssets = ReadonlyMap<string, ConsoleAsset>;

const types: Readonly<Record<string, string>> = {
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.svg': 'image/svg+xml',
};

/** @throws Problem if the page has not been built */
export function findConsoleAssets(directory: string): ConsoleAssets {
  if (!existsSync(join(directory, 'console.js')))
    throw new Problem({
      code: 'no-page',
      text: `the console page is missing: ${join(directory, 'console.js')}`,
      hint: 'This checkout has no built dist/.',
      remedy: 'npm ci, or npm run build',
    });
  const assets = new Map<string, ConsoleAsset>();
  for (const name of readdirSync(directory)) {
    const type = types[extname(name)];
    if (type !== undefined) assets.set(name, { type, path: join(directory, name) });
  }
  return assets;
}
