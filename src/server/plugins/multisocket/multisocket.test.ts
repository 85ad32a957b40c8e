import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { read } from '../../../../test/corefiles/read.ts';
import { bindConfiguration, workersWanted } from '../../engine/contract/configuration.ts';
import { plugins } from '../../../../test/kit/plugins.ts';

const workers = (directive: string, processors: number): number => {
  const { corefile } = read(`.:53 {\n ${directive}\n whoami\n}`);
  const configuration = bindConfiguration(corefile, plugins);
  if (configuration.problems.length > 0) throw configuration.problems[0]!;
  return workersWanted(configuration, processors);
};

describe('multisocket', () => {
  test('there are as many workers as configured, but not more than CPUs', () => {
    assert.equal(workers('multisocket 4', 8), 4);
    assert.equal(workers('multisocket 1024', 8), 8);
    assert.equal(workers('multisocket', 1), 1);
  });

  test('without it there is one worker, or two with at least four CPUs', () => {
    assert.equal(workers('errors', 2), 1);
    assert.equal(workers('errors', 4), 2);
  });

  test("errors use CoreDNS's wording", () => {
    assert.throws(() => workers('multisocket 0', 8), /num sockets can not be zero or negative: 0/);
    assert.throws(
      () => workers('multisocket 1025', 8),
      /num sockets exceeds maximum \(1024\): 1025/,
    );
    assert.throws(
      () => workers('multisocket some', 8),
      /invalid num sockets: strconv\.Atoi: parsing "some"/,
    );
  });
});
