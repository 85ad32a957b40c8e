import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { serveProcess } from '../../../../test/kit/serve-process.ts';
import { makeWorld } from '../../../../test/kit/world.ts';
import { splitCommand } from './split-command.ts';

describe('a command line', () => {
  for (const [text, words] of [
    ['echo hi', ['echo', 'hi']],
    ['  a\tb  ', ['a', 'b']],
    ['sh -c "a b"', ['sh', '-c', 'a b']],
    [`a 'b "c' d"e f"g`, ['a', 'b "c', 'de fg']],
    ['a "" b', ['a', '', 'b']],
    ['a\\ b "c\\"d"', ['a b', 'c"d']],
    ['a b#c #d e', ['a', 'b#c']],
    ['a "b', null],
    ['', []],
  ] as const) {
    test(`${JSON.stringify(text)} is ${JSON.stringify(words)}`, () => {
      assert.deepEqual(splitCommand(text), words);
    });
  }
});

describe('on', () => {
  test('commands run at startup, reload and shutdown, and a failed one does not stop the server', async (t) => {
    const directory = mkdtempSync(join(tmpdir(), 'ndots-on-'));
    t.after(() => rmSync(directory, { recursive: true, force: true }));
    const file = join(directory, 'ran');
    const server = await serveProcess(
      `  on startup sh -c "'exit 3'"
  on STARTUP gone-${process.pid}
  on startup sh -c "'echo begins >>${file}'"
  on shutdown sh -c "'echo ends >>${file}'"
  whoami`,
    );
    t.after(() => server.stop());
    assert.equal(readFileSync(file, 'utf8'), 'begins\n');
    assert.match(server.child.output(), /Command "sh -c exit 3" failed: exit status 3/);
    assert.match(server.child.output(), /Command "gone-\d+" failed: no such file or directory/);
    server.child.signal('SIGTERM');
    assert.equal(await server.child.exitCode, 0, server.child.output());
    assert.equal(readFileSync(file, 'utf8'), 'begins\nends\n');
  });

  for (const [lines, message] of [
    ['on', /Wrong argument count/],
    ['on tuesday echo', /Wrong event name or event not supported: 'tuesday'/],
    ['on startup', /no command contained in ''/],
    [`on startup echo 'a`, /EOF found when expecting closing quote/],
  ] as const) {
    test(`rejected: ${lines}`, async () => {
      await assert.rejects(makeWorld(`.:53 {\n ${lines}\n whoami\n}`), message);
    });
  }
});
