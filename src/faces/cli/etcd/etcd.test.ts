import assert from 'node:assert/strict';
import { createServer, type ServerHttp2Stream } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { test, type TestContext } from 'node:test';
import { freePorts } from '../../../../test/kit/free-ports.ts';
import { runCommand } from '../../../../test/kit/trace-command.ts';
import { etcd } from './etcd.ts';

test('reports certificates that no endpoint uses, from flags and variables', async () => {
  const [port] = await freePorts(1);
  const words = ['list', '--endpoints', `http://127.0.0.1:${port}`];
  const told = new RegExp(
    `^ndots etcd: 127\\.0\\.0\\.1:${port} does not use TLS, so --cacert, `,
    'm',
  );
  assert.match((await runCommand(etcd, [...words, '--cacert', '/nowhere'])).err, told);
  assert.match((await runCommand(etcd, words, { ETCDCTL_CACERT: '/nowhere' })).err, told);
  assert.doesNotMatch((await runCommand(etcd, words)).err, told);
  const secure = ['list', '--endpoints', `https://127.0.0.1:${port}`, '--cacert', '/nowhere'];
  assert.match(
    (await runCommand(etcd, secure)).err,
    /cannot read \/nowhere: no such file or directory/,
  );
});

test('an etcd that requires a user or denies access: the error names options of this command', async (t) => {
  const nobody = await refusing(t, 3, 'etcdserver: user name is empty');
  const listed = await runCommand(etcd, ['list', '--endpoints', nobody]);
  assert.match(
    listed.err,
    /user name is empty \[etcd\]\n +etcd requires a user; use --user and --password\n/,
  );
  const forbidden = await refusing(t, 7, 'etcdserver: permission denied');
  const put = ['put', 'a.example', '192.0.2.1', '--path', 'other', '--endpoints', forbidden];
  assert.match(
    (await runCommand(etcd, put)).err,
    /grant-permission ROLE readwrite \/other\/ --prefix\n/,
  );
  const get = ['get', 'a.example', '--endpoints', forbidden];
  assert.match(
    (await runCommand(etcd, get)).err,
    /grant-permission ROLE read \/skydns\/ --prefix\n/,
  );
});

/**
 * An etcd server that rejects every call with this status.
 * @returns its endpoint
 */
async function refusing(t: TestContext, status: number, message: string): Promise<string> {
  const server = createServer();
  server.on('stream', (stream: ServerHttp2Stream) => {
    stream.on('error', () => undefined);
    stream.respond(
      {
        ':status': 200,
        'content-type': 'application/grpc',
        'grpc-status': String(status),
        'grpc-message': message,
      },
      { endStream: true },
    );
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
