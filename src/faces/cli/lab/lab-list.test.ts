import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { runCommand } from '../../../../test/kit/trace-command.ts';
import { stories } from '../../../tools/lab/stories.ts';
import { lab } from './lab.ts';

describe('the list of stories', () => {
  test('for programs has each story, and whether it can be played here', async () => {
    const { out, code } = await runCommand(lab, ['list', '-o', 'json'], { PATH: '' });
    assert.equal(code, 0);
    const listed = JSON.parse(out) as { name: string; here: string; lacks: string[] }[];
    assert.deepEqual(
      listed.map(({ name }) => name),
      stories.map(({ name }) => name),
    );
    for (const { here, lacks } of listed) {
      assert.ok(['played', 'model', 'no'].includes(here), here);
      assert.ok(here !== 'played' || lacks.length === 0);
    }
  });

  test('has no HTML output', async () => {
    const { err, code } = await runCommand(lab, ['list', '-o', 'html']);
    assert.equal(code, 3);
    assert.match(err, /list takes -o text or -o json/);
  });

  for (const columns of [40, 60, 80])
    test(`at ${columns} columns no line is longer, and nothing is cut`, async () => {
      const { out } = await runCommand(lab, ['list'], { PATH: '' }, { columns });
      for (const line of out.split('\n')) assert.ok(line.length <= columns, line);
      const words = out.replace(/\s+/g, ' ');
      for (const { name, title } of stories) {
        assert.ok(words.includes(name), name);
        assert.ok(words.includes(title), title);
      }
    });
});
