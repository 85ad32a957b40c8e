import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { ApiServer, namespace } from '../../../../test/kit/apiserver/server.ts';
import { serveAnswers } from '../../../../test/kit/local-answers.ts';
import { runTrace } from '../../../../test/kit/trace-command.ts';
import type { TraceDocument } from '../../../tools/resolver/trace-document.ts';
import { complete } from '../completion/complete.ts';

const directory = mkdtempSync(join(tmpdir(), 'ndots-pod-'));
after(() => rmSync(directory, { recursive: true, force: true }));

type Json = Readonly<Record<string, unknown>>;

/** The `ndots` value in dnsConfig distinguishes the pods. */
const spec = (ndots: number): Json => ({
  containers: [],
  dnsConfig: { options: [{ name: 'ndots', value: String(ndots) }] },
});

function pod(name: string, ndots: number, more: { phase?: string; leaving?: boolean } = {}): Json {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name,
      namespace: 'shop',
      labels: { app: name.replace(/-.*/, '') },
      ...(more.leaving === true ? { deletionTimestamp: '2026-01-01T00:00:00Z' } : {}),
    },
    spec: spec(ndots),
    status: { phase: more.phase ?? 'Running' },
  };
}

function workload(kind: string, name: string, ndots: number, more: Json = {}): Json {
  const template = { metadata: { labels: { app: name } }, spec: spec(ndots) };
  return {
    apiVersion: kind.includes('Job') ? 'batch/v1' : 'apps/v1',
    kind,
    metadata: { name, namespace: 'shop' },
    spec:
      kind === 'CronJob'
        ? { jobTemplate: { spec: { template } } }
        : { selector: { matchLabels: { app: name } }, template, ...more },
  };
}

function service(name: string, selector: Json | null, more: Json = {}, where = 'shop'): Json {
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name, namespace: where, ...more },
    spec: { clusterIP: '10.43.0.10', ...(selector === null ? {} : { selector }) },
  };
}

const dns = service('kube-dns', null, { labels: { 'k8s-app': 'kube-dns' } }, 'kube-system');

async function trace(
  words: readonly string[],
  env: Record<string, string> = {},
): Promise<TraceDocument> {
  const { out, err } = await runTrace(['redis.cache', '-o', 'json', ...words], env);
  assert.notEqual(out, '', err);
  return JSON.parse(out) as TraceDocument;
}

