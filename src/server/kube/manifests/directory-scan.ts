/** Finds the files in a manifest directory, and what has changed since the last scan. */
import { readdirSync, realpathSync, statSync, type Stats } from 'node:fs';
import { join } from 'node:path';
import { errorCode, isGone } from '../../base/error-code.ts';
import { UnreadPaths } from '../../base/unread-paths.ts';
import { whyFailed } from '../../base/why-failed.ts';
import type { Maybe } from '../../base/maybe.ts';
import { printBytes } from '../../base/limits.ts';
import { Problem } from '../../base/problem.ts';
import { FILE_MAX, readFileText } from '../../base/read-file.ts';
import { manifestMemoryRemedy, readManifests, type ManifestFile } from './manifest-file.ts';
import type { Manifest } from './manifest.ts';
import { readInThread } from './read-thread.ts';

/**
 * Maximum number of files in a directory, so that a wrong path (`/`) leads to an error instead of exhausting memory.
 */
const FILES_MAX = 10_000;
/** Maximum nesting of directories, for the same reason. */
const DEPTH_MAX = 16;
/** Maximum total size in bytes of all files that changed between two scans. */
const BYTES_MAX = 64 * 1024 * 1024;
/**
 * Up to this size, files are read immediately, which takes a few dozen milliseconds at most. Larger ones are read in a
 * separate thread.
 */
const BYTES_AT_ONCE_MAX = 64 * 1024;

/** Memory limit in bytes for commands that scan once and exit. */
const MEMORY_OF_A_RUN = 512 * 1024 * 1024;

const endings = /\.(ya?ml|json)$/i;

/**
 * The manifest files in a directory (or a single file) and their contents, found by polling. Symbolic links are
 * followed on each scan. When a mounted ConfigMap changes by swapping `..data`, this is therefore an ordinary change.
 */
export class ManifestDirectory {
  readonly #directory: string;
  readonly #memory: number;
  readonly #files = new Map<string, KnownFile>();
  #bytes = 0;

  /** @param memory maximum number of bytes for reading one object, and for all objects together */
  constructor(directory: string, memory: number = MEMORY_OF_A_RUN) {
    this.#directory = directory;
    this.#memory = memory;
  }

