import { readdirSync, readFileSync, realpathSync, statSync, type Stats } from 'node:fs';
import { join } from 'node:path';
import { Problem } from '../../base/problem.ts';
import { readManifests, type Manifest } from './manifest.ts';

/** Bounds of a folder, so that a wrong path (`/`) ends in a message and not in a full memory. */
const mostFiles = 10_000;
const mostDepth = 16;
const mostFileBytes = 16 * 1024 * 1024;

const endings = /\.(ya?ml|json)$/i;

/**
 * The manifest files under one folder and their contents, by looking again and again: symbolic links are followed
 * with each look, so a swapped `..data` (how a mounted ConfigMap changes) is a change like any other.
 */
export class ManifestFolder {
  readonly #folder: string;
  readonly #files = new Map<string, KnownFile>();

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** All manifests in order of file name: of each file its last good content. */
  get manifests(): Manifest[] {
    return [...this.#files.keys()].sort().flatMap((path) => this.#files.get(path)!.manifests);
  }

  get files(): number {
    return this.#files.size;
  }

  /** Looks once; throws a `Problem` if the folder itself cannot be read. */
  look(): Look {
    const problems: Problem[] = [];
    const found = new Map<string, Stats>();
    this.#walk(this.#folder, 0, new Set(), found, problems);
    const changed: string[] = [];
    for (const path of this.#files.keys()) {
      if (found.has(path)) continue;
      this.#files.delete(path);
      changed.push(path);
    }
    for (const [path, stats] of found) {
      const mark = [stats.ino, stats.size, stats.mtimeMs, stats.ctimeMs].join(' ');
      const known = this.#files.get(path);
      if (known?.mark === mark) continue;
      changed.push(path);
      this.#read(path, stats, mark, known, problems);
    }
    return { changed, problems };
  }

  #read(
    path: string,
    stats: Stats,
    mark: string,
    known: KnownFile | undefined,
    problems: Problem[],
  ): void {
    const keep = (manifests: readonly Manifest[], good: boolean): void => {
      this.#files.set(path, { mark, manifests, good });
    };
    let content: string;
    try {
      if (stats.size > mostFileBytes) {
        throw new Error(`it is larger than ${mostFileBytes / 1024 / 1024} MiB`);
      }
      content = readFileSync(path, 'utf8');
    } catch (error) {
      problems.push(unreadable(path, error));
      keep(known?.manifests ?? [], known?.good ?? false);
      return;
    }
    const read = readManifests(content, path);
    if (read.problems.length === 0) {
      keep(read.manifests, true);
      return;
    }
    for (const problem of read.problems) problems.push(withFate(problem, known?.good === true));
    // A file that was good once stays as it was then; of a new one the good parts count.
    if (known?.good === true) keep(known.manifests, true);
    else keep(read.manifests, false);
  }

  #walk(
    folder: string,
    depth: number,
    above: ReadonlySet<string>,
    found: Map<string, Stats>,
    problems: Problem[],
  ): void {
    let names: string[];
    let real: string;
    try {
      names = readdirSync(folder).sort();
      real = realpathSync(folder);
    } catch (error) {
      if (depth === 0) throw unreadable(folder, error);
      // Gone between two looks: the next one will tell.
      if (!isMissing(error)) problems.push(unreadable(folder, error));
      return;
    }
    if (above.has(real) || depth > mostDepth) return;
    const within = new Set(above).add(real);
    for (const name of names) {
      // Also leaves out `..data` and its like, which hold the same files once more.
      if (name.startsWith('.')) continue;
      const path = join(folder, name);
      let stats: Stats;
      try {
        stats = statSync(path);
      } catch (error) {
        if (endings.test(name) && !isMissing(error)) problems.push(unreadable(path, error));
        continue;
      }
      if (stats.isDirectory()) {
        this.#walk(path, depth + 1, within, found, problems);
      } else if (stats.isFile() && endings.test(name)) {
        if (found.size >= mostFiles) {
          throw new Problem({
            code: 'folder-too-large',
            text: `${this.#folder} holds more than ${mostFiles} manifest files`,
            hint: 'is this the folder that was meant?',
          });
        }
        found.set(path, stats);
      }
    }
  }
}

export interface Look {
  /** Files that came, went or changed since the last look. */
  readonly changed: readonly string[];
  readonly problems: readonly Problem[];
}

interface KnownFile {
  readonly mark: string;
  readonly manifests: readonly Manifest[];
  /** The manifests are the whole of some version of the file. */
  readonly good: boolean;
}

function unreadable(path: string, error: unknown): Problem {
  return new Problem({
    code: 'unreadable-manifests',
    text: `cannot read ${path}: ${(error as Error).message}`,
    remedy: isMissing(error)
      ? 'create it, or name another folder'
      : 'give the user that runs ndots the right to read it',
    cause: error,
  });
}

function isMissing(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException;
  return code === 'ENOENT' || code === 'ENOTDIR';
}

function withFate(problem: Problem, kept: boolean): Problem {
  return new Problem({
    code: problem.code,
    text: problem.message,
    place: problem.place ?? undefined,
    hint: problem.hint ?? undefined,
    remedy:
      [
        problem.remedy,
        kept ? 'until then the file counts as it was before' : 'until then this object is left out',
      ]
        .filter((part) => part !== null)
        .join('; ') || undefined,
  });
}
