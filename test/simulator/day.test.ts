import assert from 'node:assert/strict';
import { test } from 'node:test';
import { loadAt, playDay } from './day.ts';

/** Findings that are mere advice and apply to any cluster with ndots:5. */
const advice = (diagnosis: { readonly findings: readonly { readonly severity: string }[] }) =>
  diagnosis.findings.filter(({ severity }) => severity !== 'info');

test('the rate of the day is lowest at 2 and highest at 14', () => {
  const rates = Array.from({ length: 24 }, (_, hour) => loadAt(hour));
  assert.equal(rates.indexOf(Math.max(...rates)), 14);
  assert.equal(rates.indexOf(Math.min(...rates)), 2);
  assert.equal(loadAt(14), 1);
});

test('a day of a cluster of 4 000 nodes: no wrong answer, and doctor finds nothing wrong', async () => {
  const report = await playDay({ seed: 2, nodes: 4000, services: 150, ticks: 12, factor: 6e-7 });
  assert.ok(report.judged > 1500, JSON.stringify(report.judged));
  assert.ok(report.byNodeCache > 100, JSON.stringify(report.byNodeCache));
  const { rollouts, scalings, failures, drains, created, deleted } = report.events;
  for (const count of [rollouts, scalings, failures, drains, created, deleted])
    assert.ok(count > 0, JSON.stringify(report.events));
  assert.deepEqual(advice(report.diagnosis), []);
});
