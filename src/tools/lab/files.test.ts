import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isOwnPath, LAB_DIRECTORY, wordsBehind } from './files.ts';

test('a file path is not executed as a command', () => {
  const path = '/etc/hosts;touch $(id)';
  const words = wordsBehind('web', { '/etc/resolv.conf': '', [path]: '' }, ['id', '-u']);
  const script = words[words.indexOf('-c') + 1]!;
  assert.equal(script, `${'mount --bind "$1" "$2" && shift 2 && '.repeat(2)}exec "$@"`);
  assert.deepEqual(words.slice(words.indexOf(script) + 2), [
    ...[`${LAB_DIRECTORY}/web/etc/resolv.conf`, '/etc/resolv.conf'],
    ...[`${LAB_DIRECTORY}/web${path}`, path],
    ...['id', '-u'],
  ]);
});

test("a path that leads out of the lab cannot be a pod's file", () => {
  for (const path of ['/etc/hosts', '/etc/nsswitch.conf', '/a b']) assert.ok(isOwnPath(path), path);
  for (const path of ['', '/', 'etc/hosts', '/../x', '/etc/../../x', '/etc//hosts', '/etc/', '/\n'])
    assert.ok(!isOwnPath(path), path);
});
