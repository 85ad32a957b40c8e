import assert from 'node:assert/strict';
import { test } from 'node:test';
import { playDay } from './day.ts';

const large = { nodes: 4000, services: 2000, ticks: 288 } as const;

test('ten days of a large cluster, each with its own seed: no wrong answer', async (t) => {
  const first = Math.floor(Math.random() * 2 ** 31);
  t.diagnostic(`seeds from ${first}`);
  for (let seed = first; seed < first + 10; seed++) {
    const { judged, diagnosis } = await playDay({ ...large, seed, factor: 1e-5 });
    assert.ok(judged > 20_000, String(judged));
    const wrong = diagnosis.findings.filter(({ severity }) => severity !== 'info');
    assert.deepEqual(wrong, [], `seed ${seed}`);
  }
});

test('upstreams that are silent for an hour are found by doctor, and no answer is wrong', async () => {
  const { diagnosis } = await playDay({ ...large, seed: 3, factor: 1e-5, outage: [14, 15] });
  assert.equal(diagnosis.findings[0]?.severity, 'critical');
});
