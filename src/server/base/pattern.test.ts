import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { costsAtMost } from '../../../test/kit/growth.ts';
import { compilePattern, PatternError } from './pattern.ts';
import { seededRandom } from './random.ts';

function refusal(source: string): PatternError {
  try {
    compilePattern(source);
  } catch (error) {
    assert.ok(error instanceof PatternError);
    return error;
  }
  return assert.fail(`${source.slice(0, 40)} is taken`);
}

/** Generates a string of the letters a and b. */
function letters(count: number, seed: number): string {
  const random = seededRandom(seed);
  return Array.from({ length: count }, () => 'ab'[random.integer(2)]!).join('');
}

describe('patterns', () => {
  test('a group that did not take part is undefined, by number and by name', () => {
    const { groups, named } = compilePattern('(?P<first>a)|(?<second>b)').exec('xb')!;
    assert.deepEqual(groups, ['b', undefined, 'b']);
    assert.deepEqual(named, { first: undefined, second: 'b' });
  });

  test('patterns keep no state between texts', () => {
    const pattern = compilePattern('(a+)(b*)');
    for (const text of ['aab', 'ab', 'x', 'aab']) {
      assert.deepEqual(pattern.exec(text)?.groups[0], /a+b*/.exec(text)?.[0]);
      assert.equal(pattern.test(text), text !== 'x');
    }
  });

  test('RE2 has no backreferences or lookarounds, and the hint says so', () => {
    const { message, hint } = refusal('(a)\\1');
    assert.equal(message, 'error parsing regexp: invalid escape sequence: `\\1`');
    assert.match(hint, /without backreferences and lookarounds/);
    assert.match(refusal('(?P<a>x)(?P<a>y)').hint, /different name/);
    assert.match(refusal('(x{100}){11}').hint, /must not exceed 1000/);
  });
});

describe('limits of patterns', () => {
  test("10 000 bytes are accepted; one more is refused with CoreDNS's message", () => {
    assert.equal(compilePattern('é'.repeat(5000)).test('é'.repeat(5000)), true);
    assert.equal(refusal(`${'é'.repeat(5000)}a`).message, 'regex pattern too long: 10001 > 10000');
  });

  test('a list of thousands of names is accepted', () => {
    const names = Array.from({ length: 550 }, (_, index) => `host-${index}\\.example`);
    const pattern = compilePattern(`^(${names.join('|')})\\.$`);
    assert.equal(pattern.test('host-549.example.'), true);
    assert.equal(pattern.test('host-550.example.'), false);
  });

  for (const source of [
    '[ab]{1000}'.repeat(13),
    `(?:${'x'.repeat(9900)}){1000}`,
    `(?:[)]${'x'.repeat(99)}){999}`,
    `(?:\\)${'x'.repeat(9)}{10}){90}`.repeat(9),
  ]) {
    test(`${source.slice(0, 24)}… expands too far, and the hint shows the size`, async () => {
      const { kind, message, hint } = refusal(source);
      assert.equal(kind, 'size');
      assert.equal(message, `error parsing regexp: expression too large: \`${source}\``);
      assert.match(hint, /expand to about \d+ instructions; at most 12000 are allowed/);
      // Expanding it takes more than a hundred times as long as compiling the largest pattern allowed.
      await costsAtMost(
        20,
        () => refusal(source),
        () => compilePattern('[ab]{1000}'.repeat(6)),
      );
    });
  }

  test('counted repeats of ordinary size are accepted', () => {
    for (const source of [
      '^([a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?\\.){1,10}$',
      '^([0-9a-f]\\.){32}ip6\\.arpa\\.$',
      'x{1000}',
    ])
      assert.doesNotThrow(() => compilePattern(source));
  });

  test('texts that drive a pattern through ever new states do not exhaust memory', () => {
    setFlagsFromString('--expose-gc');
    const gc = runInNewContext('gc') as () => void;
    // The state records which of the last 17 characters were an a, which gives 131 072 combinations.
    const patterns = Array.from({ length: 4 }, (_, i) => compilePattern(`a[ab]{16}c{${i + 1}}d|c`));
    const attack = (from: number): void => {
      for (let seed = from; seed < from + 300; seed++)
        for (const pattern of patterns) assert.ok(pattern.test(`${letters(240, seed)}cd`));
    };
    const heap = (): number => {
      gc();
      return process.memoryUsage().heapUsed;
    };
    attack(1);
    const before = heap();
    attack(301);
    attack(601);
    const grown = heap() - before;
    assert.ok(grown < 500_000, `${grown} bytes`);
    assert.ok(before < 40_000_000, `${before} bytes`);
  });
});
