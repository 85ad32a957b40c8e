/**
 * Tests the other profiles in deploy/seccomp. Under its own profile, each subcommand must pass the tests of its real
 * work.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { basename, resolve } from 'node:path';
import { describe, test } from 'node:test';
import { noApiServer } from '../kit/cluster/programs.ts';
import { noNodeWorld } from '../kit/node-world.ts';
import { noProcessWorld } from '../kit/process-world.ts';
import { noFilters } from '../kit/seccomp.ts';

/** Maps a profile to its subcommand's tests and to the reason why they cannot run here. */
const verbs: Readonly<Record<string, readonly [files: readonly string[], missing: string | null]>> =
  {
    capture: [['capture-process.test.ts'], noProcessWorld()],
    check: [['check.test.ts', 'check-kuberhealthy.test.ts'], null],
    'node-cache': [['node-cache.test.ts', 'node-cache-upgrade.test.ts'], noNodeWorld()],
    size: [['autoscaler.cluster.test.ts'], noApiServer()],
    webhook: [['webhook.cluster.test.ts'], noApiServer()],
  };

describe('under its own seccomp profile', () => {
  test('each verb that has one is tested', () => {
    const profiles = readdirSync('deploy/seccomp').map((file) => basename(file, '.json'));
    assert.deepEqual(profiles.toSorted(), [...Object.keys(verbs), 'serve'].toSorted());
  });

  for (const [verb, [files, missing]] of Object.entries(verbs))
    test(`ndots ${verb} does all that it does`, { skip: noFilters() ?? missing ?? false }, () => {
      const paths = files.map((file) => `test/real/${file}`);
      // Make it a separate run instead of a part of the current one.
      const { NODE_TEST_CONTEXT: _, ...env } = process.env;
      const { status, stdout } = spawnSync(process.execPath, ['tools/test.ts', ...paths], {
        env: { ...env, NDOTS_SECCOMP_PROFILES: resolve('deploy/seccomp') },
        encoding: 'utf8',
        timeout: 600_000,
      });
      assert.equal(status, 0, stdout);
      assert.match(stdout, /^[1-9]\d* passed, 0 failed/m);
    });
});
