import assert from 'node:assert/strict';
import { test } from 'node:test';
import { freePorts } from '../../test/kit/free-ports.ts';
import { runCommand } from '../../test/kit/trace-command.ts';
import { etcd } from './etcd.ts';

test('certificates that no endpoint has a use for are told of, by flag and by variable', async () => {
  const [port] = await freePorts(1);
  const words = ['list', '--endpoints', `http://127.0.0.1:${port}`];
  const told = new RegExp(`^ndots etcd: no TLS with 127\\.0\\.0\\.1:${port}: --cacert, `, 'm');
  assert.match((await runCommand(etcd, [...words, '--cacert', '/nowhere'])).err, told);
  assert.match((await runCommand(etcd, words, { ETCDCTL_CACERT: '/nowhere' })).err, told);
  assert.doesNotMatch((await runCommand(etcd, words)).err, told);
  const secure = ['list', '--endpoints', `https://127.0.0.1:${port}`, '--cacert', '/nowhere'];
  assert.match(
    (await runCommand(etcd, secure)).err,
    /cannot read \/nowhere: no such file or directory/,
  );
});
