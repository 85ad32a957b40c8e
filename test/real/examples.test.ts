/** The Corefiles in `examples/` start unchanged and answer the queries that they are written for. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { cpSync, globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { describe, test } from 'node:test';
import { printed, start } from '../kit/child.ts';
import { freePorts } from '../kit/free-ports.ts';

const skip = spawnSync('dig', ['-v']).status === 0 ? false : 'dig is not installed';

/** Each example's query, on the port of its first or second server block, and the short answer. */
const asked: Readonly<
  Record<string, readonly (readonly [block: number, question: string, answer: RegExp])[]>
> = {
  zones: [
    [0, 'alias.example.org A', /^www\.example\.org\.\n192\.0\.2\.80\n$/],
    [0, 'anything.apps.example.org A', /^192\.0\.2\.81\n$/],
    [1, 'www.example.org AAAA', /^2001:db8::80\n$/],
  ],
  dns64: [[0, 'www.example.org AAAA', /^64:ff9b::c000:250\n$/]],
  protection: [
    [0, 'www.example.org A', /^192\.0\.2\.80\n$/],
    [0, '+comments shop.svc.cluster.local A', /NXDOMAIN[^]*EDE: 15/],
    [0, '+comments 1.0.0.10.in-addr.arpa PTR', /NXDOMAIN[^]*RFC 6303/],
  ],
};

describe('the Corefiles of examples/', { skip }, () => {
  test('each one is tried', () => {
    const directories = globSync('examples/*/Corefile').map((file) => file.split('/')[1]!);
    // skydns needs an etcd and has a test of its own.
    assert.deepEqual(
      directories.filter((directory) => directory !== 'skydns').toSorted(),
      Object.keys(asked).toSorted(),
    );
  });

  for (const [name, questions] of Object.entries(asked)) {
    test(name, async (t) => {
      const ports = await freePorts(2);
      const directory = mkdtempSync(join(tmpdir(), 'ndots-examples-'));
      t.after(() => rmSync(directory, { recursive: true }));
      cpSync(`examples/${name}`, directory, { recursive: true });
      const corefile = join(directory, 'Corefile');
      const text = readFileSync(corefile, 'utf8')
        .replaceAll('1053', String(ports[0]))
        .replaceAll('1054', String(ports[1]));
      writeFileSync(corefile, text);
      const child = start('ndots', [resolve('bin/ndots'), 'serve', '-conf', corefile]);
      t.after(() => child.stop());
      await printed(child, /ndots-\d/, 20_000);
      for (const [block, question, answer] of questions) {
        const words = [
          '@127.0.0.1',
          '-p',
          String(ports[block]),
          '+short',
          '+tries=1',
          ...question.split(' '),
        ];
        const ask = (): string =>
          spawnSync(
            'dig',
            question.startsWith('+') ? words.filter((word) => word !== '+short') : words,
            { encoding: 'utf8' },
          ).stdout;
        let found = ask();
        // A secondary only fetches its zone once it is serving.
        for (
          const limit = Date.now() + 10_000;
          !answer.test(found) && Date.now() < limit;
          found = ask()
        )
          await new Promise((done) => setTimeout(done, 100));
        assert.match(found, answer, question);
      }
      assert.doesNotMatch(child.output(), /\[(?:ERROR|WARNING)\]/);
    });
  }
});
