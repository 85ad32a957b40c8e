import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LineWriter } from '../../base/line-ring.ts';
import { VirtualClock } from '../../base/virtual-clock.ts';
import { Frames } from './tap-frames.ts';

/** Creates a frame whose data consists of this many equal bytes. */
function frame(size: number, byte: number): Uint8Array {
  const bytes = new Uint8Array(4 + size).fill(byte);
  new DataView(bytes.buffer).setUint32(0, size);
  return bytes;
}

test('a chunk has complete frames, also where the ring wraps around, and none twice', () => {
  const frames = new Frames(new VirtualClock());
  const writer = new LineWriter(frames.add(4096));
  let sent = 0;
  let came = 0;
  for (let round = 0; round < 50; round++) {
    for (let i = 0; i < 7; i++) {
      const one = frame(100 + ((sent * 31) % 200), sent & 0xff);
      writer.writeBytes(one, 0, one.length);
      sent++;
    }
    const chunk = frames.take()!;
    assert.equal(chunk.frames, 7);
    let at = 0;
    for (let i = 0; i < 7; i++) {
      assert.equal(chunk.bytes.readUInt32BE(at), 100 + ((came * 31) % 200));
      assert.equal(chunk.bytes[at + 4], came & 0xff);
      at += 4 + chunk.bytes.readUInt32BE(at);
      came++;
    }
    assert.equal(at, chunk.bytes.length);
    chunk.release();
  }
  assert.equal(frames.take(), null);
  assert.equal(frames.lost, 0);
});

test("a chunk's memory is freed when its last user has released it", () => {
  const frames = new Frames(new VirtualClock());
  const one = frame(10, 1);
  new LineWriter(frames.add(4096)).writeBytes(one, 0, one.length);
  const chunk = frames.take()!;
  chunk.hold();
  chunk.hold();
  chunk.release();
  chunk.release();
  assert.equal(chunk.bytes.length, one.length);
  chunk.release();
  assert.equal(chunk.bytes.length, 0);
});
