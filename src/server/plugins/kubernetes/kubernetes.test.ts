import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { directive } from '../../corefile/syntax.ts';
import { definePlugin } from '../../engine/contract/plugin.ts';
import { rcodeName } from '../../wire/iana.ts';
import { printRecord } from '../../wire/print.ts';
import type { Query } from '../../transport/query.ts';
import { failure } from '../../wire/reply.ts';
import { makeWorld, type World } from '../../../../test/kit/world.ts';
import { metadata } from '../metadata/metadata.ts';
import { transfer } from '../transfer/transfer.ts';
import { kubernetes } from './kubernetes.ts';

const directory = mkdtempSync(join(tmpdir(), 'ndots-kubernetes-'));
after(() => rmSync(directory, { recursive: true }));

function write(name: string, ...items: object[]): void {
  writeFileSync(join(directory, name), JSON.stringify({ apiVersion: 'v1', kind: 'List', items }));
}

const namespace = (name: string): object => ({
  apiVersion: 'v1',
  kind: 'Namespace',
  metadata: { name },
});
const service = (name: string, clusterIP: string): object => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name, namespace: 'shop' },
  spec: { clusterIP, ports: [{ name: 'http', port: 80 }] },
});
const pod = (name: string, ip: string): object => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, namespace: 'shop', labels: { app: 'web' } },
  spec: { containers: [] },
  status: { phase: 'Running', podIP: ip, podIPs: [{ ip }] },
});
write('a.json', namespace('shop'), service('web', '10.96.0.20'), pod('web-0', '10.244.0.9'));

const seen: Query[] = [];
const spy = definePlugin({
  syntax: directive({ name: 'spy', summary: 'looks on', repeat: 'once' }),
  setup: (_options, _context, next) => (query) => {
    seen.push(query.keep());
    return next(query);
  },
});
const end = definePlugin({
  syntax: directive({ name: 'end', summary: 'refuses', repeat: 'once' }),
  setup: () => () => failure(5, 'end'),
});
const plugins = [metadata, transfer, spy, kubernetes, end];

function serve(block: string, zones = '.:53', more = ''): Promise<World> {
  return makeWorld(
    `${zones} {\n${more}\nkubernetes cluster.local in-addr.arpa {\n${block}\n}\nend\n}`,
    {
      plugins,
      directory,
    },
  );
}

const manifests = `manifests ${directory}`;

async function say(world: World, question: string): Promise<string> {
  const { rcode, answer } = await world.ask(question);
  return [
    rcodeName(rcode),
    ...answer.map(({ data }) => JSON.stringify(Object.values(data)[0])),
  ].join(' ');
}

test('the zone is transferred in full, or as only its SOA record to a client with the current serial', async () => {
  const world = await serve(manifests, '.:53', 'transfer cluster.local {\n to *\n}');
  const { answer } = await world.ask('cluster.local. AXFR', { proto: 'tcp' });
  const lines = answer.map(printRecord).map((line) => line.split(/\s+/));
  assert.ok(
    lines.every(([, , , type]) => ['SOA', 'NS', 'A', 'AAAA', 'TXT', 'SRV'].includes(type!)),
  );
  assert.deepEqual([lines[0]![3], lines.at(-1)![3]], ['SOA', 'SOA']);
  assert.deepEqual(
    lines
      .filter(([name]) => name!.endsWith('web.shop.svc.cluster.local.'))
      .map(([name, , , ...data]) => [name, ...data].join(' ')),
    [
      'web.shop.svc.cluster.local. A 10.96.0.20',
      'web.shop.svc.cluster.local. SRV 0 100 80 web.shop.svc.cluster.local.',
      '_http._tcp.web.shop.svc.cluster.local. SRV 0 100 80 web.shop.svc.cluster.local.',
    ],
  );
  assert.equal(
    rcodeName((await world.ask('in-addr.arpa. AXFR', { proto: 'tcp' })).rcode),
    'REFUSED',
  );
  await world.close();
});

