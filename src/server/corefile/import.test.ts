import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { read } from '../../../test/corefiles/read.ts';
import type { World } from '../../../test/corefiles/read.ts';
import { TOKENS_MAX } from './expand.ts';
import { parseCorefile } from './parse.ts';

const names = (text: string, world: World = {}): string[][] => {
  const { corefile, problems } = read(text, world);
  assert.deepEqual(
    problems.map(({ message }) => message),
    [],
  );
  return corefile.blocks.map(({ directives }) => directives.map(({ name }) => name));
};
const messages = (text: string, world: World = {}): string[] =>
  read(text, world).problems.map(({ message }) => message);

describe('snippets', () => {
  test('are replaced by their lines wherever they are imported', () => {
    assert.deepEqual(
      names(
        '(common) {\n errors\n log\n}\na {\n import common\n whoami\n}\nb {\n import common\n}',
      ),
      [
        ['errors', 'log', 'whoami'],
        ['errors', 'log'],
      ],
    );
  });

  test('may contain lines for a directive’s own block', () => {
    const { corefile } = read(
      '(ttl) {\n ttl 30\n}\n. {\n kubernetes {\n  pods insecure\n  import ttl\n }\n}',
    );
    assert.deepEqual(
      corefile.blocks[0]!.directives[0]!.block!.map(({ name, args }) => [name.text, args[0]?.text]),
      [
        ['pods', 'insecure'],
        ['ttl', '30'],
      ],
    );
  });

  test('may import snippets defined later, as long as they are defined when used', () => {
    assert.deepEqual(names('(a) {\n import b\n log\n}\n(b) {\n errors\n}\n. {\n import a\n}'), [
      ['errors', 'log'],
    ]);
  });

  test('may contain whole blocks for the top level', () => {
    assert.deepEqual(names('(servers) {\n a {\n  log\n }\n b {\n  errors\n }\n}\nimport servers'), [
      ['log'],
      ['errors'],
    ]);
  });

  test('are visible in files imported below them', () => {
    assert.deepEqual(names('(c) {\n log\n}\nimport f', { files: { f: 'a {\n import c\n}' } }), [
      ['log'],
    ]);
  });

  test('a problem inside one is reported once, however often it is imported', () => {
    assert.deepEqual(messages('(x) {\n nonsense\n}\na {\n import x\n}\nb {\n import x\n}'), [
      "Corefile:2 - Error during parsing: Unknown directive 'nonsense'",
    ]);
  });
});

describe('files', () => {
  test('are resolved relative to the importing file', () => {
    const files = { 'd/a': '. {\n import b\n}', 'd/b': 'log', b: 'errors' };
    assert.deepEqual(names('import d/a', { files }), [['log']]);
    assert.deepEqual(read('import d/a', { files }).corefile.files, ['Corefile', 'd/a', 'd/b']);
  });

  test('their words report their own file and line', () => {
    const { corefile } = read('. {\n import f\n}', { files: { f: '\nlog' } });
    assert.deepEqual(corefile.blocks[0]!.directives[0]!.at.place, {
      file: 'f',
      line: 2,
      column: 1,
    });
  });

  test('a pattern imports all matches in order; no match is a warning', () => {
    const files = {
      'c/2.server': 'b {\n log\n}',
      'c/1.server': 'a {\n errors\n}',
      'c/3.override': 'x',
    };
    const { corefile } = read('import c/*.server\n', { files });
    assert.deepEqual(
      corefile.blocks.map(({ keys }) => keys[0]!.text),
      ['a', 'b'],
    );
    const none = read('. {\n import none/*\n log\n}');
    assert.deepEqual(none.problems, []);
    assert.deepEqual(
      none.warnings.map(({ message }) => message),
      ['No files matching import glob pattern: none/*'],
    );
    assert.equal(none.corefile.blocks[0]!.directives.length, 1);
  });

  test('a file imported twice is read once and inserted twice', () => {
    const { corefile } = read('a {\n import f\n}\nb {\n import f\n}', { files: { f: 'log' } });
    assert.deepEqual(corefile.files, ['Corefile', 'f']);
    assert.deepEqual(
      corefile.blocks.map(({ directives }) => directives.length),
      [1, 1],
    );
  });

  test('an empty file adds nothing, also at the end', () => {
    assert.deepEqual(names('. {\n import f\n log\n import f\n}', { files: { f: '# none\n' } }), [
      ['log'],
    ]);
    assert.deepEqual(names('import f', { files: { f: '' } }), []);
  });

  test('the last word of a file and the word after the import are not on the same line', () => {
    const { corefile } = read('. {\n cache {\n  import f\n  keepttl\n }\n}', {
      files: { f: 'prefetch 1' },
    });
    assert.equal(corefile.blocks[0]!.directives[0]!.block!.length, 2);
  });

  test('import as an argument imports nothing', () => {
    assert.deepEqual(names('. {\n log import f\n}'), [['log']]);
  });

  test('the pattern may contain environment variables', () => {
    assert.deepEqual(names('. {\n import {$F}\n}', { env: { F: 'f' }, files: { f: 'log' } }), [
      ['log'],
    ]);
  });
});

