/**
 * The browser machine's file system, which holds the example cluster's files in memory and is read-only. Replaces
 * `node:fs` and `node:fs/promises` when the in-memory server is bundled for the playground.
 */
import { exampleFiles } from '../example-files.ts';

const CHARACTER_DEVICE = 'character device';
const encoder = new TextEncoder();
const contents: ReadonlyMap<string, Uint8Array> = new Map(
  Object.entries(exampleFiles).map(([path, text]) => [path, encoder.encode(text)]),
);

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
}

/** Flags for opening and access, with the same values as on Linux. */
export const constants = { O_RDONLY: 0, O_NONBLOCK: 0, R_OK: 4, W_OK: 2, X_OK: 1 } as const;

/** Open files, each with the position for the next read. */
const open_ = new Map<number, { readonly path: string; at: number }>();
let nextHandle = 3;

function failed(code: string, path: string): Error {
  return Object.assign(new Error(`${code}: ${path}`), { code });
}

function isDirectory(path: string): boolean {
  const prefix = path.endsWith('/') ? path : `${path}/`;
  return [...contents.keys()].some((file) => file.startsWith(prefix));
}

export function existsSync(path: string): boolean {
  return contents.has(path) || isDirectory(path);
}

/** @throws Error with the code ENOENT */
export function statSync(path: string): FileStats {
  if (path === '/dev/null') return new FileStats(CHARACTER_DEVICE, 0, 0);
  const bytes = contents.get(path);
  const ino = [...contents.keys()].indexOf(path) + 1;
  if (bytes !== undefined) return new FileStats('file', bytes.length, ino);
  if (isDirectory(path)) return new FileStats('directory', 0, 0x1000 + path.length);
  throw failed('ENOENT', path);
}

export function fstatSync(handle: number): FileStats {
  return statSync(open_.get(handle)?.path ?? '');
}

/** @throws Error with the code ENOENT or EROFS */
export function openSync(path: string, flags: number | string = 0): number {
  if (flags !== 0 && flags !== 'r') throw failed('EROFS', path);
  if (!existsSync(path)) throw failed('ENOENT', path);
  open_.set(nextHandle, { path, at: 0 });
  return nextHandle++;
}

/** @returns the number of bytes */
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

export function closeSync(handle: number): void {
  open_.delete(handle);
}

/** Returns a file's contents as bytes, or as text if an encoding is given. */
export function readFileSync(path: string, encoding?: string): string | Uint8Array {
  const bytes = contents.get(path);
  if (bytes === undefined) throw failed(isDirectory(path) ? 'EISDIR' : 'ENOENT', path);
  return encoding === undefined ? bytes : new TextDecoder().decode(bytes);
}

/** Returns names, or entries with their types. */
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

/** Returns the path unchanged because there are no links. */
export function realpathSync(path: string): string {
  statSync(path);
  return path;
}

/** Finds nothing, because the pasted Corefile is the only file and import patterns match no others. */
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
