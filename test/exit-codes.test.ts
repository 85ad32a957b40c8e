/** The exit codes of each command, in its help, on its page, and in its code. */
import assert from 'node:assert/strict';
import { existsSync, globSync, readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import { verbNames } from '../src/faces/cli/verb-names.ts';
import { loadUsage } from '../src/faces/cli/verbs.ts';

/** Codes that problems.md explains for all commands, and Nagios's. */
const CODES = new Set(['0', '1', '2', '3']);
/** Pages that describe a command, if they are not named after it. */
const pages: Readonly<Record<string, string>> = {
  serve: 'running',
  node: 'exec',
  query: 'problems',
};
/** Commands whose codes are documented with the other commands in problems.md. */
const withoutCodes = new Set(['completion', 'version']);

/** The codes in a text such as `0: done. 1: nothing shown` or `0 done, 3 usage error`. */
function codesIn(text: string): readonly string[] {
  const found =
    text.replaceAll(/\s+/g, ' ').match(/(?<![\w.:/])\d+(?=:? (?!s\b|ms\b|min\b))/g) ?? [];
  return [...new Set(found.filter((each) => CODES.has(each)))].toSorted();
}

/** The part of a page about exit codes: the table or paragraph that follows the words. */
function partOf(page: string): string {
  const table = /\| (?:exit )?code \| meaning \|\n[^]*?\n\n/.exec(page);
  if (table !== null) return table[0].replaceAll(/\n\| (\d+) \|/g, '\n $1: ');
  const [, text = ''] =
    /(?:\*\*Exit codes\.\*\*|Exit codes:|## Exit codes)\s*([^]*?)(?=\n##|$)/.exec(page) ?? [];
  const list = /^(?:- [^]*?)(?=\n\n)/.exec(text)?.[0];
  return list ?? /^[^]*?(?=\n\n|$)/.exec(text)![0];
}

for (const verb of verbNames.filter((each) => !withoutCodes.has(each)))
  describe(`ndots ${verb}`, () => {
    const help = async (): Promise<string> => {
      const { notes } = await loadUsage(verb);
      return notes.find((note) => note.includes('Exit codes:')) ?? '';
    };

    test('its help lists the exit codes', async () => {
      assert.notEqual(await help(), '');
    });

    test('its page lists the same ones', async () => {
      const file = `docs/${pages[verb] ?? verb}.md`;
      assert.ok(existsSync(file), file);
      const [, listed = ''] = /Exit codes: (.*)/.exec(await help()) ?? [];
      const own = listed.replace(/ With --nagios.*| More: .*/, '');
      const part = verb === 'query' ? '0: 1: 2: 3: ' : partOf(readFileSync(file, 'utf8'));
      assert.deepEqual(codesIn(part), codesIn(own), `${part}\n${own}`);
    });

    test('its code returns 1 only if the help lists it', async () => {
      const returns = globSync(`src/faces/cli/${verb}/*.ts`)
        .filter((file) => !file.endsWith('.test.ts'))
        .some((file) => /\bEXIT\.no\b/.test(readFileSync(file, 'utf8')));
      if (returns) assert.ok(codesIn(await help()).includes('1'), 'EXIT.no');
    });
  });
