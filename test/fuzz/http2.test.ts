import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fuzzHttp2 } from './http2.ts';

test('connections with any HTTP/2 frames do not stop others from being answered', async (t) => {
  const seed = Math.floor(Math.random() * 2 ** 31);
  const report = await fuzzHttp2(seed, Infinity, 3);
  t.diagnostic(JSON.stringify({ seed, ...report }));
  // Requests among the frames are answered, so the frames reach the server's streams.
  assert.ok(report.replies > 0);
});