describe('the source', () => {
  test('is watched: changes in a directory are served within seconds', async () => {
    const world = await serve(manifests);
    assert.equal(await say(world, 'new.shop.svc.cluster.local. A'), 'NXDOMAIN');
    write('b.json', service('new', '10.96.0.21'));
    await world.clock.advance(2000);
    assert.equal(await say(world, 'new.shop.svc.cluster.local. A'), 'NOERROR "10.96.0.21"');
    rmSync(join(directory, 'b.json'));
    await world.clock.advance(2000);
    assert.equal(await say(world, 'new.shop.svc.cluster.local. A'), 'NXDOMAIN');
    await world.close();
  });

  test('survives a reload that does not change it, with all its data', async () => {
    const world = await serve(manifests);
    const listed = world.log.length;
    world.setCorefile(`.:53 {\nkubernetes cluster.local {\n${manifests}\nttl 60\n}\nend\n}`);
    assert.equal(await world.clock.run(world.server.reload()), true);
    const { answer } = await world.ask('web.shop.svc.cluster.local. A');
    assert.equal(answer[0]?.ttl, 60);
    assert.deepEqual(
      world.log.slice(listed).filter((line) => line.includes('services')),
      [],
    );
    await world.close();
  });

  test('is replaced by a reload that changes it', async () => {
    const world = await serve(manifests);
    world.setCorefile(
      `.:53 {\nkubernetes cluster.local {\n${manifests}\nlabels app=none\n}\nend\n}`,
    );
    assert.equal(await world.clock.run(world.server.reload()), true);
    assert.equal(await say(world, 'web.shop.svc.cluster.local. A'), 'NXDOMAIN');
    await world.close();
  });

  test('does not delay startup if unavailable: cluster names get SERVFAIL, and the server is not ready', async () => {
    const world = await serve('endpoint http://127.0.0.1:1\nstartup_timeout 2h');
    assert.ok(world.clock.now() < 5000, String(world.clock.now()));
    assert.ok(
      world.log.includes(
        '[WARNING] plugin/kubernetes: starting server with unsynced Kubernetes API',
      ),
    );
    assert.equal(await say(world, 'web.shop.svc.cluster.local. A'), 'SERVFAIL');
    await world.close();
  });

  test('stops the start if it is a missing directory or there is no cluster', async () => {
    await assert.rejects(serve('manifests missing-folder'), /missing-folder/);
    await assert.rejects(serve('ttl 5'), /unable to load in-cluster configuration/);
  });
});

describe('metadata', () => {
  const notes = async (
    question: string,
    block = '',
    client = '10.244.0.9',
  ): Promise<Record<string, string>> => {
    const world = await serve(`${manifests}\n${block}`, '.:53', 'metadata\nspy');
    seen.length = 0;
    await world.tryAsk(question, { client });
    await world.close();
    return Object.fromEntries(seen[0]!.notes!);
  };

  test('shows what a query is about', async () => {
    assert.deepEqual(await notes('_http._tcp.web.shop.svc.cluster.local. SRV'), {
      'kubernetes/port-name': 'http',
      'kubernetes/protocol': 'tcp',
      'kubernetes/endpoint': '',
      'kubernetes/service': 'web',
      'kubernetes/namespace': 'shop',
      'kubernetes/kind': 'svc',
    });
    assert.equal((await notes('a.web.shop.svc.cluster.local. A'))['kubernetes/endpoint'], 'a');
    assert.equal((await notes('1-2-3-4.shop.pod.cluster.local. A'))['kubernetes/kind'], 'pod');
    assert.deepEqual(await notes('a.b.c.cluster.local. A'), {
      'kubernetes/parse-error': 'invalid query name',
    });
    assert.deepEqual(await notes('example.org. A'), {});
  });

  test('shows which pod sent a query, if pods are verified', async () => {
    const found = await notes('example.org. A', 'pods verified');
    assert.deepEqual(found, {
      'kubernetes/client-namespace': 'shop',
      'kubernetes/client-pod-name': 'web-0',
      'kubernetes/client-label/app': 'web',
    });
    assert.deepEqual(await notes('example.org. A', 'pods verified', '192.0.2.1'), {});
  });

  test('shows the zone that a zonal name requests', async () => {
    const found = await notes('eu.west.pin._zone.web.shop.svc.cluster.local. A', 'zonal');
    assert.equal(found['kubernetes/zone'], 'eu.west');
    assert.equal(found['kubernetes/service'], 'web');
  });
});

