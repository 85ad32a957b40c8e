import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test, type TestContext } from 'node:test';
import { Problem } from '../../base/problem.ts';
import { Authority } from '../../../../test/kit/authority.ts';
import { elapse, makeRig, until } from '../../../../test/kit/apiserver/rig.ts';
import type { ApiServer } from '../../../../test/kit/apiserver/server.ts';
import { systemClock } from '../../base/clock.ts';
import { asObject } from '../../base/json-object.ts';
import { apiClient } from './client.ts';
import { getJson } from './get-json.ts';
import { endpointConnection, inClusterConnection } from './connection.ts';

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

/** Creates a service account directory like the one that the kubelet mounts. */
function serviceAccount(t: TestContext, ca: string, token: string): string {
  const path = directory(t);
  writeFileSync(join(path, 'ca.crt'), ca);
  writeFileSync(join(path, 'token'), `${token}\n`);
  return path;
}

function inCluster(server: ApiServer, path: string): ReturnType<typeof inClusterConnection> {
  return inClusterConnection({
    environment: {
      KUBERNETES_SERVICE_HOST: '127.0.0.1',
      KUBERNETES_SERVICE_PORT: String(server.port),
    },
    directory: path,
  });
}

describe('in a pod', () => {
  test('the service account is accepted, over TLS with the cluster CA', async (t) => {
    const authority = Authority.make('ndots test CA');
    const path = serviceAccount(t, authority.cert, 'first');
    await using rig = await makeRig({
      server: { tls: authority.issue('kube-apiserver', ['127.0.0.1']), tokens: ['first'] },
      connection: (server) => inCluster(server, path),
    });
    rig.start();
    await until(() => rig.source.synced);
    assert.deepEqual(rig.lines, []);
  });

  test('a token replaced by kubelet is reloaded silently', async (t) => {
    const authority = Authority.make('ndots test CA');
    const path = serviceAccount(t, authority.cert, 'first');
    await using rig = await makeRig({
      server: { tls: authority.issue('kube-apiserver', ['127.0.0.1']), tokens: ['first'] },
      connection: (server) => inCluster(server, path),
    });
    rig.start();
    await until(() => rig.source.synced && rig.server.watches.size === 4);
    rig.server.tokens = ['second'];
    writeFileSync(join(path, 'token'), 'second');
    rig.server.dropWatches();
    await until(() => rig.server.watches.size === 0);
    await elapse(rig.clock, 5000, () => rig.server.watches.size === 4);
    assert.equal(rig.server.seen.at(-1)!.headers.authorization, 'Bearer second');
    assert.deepEqual(rig.lines, []);
  });

  test('an expired token is reported with an explanation, and the request is retried', async (t) => {
    const authority = Authority.make('ndots test CA');
    const path = serviceAccount(t, authority.cert, 'old');
    await using rig = await makeRig({
      server: { tls: authority.issue('kube-apiserver', ['127.0.0.1']), tokens: ['new'] },
      connection: (server) => inCluster(server, path),
    });
    rig.start();
    await until(() => rig.lines.length > 0);
    assert.match(rig.lines[0]!, /401 Unauthorized.*may have expired/);
    writeFileSync(join(path, 'token'), 'new');
    await elapse(rig.clock, 60_000, () => rig.source.synced);
  });

  test('a missing token is reported, and the request is retried', async (t) => {
    const authority = Authority.make('ndots test CA');
    const path = serviceAccount(t, authority.cert, 'here');
    await using rig = await makeRig({
      server: { tls: authority.issue('kube-apiserver', ['127.0.0.1']), tokens: ['here'] },
      connection: (server) => inCluster(server, path),
    });
    rmSync(join(path, 'token'));
    rig.start();
    await until(() => rig.lines.length > 0);
    assert.match(rig.lines[0]!, /cannot read .*token: no such file or directory/);
    writeFileSync(join(path, 'token'), 'here');
    await elapse(rig.clock, 60_000, () => rig.source.synced);
  });

  test("if the service address refuses, the API server's endpoints are tried", async (t) => {
    const authority = Authority.make('ndots test CA');
    const path = serviceAccount(t, authority.cert, 'first');
    // Acts as kube-proxy: the service address leads to the API server until its rules are removed.
    let target = 0;
    const proxied = new Set<Socket>();
    const proxy = createServer((socket) => {
      const onward = connect(target, '127.0.0.1');
      for (const [from, to] of [
        [socket, onward],
        [onward, socket],
      ] as const) {
        proxied.add(from);
        from.pipe(to);
        from.on('error', () => to.destroy());
        from.on('close', () => to.destroy());
      }
    });
    proxy.listen(0, '127.0.0.9');
    await once(proxy, 'listening');
    t.after(() => proxy.close());
    // As in a managed control plane, the certificate contains only the service address.
    const tls = authority.issue('kube-apiserver', ['127.0.0.9']);
    await using rig = await makeRig({
      server: { tls, tokens: ['first'] },
      connection: (server) => {
        target = server.port;
        return inClusterConnection({
          environment: {
            KUBERNETES_SERVICE_HOST: '127.0.0.9',
            KUBERNETES_SERVICE_PORT: String((proxy.address() as AddressInfo).port),
          },
          directory: path,
        });
      },
    });
    rig.server.put('endpointslices', {
      metadata: {
        name: 'kubernetes',
        namespace: 'default',
        labels: { 'kubernetes.io/service-name': 'kubernetes' },
      },
      addressType: 'IPv4',
      endpoints: [{ addresses: ['127.0.0.1'], conditions: { ready: true } }],
      ports: [{ name: 'https', port: rig.server.port, protocol: 'TCP' }],
    });
    rig.start();
    await until(() => rig.source.synced && rig.server.watches.size === 4);
    proxy.close();
    // An API server that shuts down removes itself from the service.
    rig.server.delete('endpointslices', 'default', 'kubernetes');
    await until(() => !rig.heard.names('EndpointSlice').includes('kubernetes'));
    for (const socket of proxied) socket.destroy();
    await until(() => rig.server.watches.size === 0);
    await elapse(rig.clock, 10_000, () => rig.server.watches.size === 4);
  });

  test('an IPv6 service address makes a valid URL', (t) => {
    const path = serviceAccount(t, 'x', 'x');
    const connection = inClusterConnection({
      environment: { KUBERNETES_SERVICE_HOST: 'fd00::1', KUBERNETES_SERVICE_PORT: '443' },
      directory: path,
    });
    assert.equal(connection.url.href, 'https://[fd00::1]/');
  });

  test('elsewhere, the problem lists the alternatives', () => {
    const problem = problemOf(() => inClusterConnection({ environment: {} }));
    assert.match(problem.message, /KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT must be/);
    assert.match(problem.remedy!, /endpoint URL, kubeconfig FILE, or manifests DIR/);
  });

  test('a missing service account is reported as the problem', (t) => {
    const problem = problemOf(() =>
      inClusterConnection({
        environment: { KUBERNETES_SERVICE_HOST: '10.0.0.1', KUBERNETES_SERVICE_PORT: '443' },
        directory: directory(t),
      }),
    );
    assert.match(problem.remedy!, /automountServiceAccountToken/);
  });
});

