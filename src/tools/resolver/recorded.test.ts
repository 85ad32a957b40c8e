import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { differencesFrom, readRecorded } from '../../../test/kit/recorded.ts';

describe('the models repeat the recorded programs of each version', () => {
  for (const recorded of readRecorded()) {
    for (const run of recorded.runs) {
      const { client, same = [] } = run;
      const label = same.length === 0 ? client : `${client} and ${same.join(', ')}`;
      test(`${recorded.id}: ${label}`, async () => {
        for (const one of [client, ...same]) {
          assert.deepEqual(await differencesFrom(recorded, { ...run, client: one }), [], one);
        }
      });
    }
  }
});
