import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test, type TestContext } from 'node:test';
import { promisify } from 'node:util';
import { kubeconfigConnection } from '../../../src/server/kube/api/connection.ts';
import { Authority } from '../authority.ts';
import { makeRig, until } from './rig.ts';
import { ApiServer } from './server.ts';

const run = promisify(execFile);

/** A server with TLS and a token, and a kubectl that only knows this server; null if kubectl is not installed. */
async function bench(t: TestContext): Promise<{
  server: ApiServer;
  config: string;
  environment: NodeJS.ProcessEnv;
  kubectl(...words: string[]): Promise<string>;
} | null> {
  const version = await run('kubectl', ['version', '--client']).catch(() => null);
  if (version === null) {
    t.skip('kubectl is not installed');
    return null;
  }
  const authority = Authority.make('ndots test CA');
  const server = await ApiServer.start({
    tls: authority.issue('kube-apiserver', ['127.0.0.1']),
    tokens: ['secret'],
  });
  t.after(() => server.stop());
  const home = mkdtempSync(join(tmpdir(), 'ndots-kubectl-'));
  t.after(() => rmSync(home, { recursive: true, force: true }));
  const config = join(home, 'config');
  writeFileSync(
    config,
    JSON.stringify({
      apiVersion: 'v1',
      kind: 'Config',
      'current-context': 'test',
      contexts: [{ name: 'test', context: { cluster: 'test', user: 'test' } }],
      clusters: [
        {
          name: 'test',
          cluster: {
            server: server.url,
            'certificate-authority-data': Buffer.from(authority.cert).toString('base64'),
          },
        },
      ],
      users: [{ name: 'test', user: { token: 'secret' } }],
    }),
  );
  const environment = { PATH: process.env['PATH'], HOME: home, KUBECONFIG: config };
  return {
    server,
    config,
    environment,
    async kubectl(...words) {
      const { stdout } = await run('kubectl', words, { env: environment, timeout: 30_000 });
      return stdout;
    },
  };
}

const backend = new URL('../../../examples/cluster/critical-app.yaml', import.meta.url).pathname;

describe('kubectl', () => {
  test('creates, lists and deletes the objects of a manifest', async (t) => {
    const made = await bench(t);
    if (made === null) return;
    const created = await made.kubectl('create', '-f', backend);
    assert.match(created, /namespace\/critical-app created/);
    assert.match(created, /service\/backend created/);
    assert.match(created, /deployment.apps\/backend created/);
    assert.match(await made.kubectl('get', 'services', '-A'), /critical-app +backend/);
    const json = await made.kubectl('get', 'svc', 'backend', '-n', 'critical-app', '-o', 'json');
    const service = JSON.parse(json) as { spec: { clusterIP: string } };
    assert.equal(service.spec.clusterIP, '10.3.0.116');
    await assert.rejects(made.kubectl('create', '-f', backend), /AlreadyExists/);
    const deleted = await made.kubectl('delete', 'service', 'backend', '-n', 'critical-app');
    assert.match(deleted, /service "backend" deleted/);
    assert.doesNotMatch(await made.kubectl('get', 'services', '-A'), /backend/);
  });

  test('watches changes', async (t) => {
    const made = await bench(t);
    if (made === null) return;
    const child = spawn('kubectl', ['get', 'services', '-A', '-w', '-o', 'name'], {
      env: made.environment,
    });
    t.after(() => child.kill());
    let output = '';
    child.stdout.on('data', (piece: Buffer) => (output += piece.toString()));
    await until(() => made.server.requests('watch', 'services').length > 0);
    made.server.put('services', {
      metadata: { name: 'later', namespace: 'default' },
      spec: { clusterIP: '10.96.0.9', ports: [{ port: 80 }] },
    });
    await until(() => output.includes('service/later'));
  });

  test('and a source see the same cluster, through the same kubeconfig', async (t) => {
    const made = await bench(t);
    if (made === null) return;
    await using rig = await makeRig({ connection: () => kubeconfigConnection(made.config) });
    rig.start();
    await until(() => rig.source.synced);
    await made.kubectl('create', '-f', backend);
    await until(() => rig.heard.names('Service').includes('backend'));
    await until(() => rig.heard.names('Namespace').includes('critical-app'));
    await made.kubectl('label', 'service', 'backend', '-n', 'critical-app', 'team=a');
    await made.kubectl('delete', 'namespace', 'critical-app');
    await until(() => rig.heard.names('Service').length === 0);
    await until(() => rig.heard.names('Pod').length === 0);
  });
});
