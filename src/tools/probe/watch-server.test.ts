import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { test } from 'node:test';
import type { CheckSchedule } from './watch.ts';
import { WatchServer } from './watch-server.ts';

test('hundreds of idle connections do not keep the kubelet from probing', async (t) => {
  const server = new WatchServer({ isReady: true } as CheckSchedule);
  const port = await server.listen('127.0.0.1', 0);
  t.after(() => server.close());
  for (let i = 0; i < 200; i++) {
    const idle = connect(port, '127.0.0.1').on('error', () => undefined);
    t.after(() => idle.destroy());
    await once(idle, 'connect');
  }
  for (const path of ['healthz', 'readyz']) {
    const reply = await fetch(`http://127.0.0.1:${port}/${path}`);
    assert.equal(await reply.text(), 'OK');
  }
});
