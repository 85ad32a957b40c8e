/** Maps stack traces from the bundle back to the sources. */
import { existsSync, readFileSync } from 'node:fs';
import { SourceMap } from 'node:module';
import { dirname, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Source maps by path of the bundled file, or null if a file has none. */
const maps = new Map<string, SourceMap | null>();

/**
 * Returns an error's stack for the log, with source positions. Source maps are read only when needed, because they take
 * 5 MiB.
 */
export function sourceStack(error: Error): string {
  const stack = error.stack ?? error.message;
  return stack.replace(
    /(file:\/\/[^\s()]+?\.js):(\d+):(\d+)/g,
    (place, url: string, line: string, column: string) =>
      sourceOf(url, Number(line), Number(column)) ?? place,
  );
}

/** Returns the source position, e.g. `src/server/transport/udp/udp-batch.ts:12:3`, or null without a map. */
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
    // The error must be reported even if the package has no source maps, or damaged ones.
    try {
      map = existsSync(path) ? new SourceMap(JSON.parse(readFileSync(path, 'utf8'))) : null;
    } catch {
      map = null;
    }
    maps.set(file, map);
  }
  return map;
}
