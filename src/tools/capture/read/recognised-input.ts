/** Recognises an input by its first bytes as a capture, a dnstap stream or text, whether or not it is compressed. */
import { Problem } from '../../../server/base/problem.ts';
import { foreignFile } from './foreign-file.ts';
import { isPcap } from './packets/pcap.ts';
import { isPcapng } from './packets/pcapng.ts';

export type Format = 'pcap' | 'pcapng' | 'dnstap' | 'text' | 'empty';

export interface Input {
  readonly name: string;
  readonly format: Format;
  /** The file's size in bytes before decompression, or null for a pipe. */
  readonly size: number | null;
  /** The decompressed bytes in chunks. A damaged end is reported after the chunks before it. */
  readonly chunks: AsyncIterable<Uint8Array>;
  taken(): number;
  close(): void;
}

export type Compression = 'gzip' | 'zstd';

export type Unpack = (
  chunks: AsyncIterable<Uint8Array>,
  by: Compression,
) => AsyncIterable<Uint8Array>;

const FIRST = 16;

/**
 * Recognises the input from its decompressed chunks.
 * @throws Problem for file types that are often mistaken for captures
 */
export async function recognised(
  chunks: AsyncIterable<Uint8Array>,
  name: string,
  unpack: Unpack,
): Promise<Pick<Input, 'format' | 'chunks'>> {
  const outer = await peek(chunks);
  const inner = compressionOf(outer.first);
  const opened = inner === null ? outer : await peek(unpack(outer.chunks, inner));
  const format = formatOf(opened.first);
  const foreign = format === 'text' ? foreignFile(opened.first) : null;
  if (foreign === null) return { format, chunks: opened.chunks };
  const within = inner === null ? '' : ` (within ${inner})`;
  const why =
    foreign.isOfOtherVerb === true
      ? 'not a capture, a log or a list of names'
      : 'which ndots does not read';
  throw new Problem({
    code: 'capture-foreign',
    text: `${name} is ${foreign.what}${within}, ${why}`,
    remedy: foreign.remedy ?? undefined,
  });
}

interface Peeked {
  readonly first: Uint8Array;
  readonly chunks: AsyncIterable<Uint8Array>;
}

/** Reads enough chunks to recognise the format, and then returns them again. */
async function peek(chunks: AsyncIterable<Uint8Array>): Promise<Peeked> {
  const iterator = chunks[Symbol.asyncIterator]();
  let first: Uint8Array = Buffer.alloc(0);
  while (first.length < FIRST) {
    const next = await iterator.next();
    if (next.done === true) break;
    first = Buffer.concat([first, next.value]);
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

function compressionOf(first: Uint8Array): Compression | null {
  if (first[0] === 0x1f && first[1] === 0x8b) return 'gzip';
  const zstd = first[0] === 0x28 && first[1] === 0xb5 && first[2] === 0x2f && first[3] === 0xfd;
  return zstd ? 'zstd' : null;
}

function formatOf(first: Uint8Array): Format {
  if (first.length === 0) return 'empty';
  if (isPcap(first)) return 'pcap';
  if (isPcapng(first)) return 'pcapng';
  // Frame Streams start with a control frame, which has a length of zero and the number of START or READY.
  const escape = first.length >= 12 && first.subarray(0, 4).every((byte) => byte === 0);
  // A log that was truncated while being written starts with zeros only.
  const hasNumber = first.subarray(8, 11).every((byte) => byte === 0) && first[11] !== 0;
  return escape && hasNumber ? 'dnstap' : 'text';
}
