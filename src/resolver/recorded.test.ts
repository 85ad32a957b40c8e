import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { differencesFrom, readRecorded } from '../../test/kit/recorded.ts';

describe('the models do what programs of each version were seen to do', () => {
  for (const recorded of readRecorded()) {
    for (const run of recorded.runs) {
      test(`${recorded.id}: ${run.client}`, async () => {
        assert.deepEqual(await differencesFrom(recorded, run), []);
      });
    }
  }
});
