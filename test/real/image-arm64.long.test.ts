/** Runs the arm64 image in QEMU: the steps in deploy/Dockerfile, the runtime, and the native code for that CPU. */
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { printed, start } from '../kit/child.ts';
import { noEmulation } from '../kit/emulation.ts';
import { noImages } from '../kit/image.ts';
import { imageForTests, ended } from '../kit/image-suite.ts';

const corefile = `
.:53 {
    errors
    log
    health
    ready
    kubernetes cluster.local in-addr.arpa ip6.arpa {
        manifests /ndots/examples/cluster
    }
    prometheus :9153
    cache 30
}
`;

/** The numbers of system calls for which QEMU 7.2 returns ENOSYS. Linux may support them on real arm64 machines. */
const unknownToQemu = new Map([
  [274, 'sched_setattr'],
  [293, 'rseq'],
  [425, 'io_uring_setup'],
]);

describe('the image for arm64', { skip: noImages() ?? noEmulation('arm64') ?? false }, () => {
  const built = imageForTests('deploy/Dockerfile', { '/etc/coredns/Corefile': corefile }, 'arm64');
  const run = (words: readonly string[]): string => ended(words, 120_000).text;

  test('holds the runtime and the foreign functions of arm64, and no others', (t) => {
    const of = built(t);
    if (of === null) return;
    const text = run(of.container(['/ndots/node_modules/@koromix'], ['ls']));
    assert.equal(text.trim(), 'koffi-linux-arm64');
    assert.match(run(of.container(['version'])), /^ndots-\S+\nlinux\/arm64, .*\nUDP: batched /);
  });

  test('answers on port 53 without root, many datagrams by one call, by no call that its seccomp profile lacks', async (t) => {
    const of = built(t);
    if (of === null) return;
    const directory = mkdtempSync(join(tmpdir(), 'ndots-arm64-'));
    t.after(() => rmSync(directory, { recursive: true }));
    const file = join(directory, 'calls');
    const args = ['-conf', '/etc/coredns/Corefile'];
    const words = of.container(args, ['/coredns'], { QEMU_STRACE: '1' });
    // QEMU writes the calls to standard error.
    const child = start('ndots', ['sh', '-c', 'exec 2>"$0"; exec "$@"', file, ...words]);
    t.after(() => child.stop());
    await printed(child, /^ndots-\d/m, 240_000);
    const name = 'kubernetes.default.svc.cluster.local';
    for (const way of ['+notcp', '+tcp'])
      assert.equal(
        run(of.beside('dig', '@127.0.0.1', name, '+short', '+time=20', '+tries=2', way)).trim(),
        '10.3.0.1',
        child.output(),
      );
    for (const [port, path] of [
      [8080, 'health'],
      [8181, 'ready'],
      [9153, 'metrics'],
    ] as const) {
      const words = ['curl', '-s', '-o', '/dev/null', '-w', '%{http_code}', '-m', '30'];
      assert.equal(run(of.beside(...words, `http://127.0.0.1:${port}/${path}`)), '200', path);
    }
    child.signal('SIGTERM');
    assert.equal(await child.exitCode, 0, child.output());
    assert.doesNotMatch(child.output(), /\[ERROR\]|falls back/);

    // The calls made by the shell and setpriv come first.
    const calls = readFileSync(file, 'utf8').split('execve(').at(-1)!;
    for (const call of ['recvmmsg', 'sendmmsg'])
      assert.match(calls, new RegExp(`\\b${call}\\(.* = [1-9]`), call);
    const { syscalls } = JSON.parse(readFileSync('deploy/seccomp/serve.json', 'utf8')) as {
      readonly syscalls: readonly { readonly names: readonly string[] }[];
    };
    const allowed = new Set(syscalls.flatMap(({ names }) => names));
    const made = new Set(
      [...calls.matchAll(/\b\d+ ([a-z][a-z0-9_]+)\(/g)].map(([, call]) => call!),
    );
    assert.ok(made.size > 40, `${made.size} calls`);
    assert.deepEqual(
      [...made].filter((call) => !allowed.has(call)),
      [],
    );
    const unknown = [...calls.matchAll(/Unknown syscall (\d+)/g)].map(
      ([, number]) => unknownToQemu.get(Number(number)) ?? number!,
    );
    // Without io_uring, the runtime uses epoll instead.
    assert.deepEqual(
      unknown.filter((call) => !allowed.has(call) && call !== 'io_uring_setup'),
      [],
    );
  });
});
