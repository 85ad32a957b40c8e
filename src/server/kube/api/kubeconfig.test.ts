import assert from 'node:assert/strict';
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test, type TestContext } from 'node:test';
import { Problem } from '../../base/problem.ts';
import { VirtualClock } from '../../base/virtual-clock.ts';
import { Authority } from '../../../../test/kit/authority.ts';
import { elapse, makeRig, until } from '../../../../test/kit/apiserver/rig.ts';
import { kubeconfigConnection } from './connection.ts';
import { readKubeconfig } from './kubeconfig.ts';

interface Parts {
  readonly server?: string;
  readonly cluster?: object;
  readonly user?: object;
}

/** Writes a kubeconfig as JSON, which is valid YAML. */
function write(t: TestContext, { server = 'https://10.0.0.1:6443', cluster, user }: Parts): string {
  const path = join(directory(t), 'config');
  writeFileSync(
    path,
    JSON.stringify({
      apiVersion: 'v1',
      kind: 'Config',
      'current-context': 'here',
      contexts: [
        { name: 'here', context: { cluster: 'main', user: 'me' } },
        { name: 'there', context: { cluster: 'gone', user: 'me' } },
        { name: 'stranger', context: { cluster: 'main', user: 'nobody' } },
      ],
      clusters: [{ name: 'main', cluster: { server, ...cluster } }],
      users: [{ name: 'me', user: user ?? {} }],
    }),
  );
  return path;
}

function directory(t: TestContext): string {
  const made = mkdtempSync(join(tmpdir(), 'ndots-'));
  t.after(() => rmSync(made, { recursive: true }));
  return made;
}

function problemOf(run: () => unknown): Problem {
  try {
    run();
  } catch (error) {
    assert.ok(error instanceof Problem, String(error));
    return error;
  }
  return assert.fail('no problem');
}

const base64 = (text: string): string => Buffer.from(text).toString('base64');

describe('a kubeconfig authenticates', () => {
  test('with an embedded client certificate and CA', async (t) => {
    const authority = Authority.make('ndots test CA');
    const client = authority.issue('admin');
    await using rig = await makeRig({
      server: {
        tls: { ...authority.issue('api', ['127.0.0.1']), clientCa: authority.cert },
        tokens: ['x'],
      },
      connection: (server) =>
        kubeconfigConnection(
          write(t, {
            server: server.url,
            cluster: { 'certificate-authority-data': base64(authority.cert) },
            user: {
              'client-certificate-data': base64(client.cert),
              'client-key-data': base64(client.key),
            },
          }),
        ),
    });
    rig.start();
    await until(() => rig.source.synced);
  });

  test('with files relative to its own location, and its own server name', async (t) => {
    const authority = Authority.make('ndots test CA');
    await using rig = await makeRig({
      server: { tls: authority.issue('api', ['kubernetes.example']), tokens: ['secret'] },
      connection: (server) => {
        const path = write(t, {
          server: server.url,
          cluster: { 'certificate-authority': 'ca.pem', 'tls-server-name': 'kubernetes.example' },
          user: { tokenFile: './token' },
        });
        writeFileSync(join(path, '../ca.pem'), authority.cert);
        writeFileSync(join(path, '../token'), 'secret\n');
        return kubeconfigConnection(path);
      },
    });
    rig.start();
    await until(() => rig.source.synced);
  });

  test('with a token, to a server it does not verify', async (t) => {
    await using rig = await makeRig({
      server: { tls: Authority.make('ndots test CA').issue('api', []), tokens: ['secret'] },
      connection: (server) =>
        kubeconfigConnection(
          write(t, {
            server: server.url,
            cluster: { 'insecure-skip-tls-verify': true },
            user: { token: 'secret' },
          }),
        ),
    });
    rig.start();
    await until(() => rig.source.synced);
  });

  test('with a user name and password', async (t) => {
    const path = write(t, { user: { username: 'me', password: 'p:w' } });
    const { headers } = await kubeconfigConnection(path).access();
    assert.equal(headers['authorization'], `Basic ${base64('me:p:w')}`);
  });
});

