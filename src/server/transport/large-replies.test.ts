/**
 * Tests the memory used by large replies. This needs a separate file, because a thread looks up its collector only
 * once.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { listenerParts, queryBytes, replyWith, StreamClient } from '../../../test/kit/loopback.ts';
import { tcpListener } from './stream/tcp.ts';

test('memory from large replies is collected every few megabytes', async (t) => {
  const collections: unknown[] = [];
  Object.assign(globalThis, { gc: (how: unknown) => collections.push(how) });
  t.after(() => Reflect.deleteProperty(globalThis, 'gc'));
  const listener = tcpListener(listenerParts((query) => replyWith(query, 3900)));
  await listener.open();
  t.after(() => listener.close(0));
  const stream = await StreamClient.open(listener.port);
  t.after(() => stream.close());
  for (let n = 0; n < 150; n++) {
    stream.send(queryBytes('large.example.', n));
    await stream.next();
  }
  assert.deepEqual(collections, [
    { type: 'minor', execution: 'sync' },
    { type: 'minor', execution: 'sync' },
  ]);
});
