import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { controlGroups } from '../../../test/kit/control-groups.ts';
import { memoryLimit } from './memory-limit.ts';

const MIB = 1024 * 1024;

void suite('the memory that a process may take', () => {
  const groupFiles = controlGroups();

  /** Returns the limit where the system shows these files. */
  function limitWith(own: string, groups: Readonly<Record<string, string>>): number {
    return memoryLimit(groupFiles(own, groups));
  }

  test('is that of its container, version 2, as it sees it at the top', () => {
    assert.equal(limitWith('0::/\n', { 'memory.max': `${170 * MIB}\n` }), 170 * MIB);
  });

  test('is that of the group around a nested one without a limit of its own', () => {
    const v2 = { 'a/memory.max': `${170 * MIB}\n`, 'a/b/memory.max': 'max\n' };
    assert.equal(limitWith('0::/a/b\n', v2), 170 * MIB);
    const v1 = {
      'memory/a/memory.limit_in_bytes': `${170 * MIB}\n`,
      'memory/a/b/memory.limit_in_bytes': '9223372036854771712\n',
    };
    assert.equal(limitWith('4:memory:/a/b\n1:cpu:/\n', v1), 170 * MIB);
  });

  test('is the tightest of nested groups, and where a process is throttled counts', () => {
    const groups = { 'a/memory.max': `${99 * MIB}\n`, 'a/b/memory.max': `${200 * MIB}\n` };
    assert.equal(limitWith('0::/a/b\n', groups), 99 * MIB);
    assert.equal(limitWith('0::/a\n', { ...groups, 'a/memory.high': `${80 * MIB}` }), 80 * MIB);
  });

  test('is infinite where the files are missing or hold something else', () => {
    for (const text of ['', '\n', 'max\n', '0\n', '-1\n', '1e3\n', '0x10\n', 'NaN', 'text\n'])
      assert.equal(limitWith('0::/\n', { 'memory.max': text }), Infinity, JSON.stringify(text));
    assert.equal(limitWith('0::/\n', { 'memory.max': `${'9'.repeat(400)}\n` }), Infinity);
    assert.equal(limitWith('', {}), Infinity);
  });
});
