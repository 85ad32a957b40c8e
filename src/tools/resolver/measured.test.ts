import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { compareRuns } from '../../../test/kit/compare-runs.ts';
import { labelled, readMeasured, runModel } from '../../../test/kit/measured.ts';

/** Runs that the model does not reproduce, and why. These are also listed in docs/resolvers.md. */
const known = new Map([
  [
    '12f evdns',
    'two time-outs fall together after 10 s; which family goes first, and so which server it gets, is left to chance',
  ],
]);

describe('the models send the queries of the real resolvers', () => {
  for (const { scenario, runs } of readMeasured()) {
    for (const run of runs) {
      const by = labelled(run.client);
      const label = `${scenario.id} ${run.client}`;
      test(`${label}: ${scenario.title}`, async (t) => {
        const reason = known.get(label);
        if (reason !== undefined) return t.skip(reason);
        assert.ok(by !== null, `no model for ${run.client}`);
        const found = await compareRuns(run, by, (random, startsInOrder) =>
          runModel(scenario, by, random, undefined, startsInOrder),
        );
        return assert.deepEqual(found, []);
      });
    }
  }
});
