import { describe, test } from 'node:test';
import assert from 'node:assert/strict';
import { clusterTroubles } from '../../test/kit/cluster-troubles.ts';
import { LivingCluster } from '../../test/kit/living-cluster.ts';

/** Troubles that show by waiting for replies which do not come. */

describe('ndots doctor cluster, where nothing comes', () => {
  for (const [what, { code, slow = false, ...trouble }] of Object.entries(clusterTroubles)) {
    if (!slow) continue;
    test(`${what}: ${code}`, async () => {
      await using cluster = await LivingCluster.start(trouble);
      const { findings } = await cluster.examine();
      const told = findings.map((each) => `${each.code} ${each.severity} ${each.seen.join(' ')}`);
      assert.equal(findings[0]?.code, code, told.join('\n'));
    });
  }
});
