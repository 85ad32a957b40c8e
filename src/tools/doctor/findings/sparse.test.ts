/** Observations with gaps: a full table lacks entries that others have, and no finding may fail because of it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { seededRandom } from '../../../server/base/random.ts';
import { stories } from '../../../../test/kit/stories.ts';
import { look } from '../../../../test/kit/story.ts';
import { diagnose } from '../diagnosis.ts';
import { Observations } from '../observe/observations.ts';
import { everything } from '../part-diagnosis.ts';

const all = await Promise.all(
  stories.map(async (story) => ({ name: story.name, packets: await story.packets(1) })),
);

/** Tables that findings look up by a key from another one. Each story meets one of them, in turn. */
const tables = ['servers', 'clients', 'names', 'backends', 'types', 'flows', 'lines'] as const;
const perStory = process.env['TABLES'] === 'all' ? tables.length : 1;

/** The stack of the error that a diagnosis throws, or null. */
function failureOf(observed: Observations): string | null {
  try {
    diagnose(observed);
    return null;
  } catch (error) {
    return (error as Error).stack ?? String(error);
  }
}

test('no finding fails when one table of the observations has no entries', () => {
  const failures: string[] = [];
  for (const [at, { name, packets }] of all.entries()) {
    const [observed] = look(packets, [], [everything]);
    const none = new Observations(observed!.domains);
    for (let step = 0; step < perStory; step++) {
      const table = tables[(at + step) % tables.length]!;
      const without = Object.create(observed!, { [table]: { value: none[table] } }) as Observations;
      const failure = failureOf(without);
      if (failure !== null) failures.push(`${name}, without ${table}: ${failure}`);
    }
  }
  assert.deepEqual(failures, []);
});

test('no finding fails on a capture that lacks most packets', () => {
  const failures = all.flatMap(({ name, packets }, at) => {
    const random = seededRandom(at + 1);
    const kept = packets.filter(() => random.integer(10) < 4);
    const failure = failureOf(look(kept, [], [everything])[0]!);
    return failure === null ? [] : `${name}: ${failure}`;
  });
  assert.deepEqual(failures, []);
});
