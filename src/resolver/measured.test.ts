import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { differences } from '../../test/kit/compare-runs.ts';
import { labelled, readMeasured, runModel } from '../../test/kit/measured.ts';

describe('the models send what the real resolvers sent', () => {
  for (const { scenario, runs } of readMeasured()) {
    for (const run of runs) {
      const by = labelled(run.client);
      if (by === null) continue;
      test(`${scenario.id} ${run.client}: ${scenario.title}`, async () => {
        const model = await runModel(scenario, by);
        assert.deepEqual(differences(scenario, run, model, by), []);
      });
    }
  }
});