  /** All manifests in order of file name. For each file, this is its last good content. */
  get manifests(): Manifest[] {
    return [...this.#files.keys()].sort().flatMap((path) => this.#files.get(path)!.manifests);
  }

  get files(): number {
    return this.#files.size;
  }

  /** Estimated memory of the objects, in bytes. */
  get bytes(): number {
    return this.#bytes;
  }

  /** @throws Problem if the directory itself cannot be read */
  check(): void {
    this.#walk(this.#directory, 0, new Set(), new Seen());
  }

  /**
   * Scans once. If much has changed, returns a promise and reads without blocking this thread. The next scan must wait
   * for that promise.
   * @throws Problem if the directory itself cannot be read
   */
  look(): Maybe<Look> {
    const problems: Problem[] = [];
    const seen = new Seen();
    this.#walk(this.#directory, 0, new Set(), seen);
    const { found } = seen;
    for (const [path, error] of seen.unread.errors) problems.push(unreadable(path, error));
    const changed: string[] = [];
    for (const [path, { bytes }] of this.#files) {
      // Unreadable files keep their last content.
      if (found.has(path) || seen.unread.hides(path)) continue;
      this.#files.delete(path);
      this.#bytes -= bytes;
      changed.push(path);
    }
    const paths: string[] = [];
    let size = 0;
    for (const [path, stats] of found) {
      const mark = [stats.ino, stats.size, stats.mtimeMs, stats.ctimeMs].join(' ');
      const known = this.#files.get(path);
      if (known?.mark === mark) continue;
      changed.push(path);
      this.#files.set(path, {
        mark,
        manifests: known?.manifests ?? [],
        bytes: known?.bytes ?? 0,
        good: known?.good ?? false,
      });
      // Files rejected for their size are not read.
      if (stats.size <= FILE_MAX.manifest) size += stats.size;
      if (size > BYTES_MAX) problems.push(unreadable(path, tooMuch()));
      else paths.push(path);
    }
    const take = (path: string, read: ManifestFile | Error): void =>
      this.#take(path, read, problems);
    const isSmall = (path: string): boolean => found.get(path)!.size > 0 || holdsNothing(path);
    if (size <= BYTES_AT_ONCE_MAX && paths.every(isSmall)) {
      for (const path of paths) take(path, readFile(path, this.#memory));
      return { changed, problems };
    }
    return readInThread(paths, this.#memory, take).then(() => ({ changed, problems }));
  }

  /**
   * Stores the result of reading a file. A file with errors keeps its last good content. If a new file has errors, its
   * good parts are used.
   */
  #take(path: string, read: ManifestFile | Error, problems: Problem[]): void {
    const known = this.#files.get(path)!;
    if (read instanceof Error) return void problems.push(unreadable(path, read));
    const found = [...read.problems];
    const bytes = this.#bytes - known.bytes + read.bytes;
    if (bytes > this.#memory) found.push(tooManyObjects(this.#directory, this.#memory));
    const good = found.length === 0;
    for (const problem of found) problems.push(withFate(problem, known.good));
    if (bytes <= this.#memory && (good || !known.good)) {
      const { manifests } = read;
      this.#files.set(path, { mark: known.mark, manifests, bytes: read.bytes, good });
      this.#bytes = bytes;
    }
  }

  #walk(directory: string, depth: number, above: ReadonlySet<string>, seen: Seen): void {
    const { found, unread } = seen;
    let names: string[];
    let real: string;
    try {
      const stats = depth === 0 ? statSync(directory) : null;
      if (stats?.isFile() === true) {
        found.set(directory, stats);
        return;
      }
      if (stats?.isDirectory() === false) throw neither(directory);
      names = readdirSync(directory).sort();
      real = realpathSync(directory);
    } catch (error) {
      if (error instanceof Problem) throw error;
      if (depth === 0) throw unreadable(directory, error);
      // The file was removed during this scan, which the next scan will report.
      if (!isGone(error)) unread.add(directory, error);
      return;
    }
    if (above.has(real) || depth > DEPTH_MAX) return;
    const within = new Set(above).add(real);
    for (const name of names) {
      // This also skips `..data` and similar entries, which contain the same files again.
      if (name.startsWith('.')) continue;
      const path = join(directory, name);
      let stats: Stats;
      try {
        stats = statSync(path);
      } catch (error) {
        if (endings.test(name) && !isGone(error)) unread.add(path, error);
        continue;
      }
      if (stats.isDirectory()) {
        this.#walk(path, depth + 1, within, seen);
      } else if (stats.isFile() && endings.test(name)) {
        if (found.size >= FILES_MAX) {
          throw new Problem({
            code: 'folder-too-large',
            text: `${this.#directory} contains more than ${FILES_MAX} manifest files`,
            hint: 'check that this is the intended directory',
          });
        }
        found.set(path, stats);
      }
    }
  }
}

/** The findings of one scan. */
class Seen {
  /** Files of manifests. */
  readonly found = new Map<string, Stats>();
  /** Files and directories that exist but cannot be examined. */
  readonly unread = new UnreadPaths();
}

/** The result of scanning a directory. */
export interface Look {
  /** Files that were added, removed or changed since the last scan. */
  readonly changed: readonly string[];
  readonly problems: readonly Problem[];
}

interface KnownFile {
  readonly mark: string;
  readonly manifests: readonly Manifest[];
  /** Estimated memory in bytes. */
  readonly bytes: number;
  /** True if the manifests are a complete version of the file. */
  readonly good: boolean;
}

/** Files under /proc and /sys report a size of 0 until they are read, so they are read in the separate thread. */
function holdsNothing(path: string): boolean {
  try {
    return readFileText(path, 0) === '';
  } catch {
    return false;
  }
}

function readFile(path: string, memory: number): ManifestFile | Error {
  let text: string;
  try {
    text = readFileText(path, FILE_MAX.manifest);
  } catch (error) {
    return error as Error;
  }
  return readManifests(text, path, memory);
}

function tooManyObjects(directory: string, memory: number): Problem {
  return new Problem({
    code: 'manifest-too-large',
    text: `the objects in ${directory} need more than ${printBytes(memory)} of memory`,
    remedy: manifestMemoryRemedy,
  });
}

function unreadable(path: string, error: unknown): Problem {
  return new Problem({
    code: 'unreadable-manifests',
    text: `cannot read ${path}: ${whyFailed(error)}`,
    remedy: unreadableRemedy(error),
    cause: error,
  });
}

/** Reports a path such as a pipe, which cannot be scanned a second time. */
function neither(path: string): Problem {
  return new Problem({
    code: 'unreadable-manifests',
    text: `${path} is neither a file nor a directory`,
    remedy: 'write its data to a file, and use that',
  });
}

function unreadableRemedy(error: unknown): string {
  if (isGone(error)) return 'create it, or specify another directory';
  return errorCode(error) === 'EFBIG'
    ? 'split it, or remove what is not needed'
    : 'give the user that runs ndots permission to read it';
}

function tooMuch(): Error {
  const text = `the changed files exceed ${BYTES_MAX / (1024 * 1024)} MiB in total`;
  return Object.assign(new Error(text), { code: 'EFBIG' });
}

function withFate(problem: Problem, kept: boolean): Problem {
  const fate = kept
    ? 'until then the previous version of the file is used'
    : `until then this ${problem.code === 'yaml-binary' ? 'file' : 'object'} is ignored`;
  return problem.with({ remedy: problem.remedy === null ? fate : `${problem.remedy}; ${fate}` });
}
