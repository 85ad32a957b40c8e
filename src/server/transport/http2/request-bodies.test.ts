import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

import { frame } from '../../../../test/kit/http2-client.ts';
import { Http2FrameReader } from './frame-reader.ts';
import { FRAME, WINDOW } from './frames.ts';
import { Http2Stream } from './http2-stream.ts';
import { RequestBodies } from './request-bodies.ts';

test('bodies that arrive byte by byte take the memory that is counted for them', () => {
  setFlagsFromString('--expose-gc');
  const gc = runInNewContext('gc') as () => void;
  const memory = (): number => {
    gc();
    const { heapUsed, external } = process.memoryUsage();
    return heapUsed + external;
  };
  const bodies = new RequestBodies(65_535, () => undefined);
  const streams = Array.from(
    { length: 10 },
    (_, i) => new Http2Stream(2 * i + 1, WINDOW, WINDOW, -1, () => undefined),
  );
  const frames = streams.map(({ id }) => {
    const reader = new Http2FrameReader(false);
    reader.read(frame(FRAME.DATA, 0, id, Buffer.of(7)), 0);
    return reader;
  });
  const before = memory();
  for (let i = 0; i < 60_000; i++) {
    for (let j = 0; j < streams.length; j++) {
      assert.equal(bodies.take(streams[j]!, frames[j]!), 'more');
    }
  }
  const grown = memory() - before;
  assert.ok(bodies.held >= 600_000 && bodies.held <= 1_300_000, `${bodies.held}`);
  assert.ok(grown < bodies.held + 1_000_000, `${grown} bytes for ${bodies.held}`);
  assert.equal(bodies.finish(streams[0]!), 'whole');
  assert.equal(bodies.end - bodies.start, 60_000);
  assert.ok(bodies.bytes.subarray(bodies.start, bodies.end).every((byte) => byte === 7));
  for (const stream of streams) bodies.drop(stream);
  assert.equal(bodies.held, 0);
});