describe('the Corefile', () => {
  const problems: readonly (readonly [string, string, RegExp])[] = [
    [
      'pods maybe',
      'cluster.local',
      /wrong value for pods: maybe, {2}must be one of: disabled, verified, insecure/,
    ],
    ['ttl 3601', 'cluster.local', /ttl must be in range \[0, 3600\]: 3601/],
    ['ttl -1', 'cluster.local', /ttl must be in range \[0, 3600\]: -1/],
    ['ignore something', 'cluster.local', /unable to parse ignore value: 'something'/],
    ['labels a in b', 'cluster.local', /unable to parse label selector value: 'a in b'/],
    [
      'namespaces a\nnamespace_labels b=c',
      'cluster.local',
      /namespaces and namespace_labels cannot both be set/,
    ],
    [
      'zonal\nnoendpoints',
      'cluster.local',
      /zonal requires the endpoint cache; remove noendpoints/,
    ],
    [
      'multicluster other.local',
      'cluster.local',
      /not authoritative for the multicluster zone other\.local\. \(authoritative zones: \[cluster\.local\.\]\)/,
    ],
    [
      'startup_timeout soon',
      'cluster.local',
      /failed to parse startup_timeout: soon, time: invalid duration "soon"/,
    ],
    ['apiserver_qps -1', 'cluster.local', /apiserver_qps must be >= 0/],
    ['apiserver_burst x', 'cluster.local', /invalid apiserver_burst "x"/],
    ['tls a b', 'cluster.local', /Wrong argument count/],
    ['kubeconfig', 'cluster.local', /Wrong argument count/],
    ['endpoint', 'cluster.local', /Wrong argument count/],
    ['resync 5', 'cluster.local', /unknown property 'resync'/],
    ['', '10.0.0.0/8', /non-reverse zone name must be used/],
    ['endpoint http://127.0.0.1', 'cluster.local', /manifests and endpoint cannot both be set/],
  ];
  for (const [block, zones, wanted] of problems) {
    test(`rejects "${block.replace('\n', '; ')}" for ${zones}`, async () => {
      const text = `.:53 {\nkubernetes ${zones} {\n${manifests}\n${block}\n}\n}`;
      await assert.rejects(makeWorld(text, { plugins, directory }), wanted);
    });
  }

  test('may contain options from older versions, which are ignored with a warning', async () => {
    const world = await serve(
      `${manifests}\nupstream\nresyncperiod 5m\ntransfer to *\nfederation a b`,
    );
    const warnings = world.log.filter((line) => line.includes('is ignored'));
    assert.deepEqual(
      warnings.map((line) => /'(\w+)' is ignored/.exec(line)?.[1]),
      ['upstream', 'resyncperiod', 'transfer', 'federation'],
    );
    assert.equal(await say(world, 'web.shop.svc.cluster.local. A'), 'NOERROR "10.96.0.20"');
    await world.close();
  });

  test('with several endpoints is reported with the one in use', async () => {
    const world = await serve('endpoint http://127.0.0.1:1 http://127.0.0.1:2\nstartup_timeout 0s');
    assert.ok(
      world.log.some((line) =>
        line.includes("only the first specified endpoint 'http://127.0.0.1:1' is used"),
      ),
    );
    await world.close();
  });

  test('with two `endpoint` lines uses the last one, as CoreDNS does', async () => {
    const world = await serve(
      'endpoint http://127.0.0.1:1 http://127.0.0.1:2\nendpoint http://127.0.0.1:3\nstartup_timeout 0s',
    );
    assert.deepEqual(
      world.log.filter((line) => line.includes('Multiple endpoints')),
      [],
    );
    await world.close();
    await assert.rejects(
      serve('endpoint http://127.0.0.1:1\nendpoint a{2'),
      /'a\{2' is not an API server URL/,
    );
  });

  test('with two `multicluster` lines uses the zones in the last one, as CoreDNS does', async () => {
    const world = await serve(`${manifests}\nmulticluster other.local\nmulticluster cluster.local`);
    await world.close();
    await assert.rejects(
      serve(`${manifests}\nmulticluster cluster.local\nmulticluster other.local`),
      /not authoritative for the multicluster zone other/,
    );
  });

  test("without zones uses the server block's", async () => {
    const world = await makeWorld(
      `example.org 10.96.0.0/16 {\nkubernetes {\n${manifests}\n}\nend\n}`,
      { plugins, directory },
    );
    assert.equal(await say(world, 'web.shop.svc.example.org. A'), 'NOERROR "10.96.0.20"');
    assert.equal(
      await say(world, '20.0.96.10.in-addr.arpa. PTR'),
      'NOERROR "web.shop.svc.example.org."',
    );
    await world.close();
  });

  test("with pods verified answers for a pod's address", async () => {
    const world = await serve(`${manifests}\npods verified`);
    assert.equal(await say(world, '10-244-0-9.shop.pod.cluster.local. A'), 'NOERROR "10.244.0.9"');
    assert.equal(await say(world, '10-244-0-8.shop.pod.cluster.local. A'), 'NXDOMAIN');
    await world.close();
  });
});
