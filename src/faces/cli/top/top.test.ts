/** Tests `ndots top` as scripts use it, and its error messages. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { createWriteStream, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { freePorts } from '../../../../test/kit/free-ports.ts';
import { runCommand } from '../../../../test/kit/trace-command.ts';
import type { Views } from '../../../tools/watch/view.ts';
import { top } from './top.ts';

const directory = mkdtempSync(join(tmpdir(), 'ndots-top-'));
after(() => rmSync(directory, { recursive: true, force: true }));
const capture = 'examples/captures/tcp-blocked.pcapng';

function written(name: string, bytes: string): string {
  writeFileSync(join(directory, name), bytes);
  return join(directory, name);
}

describe('top --once', () => {
  test('prints what a capture shows, the finding with its time, and the omitted part', async () => {
    const { code, out, err } = await runCommand(top, [capture, '--once']);
    assert.equal(code, 0);
    assert.equal(err, '');
    assert.match(out, /^Queries .* 18, 0 waiting$/m);
    assert.match(out, /critical ND3011 since 02:43:07 \(3 s\) +Large answers cannot be fetched/);
    assert.match(out, /left: latest, right: totals of the last 3 s, kernel lost 0\n$/);
  });

  test('each figure of reply times says which replies it covers', async () => {
    const { out } = await runCommand(top, [capture, '--once']);
    const line = out.split('\n').find((each) => each.includes('p99')) ?? '';
    assert.match(line, /^Reply p99 .* of all: p50 \S+ \S+ p99 \S+ \S+ max \S+ \S+$/);
  });

  test('prints the requested view in the requested order', async () => {
    const words = [capture, '--once', '--view', 'lookups', '--sort', 'took', '--rows', '2'];
    const { out } = await runCommand(top, words);
    const [header, first] = out.split('\n');
    assert.match(header!, /TOOK↓/);
    assert.match(first!, /94 ms error/);
    assert.match(out, /2 of 7 lookups/);
  });

  test('prints each finding with its fix and proof, but not the causes that are ruled out', async () => {
    const { out } = await runCommand(top, [capture, '--once', '--view', 'findings']);
    assert.match(out, /^new +critical ND3011/m);
    assert.match(out, /^Fix +- Open TCP port 53 to 10\.96\.0\.10/m);
    assert.match(out, /^Prove +ndots query large\.example\.com\./m);
    assert.match(
      out,
      /^\d+ causes are ruled out, \d+ cannot be checked with this input: -o json$/m,
    );
    assert.doesNotMatch(out, /ND3028/);
  });

  test('filters like capture', async () => {
    const words = [capture, '--once', '--view', 'lookups', '--protocol', 'tcp'];
    const { out } = await runCommand(top, words);
    assert.match(out, /all 3 lookups/);
    const others = [capture, '--once', '--view', 'lookups', '--not', 'protocol=tcp'];
    assert.match((await runCommand(top, others)).out, /lookups, kernel lost 0/);
  });

  test('-o json prints the view of the model as one line', async () => {
    const words = [capture, '--once', '-o', 'json', '--view', 'findings'];
    const { out } = await runCommand(top, words);
    assert.equal(out.split('\n').length, 2);
    const view = JSON.parse(out) as Views['findings'];
    assert.deepEqual(
      view.rows.map(({ code }) => code),
      ['ND3011'],
    );
  });

  test('fits the width of the reader', async () => {
    const { out } = await runCommand(top, [capture, '--once'], {}, { columns: 40 });
    for (const line of out.split('\n').slice(0, -3)) assert.ok(line.length <= 40, line);
  });

  test('shows its progress while it reads', { timeout: 60_000 }, async () => {
    const pipe = join(directory, 'pipe.pcap');
    assert.equal(spawnSync('mkfifo', [pipe]).status, 0);
    const told = Promise.withResolvers<string>();
    const progress = (text: string): void => {
      if (text.includes('queries')) told.resolve(text);
    };
    const ended = runCommand(top, [pipe, '--once'], {}, { progress });
    const writer = createWriteStream(pipe);
    writer.write(readFileSync(capture));
    // The pipe stays open, so the command reads until it has shown its progress.
    assert.equal(await told.promise, '18 queries of pipe.pcap');
    writer.end();
    assert.equal((await ended).code, 0);
  });

  test('reads several files, and reports the one that cannot be read', async () => {
    const words = [capture, '/nowhere.pcap', '--once', '-o', 'json'];
    const { code, out, err } = await runCommand(top, words);
    assert.equal(code, 0);
    assert.equal(err, 'ndots top: cannot read /nowhere.pcap: no such file or directory\n');
    const { inputs } = JSON.parse(out) as Views['now'];
    assert.deepEqual(
      inputs.map(({ state }) => state),
      ['ended', 'failed'],
    );
    assert.match(inputs[1]!.why, /no such file/);
  });
});

test('a server that cannot be reached is reported, and ends with exit code 2', async () => {
  const [port] = (await freePorts(1)) as [number];
  const token = written('token', 'a-token-that-is-long-enough');
  const words = ['--server', `127.0.0.1:${port}`, '--server-token', token, '--for', '1s'];
  const once = await runCommand(top, [...words, '--once']);
  assert.equal(once.code, 2);
  assert.match(once.out, /1 of 1 inputs is away since .* nothing listens there/);
  assert.equal((await runCommand(top, [...words, '-o', 'json'])).code, 2);
});

test('a short token is not replaced by a new one, which the server would not know', async () => {
  const words = ['--server', '127.0.0.1', '--server-token', written('short', 'short'), '--once'];
  const { code, err } = await runCommand(top, words);
  assert.equal(code, 2);
  assert.match(err, /has 5 characters, but at least 16 are required/);
  assert.doesNotMatch(err, /openssl/);
  assert.match(err, /Copy the token from the server’s token file or its log/);
});

describe('wrong input', () => {
  for (const [words, code, told] of [
    [[capture], 2, /there is no terminal to draw on[^]*top --once prints the view/],
    [['/nowhere.pcap', '--once'], 2, /cannot read \/nowhere\.pcap: no such file/],
    [[written('empty', ''), '--once'], 2, /empty is empty/],
    [
      [written('text', 'hello\nworld\n'), '--once'],
      2,
      /is not a capture, a dnstap stream or a query log/,
    ],
    [[directory, '--once'], 2, /is a directory, not a capture/],
    [['-i', 'nosuch0', '--once'], 2, /there is no interface nosuch0|permission denied/],
    [
      ['--netns', '/nowhere', '--once'],
      2,
      /there is no network namespace \/nowhere|permission denied/,
    ],
    [[capture, 'name=redis', '--once'], 3, /name=redis is a filter.*\n.*--name redis/],
    [[capture, '-i', 'any'], 3, /files cannot be combined with a live capture/],
    [[capture, '--speed', '0'], 3, /--speed takes a number from 0\.01 to 100000, or max/],
    [['-i', 'any', '--speed', '2'], 3, /--speed needs a file/],
    [[capture, '--sort', 'name'], 3, /the now view cannot be sorted/],
    [
      [capture, '--view', 'names', '--sort', 'nam'],
      3,
      /cannot be sorted by "nam": did you mean name/,
    ],
    [[capture, '--namespace', 'shop'], 3, /--namespace needs --cluster or --manifests/],
    [[capture, '--once', '--rcode', 'NIX'], 3, /--rcode takes a result code/],
    [[capture, '--command', 'curl'], 3, /--command needs ndots capture --process/],
    [[capture, '--view', 'nothing'], 3, /--view/],
  ] as const)
    test(`${words.join(' ').replace(directory, '')} is reported`, async () => {
      const ran = await runCommand(top, words);
      assert.equal(ran.code, code, ran.err);
      assert.match(ran.err, told);
    });
});
