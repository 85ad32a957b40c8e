/** Sends SIGUSR1 continuously from process startup, and checks that it never opens the runtime's debugger. */
import assert from 'node:assert/strict';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { describe, test, type TestContext } from 'node:test';
import { printed, start } from '../kit/child.ts';
import { freePorts } from '../kit/free-ports.ts';

/** Without koffi: the checkout is seen from a directory that does not have its packages. */
function withoutFfi(t: TestContext): string {
  const home = mkdtempSync(join(tmpdir(), 'ndots-plain-'));
  t.after(() => rmSync(home, { recursive: true }));
  cpSync('bin', join(home, 'bin'), { recursive: true });
  cpSync('dist', join(home, 'dist'), { recursive: true });
  cpSync('package.json', join(home, 'package.json'));
  return join(home, 'bin/ndots');
}

/** Started the way the kernel starts the image's entry point, through its first line. */
function imageEntry(): readonly string[] {
  const [, ...flags] = /^#!(.*)$/m.exec(readFileSync('deploy/ndots', 'utf8'))![1]!.split(' ');
  return [process.execPath, ...flags, resolve('dist/faces/cli/main.js')];
}

/** The TCP ports on which processes in this network namespace listen. */
const listening = (): readonly number[] =>
  ['/proc/net/tcp', '/proc/net/tcp6'].flatMap((file) =>
    [...readFileSync(file, 'latin1').matchAll(/^ *\d+: \S+:(\w{4}) \S+ 0A /gm)].map(([, hex]) =>
      Number.parseInt(hex!, 16),
    ),
  );

const isOnLinux = process.platform === 'linux';

describe('while SIGUSR1 arrives continuously', { skip: !isOnLinux && 'needs Linux' }, () => {
  for (const [what, launcher] of [
    ['bin/ndots', () => [resolve('bin/ndots')]],
    ['bin/ndots without the foreign function interface', (t) => [withoutFfi(t)]],
    ['the entry point of the image', imageEntry],
  ] as readonly (readonly [string, (t: TestContext) => readonly string[]])[])
    for (const verb of ['serve', 'node-cache'])
      test(`${what} ${verb} starts, reloads, and opens no debugger`, async (t) => {
        const directory = mkdtempSync(join(tmpdir(), 'ndots-signal-'));
        t.after(() => rmSync(directory, { recursive: true }));
        const [port, metrics] = await freePorts(2);
        const corefile = join(directory, 'Corefile');
        writeFileSync(corefile, `.:${port} {\n bind 127.0.0.1\n whoami\n}\n`);
        const own =
          verb === 'serve'
            ? ['serve', '-workers', '2']
            : [
                ...['node-cache', '-localip', '127.0.0.1', '-setupinterface=false'],
                ...['-setupiptables=false', '-metrics-listen-address', `127.0.0.1:${metrics}`],
                ...['-basecorefile', corefile, '-takeover', 'none'],
              ];
        const conf = verb === 'serve' ? corefile : join(directory, 'made');
        const begin = ['sh', '-c', `trap '' USR1; echo begun; exec "$@"`, 'sh'];
        const words = [...begin, ...launcher(t), ...own, '-conf', conf];
        const before = new Set(listening());
        const child = start('ndots', words);
        t.after(() => child.stop());
        const found = new Set<number>();
        let starting = true;
        const sent = (async (): Promise<void> => {
          // The shell in this test ignores the signal, and so does the program that it executes.
          while (starting && !child.output().includes('begun')) await new Promise(setImmediate);
          while (starting) {
            child.signal('SIGUSR1');
            for (const each of listening()) if (!before.has(each)) found.add(each);
            await new Promise(setImmediate);
          }
        })();
        try {
          await printed(child, /^ndots-\d/m, 30_000);
        } finally {
          starting = false;
          await sent;
        }
        child.signal('SIGUSR1');
        await printed(child, /SIGUSR1: Reloading[^]*Reloading complete/);
        for (const each of listening()) if (!before.has(each)) found.add(each);
        assert.doesNotMatch(child.output(), /Debugger listening/);
        assert.ok(!found.has(9229), child.output());
      });
});
