import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { controlGroups } from '../../../test/kit/control-groups.ts';
import { cpuLimit, threadRoom } from './cpu-limit.ts';

void suite('the CPU limit', () => {
  const groupFiles = controlGroups();

  /** Returns the limit computed from these files. */
  function limitWith(
    own: string,
    groups: Readonly<Record<string, string>>,
    read = cpuLimit,
  ): number {
    return read(groupFiles(own, groups));
  }

  test("is quota divided by period, version 2, where the container's group is the root", () => {
    assert.equal(limitWith('0::/\n', { 'cpu.max': '50000 100000\n' }), 0.5);
  });

  test('is the tightest of nested groups', () => {
    const groups = { 'a/cpu.max': '150000 100000\n', 'a/b/cpu.max': '200000 100000\n' };
    assert.equal(limitWith('0::/a/b\n', groups), 1.5);
  });

  test("works with version 1, also if the path is the host's", () => {
    const groups = { 'cpu/cpu.cfs_quota_us': '25000\n', 'cpu/cpu.cfs_period_us': '100000\n' };
    assert.equal(limitWith('4:memory:/x\n3:cpu,cpuacct:/kubepods/pod1/c1\n', groups), 0.25);
  });

  test('is infinite for "max" and -1', () => {
    assert.equal(limitWith('0::/\n', { 'cpu.max': 'max 100000\n' }), Infinity);
    const groups = { 'cpu/cpu.cfs_quota_us': '-1\n', 'cpu/cpu.cfs_period_us': '100000\n' };
    assert.equal(limitWith('1:cpu:/\n', groups), Infinity);
  });

  test('is infinite if the files are missing or malformed', () => {
    assert.equal(limitWith('', {}), Infinity);
    assert.equal(limitWith('0::/\nnonsense\n', { 'cpu.max': '\n' }), Infinity);
  });

  test('thread limit is the room left in the tightest group, for both versions', () => {
    const room = (own: string, groups: Readonly<Record<string, string>>): number =>
      limitWith(own, groups, threadRoom);
    assert.equal(room('0::/\n', { 'pids.max': '20\n', 'pids.current': '7\n' }), 13);
    const nested = {
      'pids/pids.max': '9\n',
      'pids/pids.current': '8\n',
      'pids/a/pids.max': '99\n',
    };
    assert.equal(room('8:pids:/a\n0::/\n', { ...nested, 'pids/a/pids.current': '8\n' }), 1);
    assert.equal(room('0::/\n', { 'pids.max': 'max\n', 'pids.current': '7\n' }), Infinity);
    assert.equal(room('', {}), Infinity);
  });
});
