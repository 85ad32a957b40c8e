/** The zone files of a folder, as they come, change and go. */
import { readdirSync, realpathSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { errorCode } from '../../base/error-code.ts';
import { whyFailed } from '../../base/why-failed.ts';
import type { Log } from '../../base/log.ts';
import type { ZoneSource } from '../../zone/zone-reloader.ts';
import { zoneOf, type ZoneNaming } from './naming.ts';

/** Folders within each other: more is most likely a link that leads back. */
const DEPTH_MAX = 16;
/** Files in all. */
const FILES_MAX = 100_000;

/** What a look at a folder has found. */
export interface FoundZones {
  readonly sources: readonly ZoneSource[];
  /** Everything could be looked at: what is not among them is not there. */
  readonly isAll: boolean;
}

/**
 * The zone files in a folder and those below it, in the order of their paths. Of two files for one
 * zone the first counts. Links to files are followed, and the folder itself may be one, as mounted
 * ConfigMaps are.
 */
export function zoneFiles(path: string, naming: ZoneNaming, log: Log): FoundZones {
  const found = new Map<string, ZoneSource>();
  let files = 0;
  let isAll = true;
  const unread = (folder: string, error: unknown): void => {
    // One that is not there holds nothing; at the start that was reported.
    if (errorCode(error) === 'ENOENT') return;
    isAll = false;
    log.warning(`error reading ${folder}: ${whyFailed(error)}`);
  };
  const walk = (folder: string, depth: number): void => {
    if (depth > DEPTH_MAX) {
      log.warning(`error reading ${folder}: more than ${DEPTH_MAX} folders within each other`);
      return;
    }
    let entries: ReturnType<typeof list>;
    try {
      entries = list(folder);
    } catch (error) {
      return unread(folder, error);
    }
    for (const entry of entries) {
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
  } catch (error) {
    unread(path, error);
  }
  if (files > FILES_MAX)
    log.warning(`error reading ${path}: more than ${FILES_MAX} files: the others are left out`);
  return { sources: [...found.values()], isAll };
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
  } catch (error) {
    // Why it cannot be looked at shows when it is read.
    return errorCode(error) !== 'ENOENT';
  }
}
