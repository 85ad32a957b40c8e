/** Files and pipes of captures: opened, decompressed, and told apart by what they begin with. */
import { createReadStream, fstatSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { pipeline, type Readable } from 'node:stream';
import { createGunzip, createZstdDecompress } from 'node:zlib';
import { errorCode } from '../base/error-code.ts';
import { Problem } from '../base/problem.ts';
import { isPcap } from './packets/pcap.ts';
import { isPcapng } from './packets/pcapng.ts';
import type { Remarks } from './packets/remarks.ts';
import { whyFailed } from '../base/why-failed.ts';

/** What an input is. */
export type Format = 'pcap' | 'pcapng' | 'dnstap' | 'text' | 'empty';

/** An input that has been opened. */
export interface Input {
  readonly name: string;
  readonly format: Format;
  /** Bytes of the file as it lies there; null of a pipe. */
  readonly size: number | null;
  /** The bytes, decompressed, in pieces. A damaged end is remarked upon, and what came before it is given. */
  readonly chunks: AsyncIterable<Uint8Array>;
  /** Bytes of the file that have been taken. */
  taken(): number;
  close(): void;
}

/** Bytes that are read at a time. */
const CHUNK = 256 * 1024;
/** So many bytes tell a format. */
const FIRST = 16;

/** Opens a file. @throws Problem */
export async function openFile(path: string, remarks: Remarks): Promise<Input> {
  const handle = await open(path, 'r').catch((error: unknown) => {
    throw new Problem({
      code: 'capture-unreadable',
      text: `cannot read ${path}: ${whyFailed(error)}`,
      cause: error,
    });
  });
  const stats = fstatSync(handle.fd);
  if (stats.isDirectory()) {
    await handle.close();
    throw new Problem({
      code: 'capture-unreadable',
      text: `cannot read ${path}: is a directory, not a capture`,
      remedy: 'Name the files in it.',
    });
  }
  const stream = createReadStream('', { fd: handle, highWaterMark: CHUNK });
  return openStream(path, stream, remarks, stats.isFile() ? stats.size : null);
}

/** Opens what comes through a stream, as standard input does. */
export async function openStream(
  name: string,
  stream: Readable,
  remarks: Remarks,
  size: number | null = null,
): Promise<Input> {
  let taken = 0;
  stream.on('data', (chunk: Buffer) => (taken += chunk.length)).pause();
  const outer = await peek(chunksOf(stream, name, remarks));
  const inner = compressionOf(outer.first);
  const opened = inner === null ? outer : await peek(unpack(outer.chunks, inner, name, remarks));
  return {
    name,
    format: formatOf(opened.first),
    size,
    chunks: opened.chunks,
    taken: () => taken,
    close: () => stream.destroy(),
  };
}

interface Peeked {
  readonly first: Uint8Array;
  readonly chunks: AsyncIterable<Uint8Array>;
}

/** Takes so many chunks that the format shows, and gives them again. */
async function peek(chunks: AsyncIterable<Uint8Array>): Promise<Peeked> {
  const iterator = chunks[Symbol.asyncIterator]();
  let first: Uint8Array = Buffer.alloc(0);
  while (first.length < FIRST) {
    const next = await iterator.next();
    if (next.done === true) break;
    first = first.length === 0 ? next.value : Buffer.concat([first, next.value]);
  }
  async function* all(): AsyncIterable<Uint8Array> {
    yield first;
    for (;;) {
      const next = await iterator.next();
      if (next.done === true) return;
      yield next.value;
    }
  }
  return { first, chunks: all() };
}

/** The chunks of a stream up to its end, or to what breaks it. */
async function* chunksOf(
  stream: Readable,
  name: string,
  remarks: Remarks,
): AsyncIterable<Uint8Array> {
  try {
    for await (const chunk of stream) yield chunk as Buffer;
  } catch (error) {
    // It was closed, because enough has been read.
    if (errorCode(error) === 'ERR_STREAM_PREMATURE_CLOSE') return;
    remarks.add(`${name} cannot be read to its end: ${why(error)}`);
  }
}

type Compression = 'gzip' | 'zstd';

function compressionOf(first: Uint8Array): Compression | null {
  if (first[0] === 0x1f && first[1] === 0x8b) return 'gzip';
  const zstd = first[0] === 0x28 && first[1] === 0xb5 && first[2] === 0x2f && first[3] === 0xfd;
  return zstd ? 'zstd' : null;
}

function unpack(
  chunks: AsyncIterable<Uint8Array>,
  by: Compression,
  name: string,
  remarks: Remarks,
): AsyncIterable<Uint8Array> {
  const unpacker =
    by === 'gzip' ? createGunzip({ chunkSize: CHUNK }) : createZstdDecompress({ chunkSize: CHUNK });
  // Errors come out of the reading side.
  const stream = pipeline(chunks, unpacker, () => undefined);
  return chunksOf(stream as unknown as Readable, `${name} (${by})`, remarks);
}

function formatOf(first: Uint8Array): Format {
  if (first.length === 0) return 'empty';
  if (isPcap(first)) return 'pcap';
  if (isPcapng(first)) return 'pcapng';
  // Frame Streams begin with a control frame: a length of zero, and the number of START or READY.
  const control = first.length >= 12 && first[0] === 0 && first[1] === 0 && first[2] === 0;
  return control && first[3] === 0 && first[8] === 0 && first[9] === 0 ? 'dnstap' : 'text';
}

function why(error: unknown): string {
  const { message } = error as Error;
  return message === 'unexpected end of file' ? 'the file ends too early' : whyFailed(error);
}
