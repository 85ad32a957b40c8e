/** The first moments of `ndots serve`, and the results of probes before it is serving. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { describe, test, type TestContext } from 'node:test';
import { printed, start, type Child } from '../kit/child.ts';
import { freePorts } from '../kit/free-ports.ts';
import { kubeletProbe } from '../kit/kubelet-probe.ts';

/** Starts a server and returns as soon as all given ports are open. */
async function begun(
  t: TestContext,
  corefile: string,
  ports: readonly number[],
  ...words: readonly string[]
): Promise<Child> {
  const directory = mkdtempSync(join(tmpdir(), 'ndots-start-'));
  t.after(() => rmSync(directory, { recursive: true }));
  const file = join(directory, 'Corefile');
  writeFileSync(file, corefile);
  const child = start('ndots', [resolve('bin/ndots'), ...words, '-conf', file]);
  t.after(() => child.stop());
  for (const port of ports)
    while (!(await isOpen(port))) assert.ok(child.output() === '', child.output());
  return child;
}

const isOpen = (port: number): Promise<boolean> =>
  new Promise((done) => {
    const socket = connect(port, '127.0.0.1');
    socket.on('connect', () => done(socket.destroy() && true));
    socket.on('error', () => done(false));
  });

describe('a probe before the server serves', () => {
  const kubernetes = `kubernetes cluster.local {\n manifests ${resolve('examples/cluster')}\n }`;

  for (const [what, words] of [
    ['ndots serve', ['serve']],
    ['the command line of CoreDNS', []],
  ] as const)
    test(`finds an open port, waits, and succeeds: ${what}`, async (t) => {
      const [port, ready, health] = await freePorts(3);
      const probes = `ready 127.0.0.1:${ready}\n health 127.0.0.1:${health}`;
      const corefile = `.:${port} {\n bind 127.0.0.1\n ${probes}\n ${kubernetes}\n}\n`;
      const child = await begun(t, corefile, [ready, health], ...words);
      const both = [kubeletProbe(ready), kubeletProbe(health, '/health')];
      assert.deepEqual(await Promise.all(both), ['success', 'success']);
      await printed(child, /^ndots-\d/m);
      assert.doesNotMatch(child.output(), /ERROR|WARNING/);
      child.signal('SIGTERM');
      assert.equal(await child.exitCode, 0);
    });

  test('an address that only seems to be one of probes is closed again', async (t) => {
    const [port, other] = await freePorts(2);
    const corefile = `.:${port} {\n bind 127.0.0.1\n template ANY ANY {\n  match "\n  ready 127.0.0.1:${other}\n"\n  rcode NXDOMAIN\n }\n}\n`;
    const child = await begun(t, corefile, [other], 'serve');
    await printed(child, /^ndots-\d/m);
    assert.equal(await isOpen(other), false);
  });

  test('while the API server is away it is cut short, which kubelet does not count', async (t) => {
    const [port, ready, away] = await freePorts(3);
    const api = `kubernetes cluster.local {\n endpoint http://127.0.0.1:${away}\n }`;
    const corefile = `.:${port} {\n bind 127.0.0.1\n ready 127.0.0.1:${ready}\n ${api}\n}\n`;
    const child = await begun(t, corefile, [ready], 'serve');
    assert.equal(await kubeletProbe(ready), 'errored');
    assert.equal((await fetch(`http://127.0.0.1:${ready}/ready`)).status, 503);
    child.signal('SIGTERM');
  });

  test('a Corefile from a pipe is read once', async (t) => {
    const [port, ready] = await freePorts(2);
    const child = start('ndots', [resolve('bin/ndots'), 'serve', '-conf', 'stdin']);
    child.tell(`.:${port} {\n bind 127.0.0.1\n ready 127.0.0.1:${ready}\n}`);
    child.end();
    t.after(() => child.stop());
    await printed(child, /^ndots-\d/m);
  });
});
