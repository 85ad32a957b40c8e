/** A running server's `console` directive, read by a running `ndots top`. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { promisify } from 'node:util';
import type { ChangedAnswer } from '../../src/tools/watch/reload-shape.ts';
import type { Views } from '../../src/tools/watch/view.ts';
import { start } from '../kit/child.ts';
import { missing } from '../kit/dig.ts';
import { freePorts } from '../kit/free-ports.ts';
import { serveProcess, type ServeProcess } from '../kit/serve-process.ts';

const directory = mkdtempSync(join(tmpdir(), 'ndots-tap-'));
after(() => rmSync(directory, { recursive: true, force: true }));
const token = join(directory, 'token');
writeFileSync(token, 'a-token-that-is-long-enough');
const bin = new URL('../../bin/ndots', import.meta.url).pathname;
const run = promisify(execFile);

async function ask({ port }: ServeProcess, name: string): Promise<string> {
  const words = ['+short', '+time=3', '+tries=1', '@127.0.0.1', '-p', String(port), name];
  return (await run('dig', words)).stdout;
}

const corefile = (at: number, addresses = '192.0.2.1'): string =>
  `  console 127.0.0.1:${at} {\n  token_file ${token}\n  }\n  hosts {\n  ${addresses} a.example\n  }`;

describe('live queries of running servers', { skip: missing('dig') ?? false }, () => {
  test('top shows the queries of two servers, and which one is unavailable', async (t) => {
    const [one, two, none] = await freePorts(3);
    const servers = [await serveProcess(corefile(one)), await serveProcess(corefile(two))];
    t.after(() => Promise.all(servers.map((server) => server.stop())));
    const followed = [one, two, none].flatMap((port) => ['--server', `127.0.0.1:${port}`]);
    const top = start('top', [
      bin,
      'top',
      ...followed,
      '--server-token',
      token,
      '-o',
      'json',
      '--view',
      'servers',
    ]);
    t.after(() => top.stop());
    let seen: Views['servers'] | null = null;
    while (seen?.rows.length !== 2) {
      for (const server of servers) assert.equal(await ask(server, 'a.example'), '192.0.2.1\n');
      const line = top
        .output()
        .split('\n')
        .findLast((text) => text.endsWith('}'));
      seen = line === undefined ? null : (JSON.parse(line) as Views['servers']);
    }
    assert.deepEqual(
      seen.rows.map(({ id }) => id).toSorted(),
      [`127.0.0.1:${one}`, `127.0.0.1:${two}`].toSorted(),
    );
    assert.match(
      seen.remarks[0]!,
      new RegExp(`^1 of 3 inputs is away since .*127.0.0.1:${none}: `),
    );
  });

  test('the example of docs/console.md: a reload changes one of two answers', async (t) => {
    const page = readFileSync(new URL('../../docs/console.md', import.meta.url), 'utf8');
    const [, example = ''] = /```corefile\n\. \{\n {4}console\n([^]*?)\}\n```/.exec(page) ?? [];
    const [, json = ''] = /```json\n(\{\n {2}"name"[^]*?)```/.exec(page) ?? [];
    const [at] = await freePorts(1);
    const console = `  console 127.0.0.1:${at} {\n  token_file ${token}\n  }\n`;
    const server = await serveProcess(console + example);
    t.after(() => server.stop());
    const words = ['--server', `127.0.0.1:${at}`, '--server-token', token];
    const top = start('top', [bin, 'top', ...words, '-o', 'json', '--view', 'now']);
    t.after(() => top.stop());
    /** Queries both names until the view contains this. */
    const until = async (holds: (now: Views['now']) => boolean): Promise<Views['now']> => {
      for (let turn = 0; turn < 200; turn++) {
        for (const name of ['db.example', 'web.example']) await ask(server, name);
        const line = top
          .output()
          .split('\n')
          .findLast((text) => text.endsWith('}'));
        const now = line === undefined ? null : (JSON.parse(line) as Views['now']);
        if (now !== null && holds(now)) return now;
      }
      assert.fail(top.output().slice(-2000));
    };
    await until(({ queries }) => queries >= 4);
    server.reload(console + example.replace('192.0.2.1 ', '192.0.2.2 '));
    const { reloads, changes } = await until(
      ({ reloads: [reload] }) => reload?.changed === 1 && reload.compared === 2,
    );
    const [{ name, type, kind, before, after: later, clients }] = reloads[0]!.answers as [
      ChangedAnswer,
    ];
    assert.deepEqual({ name, type, kind, before, after: later }, JSON.parse(json));
    assert.equal(clients, 1);
    assert.equal(
      changes.rows.find((row) => row.kind === 'reload')!.text,
      `server 127.0.0.1:${at} serves a new configuration: 1 answer changed`,
    );
  });

  test('an address in use prevents startup and is reported', async (t) => {
    const [at] = await freePorts(1);
    const first = await serveProcess(corefile(at));
    t.after(() => first.stop());
    const path = join(directory, 'Corefile');
    writeFileSync(path, `.:${(await freePorts(1))[0]} {\n${corefile(at)}\n}\n`);
    const second = start('second', [bin, 'serve', '--conf', path]);
    assert.notEqual(await second.exitCode, 0);
    assert.match(second.output(), new RegExp(`127.0.0.1:${at}.*in use|${at}`));
  });

  test('--server without a token says where it is', async () => {
    const child = start('top', [bin, 'top', '--server', '127.0.0.1', '--once']);
    assert.equal(await child.exitCode, 3);
    assert.match(child.output(), /require a token/);
  });
});
