import assert from 'node:assert/strict';
import { test } from 'node:test';
import { examine } from '../../../../test/kit/story.ts';
import { asked, ends, inOrder } from '../../../../test/kit/story-parts.ts';

const TYPES = ['A', 'AAAA'] as const;

/** 30 pairs of A and AAAA, each from a socket of its own. @param isLost whether a query gets no reply */
async function codesOf(
  isLost: (pair: number, type: number) => boolean,
): Promise<readonly string[]> {
  const packets = Array.from({ length: 30 }, (_, i) =>
    TYPES.flatMap((type, t) =>
      asked(i * 400 + t * 0.1, ends('10.244.1.5', 30_000 + i), `n${i}.example.com.`, 2 * i + t, {
        type,
        tookMs: isLost(i, t) ? null : 0.6,
      }),
    ),
  );
  const { findings } = await examine(inOrder(packets));
  return findings.map(({ code }) => code);
}

test('each socket gets one reply, that to A or to AAAA', async () => {
  assert.equal((await codesOf((pair, type) => type === pair % 2))[0], 'ND3022');
});

test('some sockets get both replies: it is not one reply for each', async () => {
  assert.ok(!(await codesOf((pair, type) => pair % 3 > 0 && type === pair % 2)).includes('ND3022'));
});

test('AAAA is never answered: it goes by the type', async () => {
  assert.ok(!(await codesOf((_, type) => type === 1)).includes('ND3022'));
});
