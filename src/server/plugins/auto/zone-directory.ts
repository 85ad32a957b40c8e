/** Finds the zone files in a directory. */
import { readdirSync, realpathSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { isGone } from '../../base/error-code.ts';
import { UnreadPaths } from '../../base/unread-paths.ts';
import { whyFailed } from '../../base/why-failed.ts';
import type { Log } from '../../base/log.ts';
import type { ZoneSource } from '../../zone/zone-reloader.ts';
import { zoneOf, type ZoneNaming } from './naming.ts';

/** Maximum directory depth; anything deeper is probably a circular link. */
const DEPTH_MAX = 16;
/** Maximum total number of files. */
const FILES_MAX = 100_000;

export interface FoundFiles {
  readonly sources: readonly ZoneSource[];
  /** True if a file may still exist, because the file itself or a directory above it could not be read. */
  readonly isHidden: (file: string) => boolean;
}

/**
 * Lists the zone files in a directory and its subdirectories, sorted by path. If two files match the same zone, the
 * first one wins. Symbolic links to files are followed, and the directory itself may be a link, as in mounted
 * ConfigMaps.
 */
export function zoneFiles(path: string, naming: ZoneNaming, log: Log): FoundFiles {
  const found = new Map<string, ZoneSource>();
  let files = 0;
  const unread = new UnreadPaths();
  /** @returns null if the directory does not exist or could not be read */
  const tried = <T>(what: string, read: () => T): T | null => {
    try {
      return read();
    } catch (error) {
      if (isGone(error)) return null;
      unread.add(what, error);
      log.warning(`error reading ${what}: ${whyFailed(error)}; keeping its zones`);
      return null;
    }
  };
  const walk = (directory: string, depth: number): void => {
    if (depth > DEPTH_MAX) {
      log.warning(`error reading ${directory}: more than ${DEPTH_MAX} nested directories`);
      return;
    }
    for (const entry of tried(directory, () => list(directory)) ?? []) {
      const file = join(directory, entry.name);
      if (entry.isDirectory()) {
        walk(file, depth + 1);
        continue;
      }
      if (++files > FILES_MAX) return;
      const zone = zoneOf(entry.name, naming);
      if (zone === null || tried(file, () => statSync(file).isFile()) !== true) continue;
      const other = found.get(zone);
      if (other === undefined) found.set(zone, { zone, path: file, byTime: false });
      else
        log.warning(
          `Multiple zone files match origin "${zone}": using "${other.path}" instead of "${file}"`,
        );
    }
  };
  // A missing directory was reported at startup.
  const real = tried(path, () => realpathSync(path));
  if (real !== null) walk(real, 0);
  if (files > FILES_MAX)
    log.warning(`error reading ${path}: more than ${FILES_MAX} files; ignoring the rest`);
  // Compares real paths; otherwise, every file would count as hidden.
  const isHidden = (file: string): boolean => unread.hides(path) || unread.hides(file);
  return { sources: [...found.values()], isHidden };
}

function list(directory: string): {
  readonly name: string;
  isDirectory(): boolean;
}[] {
  return readdirSync(directory, { withFileTypes: true }).toSorted((a, b) =>
    a.name < b.name ? -1 : 1,
  );
}