describe('rejected imports', () => {
  const cases: [string, string, string][] = [
    ['no argument', 'import', "Wrong argument count or unexpected line ending after 'import'"],
    ['two arguments', 'import a b', 'Import takes only one argument (glob pattern or file)'],
    ['an empty name', 'import ""', 'Import requires a non-empty filepath'],
    ['an unset variable', 'import {$NONE}', 'Import requires a non-empty filepath'],
    ['a missing file', 'import nowhere', 'File to import not found: nowhere'],
    [
      'two stars',
      'import /*/*.txt',
      'Glob pattern may only contain one wildcard (*), but has others: /*/*.txt',
    ],
    [
      'two question marks',
      'import /??',
      'Glob pattern may only contain one wildcard (*), but has others: /??',
    ],
    [
      'a class',
      'import /[a-z]',
      'Glob pattern may only contain one wildcard (*), but has others: /[a-z]',
    ],
    ['half a class', 'import /[a', 'Failed to use import pattern /[a: syntax error in pattern'],
  ];
  for (const [what, line, text] of cases) {
    test(what, () => {
      assert.deepEqual(messages(`. {\n log\n ${line}\n}`), [
        `Corefile:3 - Error during parsing: ${text}`,
      ]);
    });
  }

  test('a directory or an unreadable file', () => {
    const refuse = (code: string): string => {
      const input = {
        file: 'Corefile',
        text: 'import d',
        dnsPort: 53,
        env: {},
        directives: [],
        glob: () => [],
        readFile: (): string => {
          throw Object.assign(new Error(`${code}: no`), { code });
        },
      };
      return parseCorefile(input).problems[0]!.message;
    };
    assert.equal(
      refuse('EISDIR'),
      'Corefile:1 - Error during parsing: Could not import d: is a directory',
    );
    assert.equal(
      refuse('EACCES'),
      'Corefile:1 - Error during parsing: Could not import d: permission denied',
    );
  });
});

describe('cycles end at CoreDNS’s limits', () => {
  test('a snippet that imports itself', () => {
    assert.deepEqual(
      messages('(loop) {\n import loop\n}\nimport loop')[0],
      'Corefile:2 - Error during parsing: maximum snippet import depth (10000) exceeded',
    );
  });

  test('snippets that import each other', () => {
    assert.deepEqual(
      messages('(a) {\n log\n import b\n}\n(b) {\n import a\n errors\n}\n. {\n import a\n}'),
      ['Corefile:6 - Error during parsing: maximum snippet import depth (10000) exceeded'],
    );
  });

  test('files that import each other', () => {
    assert.deepEqual(messages('import f', { files: { f: 'import g', g: 'import f' } }), [
      'g:1 - Error during parsing: maximum file import depth (100000) exceeded',
    ]);
    assert.deepEqual(messages('import Corefile', { files: { Corefile: 'import Corefile' } }), [
      'Corefile:1 - Error during parsing: maximum file import depth (100000) exceeded',
    ]);
  });

  test('imports that multiply end at the word limit', () => {
    const levels = Array.from(
      { length: 13 },
      (_, at) => `(s${at}) {\n import s${at + 1}\n import s${at + 1}\n}`,
    );
    const text = `(s13) {\n ${'log a b c d e f g\n'.repeat(100)}}\n${levels.join('\n')}\n. {\n import s0\n}`;
    assert.deepEqual(
      messages(text).map((message) => message.replace(/^Corefile:\d+ - /, '')),
      [`Error during parsing: the Corefile and its imports have more than ${TOKENS_MAX} words`],
    );
  });

  test('a file with too many words is rejected before servers are built from it', () => {
    for (const text of ['a '.repeat(TOKENS_MAX * 2), 'a{\n}\n'.repeat(TOKENS_MAX)])
      assert.match(messages(text).join('\n'), /have more than 65536 words/);
  });
});
