/** Lets the capture reader read a file dropped on the page, one piece at a time. */
import {
  recognised,
  type Input,
  type Unpack,
} from '../../../tools/capture/read/recognised-input.ts';
import type { Remarks } from '../../../tools/capture/read/packets/remarks.ts';
import { Problem } from '../../../server/base/problem.ts';

/** @throws Problem */
export async function openDropped(file: File, remarks: Remarks): Promise<Input> {
  let taken = 0;
  let closed = false;
  async function* chunks(): AsyncIterable<Uint8Array> {
    const reader = file.stream().getReader();
    try {
      while (!closed) {
        const { value, done } = await reader.read();
        if (done) return;
        taken += value.length;
        yield value;
      }
    } catch (error) {
      remarks.add(`${file.name} cannot be read to the end: ${(error as Error).message}`);
    } finally {
      await reader.cancel().catch(() => undefined);
    }
  }
  return {
    name: file.name,
    size: file.size,
    taken: () => taken,
    close: () => void (closed = true),
    ...(await recognised(chunks(), file.name, unpacker(file.name, remarks))),
  };
}

/** Browsers can decompress gzip but not zstd. */
function unpacker(name: string, remarks: Remarks): Unpack {
  return (chunks, by) => {
    if (by === 'zstd')
      throw new Problem({
        code: 'capture-unreadable',
        text: `${name} is compressed with zstd, which browsers cannot read`,
        remedy: `Decompress it first (zstd -d), or run: ndots doctor ${name}`,
      });
    return decompressed(chunks, name, remarks);
  };
}

async function* decompressed(
  chunks: AsyncIterable<Uint8Array>,
  name: string,
  remarks: Remarks,
): AsyncIterable<Uint8Array> {
  const iterator = chunks[Symbol.asyncIterator]();
  const source = new ReadableStream<Uint8Array<ArrayBuffer>>({
    async pull(controller) {
      const { value, done } = await iterator.next();
      if (done === true) controller.close();
      else controller.enqueue(new Uint8Array(value));
    },
  });
  const reader = source.pipeThrough(new DecompressionStream('gzip')).getReader();
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      yield value;
    }
  } catch {
    remarks.add(`${name} (gzip) cannot be read to the end: the file is truncated or damaged`);
  }
}
