/** Starts `ndots console` as a user would, from the built program if there is one. */
import assert from 'node:assert/strict';
import { resolve } from 'node:path';
import { test } from 'node:test';
import { printed, start } from '../kit/child.ts';

test('ndots console prints an address that opens the page, and Ctrl-C ends it', async (t) => {
  const capture = resolve('examples/captures/tcp-blocked.pcapng');
  const words = ['console', capture, '--speed', 'max', '--no-open'];
  const child = start('ndots', [resolve('bin/ndots'), ...words]);
  t.after(() => child.stop());
  await printed(child, /^http:\S+\?token=\S+$/m, 20_000);
  const [address = ''] = /^http:\S+$/m.exec(child.output()) ?? [];
  const welcome = await fetch(address, { redirect: 'manual' });
  const [cookie = ''] = (welcome.headers.get('set-cookie') ?? '').split(';');
  const script = await fetch(new URL('/console.js', address), { headers: { cookie } });
  assert.equal(script.status, 200);
  child.signal('SIGINT');
  assert.equal(await child.exitCode, 0);
});