/** Creates an exec plugin that prints `answer` and counts how often it is called. */
function plugin(t: TestContext, answer: string): { path: string; log: string } {
  const path = directory(t);
  const log = join(path, 'calls');
  const file = join(path, 'plugin');
  writeFileSync(join(path, 'answer'), answer);
  writeFileSync(
    file,
    `#!/bin/sh\nprintf '%s %s %s\\n' "$1" "$EXTRA" "$KUBERNETES_EXEC_INFO" >> "${log}"\ncat "${path}/answer"\n`,
  );
  chmodSync(file, 0o755);
  return { path: file, log };
}

function credential(status: object, version = 'v1'): string {
  return JSON.stringify({
    apiVersion: `client.authentication.k8s.io/${version}`,
    kind: 'ExecCredential',
    status,
  });
}

function execUser(command: string, extra: object = {}): object {
  return {
    exec: {
      apiVersion: 'client.authentication.k8s.io/v1',
      command,
      args: ['token'],
      env: [{ name: 'EXTRA', value: 'yes' }],
      installHint: 'get it from your provider\nsecond line',
      ...extra,
    },
  };
}

describe('an exec plugin', () => {
  for (const version of ['v1', 'v1beta1']) {
    test(`of ${version} is run once for all, and again when its token expires`, async (t) => {
      const clock = new VirtualClock();
      const expires = new Date(clock.wall() + 600_000).toISOString();
      const made = plugin(t, credential({ token: 'abc', expirationTimestamp: expires }, version));
      const connection = kubeconfigConnection(
        write(t, {
          user: execUser(made.path, {
            apiVersion: `client.authentication.k8s.io/${version}`,
            provideClusterInfo: true,
          }),
        }),
        undefined,
        clock,
      );
      const calls = (): number => readFileSync(made.log, 'utf8').trim().split('\n').length;
      const [one] = await Promise.all([connection.access(), connection.access()]);
      assert.equal(one.headers['authorization'], 'Bearer abc');
      assert.equal(calls(), 1);
      const told = readFileSync(made.log, 'utf8');
      assert.match(told, /^token yes \{/);
      assert.match(told, /"interactive":false/);
      assert.match(told, /"server":"https:\/\/10.0.0.1:6443"/);
      await clock.advance(500_000);
      await connection.access();
      assert.equal(calls(), 1);
      await clock.advance(99_000);
      await connection.access();
      assert.equal(calls(), 2);
    });
  }

  test('is run again when the server rejects its token', async (t) => {
    const made = plugin(t, credential({ token: 'old' }));
    await using rig = await makeRig({
      server: { tokens: ['new'] },
      connection: (server, clock) =>
        kubeconfigConnection(
          write(t, { server: server.url, user: execUser(made.path) }),
          undefined,
          clock,
        ),
    });
    rig.start();
    await until(() => rig.lines.length > 0);
    writeFileSync(join(made.path, '../answer'), credential({ token: 'new' }));
    await elapse(rig.clock, 60_000, () => rig.source.synced);
  });

  test('may supply a client certificate', async (t) => {
    const made = plugin(t, credential({ clientCertificateData: 'CERT', clientKeyData: 'KEY' }));
    const connection = kubeconfigConnection(write(t, { user: execUser(made.path) }));
    const first = await connection.access();
    assert.equal(first.tls?.cert, 'CERT');
    assert.deepEqual(first.headers, {});
    assert.equal((await connection.access()).tls, first.tls, 'so that connections can be kept');
  });

  const faults: readonly [string, string, RegExp][] = [
    ['prints no JSON', 'Please log in:', /did not print an ExecCredential but: Please log in:/],
    [
      'prints another version',
      credential({ token: 'x' }, 'v1alpha1'),
      /printed ExecCredential with version/,
    ],
    ['gives nothing', credential({}), /returned neither a token nor a client certificate/],
  ];
  for (const [name, answer, words] of faults) {
    test(`that ${name} is reported`, async (t) => {
      const made = plugin(t, answer);
      const connection = kubeconfigConnection(write(t, { user: execUser(made.path) }));
      await assert.rejects(async () => connection.access(), words);
    });
  }

  test('that fails is reported with its last line', async (t) => {
    const path = join(directory(t), 'plugin');
    writeFileSync(path, '#!/bin/sh\necho first >&2\necho session expired >&2\nexit 3\n');
    chmodSync(path, 0o755);
    const connection = kubeconfigConnection(write(t, { user: execUser(path) }));
    await assert.rejects(async () => connection.access(), /failed \(3\): session expired/);
  });

  test('that is not installed is reported with its download page', async (t) => {
    await using rig = await makeRig({
      connection: (server) =>
        kubeconfigConnection(
          write(t, { server: server.url, user: execUser('no-such-plugin-anywhere') }),
        ),
    });
    rig.start();
    await until(() => rig.lines.length > 0);
    assert.match(
      rig.lines[0]!,
      /'no-such-plugin-anywhere' is not installed.*get it from your provider;/,
    );
  });
});

function jwt(clock: VirtualClock, seconds: number): string {
  const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');
  return `${part({ alg: 'none' })}.${part({ exp: Math.floor(clock.wall() / 1000) + seconds })}.x`;
}

/** Starts an identity provider that renews tokens, returning `answers` in order. */
async function provider(
  t: TestContext,
  answers: object[],
): Promise<{ url: string; forms: URLSearchParams[] }> {
  const forms: URLSearchParams[] = [];
  const server = http.createServer((request, reply) => {
    let body = '';
    request.on('data', (piece: Buffer) => (body += piece.toString()));
    request.on('end', () => {
      const discovery = request.url === '/.well-known/openid-configuration';
      if (!discovery) forms.push(new URLSearchParams(body));
      reply.end(JSON.stringify(discovery ? { token_endpoint: `${url}/token` } : answers.shift()));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => server.close());
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { url, forms };
}

describe('an OIDC user', () => {
  const user = (config: object): object => ({ 'auth-provider': { name: 'oidc', config } });

  test('presents its id token until it expires, then renews it', async (t) => {
    const clock = new VirtualClock();
    const first = jwt(clock, 100);
    const second = jwt(clock, 1000);
    const third = jwt(clock, 5000);
    const { url, forms } = await provider(t, [
      { id_token: second, refresh_token: 'r2' },
      { id_token: third },
    ]);
    const path = write(t, {
      user: user({
        'id-token': first,
        'refresh-token': 'r1',
        'idp-issuer-url': url,
        'client-id': 'ndots',
        'client-secret': 's',
      }),
    });
    const connection = kubeconfigConnection(path, undefined, clock);
    const shown = async (): Promise<string> =>
      String((await connection.access()).headers['authorization']).slice('Bearer '.length);
    assert.equal(await shown(), first);
    await clock.advance(95_000);
    assert.equal(await shown(), second);
    assert.equal(await shown(), second);
    connection.refused();
    assert.equal(await shown(), third);
    assert.deepEqual(
      forms.map((form) => [
        form.get('grant_type'),
        form.get('refresh_token'),
        form.get('client_id'),
      ]),
      [
        ['refresh_token', 'r1', 'ndots'],
        ['refresh_token', 'r2', 'ndots'],
      ],
    );
  });

  test('whose token has expired and cannot be renewed must log in', async (t) => {
    const clock = new VirtualClock();
    const path = write(t, { user: user({ 'id-token': jwt(clock, -5) }) });
    await assert.rejects(
      async () => kubeconfigConnection(path, undefined, clock).access(),
      (error: Error & { advice?: string }) =>
        /has expired and cannot be renewed/.test(error.message) &&
        /log in again/.test(error.advice!),
    );
  });

  test('whose refresh token is rejected is reported', async (t) => {
    const clock = new VirtualClock();
    const { url } = await provider(t, [{ error: 'invalid_grant' }]);
    const path = write(t, {
      user: user({ 'refresh-token': 'old', 'idp-issuer-url': url, 'client-id': 'ndots' }),
    });
    await assert.rejects(
      async () => kubeconfigConnection(path, undefined, clock).access(),
      /did not renew the id_token: invalid_grant/,
    );
  });
});

describe('a kubeconfig problem gives the position and the expected value:', () => {
  const cases: readonly [string, Parts, string | undefined, RegExp, RegExp | null][] = [
    ['an unknown context', {}, 'her', /no context named 'her'/, /did you mean 'here'\?/],
    ['a context of a missing cluster', {}, 'there', /no cluster named 'gone'/, /it has: main/],
    ['a context of a missing user', {}, 'stranger', /no user named 'nobody'/, /it has: me/],
    ['no server', { server: '' }, undefined, /cluster 'main' has no server/, null],
    [
      'a proxy',
      { cluster: { 'proxy-url': 'http://p' } },
      undefined,
      /proxy-url\) are not supp/,
      null,
    ],
    [
      'half a certificate',
      { user: { 'client-key-data': base64('-----BEGIN') } },
      undefined,
      /only one of/,
      null,
    ],
    [
      'no PEM',
      { cluster: { 'certificate-authority-data': 'AAAA' } },
      undefined,
      /not base64-encoded PEM/,
      null,
    ],
    [
      'a missing file',
      { cluster: { 'certificate-authority': 'nowhere' } },
      undefined,
      /cannot read .*nowhere/,
      null,
    ],
    [
      'a retired provider',
      { user: { 'auth-provider': { name: 'gcp' } } },
      undefined,
      /'gcp' is no longer/,
      null,
    ],
    [
      'an old exec version',
      { user: execUser('x', { apiVersion: 'client.authentication.k8s.io/v1alpha1' }) },
      undefined,
      /v1alpha1' are not supported/,
      null,
    ],
    [
      'a plugin that asks',
      { user: execUser('x', { interactiveMode: 'Always' }) },
      undefined,
      /needs a terminal/,
      null,
    ],
    [
      'no token at all',
      { user: { 'auth-provider': { name: 'oidc', config: {} } } },
      undefined,
      /neither id-token nor refresh-token/,
      null,
    ],
  ];
  for (const [name, parts, context, text, hint] of cases) {
    test(name, (t) => {
      const path = write(t, parts);
      const problem = problemOf(() => readKubeconfig(path, context));
      assert.match(problem.message, text);
      if (hint !== null) assert.match(problem.hint!, hint);
      assert.equal(problem.place?.file, path);
      assert.ok(problem.place.line >= 1 && problem.place.column >= 1);
    });
  }

  test('no current context', (t) => {
    const path = join(directory(t), 'config');
    writeFileSync(path, 'apiVersion: v1\ncontexts:\n- name: a\n- name: b\ncurrent-context: ""\n');
    const problem = problemOf(() => readKubeconfig(path));
    assert.match(problem.message, /no current-context/);
    assert.equal(problem.hint, 'it has: a, b');
    assert.deepEqual([problem.place?.line, problem.place?.column], [5, 18]);
  });

  test('a file that is missing, empty, or not YAML', (t) => {
    const path = directory(t);
    assert.match(
      problemOf(() => readKubeconfig(join(path, 'x'))).message,
      /cannot read the kubeconfig/,
    );
    writeFileSync(join(path, 'empty'), '');
    assert.match(problemOf(() => readKubeconfig(join(path, 'empty'))).message, /it is empty/);
    writeFileSync(join(path, 'bad'), 'a: b\n  c: d\n');
    const problem = problemOf(() => readKubeconfig(join(path, 'bad')));
    assert.match(problem.message, /this is not YAML/);
    assert.ok(problem.place !== null);
  });
});
