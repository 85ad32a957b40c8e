/** The zone files of a folder, as they come, change and go. */
import { readdirSync, realpathSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { whyFailed } from '../../base/why-failed.ts';
import type { Log } from '../../base/log.ts';
import type { ZoneSource } from '../../zone/zone-reloader.ts';
import { zoneOf, type ZoneNaming } from './naming.ts';

/** Folders within each other: more is most likely a link that leads back. */
const DEPTH_MAX = 16;
/** Files in all. */
const FILES_MAX = 100_000;

/**
 * The zone files in a folder and those below it, in the order of their paths. Of two files for one
 * zone the first counts. Links to files are followed, and the folder itself may be one, as mounted
 * ConfigMaps are.
 */
export function zoneFiles(path: string, naming: ZoneNaming, log: Log): readonly ZoneSource[] {
  const found = new Map<string, ZoneSource>();
  let files = 0;
  const walk = (folder: string, depth: number): void => {
    if (depth > DEPTH_MAX) {
      log.warning(`error reading ${folder}: more than ${DEPTH_MAX} folders within each other`);
      return;
    }
    for (const entry of entriesOf(folder, log)) {
      const file = join(folder, entry.name);
      if (entry.isDirectory()) {
        walk(file, depth + 1);
        continue;
      }
      if (++files > FILES_MAX) return;
      const zone = zoneOf(entry.name, naming);
      if (zone === null || !isFile(file)) continue;
      const other = found.get(zone);
      if (other === undefined) found.set(zone, { zone, path: file, byTime: false });
      else
        log.warning(
          `Multiple zone files match origin "${zone}": using "${other.path}" instead of "${file}"`,
        );
    }
  };
  try {
    walk(realpathSync(path), 0);
  } catch {
    // The folder does not exist yet, which was reported at the start.
  }
  return [...found.values()];
}

function entriesOf(folder: string, log: Log): ReturnType<typeof list> {
  try {
    return list(folder);
  } catch (error) {
    log.warning(`error reading ${folder}: ${whyFailed(error)}`);
    return [];
  }
}

function list(folder: string): {
  readonly name: string;
  isDirectory(): boolean;
}[] {
  return readdirSync(folder, { withFileTypes: true }).toSorted((a, b) =>
    a.name < b.name ? -1 : 1,
  );
}

function isFile(path: string): boolean {
  try {
    return statSync(path).isFile();
  } catch {
    return false;
  }
}
