import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { compilePattern, PatternError, type Pattern } from '../../src/server/base/pattern.ts';
import { seededRandom } from '../../src/server/base/random.ts';
import { hasProgram } from '../kit/real-resolver.ts';
import { askGo, readRecorded, type Recorded } from './ask-go.ts';
import { randomCases } from './cases.ts';

/** Patterns that only Go accepts: other spellings of Unicode group names, and two groups with the same name. */
const onlyGo: readonly RegExp[] = [/^\\p\{(lu|Letter)\}$/, /\(\?P?<(\w+)>.*\(\?P?<\1>/s];

/** The pattern, or the reason why it was refused. */
function compile(pattern: string): Pattern | string {
  try {
    return compilePattern(pattern);
  } catch (error) {
    assert.ok(error instanceof PatternError, String(error));
    return error.message;
  }
}

/** The groups that matched, at the positions that Go reports. */
function groupsAt(places: readonly number[] | null, text: string): (string | undefined)[] | null {
  if (places === null) return null;
  return Array.from({ length: places.length / 2 }, (_, group) =>
    places[2 * group]! < 0 ? undefined : text.slice(places[2 * group], places[2 * group + 1]),
  );
}

/** Describes the differences from Go in a pattern and its matches. */
function differences({
  pattern,
  texts,
  error,
  groups,
  names = [],
  matches = [],
}: Recorded): string[] {
  if (onlyGo.some((one) => one.test(pattern))) return [];
  const compiled = compile(pattern);
  if (typeof compiled === 'string' || error !== undefined) {
    return (typeof compiled === 'string') === (error !== undefined)
      ? []
      : [
          `${pattern}: ${typeof compiled === 'string' ? compiled : 'taken'}; Go: ${error ?? 'taken'}`,
        ];
  }
  const found: string[] = [];
  if (compiled.groupCount !== groups) found.push(`${pattern} has ${compiled.groupCount} groups`);
  texts.forEach((text, index) => {
    const match = compiled.exec(text);
    const wanted = groupsAt(matches[index] ?? null, text);
    const [is, be] = [match?.groups ?? null, wanted].map((one) => JSON.stringify(one));
    if (is !== be) found.push(`${pattern} on ${JSON.stringify(text)}: ${is}; Go: ${be}`);
    if (compiled.test(text) !== (wanted !== null)) found.push(`${pattern} tests ${text} wrongly`);
    names.forEach((name, group) => {
      if (name !== '' && match !== null && match.named[name] !== match.groups[group])
        found.push(`${pattern} on ${text}: group ${name} is not group ${group}`);
    });
  });
  return found;
}

describe("patterns mean the same as in Go's regexp, which CoreDNS uses", () => {
  const { cases } = readRecorded();

  test('they match the same texts and groups, and the same ones are refused', () => {
    assert.ok(cases.length > 500);
    assert.deepEqual(cases.flatMap(differences), []);
  });

  test('they are refused with the same words', () => {
    const others = cases
      .filter(({ pattern, error }) => error !== undefined && compile(pattern) !== error)
      .map(({ pattern }) => pattern);
    // The pattern has two errors, and Go reports the other one.
    assert.deepEqual(others, ['(?P<']);
  });

  const skip = hasProgram('go') ? false : 'needs Go';
  test('random patterns and texts agree as well', { skip }, () => {
    const seed = Math.floor(Math.random() * 2 ** 31);
    const found = askGo(randomCases(seededRandom(seed), 5000)).flatMap(differences);
    assert.deepEqual(found, [], `seed ${seed}`);
  });
});
