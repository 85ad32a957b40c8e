/** Opens, decompresses and recognises capture files and pipes. */
import { constants, createReadStream, fstatSync, openSync } from 'node:fs';
import { open, stat, type FileHandle } from 'node:fs/promises';
import { Socket } from 'node:net';
import { pipeline, type Readable } from 'node:stream';
import { createGunzip, createZstdDecompress } from 'node:zlib';
import { errorCode } from '../../../server/base/error-code.ts';
import { Problem } from '../../../server/base/problem.ts';
import type { Remarks } from './packets/remarks.ts';
import { recognised, type Input, type Unpack } from './recognised-input.ts';
import { whyFailed } from '../../../server/base/why-failed.ts';

const CHUNK = 256 * 1024;

/**
 * Opens a file or another named input, waiting for a pipe's writer.
 * @param stopped ends the wait, and stops reading from a pipe
 * @throws Problem
 */
export async function openFile(
  path: string,
  remarks: Remarks,
  stopped?: AbortSignal,
): Promise<Input> {
  const pipe = await pipeAt(path).catch((error: unknown) => unreadable(path, error));
  if (pipe !== null) return openStream(path, pipe, remarks, stopped);
  const handle = await open(path, 'r').catch((error: unknown) => unreadable(path, error));
  const stats = fstatSync(handle.fd);
  if (stats.isDirectory()) {
    await handle.close();
    throw new Problem({
      code: 'capture-unreadable',
      text: `cannot read ${path}: is a directory, not a capture`,
      remedy: 'Give the files in it.',
    });
  }
  if (stats.isFile()) return openRegular(path, handle, stats.size, remarks);
  const stream = createReadStream('', { fd: handle, highWaterMark: CHUNK });
  return openStream(path, stream, remarks, stopped);
}

function unreadable(path: string, error: unknown): never {
  throw new Problem({
    code: 'capture-unreadable',
    text: `cannot read ${path}: ${whyFailed(error)}`,
    cause: error,
  });
}

/**
 * A named pipe, or null for anything else. Opening a pipe that has no writer would block one of the runtime's threads
 * and prevent the program from exiting.
 */
async function pipeAt(path: string): Promise<Readable | null> {
  if (!(await stat(path)).isFIFO()) return null;
  const fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  return new Socket({ fd, readable: true, writable: false });
}

/** Files are read into a single buffer, so each chunk is valid only until the next one is requested. */
async function openRegular(
  name: string,
  handle: FileHandle,
  size: number,
  remarks: Remarks,
): Promise<Input> {
  let taken = 0;
  let closed = false;
  async function* chunks(): AsyncIterable<Uint8Array> {
    const room = new Uint8Array(CHUNK);
    try {
      while (!closed) {
        const { bytesRead } = await handle.read(room, 0, CHUNK, null);
        if (bytesRead === 0) return;
        taken += bytesRead;
        yield room.subarray(0, bytesRead);
      }
    } catch (error) {
      if (!closed) remarks.add(`${name} cannot be read to the end: ${why(error)}`);
    } finally {
      close();
    }
  }
  function close(): void {
    if (!closed) void handle.close();
    closed = true;
  }
  try {
    return {
      name,
      size,
      taken: () => taken,
      close,
      ...(await recognised(chunks(), name, unpacked(name, remarks))),
    };
  } catch (error) {
    close();
    throw error;
  }
}

/** Opens a stream such as standard input. */
export async function openStream(
  name: string,
  stream: Readable,
  remarks: Remarks,
  stopped?: AbortSignal,
): Promise<Input> {
  let taken = 0;
  stream.on('data', (chunk: Buffer) => (taken += chunk.length)).pause();
  // Recognition needs the first bytes, and may have to wait for them.
  const stop = (): void => void stream.destroy();
  if (stopped?.aborted === true) stop();
  stopped?.addEventListener('abort', stop, { once: true });
  return {
    name,
    size: null,
    taken: () => taken,
    close: () => stream.destroy(),
    ...(await recognised(chunksOf(stream, name, remarks), name, unpacked(name, remarks))),
  };
}

/** A stream's chunks, until it ends or fails. */
async function* chunksOf(
  stream: Readable,
  name: string,
  remarks: Remarks,
): AsyncIterable<Uint8Array> {
  try {
    for await (const chunk of stream) yield chunk as Buffer;
  } catch (error) {
    // It was closed because enough had been read.
    if (errorCode(error) === 'ERR_STREAM_PREMATURE_CLOSE') return;
    remarks.add(`${name} cannot be read to the end: ${why(error)}`);
  }
}

function unpacked(name: string, remarks: Remarks): Unpack {
  return (chunks, by) => {
    const unpacker =
      by === 'gzip'
        ? createGunzip({ chunkSize: CHUNK })
        : createZstdDecompress({ chunkSize: CHUNK });
    // Errors surface on the reading side.
    const stream = pipeline(copiesOf(chunks), unpacker, () => undefined);
    return chunksOf(stream as unknown as Readable, `${name} (${by})`, remarks);
  };
}

/** The decompressor holds several chunks at a time. */
async function* copiesOf(chunks: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> {
  for await (const chunk of chunks) yield Buffer.from(chunk);
}

function why(error: unknown): string {
  const { message } = error as Error;
  return message === 'unexpected end of file' ? 'the file is truncated' : whyFailed(error);
}
