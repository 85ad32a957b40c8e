import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { after, describe, test } from 'node:test';
import type { StoryOutcome } from '../../src/tools/lab/story.ts';
import { missing } from '../kit/dig.ts';
import { noLab, runLab, runLabIn, startLab, traces } from '../kit/lab.ts';

const directory = mkdtempSync(join(tmpdir(), 'ndots-lab-test-'));
after(() => rmSync(directory, { recursive: true }));

function runProgram(...words: string[]): { readonly stdout: string } {
  return spawnSync(join(import.meta.dirname, '../../bin/ndots'), words, { encoding: 'utf8' });
}

function processesOf(cookie: string): string[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => {
      try {
        return readFileSync(`/proc/${pid}/environ`, 'utf8').includes(cookie);
      } catch {
        return false;
      }
    });
}

describe('a lab', { skip: noLab ?? false }, () => {
  test(
    'leaves nothing behind; packets and reports are stored where requested',
    { skip: missing('tcpdump') ?? false },
    async () => {
      const before = traces();
      const [pcap, saved] = [join(directory, 'a.pcap'), join(directory, 'a.json')];
      const { code, stdout } = await runLab(
        'run',
        'twelve-queries',
        '--pcap',
        pcap,
        '--save',
        saved,
      );
      assert.equal(code, 0, stdout);
      assert.match(stdout, /as documented/);
      assert.equal(traces(), before);
      const packets = spawnSync('tcpdump', ['-nr', pcap], { encoding: 'utf8' }).stdout;
      assert.match(packets, /A\? www\.google\.com\.default\.svc\.cluster\.local/);
      const again = await runLab('report', saved, '-o', 'html');
      assert.equal(again.code, 0);
      assert.match(again.stdout, /^<!doctype html>/);
      assert.match(again.stdout, /A\? www\.google\.com\./);
      const [outcome] = JSON.parse(
        (await runLab('report', saved, '-o', 'json')).stdout,
      ) as StoryOutcome[];
      assert.equal(outcome!.story.name, 'twelve-queries');
    },
  );

  test('a story that captures nothing itself stores the packets of its clients', async () => {
    for (const story of ['mixed-case', 'autopath-stale-pod']) {
      const pcap = join(directory, `${story}.pcapng`);
      const { code, stdout } = await runLab('run', story, '--pcap', pcap);
      assert.equal(code, 0, stdout);
      const { stdout: packets } = runProgram('capture', pcap, '-q');
      assert.match(packets, /^\d\d:\d\d:\d\d\.\d{6} .* A \S+\. /m);
    }
  });

  test('Ctrl-C ends it, without a verdict and without complaints of its programs', async () => {
    const child = startLab(
      ['run', 'twelve-queries'],
      { LAB_TEST_COOKIE: `int${process.pid}` },
      true,
    );
    const said: string[] = [];
    for (const stream of [child.stdout!, child.stderr!])
      stream.on('data', (chunk: Buffer) => said.push(chunk.toString()));
    const cookie = `LAB_TEST_COOKIE=int${process.pid}`;
    for (let tries = 0; tries < 400 && processesOf(cookie).length <= 3; tries++) await sleep(50);
    // Sent to the whole foreground group, as a terminal would.
    process.kill(-child.pid!, 'SIGINT');
    const code = await new Promise((done) => child.on('close', done));
    assert.deepEqual([code, said], [130, []]);
    for (let tries = 0; tries < 100 && processesOf(cookie).length > 0; tries++) await sleep(50);
    assert.deepEqual(processesOf(cookie), []);
  });

  test('killed during a run it leaves nothing behind either', async () => {
    const before = traces();
    const cookie = `LAB_TEST_COOKIE=${process.pid}`;
    const child = startLab(['run', 'twelve-queries'], { LAB_TEST_COOKIE: String(process.pid) });
    // Once there are more processes than the two outside it, the lab is being built.
    let stands = false;
    for (let tries = 0; tries < 400 && !stands; tries++) {
      await sleep(50);
      stands = processesOf(cookie).length > 3;
    }
    assert.ok(stands);
    child.kill('SIGKILL');
    for (let tries = 0; tries < 100 && processesOf(cookie).length > 0; tries++) await sleep(50);
    assert.deepEqual(processesOf(cookie), []);
    assert.equal(traces(), before);
  });
});

