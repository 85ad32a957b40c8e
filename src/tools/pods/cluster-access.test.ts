import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { Problem } from '../../server/base/problem.ts';
import { clusterAccess, type ClusterChoice } from './cluster-access.ts';

const home = mkdtempSync(join(tmpdir(), 'ndots-access-'));
after(() => rmSync(home, { recursive: true }));

/** Creates a kubeconfig with one cluster, one user and one context, all with the same name. */
function config(name: string, current: boolean, namespace = ''): string {
  return JSON.stringify({
    'current-context': current ? name : '',
    clusters: [{ name, cluster: { server: `http://${name}.example:8080` } }],
    users: [{ name, user: { tokenFile: `${name}.token` } }],
    contexts: [{ name, context: { cluster: name, user: name, namespace } }],
  });
}

function write(path: string, text: string): string {
  const file = join(home, path);
  writeFileSync(file, text);
  return file;
}

mkdirSync(join(home, '.kube'));
mkdirSync(join(home, 'other'));
write('.kube/config', config('usual', true, 'team'));
const a = write('a', config('a', false));
const b = write('other/b', config('b', true, 'shop'));
write('a.token', 'token of a');
write('other/b.token', 'token of b');

function access(choice: Partial<ClusterChoice>): string {
  const { connection, namespace, name } = clusterAccess({
    kubeconfig: null,
    context: null,
    env: { HOME: home },
    ...choice,
  });
  return `${connection.url.host} ${namespace} ${name}`;
}

const several = { HOME: home, KUBECONFIG: `${a}:${join(home, 'missing')}:${b}` };

describe('a command uses the same cluster as kubectl', () => {
  test('the default file, its current context, its namespace', () => {
    assert.equal(access({}), 'usual.example:8080 team context usual');
  });

  test('several files in KUBECONFIG are merged, and missing ones are ignored', () => {
    assert.equal(access({ env: several }), 'b.example:8080 shop context b');
    assert.equal(access({ env: several, context: 'a' }), 'a.example:8080 default context a');
  });

  test('paths in a file are relative to that file', async () => {
    for (const [context, token] of [
      ['a', 'Bearer token of a'],
      ['b', 'Bearer token of b'],
    ] as const) {
      const found = clusterAccess({ kubeconfig: null, context, env: several });
      assert.equal((await found.connection.access()).headers['authorization'], token);
    }
  });

  test('if two entries have the same name, the first counts', () => {
    const again = write('again', config('b', false).replace('b.example', 'again.example'));
    const env = { KUBECONFIG: `${again}:${b}` };
    assert.equal(access({ env }), 'again.example:8080 default context b');
  });

  test('--kubeconfig takes precedence over all others', () => {
    assert.equal(access({ kubeconfig: b, env: several }), 'b.example:8080 shop context b');
  });

  test('the kubeconfig or the command line specifies the user to impersonate', async () => {
    const user = { token: 't', as: 'jane', 'as-groups': ['dev', 'ops'], 'as-uid': '7' };
    const file = write(
      'as',
      JSON.stringify({ ...JSON.parse(config('as', true)), users: [{ name: 'as', user }] }),
    );
    const headers = async (more: Partial<ClusterChoice>): Promise<unknown> =>
      (
        await clusterAccess({
          kubeconfig: file,
          context: null,
          env: {},
          ...more,
        }).connection.access()
      ).headers;
    assert.deepEqual(await headers({}), {
      authorization: 'Bearer t',
      'impersonate-user': 'jane',
      'impersonate-uid': '7',
      'impersonate-group': ['dev', 'ops'],
    });
    assert.deepEqual(await headers({ as: 'joe' }), {
      authorization: 'Bearer t',
      'impersonate-user': 'joe',
    });
  });

  test('an unknown context is reported with the contexts in all files', () => {
    assert.throws(() => access({ env: several, context: 'prod' }), /no context named 'prod'/);
    assert.throws(
      () => access({ env: several, context: 'prod' }),
      (error: unknown) => error instanceof Problem && error.print().includes('it has: a, b'),
    );
  });

  test('an explicitly named file that does not exist is reported', () => {
    assert.throws(
      () => access({ kubeconfig: join(home, 'missing') }),
      /cannot read the kubeconfig/,
    );
  });

  test('without a kubeconfig, the problem suggests a fix', () => {
    for (const env of [{}, { HOME: join(home, 'other') }])
      assert.throws(
        () => access({ env }),
        (error: unknown) => error instanceof Problem && error.code === 'no-cluster',
      );
  });
});
