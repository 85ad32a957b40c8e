/** Reads regular files and standard input up to a size limit, either at once or line by line. */
import { closeSync, constants, fstatSync, openSync, readSync, statSync, type Stats } from 'node:fs';
import { devNull } from 'node:os';
import { printBytes } from './limits.ts';

/**
 * Maximum file size in bytes, by use. A larger file means that the path is wrong or that someone is trying to exhaust
 * memory.
 */
export const FILE_MAX: Readonly<
  Record<'corefile' | 'manifest' | 'hosts' | 'database' | 'small', number>
> = {
  /** A Corefile with its imports. This is enough for five thousand server blocks. */
  corefile: 1024 * 1024,
  /** A manifest file. This is enough for `kubectl get -A -o yaml` in a large cluster. */
  manifest: 16 * 1024 * 1024,
  hosts: 32 * 1024 * 1024,
  /** A MaxMind database. The largest commercial ones have about 500 MiB. */
  database: 1024 * 1024 * 1024,
  /** resolv.conf, kubeconfig, weights, certificates, keys and tokens. */
  small: 1024 * 1024,
};

/**
 * Reads a complete regular file. Anything else is refused: opening a named pipe would block the thread until there is a
 * writer, and a device may never end. Links are followed, and the null device counts as an empty file.
 * @param maxBytes the limit, which also applies to a file that grows during the read
 * @param allocate provides the memory for the contents
 * @throws Error with the system code, or `EISDIR`, `ENOTREG` (not a regular file) or `EFBIG` (too large)
 */
export function readFileBytes(
  path: string,
  maxBytes: number,
  allocate: (size: number) => Buffer = Buffer.allocUnsafe,
): Buffer {
  const { handle, size } = openRegular(path, maxBytes);
  try {
    return readToEnd(handle, size, maxBytes, allocate);
  } finally {
    closeSync(handle);
  }
}

/**
 * Reads a complete regular file as UTF-8.
 * @throws as `readFileBytes`
 */
export function readFileText(path: string, maxBytes: number): string {
  return readFileBytes(path, maxBytes).toString('utf8');
}

/**
 * Reads a file named on the command line. Pipes are accepted because the shell's `<(kubectl get …)` is one. The thread
 * blocks until the writer is done.
 * @throws as `readFileBytes`
 */
export function readGivenBytes(path: string, maxBytes: number): Buffer {
  if (!statSync(path).isFIFO()) return readFileBytes(path, maxBytes);
  const handle = openSync(path, constants.O_RDONLY);
  try {
    return readToEnd(handle, 0, maxBytes, Buffer.allocUnsafe);
  } finally {
    closeSync(handle);
  }
}

/**
 * Reads all of standard input as UTF-8. The thread blocks until the writer is done.
 * @throws Error with the system code, or `EFBIG`
 */
export function readStandardInput(maxBytes: number): string {
  return readToEnd(0, 0, maxBytes, Buffer.allocUnsafe).toString('utf8');
}

/** @param size the reported size, which is 0 for pipes and for files under /proc and /sys */
function readToEnd(
  handle: number,
  size: number,
  maxBytes: number,
  allocate: (size: number) => Buffer,
): Buffer {
  let bytes = allocate(size > 0 ? size + 1 : 4096);
  let length = 0;
  for (;;) {
    const count = readSync(handle, bytes, length, bytes.length - length, null);
    if (count === 0) return bytes.subarray(0, length);
    length += count;
    if (length > maxBytes) throw tooLarge(maxBytes);
    if (length < bytes.length) continue;
    const wider = allocate(Math.min(2 * bytes.length, maxBytes + 1));
    bytes.copy(wider);
    bytes = wider;
  }
}

/**
 * Reads a regular file line by line, as UTF-8 and without line endings. Only one chunk and one line are in memory at a
 * time.
 * @param maxBytes maximum file size
 * @throws as `readFileBytes`. If the file grows beyond the limit during the read, the lines before the limit are
 * returned first
 */
export function* readFileLines(path: string, maxBytes: number): Generator<string> {
  const { handle } = openRegular(path, maxBytes);
  try {
    const slice = Buffer.allocUnsafe(SLICE_BYTES);
    /** The beginning of a line that ends in a later chunk. */
    let begun: Buffer[] = [];
    let length = 0;
    for (;;) {
      const count = readSync(handle, slice, 0, slice.length, null);
      if (count === 0) break;
      length += count;
      if (length > maxBytes) throw tooLarge(maxBytes);
      const read = slice.subarray(0, count);
      let from = 0;
      for (let end; (end = read.indexOf(LINE_FEED, from)) >= 0; from = end + 1) {
        if (begun.length === 0) yield read.toString('utf8', from, end);
        else {
          yield Buffer.concat([...begun, read.subarray(from, end)]).toString('utf8');
          begun = [];
        }
      }
      if (from < count) begun.push(Buffer.from(read.subarray(from)));
    }
    if (begun.length > 0) yield Buffer.concat(begun).toString('utf8');
  } finally {
    closeSync(handle);
  }
}

const SLICE_BYTES = 64 * 1024;
const LINE_FEED = 0x0a;

/** Opens a regular file of at most `maxBytes`. */
function openRegular(
  path: string,
  maxBytes: number,
): { readonly handle: number; readonly size: number } {
  // Without O_NONBLOCK, opening a named pipe would wait for a writer.
  const handle = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const stats = fstatSync(handle);
    const kind = kindOf(stats);
    if (kind !== 'file') {
      throw failed(kind === 'directory' ? 'EISDIR' : 'ENOTREG', `is a ${kind}, not a file`);
    }
    if (stats.size > maxBytes) throw tooLarge(maxBytes);
    return { handle, size: stats.size };
  } catch (error) {
    closeSync(handle);
    throw error;
  }
}

function kindOf(stats: Stats): string {
  if (stats.isFile() || isNull(stats)) return 'file';
  if (stats.isDirectory()) return 'directory';
  if (stats.isFIFO()) return 'named pipe';
  return stats.isSocket() ? 'socket' : 'device';
}

/** Returns true for the null device, which counts as an empty file. */
function isNull(stats: Stats): boolean {
  return stats.isCharacterDevice() && stats.rdev === statSync(devNull).rdev;
}

function tooLarge(maxBytes: number): Error {
  return failed('EFBIG', `is larger than ${printBytes(maxBytes)}`);
}

function failed(code: string, message: string): Error {
  return Object.assign(new Error(message), { code });
}
