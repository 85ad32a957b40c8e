import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { runCommand } from '../../../test/kit/trace-command.ts';
import { parseStartedCorefile } from './parse-corefile.ts';
import { loadVerb } from './verbs.ts';

const directory = mkdtempSync(join(tmpdir(), 'ndots-empty-'));
after(() => rmSync(directory, { recursive: true, force: true }));

/** CoreDNS 1.14.7 serves each of these as if it were its built-in Corefile, `.:53 { whoami log }`. */
const empty = {
  nothing: '',
  blanks: ' \n\t\n',
  comments: '# nothing\n  # here\n',
  'a snippet': '(common) {\n  errors\n}\n',
};

describe('an empty Corefile has one meaning for all verbs', () => {
  for (const [what, text] of Object.entries(empty)) {
    const file = join(directory, what.replaceAll(' ', '-'));
    writeFileSync(file, text);
    const run = async (verb: 'lint' | 'diff' | 'trace', ...words: string[]) =>
      runCommand(await loadVerb(verb), words);

    test(`${what}: the server answers by whoami, with a warning`, () => {
      const { corefile, problems, warnings } = parseStartedCorefile({
        ...{ file, text, dnsPort: 53, env: {} },
      });
      assert.deepEqual(problems, []);
      assert.deepEqual(
        corefile.blocks.flatMap((block) => block.directives.map(({ name }) => name)),
        ['whoami', 'log'],
      );
      assert.deepEqual(
        warnings.map(({ code }) => code),
        ['corefile-empty'],
      );
    });

    test(`${what}: lint, diff and trace say so, too`, async () => {
      const lint = await run('lint', file);
      assert.match(lint.out, /CF44: this Corefile is empty/);
      assert.equal(lint.code, 1);
      const diff = await run('diff', file, file);
      assert.match(diff.err, /this Corefile is empty/);
      assert.match(diff.out, /no answer changes/);
      const trace = await run('trace', 'www.example', '--corefile', file);
      assert.match(trace.err, /this Corefile is empty/);
      assert.doesNotMatch(trace.out, /no answer in/);
    });
  }
});
