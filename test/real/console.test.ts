/** Starts `ndots console` as a user would, from the built program if there is one. */
import assert from 'node:assert/strict';
import { resolve } from 'node:path';
import { test } from 'node:test';
import { printed, start } from '../kit/child.ts';
import { freePorts } from '../kit/free-ports.ts';

test('ndots console prints an address that opens the page, and Ctrl-C ends it', async (t) => {
  const capture = resolve('examples/captures/tcp-blocked.pcapng');
  const words = ['console', capture, '--speed', 'max', '--no-open'];
  const child = start('ndots', [resolve('bin/ndots'), ...words]);
  t.after(() => child.stop());
  await printed(child, /^http:\S+\?token=\S+$/m, 20_000);
  const [address = ''] = /^http:\S+$/m.exec(child.output()) ?? [];
  const welcome = await fetch(address, { redirect: 'manual' });
  const [cookie = ''] = (welcome.headers.get('set-cookie') ?? '').split(';');
  assert.match(child.output(), /^Replaying tcp-blocked\.pcapng at full speed\. --speed 1 /m);
  const script = await fetch(new URL('/console.js', address), { headers: { cookie } });
  assert.equal(script.status, 200);
  child.signal('SIGINT');
  assert.equal(await child.exitCode, 0);
});

test('ndots console says how fast it replays a file, in the terminal and on the page', async (t) => {
  const capture = resolve('examples/captures/tcp-blocked.pcapng');
  const child = start('ndots', [resolve('bin/ndots'), 'console', capture, '--no-open']);
  t.after(() => child.stop());
  await printed(child, /^Ctrl-C ends it/m, 20_000);
  assert.match(
    child.output(),
    /^Replaying tcp-blocked\.pcapng as fast as recorded\. --speed 10 is .*, and --speed max shows all of it at once\.$/m,
  );
  const [address = ''] = /^http:\S+$/m.exec(child.output()) ?? [];
  const welcome = await fetch(address, { redirect: 'manual' });
  const [cookie = ''] = (welcome.headers.get('set-cookie') ?? '').split(';');
  const page = await (await fetch(new URL('/', address), { headers: { cookie } })).text();
  assert.match(
    page,
    /<span class="quiet">[^<]*replayed as fast as recorded \(--speed changes this\)/,
  );
});

// Time for a program that prints its address and then waits, which is the fault.
const atStart = { timeout: 60_000 };
test(
  'ndots console reports a missing or invalid file instead of an address',
  atStart,
  async (t) => {
    const capture = resolve('examples/captures/tcp-blocked.pcapng');
    for (const [words, why] of [
      [['/missing/file.pcap'], /cannot/],
      [[resolve('README.md')], /is not a capture/],
      [[resolve('examples/Corefile')], /is a Corefile/],
      [[capture, '--cluster', '--kubeconfig', '/missing/config'], /cannot read the kubeconfig/],
      [[capture, '--corefile', '/missing/Corefile'], /cannot read the Corefile/],
      [
        [capture, '--admin', '127.0.0.1', '--admin-token', '/missing/token'],
        /cannot read the token/,
      ],
    ] as const) {
      const child = start('ndots', [resolve('bin/ndots'), 'console', ...words, '--no-open']);
      t.after(() => child.stop());
      assert.equal(await child.exitCode, 2, words.join(' '));
      assert.match(child.output(), why);
      assert.doesNotMatch(child.output(), /^http:/m, words.join(' '));
    }
  },
);

test('ndots console warns once if other machines can reach the page, which is not encrypted', async (t) => {
  const capture = resolve('examples/captures/tcp-blocked.pcapng');
  for (const [host, warnings] of [
    ['0.0.0.0', 1],
    ['127.0.0.1', 0],
  ] as const) {
    const [port] = await freePorts(1);
    const words = ['console', capture, '--listen', `${host}:${port}`, '--no-open'];
    const child = start('ndots', [resolve('bin/ndots'), ...words]);
    t.after(() => child.stop());
    await printed(child, /^Ctrl-C ends it/m, 20_000);
    const warning = new RegExp(
      `queries and the token can be read in transit\\..*ssh -L ${port}:127\\.0\\.0\\.1:${port} HOST`,
      'g',
    );
    assert.equal(child.output().match(warning)?.length ?? 0, warnings, child.output());
  }
});
