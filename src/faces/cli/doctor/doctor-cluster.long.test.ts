import { describe, test } from 'node:test';
import assert from 'node:assert/strict';
import { clusterFaults } from '../../../../test/kit/cluster-faults.ts';
import { LivingCluster } from '../../../../test/kit/living-cluster.ts';

/** Tests faults that show up only while waiting for missing replies. */

describe('ndots doctor cluster without replies', () => {
  for (const [what, { code, slow = false, ...fault }] of Object.entries(clusterFaults)) {
    if (!slow) continue;
    test(`${what}: ${code}`, async () => {
      await using cluster = await LivingCluster.start(fault);
      const { findings } = await cluster.examine();
      const told = findings.map((each) => `${each.code} ${each.severity} ${each.seen.join(' ')}`);
      assert.equal(findings[0]?.code, code, told.join('\n'));
    });
  }
});
