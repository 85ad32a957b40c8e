import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Captured } from '../../../../test/kit/packets.ts';
import { examine } from '../../../../test/kit/story.ts';
import { asked, ends, inOrder } from '../../../../test/kit/story-parts.ts';

const [DNS, UPSTREAM] = ['10.42.2.32', '10.0.0.2'];
const REFUSED = 5;

/** Thirty seconds, of which every third has many queries. @param isRefused the query's place in its second, and that of the second */
function atUpstream(isRefused: (nth: number, second: number) => boolean): readonly Captured[] {
  let id = 0;
  return inOrder(
    Array.from({ length: 30 }, (_, second) =>
      Array.from({ length: second % 3 === 1 ? 40 : 8 }, (__, nth) => {
        id++;
        const rcode = isRefused(nth, second) ? REFUSED : 0;
        const way = ends(DNS, 20_000 + id, UPSTREAM);
        return asked(second * 1000 + nth * 20, way, `n${id}.example.com.`, id, { rcode });
      }).flat(),
    ),
  );
}

const codes = async (packets: readonly Captured[]): Promise<readonly string[]> =>
  (await examine(packets)).findings.map(({ code }) => code);

test('refusals above a certain query rate show a rate limit', async () => {
  const { findings } = await examine(atUpstream((nth) => nth >= 15));
  assert.equal(findings[0]!.code, 'ND4045');
  assert.match(findings[0]!.seen[1]!, /about 15 were answered/);
});

test('refusals at any rate do not show a rate limit', async () => {
  assert.ok(!(await codes(atUpstream((nth) => nth % 3 === 0))).includes('ND4045'));
  assert.ok(!(await codes(atUpstream((_, second) => second > 10))).includes('ND4045'));
});