describe('trace --from, from a cluster', () => {
  let api: ApiServer;
  let config = '';
  before(async () => {
    api = await ApiServer.start({ tokens: ['secret'] });
    config = join(directory, 'config');
    const context = (name: string, user: string): Json => ({
      name,
      context: { cluster: 'c', user, namespace: 'shop' },
    });
    writeFileSync(
      config,
      JSON.stringify({
        'current-context': 'nobody',
        clusters: [{ name: 'c', cluster: { server: api.url } }],
        users: [
          { name: 'admin', user: { token: 'secret' } },
          { name: 'nobody', user: {} },
        ],
        contexts: [context('test', 'admin'), context('nobody', 'nobody')],
      }),
    );
    api.put('namespaces', namespace('shop'));
    api.put('services', dns as never);
    api.put('pods', pod('web-0', 1) as never);
    api.put('pods', pod('old-1', 3, { leaving: true }) as never);
    api.put('pods', pod('old-2', 4, { phase: 'Pending' }) as never);
    api.put('pods', pod('old-3', 6) as never);
    api.put('deployments', workload('Deployment', 'web', 9) as never);
    api.put('deployments', workload('Deployment', 'idle', 7) as never);
    api.put('statefulsets', workload('StatefulSet', 'old', 9) as never);
    api.put('cronjobs', workload('CronJob', 'nightly', 8) as never);
    api.put('services', service('web', { app: 'web' }) as never);
    api.put('services', service('nobody', { app: 'nobody' }) as never);
    api.put('services', service('outside', null) as never);
  });
  after(() => api.stop());

  const from = (name: string, ...more: string[]): Promise<TraceDocument> =>
    trace(['--from', name, '--plan', '--kubeconfig', config, '--context', 'test', ...more]);

  const cases: [name: string, ndots: number, told: RegExp][] = [
    ['pod/web-0', 1, /^pod shop\/web-0, context test$/],
    ['web-0', 1, /^pod shop\/web-0/],
    ['pod/shop/web-0', 1, /^pod shop\/web-0/],
    ['deploy/web', 1, /^pod shop\/web-0 of Deployment shop\/web/],
    ['deployment.apps/web', 1, /^pod shop\/web-0 of Deployment shop\/web/],
    ['deploy/idle', 7, /^the template of Deployment shop\/idle/],
    ['sts/old', 6, /^pod shop\/old-3 of StatefulSet/],
    ['cronjob/nightly', 8, /^the template of CronJob shop\/nightly/],
    ['svc/web', 1, /^pod shop\/web-0 of Service shop\/web/],
  ];
  for (const [name, ndots, told] of cases) {
    test(`${name}: the pod that runs, else what it would be made from`, async () => {
      const { conf, from: whose } = await from(name);
      assert.equal(conf.ndots, ndots);
      assert.match(whose ?? '', told);
      assert.deepEqual(conf.search[0], 'shop.svc.cluster.local');
    });
  }

  test('the name server is the address of kube-dns', async () => {
    assert.deepEqual((await from('web-0')).conf.servers, ['10.43.0.10']);
    const other = await from('web-0', '--cluster-dns', '169.254.20.10');
    assert.deepEqual(other.conf.servers, ['169.254.20.10']);
  });

  test('the search domains of the node are read from its file; if it is missing, the document says so', async () => {
    const without = await from('web-0');
    assert.match(
      without.assumed ?? '',
      /search domains, each of which adds queries, are unknown and left out/,
    );
    const file = join(directory, 'node.conf');
    writeFileSync(file, 'search corp.example lab.example\nnameserver 192.0.2.53\n');
    const { conf, assumed } = await from('web-0', '--node-resolv-conf', file);
    assert.deepEqual(conf.search.slice(-2), ['corp.example', 'lab.example']);
    assert.equal(assumed, null);
    const words = ['a', '--from', 'web-0', '--plan', '--kubeconfig', config, '--context', 'test'];
    const { out } = await runTrace(words);
    assert.match(
      out.replaceAll(/\s+/g, ' '),
      /each of which adds queries, are unknown and left out/,
    );
  });

  test('other services of the DNS pods are not used as name servers', async () => {
    for (const name of ['kube-dns-upstream', 'a-dns'])
      api.put(
        'services',
        service(name, null, { labels: { 'k8s-app': 'kube-dns' } }, 'kube-system') as never,
      );
    assert.deepEqual((await from('web-0')).conf.servers, ['10.43.0.10']);
    for (const name of ['kube-dns-upstream', 'a-dns']) api.delete('services', 'kube-system', name);
  });

  test('the name servers are those of the kubelet, if they can be read', async () => {
    const data = { kubelet: 'clusterDNS:\n- 10.43.0.53\nclusterDomain: cluster.local\n' };
    api.put('configmaps', {
      metadata: { name: 'kubelet-config', namespace: 'kube-system' },
      data,
    } as never);
    assert.deepEqual((await from('web-0')).conf.servers, ['10.43.0.53']);
    api.put('pods', {
      ...pod('here-0', 2),
      spec: { ...spec(2), nodeName: 'node-a' },
    } as never);
    api.configz.set('node-a', { kubeletconfig: { clusterDNS: ['169.254.20.10'] } });
    assert.deepEqual((await from('here-0')).conf.servers, ['169.254.20.10']);
    api.delete('configmaps', 'kube-system', 'kubelet-config');
    api.delete('pods', 'shop', 'here-0');
  });

  test('KUBECONFIG and the namespace on the command line work as in kubectl', async () => {
    const words = ['--from', 'deploy/web', '--plan', '--context', 'test'];
    assert.equal((await trace(words, { KUBECONFIG: config })).conf.ndots, 1);
    const { code, err } = await runTrace(['a', ...words, '-n', 'elsewhere'], {
      KUBECONFIG: config,
    });
    assert.equal(code, 2);
    assert.match(err, /no Deployment "web" in namespace elsewhere in context test/);
  });

  for (const [name, text] of [
    ['svc/outside', /Service shop\/outside has no pods[^]*has no selector/],
    ['svc/nobody', /Service shop\/nobody has no pods[^]*app=nobody/],
    ['pod/gone', /no Pod "gone" in namespace shop/],
  ] as const) {
    test(`${name}: told, exit code 2`, async () => {
      const words = ['a', '--from', name, '--plan', '--kubeconfig', config, '--context', 'test'];
      const { code, err } = await runTrace(words);
      assert.equal(code, 2);
      assert.match(err, text);
    });
  }

  test('reports rejected credentials, with the next step', async () => {
    const words = ['a', '--from', 'web-0', '--plan', '--kubeconfig', config];
    const { code, err } = await runTrace(words);
    assert.equal(code, 2);
    assert.match(err, /401[^]*may have expired[^]*kubectl get pods web-0 -n shop/);
  });

  test('reports a missing cluster', async () => {
    const gone = join(directory, 'gone');
    writeFileSync(
      gone,
      JSON.stringify({
        'current-context': 'c',
        clusters: [{ name: 'c', cluster: { server: 'http://127.0.0.1:1' } }],
        contexts: [{ name: 'c', context: { cluster: 'c' } }],
      }),
    );
    const { code, err } = await runTrace(['a', '--from', 'web-0', '--plan', '--kubeconfig', gone]);
    assert.equal(code, 2);
    assert.match(err, /nothing listens at the API server's address 127\.0\.0\.1:1/);
  });

  test('completion suggests names from the cluster', async () => {
    const words = ['trace', '--kubeconfig', config, '--context', 'test', '--from', 'deploy/'];
    const { list } = await complete(words, {});
    assert.deepEqual(list.map(([word]) => word).toSorted(), ['deploy/idle', 'deploy/web']);
  });
});

describe('trace --from, from manifests', () => {
  const manifests = join(directory, 'manifests');
  mkdirSync(manifests);
  const all = [
    pod('web-0', 1),
    workload('Deployment', 'cart', 2),
    workload('Job', 'once', 3),
    service('cart', { app: 'cart' }),
    dns,
  ];
  writeFileSync(join(manifests, 'all.json'), JSON.stringify({ kind: 'List', items: all }));

  const words = (name: string, ...more: string[]): string[] => [
    ...['--from', name, '--manifests', manifests],
    ...more,
  ];

  test('nothing is sent, not even to a given server', async (t) => {
    const server = await serveAnswers({ rules: [] });
    t.after(() => server.close());
    const { live, totals } = await trace([...words('web-0'), `@127.0.0.1:${server.port}`]);
    assert.equal(live, false);
    assert.equal(totals.queries, 8);
    assert.deepEqual(server.asked, []);
  });

  for (const [name, ndots] of [
    ['web-0', 1],
    ['pod/shop/web-0', 1],
    ['deploy/cart', 2],
    ['deployment.apps/cart', 2],
    ['svc/cart', 2],
    ['job/once', 3],
  ] as const) {
    test(`${name} is found in whatever namespace it is`, async () => {
      const { conf } = await trace(words(name));
      assert.equal(conf.ndots, ndots);
      assert.deepEqual(conf.servers, ['10.43.0.10']);
      assert.equal(conf.search[0], 'shop.svc.cluster.local');
    });
  }

  test('a single file works, too', async () => {
    const { conf } = await trace(['--from', 'web-0', '--manifests', join(manifests, 'all.json')]);
    assert.equal(conf.ndots, 1);
  });

  test('reports a namespace that does not contain it', async () => {
    const { code, err } = await runTrace(['a', ...words('web-0', '-n', 'other')]);
    assert.equal(code, 2);
    assert.match(err, /no Pod "web-0" in namespace other in .*manifests/);
    assert.doesNotMatch(err, /kubectl/);
    assert.match(err, /Existing objects of that kind: .*web-0/);
  });

  test('reports a missing directory', async () => {
    const { code, err } = await runTrace(['a', '--from', 'web-0', '--manifests', '/nowhere']);
    assert.equal(code, 2);
    assert.match(err, /\/nowhere/);
  });

  test('completion suggests names from the directory', async () => {
    const { list } = await complete(['trace', '--manifests', manifests, '--from=svc/c'], {});
    assert.deepEqual(list, [['--from=svc/cart', '']]);
  });
});
