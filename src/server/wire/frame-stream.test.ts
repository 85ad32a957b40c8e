import assert from 'node:assert/strict';
import { test } from 'node:test';
import { costsAtMost } from '../../../test/kit/growth.ts';
import { CONTROL, FrameReader, writeControl } from './frame-stream.ts';

function frame(body: Uint8Array): Buffer {
  const length = Buffer.alloc(4);
  length.writeUInt32BE(body.length);
  return Buffer.concat([length, body]);
}

test('frames are the same however the stream is split, and stay unchanged when more arrives', () => {
  const bodies = Array.from({ length: 40 }, (_, i) => Buffer.alloc(1 + ((i * 97) % 700), i));
  const stream = Buffer.concat([writeControl(CONTROL.START, ['x']), ...bodies.map(frame)]);
  for (const size of [1, 3, 64, 1000, stream.length]) {
    const reader = new FrameReader(1000);
    const read: (Uint8Array | { readonly type: number })[] = [];
    for (let at = 0; at < stream.length; at += size) {
      reader.push(stream.subarray(at, at + size));
      for (let next = reader.next(); next !== null; next = reader.next()) read.push(next);
    }
    const [start, ...frames] = read;
    assert.equal((start as { type: number }).type, CONTROL.START);
    assert.deepEqual(
      frames.map((each) => Buffer.from(each as Uint8Array)),
      bodies,
    );
  }
});

test('a long frame that arrives in tiny pieces is copied only a few times', async () => {
  const read = (size: number): void => {
    const stream = frame(Buffer.alloc(size, 7));
    const reader = new FrameReader(5_000_000);
    for (let at = 0; at < stream.length; at += 8) reader.push(stream.subarray(at, at + 8));
    assert.equal((reader.next() as Uint8Array).length, size);
  };
  await costsAtMost(
    24,
    () => read(1_600_000),
    () => read(200_000),
  );
});
