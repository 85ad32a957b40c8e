import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { stories } from '../../../../test/kit/stories.ts';
import { examine } from '../../../../test/kit/story.ts';

/**
 * Each account of Kubernetes DNS going wrong, played with models of real resolvers, leads to the
 * finding that names its cause.
 */

const seeds =
  process.env['SEEDS'] === undefined
    ? [1]
    : Array.from({ length: Number(process.env['SEEDS']) }, (_, i) => i + 1);

describe('the first finding of a capture', () => {
  for (const story of stories) {
    test(`${story.name}: ${story.code ?? 'nothing critical'}`, async () => {
      for (const seed of new Set([...seeds, ...(story.seeds ?? [])])) {
        const { findings } = await examine(await story.packets(seed), story.lines);
        const told = findings.map(
          ({ code, severity, confidence }) => `${code} ${severity} ${confidence}`,
        );
        for (const { code } of findings)
          assert.ok(!story.without?.includes(code), `seed ${seed}: ${told.join(', ')}`);
        if (story.code === null) {
          assert.deepEqual(
            findings.filter(({ severity }) => severity === 'critical'),
            [],
            told.join(', '),
          );
          continue;
        }
        assert.equal(findings[0]?.code, story.code, `seed ${seed}: ${told.join(', ')}`);
        if (story.seen !== undefined)
          assert.ok(
            findings[0].seen.some((each) => story.seen!.test(each)),
            `seed ${seed}: ${findings[0].seen.join(' ')}`,
          );
        for (const code of story.also ?? [])
          assert.ok(
            findings.some((each) => each.code === code),
            `seed ${seed}: ${told.join(', ')}`,
          );
        for (const { seen, why, fix, prove, disproved } of findings)
          for (const text of [...seen, why, ...fix, prove, disproved])
            assert.doesNotMatch(
              text,
              /[^.]\.\.(?:[^.]|$)/,
              'a name’s dot and that of its sentence',
            );
      }
    });
  }
});
