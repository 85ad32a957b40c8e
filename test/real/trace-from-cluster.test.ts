import assert from 'node:assert/strict';
import { execFile, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { ApiServer, namespace } from '../kit/apiserver/server.ts';

const missing =
  spawnSync('kubectl', ['version', '--client']).status !== 0 && 'kubectl is not installed';

test(
  'trace --from pod/NAME takes the pod’s DNS settings from the cluster that kubectl knows',
  { skip: missing },
  async (t) => {
    const api = await ApiServer.start({});
    const folder = mkdtempSync(join(tmpdir(), 'ndots-trace-'));
    t.after(async () => {
      await api.stop();
      rmSync(folder, { recursive: true, force: true });
    });
    api.put('namespaces', namespace('shop'));
    api.put('pods', {
      metadata: { name: 'web', namespace: 'shop' },
      spec: { containers: [], dnsConfig: { options: [{ name: 'ndots', value: '1' }] } },
      status: { phase: 'Running', podIP: '10.1.2.3', podIPs: [{ ip: '10.1.2.3' }] },
    } as never);
    const file = join(folder, 'config');
    writeFileSync(
      file,
      JSON.stringify({
        apiVersion: 'v1',
        kind: 'Config',
        'current-context': 'c',
        clusters: [{ name: 'c', cluster: { server: api.url } }],
        users: [{ name: 'u', user: {} }],
        contexts: [{ name: 'c', context: { cluster: 'c', user: 'u' } }],
      }),
    );
    const run = (...words: string[]): Promise<{ code: number; out: string; err: string }> =>
      new Promise((resolve) => {
        execFile(
          'bin/ndots',
          ['trace', 'example.com', '--plan', '-o', 'json', ...words],
          { env: { ...process.env, KUBECONFIG: file } },
          (error, out, err) => resolve({ code: error === null ? 0 : Number(error.code), out, err }),
        );
      });
    const { out, err } = await run('--from', 'pod/web', '-n', 'shop');
    const trace = JSON.parse(out || '{}') as { queries?: { name: string }[] };
    // ndots:1 and one dot: the name as it is goes first.
    assert.equal(trace.queries?.[0]?.name, 'example.com.', err);
    const gone = await run('--from', 'pod/gone', '-n', 'shop');
    assert.match(gone.err, /not found/i);
    assert.notEqual(gone.code, 0);
  },
);
