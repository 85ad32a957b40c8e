/**
 * Reads the files under the given paths. These are the named files and, in directories, those that may contain a
 * Corefile or an object.
 */
import { existsSync, readdirSync, realpathSync, statSync } from 'node:fs';
import { dirname, isAbsolute, join, resolve } from 'node:path';
import { isBinary } from '../../server/base/binary-text.ts';
import { whyFailed } from '../../server/base/why-failed.ts';
import { FILE_MAX, readFileBytes, readGivenBytes } from '../../server/base/read-file.ts';
import { cannotLint } from './finding.ts';

export interface GivenFile {
  readonly file: string;
  readonly text: string;
  /** True if the file was named, false if it was found in a directory. */
  readonly named: boolean;
}

/** The files under the given paths. */
export interface GatheredFiles {
  readonly files: readonly GivenFile[];
  /** Files and subdirectories that could not be read, each with a reason. */
  readonly passed: readonly { readonly file: string; readonly why: string }[];
}

/** Limits for a directory, so that a wrong path (`/`) results in a message. */
const FILES_MAX = 5000;
const DEPTH_MAX = 16;
const BYTES_MAX = 128 * 1024 * 1024;

/** Names of files to read in directories. */
const wanted =
  /^Corefile(?:[.-](?!tpl$|md$|ts$|go$|sh$|j2$)[\w-]+)?$|\.(?:corefile|ya?ml|json|override|server)$|^resolv\.conf$/i;

/**
 * Extensions of files that mention or generate Corefiles without being one, such as chart templates, programs and
 * documents.
 */
const madeOf = /\.(tpl|tmpl|gotmpl|j2|md|adoc|rst|html?|go|py|rb|sh|[cm]?[jt]s)$/i;

/**
 * Reads the files under these paths.
 * @throws Problem if any of the paths cannot be read
 */
export function gather(paths: readonly string[]): GatheredFiles {
  const files: GivenFile[] = [];
  const passed: { file: string; why: string }[] = [];
  let bytes = 0;
  const take = (file: string, named: boolean): void => {
    const read = readText(file, named);
    if ('why' in read) {
      if (named) throw unreadable(file, read.why);
      passed.push({ file, why: read.why });
      return;
    }
    bytes += read.text.length;
    if (files.length >= FILES_MAX || bytes > BYTES_MAX) throw tooMany(paths);
    files.push({ file, text: read.text, named });
  };
  for (const path of paths) {
    if (!isDirectory(path)) take(path, true);
    else for (const file of filesIn(path, 0, new Set(), passed)) take(file, false);
  }
  const given = new Set(files.map(({ file }) => resolve(file)));
  for (const file of files.flatMap(resolvConfsOf)) {
    if (!given.has(resolve(file)) && existsSync(file)) take(file, false);
    given.add(resolve(file));
  }
  return { files, passed };
}

/**
 * The resolv.conf files that a Corefile's `forward` refers to, relative to its directory as the server reads them.
 * Skips /etc/resolv.conf, because every machine has one and this may not be the server's.
 */
function resolvConfsOf({ file, text }: GivenFile): readonly string[] {
  const named = [...text.matchAll(/^[ \t]*forward[ \t]+\S+[ \t]+([^\n{#]+)/gm)]
    .flatMap(([, words = '']) => words.trim().split(/\s+/))
    .filter((word) => /^(?:[^:]*\/)?resolv\.conf$/.test(word) && word !== '/etc/resolv.conf');
  const directory = dirname(file);
  return [...new Set(named)].map((word) => (isAbsolute(word) ? word : join(directory, word)));
}

function isDirectory(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch (error) {
    throw unreadable(path, whyFailed(error), error);
  }
}

function filesIn(
  directory: string,
  depth: number,
  above: ReadonlySet<string>,
  passed: { file: string; why: string }[],
): string[] {
  if (depth > DEPTH_MAX) return [];
  let real: string;
  let names: string[];
  try {
    real = realpathSync(directory);
    if (above.has(real)) return [];
    names = readdirSync(directory).toSorted();
  } catch (error) {
    const why = whyFailed(error);
    if (depth === 0) throw unreadable(directory, why, error);
    passed.push({ file: directory, why });
    return [];
  }
  const within = new Set(above).add(real);
  return names.flatMap((name) => {
    if (name.startsWith('.') || name === 'node_modules') return [];
    const path = join(directory, name);
    let stats;
    try {
      stats = statSync(path);
    } catch {
      return [];
    }
    if (stats.isDirectory()) return filesIn(path, depth + 1, within, passed);
    return stats.isFile() && wanted.test(name) && !madeOf.test(name) ? [path] : [];
  });
}

/** The content, or the reason why it is not text. */
function readText(
  file: string,
  named: boolean,
): { readonly text: string } | { readonly why: string } {
  let bytes: Buffer;
  try {
    bytes = (named ? readGivenBytes : readFileBytes)(file, FILE_MAX.manifest);
  } catch (error) {
    return { why: whyFailed(error) };
  }
  const text = bytes.toString('utf8');
  return isBinary(text) ? { why: 'it is binary' } : { text };
}

function unreadable(file: string, why: string, cause?: unknown): Error {
  return cannotLint('lint-unreadable', `cannot read ${file}: ${why}`, {
    remedy: 'Give a Corefile, a YAML file or a directory, or - for standard input.',
    cause,
  });
}

function tooMany(paths: readonly string[]): Error {
  return cannotLint(
    'lint-unreadable',
    `${paths.join(' ')}: more than ${FILES_MAX} files, or more than ${BYTES_MAX >> 20} MiB`,
    { hint: 'This may be the wrong directory.' },
  );
}