describe('a persistent lab', { skip: noLab ?? false }, () => {
  const env = { TMPDIR: directory };

  test('its pods have curl, their names and their search lists; after lab down nothing is left', async () => {
    const before = traces();
    const up = await runLabIn(env, 'up');
    assert.equal(up.code, 0, up.stderr);
    try {
      assert.match(up.stdout, /critical-app\/client +172\.17\.0\.7/);
      const curl = await runLabIn(env, 'exec', 'client', '--', 'getent', 'ahosts', 'backend');
      assert.match(curl.stdout, /^10\.3\.0\.116 /);
      const conf = await runLabIn(env, 'exec', 'shop/db-0', '--', 'cat', '/etc/resolv.conf');
      assert.match(
        conf.stdout,
        /^search shop\.svc\.cluster\.local svc\.cluster\.local cluster\.local /,
      );
      assert.equal((await runLabIn(env, 'exec', 'client', '--', 'sh', '-c', 'exit 7')).code, 7);
      const twice = await runLabIn(env, 'up');
      assert.equal(twice.code, 2);
      assert.match(twice.stderr, /is running already/);
      assert.match(
        (await runLabIn(env, 'exec', 'clint', '--', 'true')).stderr,
        /Did you mean client/,
      );
    } finally {
      assert.match((await runLabIn(env, 'down')).stdout, /is gone/);
    }
    assert.equal(traces(), before);
    assert.match((await runLabIn(env, 'exec', 'client', '--', 'true')).stderr, /no lab is running/);
    assert.match((await runLabIn(env, 'down')).stdout, /No lab stands/);
  });
});

describe('mistakes', () => {
  const cases: readonly (readonly [readonly string[], number, RegExp])[] = [
    [['run', 'twelve-querys'], 3, /no story twelve-querys[^]*Did you mean twelve-queries/],
    [['run', 'twelve'], 3, /Did you mean twelve-queries/],
    [['run'], 3, /needs the name of a story, all/],
    [['rum'], 3, /Did you mean run/],
    [['run', 'twelve-queries', '--pcap', '/run/x.pcap'], 2, /its own \/run/],
    [['run', 'twelve-queries', '--save', '/nonexistent/x'], 2, /cannot be written/],
    [['run', 'twelve-queries', '--server', 'bind'], 3, /takes ndots or coredns=FILE/],
    [['run', 'twelve-queries', '--server', 'coredns=/nonexistent'], 2, /cannot read the CoreDNS/],
    [['up', '--server', 'coredns=/nonexistent'], 2, /cannot read the CoreDNS/],
    [['exec', 'client'], 3, /a program after --/],
    [['up', 'x'], 3, /accepts only options/],
    [['report', '/nonexistent'], 2, /cannot read the saved result/],
    [['report', 'package.json'], 2, /ndots lab did not save this file/],
    [['rules', '--manifests', 'examples/cluster', 'backend'], 3, /NAMESPACE\/NAME/],
  ];
  for (const [words, code, message] of cases) {
    test(`lab ${words.join(' ')}`, async () => {
      const result = await runLab(...words);
      assert.match(result.stderr, message);
      assert.equal(result.code, code);
    });
  }

  test('without the right to make namespaces the model is played, and the missing parts are named', (t) => {
    if (process.getuid?.() !== 0) return t.skip('needs root to become nobody');
    const asNobody = ['--reuid', '65534', '--regid', '65534', '--clear-groups'];
    const ask = (...words: string[]) =>
      spawnSync('setpriv', [...asNobody, ...words], { encoding: 'utf8' });
    if (ask(process.execPath, '-e', 'require("fs").readFileSync("package.json")').status !== 0)
      return t.skip('nobody may not read this directory');
    const nobody = ask(process.execPath, 'src/faces/cli/main.ts', 'lab', 'run', 'twelve-queries');
    assert.match(nobody.stderr, /it needs root[^]*so here is its model/);
    assert.match(nobody.stdout, /a model, in virtual time[^]*as documented/);
    assert.equal(nobody.status, 0);
  });
});