describe('at an endpoint', () => {
  test('a client certificate is accepted', async (t) => {
    const authority = Authority.make('ndots test CA');
    const path = directory(t);
    const client = authority.issue('system:coredns');
    writeFileSync(join(path, 'cert'), client.cert);
    writeFileSync(join(path, 'key'), client.key);
    writeFileSync(join(path, 'ca'), authority.cert);
    await using rig = await makeRig({
      server: {
        tls: { ...authority.issue('api', ['127.0.0.1']), clientCa: authority.cert },
        tokens: ['none'],
      },
      connection: (server) =>
        endpointConnection(`127.0.0.1:${server.port}`, {
          cert: join(path, 'cert'),
          key: join(path, 'key'),
          ca: join(path, 'ca'),
        }),
    });
    rig.start();
    await until(() => rig.source.synced);
  });

  test('a path in the URL precedes every API path', async () => {
    await using rig = await makeRig({
      connection: (server) => endpointConnection(`${server.url}/k8s/clusters/c-1/`),
    });
    rig.start();
    await until(() => rig.server.seen.length > 0);
    assert.equal(rig.server.seen[0]!.path, '/k8s/clusters/c-1/version');
  });

  const failures: readonly [string, RegExp, (authority: Authority, other: Authority) => object][] =
    [
      [
        'a server certificate of another CA',
        /no trusted TLS connection.*give the cluster's CA certificate/,
        (_authority, other) => other.issue('api', ['127.0.0.1']),
      ],
      [
        'a server certificate for another address',
        /no trusted TLS connection.*an address in the API server's certificate/,
        (authority) => authority.issue('api', ['10.1.1.1', 'kubernetes']),
      ],
      [
        'an expired server certificate',
        /no trusted TLS connection.*check this machine's clock/,
        (authority) => authority.issue('api', ['127.0.0.1'], new Date('2020-01-01T00:00:00Z')),
      ],
    ];
  for (const [name, words, identity] of failures) {
    test(`${name} is reported with a fix`, async (t) => {
      const authority = Authority.make('cluster');
      const path = serviceAccount(t, authority.cert, 'token');
      await using rig = await makeRig({
        server: { tls: identity(authority, Authority.make('other')) as never },
        connection: (server) => inCluster(server, path),
      });
      rig.start();
      await until(() => rig.lines.length > 0);
      assert.match(rig.lines[0]!, words);
    });
  }

  test('a port that uses plain HTTP is recognized', async (t) => {
    const path = serviceAccount(t, Authority.make('ndots test CA').cert, 'token');
    await using rig = await makeRig({ connection: (server) => inCluster(server, path) });
    rig.start();
    await until(() => rig.lines.length > 0);
    assert.match(rig.lines[0]!, /the port uses plain HTTP/);
  });

  test('a closed port and a nonexistent name are reported differently', async () => {
    for (const [url, words] of [
      [
        'http://127.0.0.1:1',
        /nothing listens at the API server's address 127.0.0.1:1; .* if it is a Service address, kube-proxy has no endpoint for it/,
      ],
      ['http://no-such-host.invalid:6443', /name no-such-host.invalid:6443 could not be resolved/],
    ] as const) {
      await using rig = await makeRig({ connection: () => endpointConnection(url) });
      rig.start();
      await until(() => rig.lines.length > 0);
      assert.match(rig.lines[0]!, words);
    }
  });

  test('if one address refuses the connection, the same request goes to the next one', async (t) => {
    await using rig = await makeRig({
      connection: (server) => endpointConnection(`http://127.0.0.1:${server.port}`),
    });
    const signal = AbortSignal.timeout(30_000);
    const client = apiClient({
      connection: endpointConnection('http://127.0.0.9:1'),
      others: () => [
        { host: '127.0.0.9', port: 2 },
        { host: '127.0.0.1', port: rig.server.port },
      ],
      clock: systemClock,
      userAgent: 'test',
    });
    t.after(() => client.close());
    const request = { path: '/version', task: 'get version', waitMs: 10_000, signal };
    assert.ok('gitVersion' in asObject(await getJson(client, request)));
    const nowhere = apiClient({
      connection: endpointConnection('http://127.0.0.9:1'),
      others: () => [{ host: '127.0.0.9', port: 2 }],
      clock: systemClock,
      userAgent: 'test',
    });
    t.after(() => nowhere.close());
    await assert.rejects(getJson(nowhere, request), /nothing listens at the API server's address/);
  });

  test('an invalid URL and a missing file are problems at startup', (t) => {
    assert.match(problemOf(() => endpointConnection('ftp://x')).message, /not an API server URL/);
    for (const url of ['', '/etc/', '6080://127.0.0.1:1', 'a{2', 'a`b', 'a\\b', '10.0.0.0/8'])
      assert.match(problemOf(() => endpointConnection(url)).message, /not an API server URL/);
    const path = join(directory(t), 'nowhere');
    mkdirSync(path);
    const tls = { cert: join(path, 'c'), key: join(path, 'k'), ca: join(path, 'ca') };
    assert.match(
      problemOf(() => endpointConnection('https://x', tls)).message,
      /cannot read .*\/c:/,
    );
  });

  test('without a scheme it is https if there is a certificate, else http', () => {
    assert.equal(endpointConnection('10.0.0.1:8080').url.href, 'http://10.0.0.1:8080/');
  });
});
