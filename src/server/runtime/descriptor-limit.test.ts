import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { describe, test } from 'node:test';
import { descriptorLimit } from './descriptor-limit.ts';

describe('the limit of descriptors', () => {
  test('matches the limit reported by the system', (t) => {
    if (process.platform !== 'linux') return t.skip('needs /proc');
    const code = `import { descriptorLimit } from ${JSON.stringify(new URL('./descriptor-limit.ts', import.meta.url).href)};
      console.log(descriptorLimit());`;
    const command = `ulimit -n 100; exec '${process.execPath}' --input-type=module -e '${code}'`;
    assert.equal(Number(execFileSync('sh', ['-c', command], { encoding: 'utf8' })), 100);
  });

  test('is infinite if the system does not report one', () => {
    assert.equal(descriptorLimit('/no/such/file'), Infinity);
  });
});
