import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { controlGroups } from '../../../test/kit/control-groups.ts';
import { memoryLimit } from './memory-limit.ts';

const MIB = 1024 * 1024;

void suite('memory limit of the process', () => {
  const groupFiles = controlGroups();

  /** Returns the limit computed from these files. */
  function limitWith(own: string, groups: Readonly<Record<string, string>>): number {
    return memoryLimit(groupFiles(own, groups));
  }

  test('is that of its container with cgroup v2, where its group is the root', () => {
    assert.equal(limitWith('0::/\n', { 'memory.max': `${170 * MIB}\n` }), 170 * MIB);
  });

  test('is that of the parent group if the nested group sets no limit', () => {
    const v2 = { 'a/memory.max': `${170 * MIB}\n`, 'a/b/memory.max': 'max\n' };
    assert.equal(limitWith('0::/a/b\n', v2), 170 * MIB);
    const v1 = {
      'memory/a/memory.limit_in_bytes': `${170 * MIB}\n`,
      'memory/a/b/memory.limit_in_bytes': '9223372036854771712\n',
    };
    assert.equal(limitWith('4:memory:/a/b\n1:cpu:/\n', v1), 170 * MIB);
  });

  test('is the tightest of nested groups, including throttling limits', () => {
    const groups = { 'a/memory.max': `${99 * MIB}\n`, 'a/b/memory.max': `${200 * MIB}\n` };
    assert.equal(limitWith('0::/a/b\n', groups), 99 * MIB);
    assert.equal(limitWith('0::/a\n', { ...groups, 'a/memory.high': `${80 * MIB}` }), 80 * MIB);
  });

  test('is infinite if the files are missing or malformed', () => {
    for (const text of ['', '\n', 'max\n', '0\n', '-1\n', '1e3\n', '0x10\n', 'NaN', 'text\n'])
      assert.equal(limitWith('0::/\n', { 'memory.max': text }), Infinity, JSON.stringify(text));
    assert.equal(limitWith('0::/\n', { 'memory.max': `${'9'.repeat(400)}\n` }), Infinity);
    assert.equal(limitWith('', {}), Infinity);
  });
});
