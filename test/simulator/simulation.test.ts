import assert from 'node:assert/strict';
import { test } from 'node:test';
import { simulate } from './simulation.ts';

for (const seed of [1, 2])
  test(`a server whose surroundings fail at random answers what was true (seed ${seed})`, async () => {
    const report = await simulate(seed, { storms: 2, steps: 40 });
    assert.ok(report.judged > 300, JSON.stringify(report));
    assert.ok(
      report.faults > 5 && report.reloads > 2 && report.restarts > 0,
      JSON.stringify(report),
    );
  });
