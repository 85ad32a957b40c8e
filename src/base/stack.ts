/** Stacks of errors with places in the sources rather than in the bundle. */
import { existsSync, readFileSync } from 'node:fs';
import { SourceMap } from 'node:module';
import { dirname, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Maps of bundled files by path; null: there is none. */
const maps = new Map<string, SourceMap | null>();

/**
 * Where a bug happened, for the log: the error's stack, with the places of the sources in place of those in the files that they
 * were bundled into. Their maps are read now, not at the start, where they would cost every server 5 MiB.
 */
export function sourceStack(error: Error): string {
  const stack = error.stack ?? error.message;
  return stack.replace(
    /(file:\/\/[^\s()]+?\.js):(\d+):(\d+)/g,
    (place, url: string, line: string, column: string) =>
      sourceOf(url, Number(line), Number(column)) ?? place,
  );
}

/** `src/net/udp-batch.ts:12:3`; null without a map. */
function sourceOf(url: string, line: number, column: number): string | null {
  const file = fileURLToPath(url);
  const found = mapOf(file)?.findEntry(line - 1, column - 1);
  if (found === undefined || !('originalSource' in found)) return null;
  const source = resolve(dirname(file), found.originalSource);
  return `${source}:${found.originalLine + 1}:${found.originalColumn + 1}`;
}

function mapOf(file: string): SourceMap | null {
  let map = maps.get(file);
  if (map === undefined) {
    const path = `${file}.map`;
    // A package without its maps, or with damaged ones, must not lose the error over it.
    try {
      map = existsSync(path) ? new SourceMap(JSON.parse(readFileSync(path, 'utf8'))) : null;
    } catch {
      map = null;
    }
    maps.set(file, map);
  }
  return map;
}
