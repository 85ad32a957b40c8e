import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { complete, DIRECTIVE, printCandidates } from './complete.ts';

async function offered(line: string): Promise<string[]> {
  const { list } = await complete(line.split(' '), {});
  return list.map(([word]) => word);
}

describe('completion offers', () => {
  const cases: [line: string, words: string[]][] = [
    ['tr', ['trace']],
    ['help q', ['query']],
    ['completion f', ['fish']],
    ['serve -tr', ['-transport']],
    ['serve -transport b', ['batched']],
    ['-transport p', ['plain']],
    ['trace --res', ['--resolv-conf']],
    ['trace --output=js', ['--output=json']],
    ['trace -o js', ['json']],
    ['trace --client c-ares,mus', ['c-ares,musl']],
    ['trace --from dep', ['deploy/']],
    ['query +norec', ['+norecurse']],
    ['query +tc', ['+tcp']],
    ['query example.com SR', ['SRV']],
    ['lab ', ['run', 'init']],
    ['lab run node-cache-k', ['node-cache-killed']],
    ['lab down ', []],
    ['cache explain ', []],
    ['doctor --explain ND30', ['ND3001']],
    ['capture --verdict l', ['lost']],
    ['capture --not com', ['command=']],
    ['top --com', []],
    ['top --not con', []],
    ['nonsense ', []],
  ];
  for (const [line, words] of cases) {
    test(`"${line}": ${words.join(' ') || 'nothing'}`, async () => {
      const found = await offered(line);
      for (const word of words) assert.ok(found.includes(word), found.join(' '));
      assert.equal(new Set(found).size, found.length, found.join(' '));
      if (words.length === 0) assert.deepEqual(found, []);
    });
  }

  test('files where a file is expected, and no space where a list continues', async () => {
    assert.equal((await complete(['trace', '--hosts', ''], {})).directive, DIRECTIVE.files);
    assert.equal(
      (await complete(['trace', '--client', 'mu'], {})).directive,
      DIRECTIVE.noFiles | DIRECTIVE.noBlank,
    );
  });

  test('candidates are printed in the format that kubectl reads', () => {
    assert.equal(
      printCandidates({
        list: [
          ['a', ''],
          ['b', 'the second'],
        ],
        directive: 4,
      }),
      'a\nb\tthe second\n:4\n',
    );
  });
});
