/**
 * The files of the machine in the browser: those of the example cluster, in memory and read-only.
 * It replaces `node:fs` and `node:fs/promises` where the server in memory is bundled for the
 * playground.
 */
import { exampleFiles } from '../example-files.ts';

const CHARACTER_DEVICE = 'character device';
const encoder = new TextEncoder();
const contents: ReadonlyMap<string, Uint8Array> = new Map(
  Object.entries(exampleFiles).map(([path, text]) => [path, encoder.encode(text)]),
);

/** The kind and size of a path. */
class FileStats {
  readonly size: number;
  readonly mtimeMs = 0;
  readonly ctimeMs = 0;
  readonly dev = 1;
  readonly ino: number;
  readonly rdev = 0;
  readonly mode = 0o444;
  readonly #kind: 'file' | 'directory' | typeof CHARACTER_DEVICE;

  constructor(kind: 'file' | 'directory' | typeof CHARACTER_DEVICE, size: number, ino: number) {
    this.#kind = kind;
    this.size = size;
    this.ino = ino;
  }

  isFile(): boolean {
    return this.#kind === 'file';
  }
  isDirectory(): boolean {
    return this.#kind === 'directory';
  }
  isCharacterDevice(): boolean {
    return this.#kind === CHARACTER_DEVICE;
  }
  isFIFO(): boolean {
    return false;
  }
  isSocket(): boolean {
    return false;
  }
  isSymbolicLink(): boolean {
    return false;
  }
}

/** Flags of opening and of rights; numbers as on Linux. */
export const constants = { O_RDONLY: 0, O_NONBLOCK: 0, R_OK: 4, W_OK: 2, X_OK: 1 } as const;

/** The files that are open: contents and the position of the next byte. */
const open_ = new Map<number, { readonly path: string; at: number }>();
let nextHandle = 3;

function failed(code: string, path: string): Error {
  return Object.assign(new Error(`${code}: ${path}`), { code });
}

function isDirectory(path: string): boolean {
  const prefix = path.endsWith('/') ? path : `${path}/`;
  return [...contents.keys()].some((file) => file.startsWith(prefix));
}

/** True for files and directories. */
export function existsSync(path: string): boolean {
  return contents.has(path) || isDirectory(path);
}

/** Returns the kind and size of a path. @throws Error with the code ENOENT */
export function statSync(path: string): FileStats {
  if (path === '/dev/null') return new FileStats(CHARACTER_DEVICE, 0, 0);
  const bytes = contents.get(path);
  const ino = [...contents.keys()].indexOf(path) + 1;
  if (bytes !== undefined) return new FileStats('file', bytes.length, ino);
  if (isDirectory(path)) return new FileStats('directory', 0, 0x1000 + path.length);
  throw failed('ENOENT', path);
}

/** The same of an open file. */
export function fstatSync(handle: number): FileStats {
  return statSync(open_.get(handle)?.path ?? '');
}

/** Opens a file for reading. @throws Error with the code ENOENT or EROFS */
export function openSync(path: string, flags: number | string = 0): number {
  if (flags !== 0 && flags !== 'r') throw failed('EROFS', path);
  if (!existsSync(path)) throw failed('ENOENT', path);
  open_.set(nextHandle, { path, at: 0 });
  return nextHandle++;
}

/** Reads into memory. @returns the number of bytes */
export function readSync(
  handle: number,
  into: Uint8Array,
  offset: number,
  length: number,
  position: number | null,
): number {
  const opened = open_.get(handle);
  const bytes = contents.get(opened?.path ?? '');
  if (opened === undefined || bytes === undefined) throw failed('EBADF', String(handle));
  const from = position ?? opened.at;
  const part = bytes.subarray(from, from + length);
  into.set(part, offset);
  opened.at = from + part.length;
  return part.length;
}

/** Closes a file. */
export function closeSync(handle: number): void {
  open_.delete(handle);
}

/** The bytes of a file, or its text. */
export function readFileSync(path: string, encoding?: string): string | Uint8Array {
  const bytes = contents.get(path);
  if (bytes === undefined) throw failed(isDirectory(path) ? 'EISDIR' : 'ENOENT', path);
  return encoding === undefined ? bytes : new TextDecoder().decode(bytes);
}

/** Names, or entries with their kind. */
export function readdirSync(
  path: string,
  options: { readonly withFileTypes?: boolean } = {},
): unknown[] {
  if (!isDirectory(path)) throw failed(contents.has(path) ? 'ENOTDIR' : 'ENOENT', path);
  const prefix = path.endsWith('/') ? path : `${path}/`;
  const names = new Set(
    [...contents.keys()]
      .filter((file) => file.startsWith(prefix))
      .map((file) => file.slice(prefix.length).split('/')[0]!),
  );
  return [...names].map((name) =>
    options.withFileTypes === true
      ? Object.assign(statSync(prefix + name), { name, parentPath: path })
      : name,
  );
}

/** The path itself: there are no links. */
export function realpathSync(path: string): string {
  statSync(path);
  return path;
}

/** Nothing imports by pattern here: there are no Corefiles beside the pasted one. */
export function globSync(): string[] {
  return [];
}

function readOnly(path: unknown): never {
  throw failed('EROFS', String(path));
}

export {
  readOnly as accessSync,
  readOnly as appendFileSync,
  readOnly as open,
  readOnly as readlinkSync,
  readOnly as rename,
  readOnly as rm,
  readOnly as unlinkSync,
};
