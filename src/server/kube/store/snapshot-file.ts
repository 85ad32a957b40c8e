import { builtins } from '../../base/builtins.ts';
import { errorCode } from '../../base/error-code.ts';
import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs';
import { open, rename, rm } from 'node:fs/promises';
import { JsonLineReader } from './json-stream.ts';

/**
 * A source's state on disk, for restarts while the API server is down. It has one JSON document per line: a head, the
 * objects, and a tail with a checksum over everything before it. It is written to a temporary file that then replaces
 * the old one.
 */
export interface SnapshotHead {
  readonly format: 'ndots-snapshot-2';
  /** Milliseconds since 1970. */
  readonly writtenAt: number;
  /** The API server it came from, `host:port`. */
  readonly server: string;
  /** The source's resources as JSON, and the key of their reduction. A file written for others is not used. */
  readonly wanted: string;
  /** Addresses of the API servers. */
  readonly servers: readonly { readonly host: string; readonly port: number }[];
}

interface SnapshotTail {
  readonly objects: number;
  readonly sha256: string;
}

/** Number of bytes written or read at a time. */
const PIECE_BYTES = 256 * 1024;
/** More bytes than any tail has. */
const TAIL_BYTES = 512;

/** Writes the file. `objects` is read piece by piece, with other work in between. Rejects with the system's error. */
export async function writeSnapshot(
  file: string,
  head: SnapshotHead,
  objects: Iterable<object>,
): Promise<void> {
  const draft = `${file}.${process.pid}.tmp`;
  const hash = builtins.crypto().createHash('sha256');
  // The endpoints in a cluster are confidential, so only the owner may read the file.
  const handle = await open(draft, 'w', 0o600);
  try {
    let piece = `${JSON.stringify(head)}\n`;
    let count = 0;
    const flush = async (): Promise<void> => {
      hash.update(piece);
      await handle.writeFile(piece);
      piece = '';
    };
    for (const object of objects) {
      piece += `${JSON.stringify(object)}\n`;
      count++;
      if (piece.length >= PIECE_BYTES) await flush();
    }
    await flush();
    const tail: SnapshotTail = { objects: count, sha256: hash.digest('hex') };
    await handle.writeFile(`${JSON.stringify(tail)}\n`);
    await handle.sync();
    await handle.close();
    await rename(draft, file);
  } catch (error) {
    await handle.close().catch(() => {});
    await rm(draft, { force: true });
    throw error;
  }
}

/**
 * Checks the whole file, then returns its head and objects. Returns null if there is no file, and throws an `Error`
 * that describes the fault if it is invalid.
 */
export function readSnapshot(
  file: string,
  head: (head: SnapshotHead) => boolean,
  object: (object: object) => void,
): { readonly objects: number } | null {
  let handle: number;
  try {
    // O_NONBLOCK is needed because opening a named pipe would otherwise block until a program writes to it.
    handle = openSync(file, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return null;
    throw error;
  }
  try {
    const { end, tail } = readTail(handle);
    const hash = builtins.crypto().createHash('sha256');
    eachPiece(handle, end, (piece) => hash.update(piece));
    if (hash.digest('hex') !== tail.sha256) throw new Error('its checksum is wrong');
    let first = true;
    let wanted = true;
    let count = 0;
    const lines = new JsonLineReader((line) => {
      if (first) {
        first = false;
        const found = line as SnapshotHead;
        if (found.format !== 'ndots-snapshot-2') throw new Error('it has a different format');
        wanted = head(found);
      } else if (wanted) {
        count++;
        object(line as object);
      }
    });
    eachPiece(handle, end, (piece) => lines.push(piece));
    return wanted ? { objects: count } : null;
  } finally {
    closeSync(handle);
  }
}

function readTail(handle: number): { end: number; tail: SnapshotTail } {
  const stats = fstatSync(handle);
  if (!stats.isFile()) throw new Error('it is not a regular file');
  const { size } = stats;
  const start = Math.max(0, size - TAIL_BYTES);
  const bytes = Buffer.alloc(size - start);
  readSync(handle, bytes, 0, bytes.length, start);
  const newline = bytes.lastIndexOf(0x0a, bytes.length - 2);
  try {
    const tail = JSON.parse(bytes.toString('utf8', newline + 1)) as SnapshotTail;
    if (newline >= 0 && typeof tail.sha256 === 'string') return { end: start + newline + 1, tail };
  } catch {
    // All these errors lead to the same message, which is given below.
  }
  throw new Error('it is cut off');
}

function eachPiece(handle: number, end: number, take: (piece: Buffer) => void): void {
  const buffer = Buffer.allocUnsafeSlow(PIECE_BYTES);
  for (let at = 0; at < end;) {
    const length = readSync(handle, buffer, 0, Math.min(buffer.length, end - at), at);
    if (length === 0) throw new Error('it is cut off');
    take(buffer.subarray(0, length));
    at += length;
  }
}
