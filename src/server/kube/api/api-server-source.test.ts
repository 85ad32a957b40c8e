import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { wholeObject } from '../../../../test/kit/whole-records.ts';
import { elapse, makeRig, quiet, until, type Rig } from '../../../../test/kit/apiserver/rig.ts';
import { namespace } from '../../../../test/kit/apiserver/server.ts';
import type { KubeJson } from '../../../../test/kit/apiserver/store.ts';
import { pod, service, slice } from '../../../../test/kit/apiserver/populate.ts';

function fill(rig: Rig, services = 3): void {
  for (let i = 0; i < services; i++) {
    rig.server.put('services', service(i));
    rig.server.put('endpointslices', slice(i, i * 2, 2));
    rig.server.put('pods', pod(i, 1));
  }
}

async function synced(rig: Rig): Promise<void> {
  rig.start();
  await until(() => rig.source.synced);
  // All kinds are now being watched, so later changes arrive as events.
  await until(() => rig.server.watches.size === 4);
}

/** Different ways to reach the same state. */
const ways = [
  { name: 'streaming lists', server: {} },
  { name: 'lists, since the database is too old for streams', server: { progressNotices: false } },
  { name: 'pages', server: { streamingLists: false, pagesFromCache: true } },
  { name: 'one whole list from the cache', server: { streamingLists: false } },
  { name: 'an old server', server: { minor: 20, without: ['discovery.k8s.io/v1'] } },
];

describe('a source delivers', () => {
  for (const way of ways) {
    test(`everything that exists, by ${way.name}`, async () => {
      await using rig = await makeRig({ server: way.server });
      fill(rig, 1200);
      await synced(rig);
      assert.equal(rig.heard.names('Service').length, 1200);
      assert.equal(rig.heard.names('EndpointSlice').length, 1200);
      assert.equal(rig.heard.names('Pod').length, 1200);
      assert.deepEqual(rig.heard.names('Namespace'), ['default', 'kube-system']);
      assert.deepEqual([...rig.heard.syncedKinds].sort(), [
        'EndpointSlice',
        'Namespace',
        'Pod',
        'Service',
      ]);
      assert.deepEqual(new Set([...rig.source.snapshot()].map((one) => one.kind)).size, 4);
    });

    test(`each change as it happens, by ${way.name}`, async () => {
      await using rig = await makeRig({ server: way.server });
      fill(rig);
      await synced(rig);
      rig.heard.forget();
      rig.server.put('services', service(3));
      rig.server.delete('services', 'team-0', 'service-0');
      rig.server.put('endpointslices', slice(1, 0, 5));
      await until(() => rig.heard.all.length === 3);
      const slices = [...rig.heard.state.values()].filter((one) => one.kind === 'EndpointSlice');
      assert.deepEqual(rig.heard.names('Service'), ['service-1', 'service-2', 'service-3']);
      assert.equal(slices.find((one) => one.service === 'service-1')?.endpoints.length, 5);
    });
  }

  test('core Endpoints if the server has no endpoint slices at all', async () => {
    await using rig = await makeRig({
      server: { minor: 16, without: ['discovery.k8s.io/v1', 'discovery.k8s.io/v1beta1'] },
    });
    rig.server.put('endpoints', {
      metadata: { name: 'web', namespace: 'default' },
      subsets: [
        { addresses: [{ ip: '10.0.0.1' }], ports: [{ name: 'http', port: 80 }] },
        { addresses: [{ ip: '10.0.0.2' }], ports: [{ name: 'http', port: 8080 }] },
      ],
    });
    await synced(rig);
    assert.deepEqual(rig.heard.names('EndpointSlice'), ['web', 'web#1']);
    rig.server.put('endpoints', {
      metadata: { name: 'web', namespace: 'default' },
      subsets: [{ addresses: [{ ip: '10.0.0.1' }], ports: [{ name: 'http', port: 80 }] }],
    });
    await until(() => rig.heard.names('EndpointSlice').length === 1);
    rig.server.delete('endpoints', 'default', 'web');
    await until(() => rig.heard.names('EndpointSlice').length === 0);
  });

  test('no finished pods, and a pod that finishes as if it were deleted', async () => {
    await using rig = await makeRig();
    const finished = pod(1, 1);
    finished['status'] = { phase: 'Succeeded', podIP: '10.0.0.9' };
    rig.server.put('pods', pod(0, 1));
    rig.server.put('pods', finished);
    await synced(rig);
    assert.equal(rig.heard.names('Pod').length, 1);
    const first = pod(0, 1);
    first['status'] = { phase: 'Failed' };
    rig.server.put('pods', first);
    await until(() => rig.heard.names('Pod').length === 0);
  });

  test('only objects that the selectors match', async () => {
    await using rig = await makeRig({
      wanted: { labels: 'app in (service-1,service-2)', namespaceLabels: 'team=a', pods: false },
    });
    fill(rig);
    rig.server.put('namespaces', { metadata: { name: 'a', labels: { team: 'a' } } });
    rig.start();
    await until(() => rig.source.synced);
    assert.deepEqual(rig.heard.names('Service'), ['service-1', 'service-2']);
    assert.deepEqual(rig.heard.names('Namespace'), ['a']);
    assert.deepEqual(rig.heard.names('Pod'), []);
    assert.equal(rig.server.requests('watch', 'pods').length, 0);
  });

  test('service imports and their slices for multicluster', async () => {
    await using rig = await makeRig({ wanted: { multicluster: true, endpoints: false } });
    rig.server.put('serviceimports', {
      metadata: { name: 'db', namespace: 'default' },
      spec: { type: 'ClusterSetIP', ips: ['10.42.0.1'], ports: [{ name: 'sql', port: 5432 }] },
    });
    fill(rig);
    rig.server.put('endpointslices', {
      metadata: {
        name: 'imported-db',
        namespace: 'default',
        labels: {
          'multicluster.kubernetes.io/service-name': 'db',
          'multicluster.kubernetes.io/source-cluster': 'east',
        },
      },
      endpoints: [{ addresses: ['10.9.0.1'], hostname: 'db-0' }],
    });
    rig.start();
    await until(() => rig.source.synced);
    assert.deepEqual(rig.heard.names('ServiceImport'), ['db']);
    assert.deepEqual(rig.heard.names('EndpointSlice'), ['imported-db']);
    const found = rig.heard.state.get('EndpointSlice default/imported-db');
    assert.equal(found?.kind === 'EndpointSlice' && found.cluster, 'east');
  });
});

describe('a source', () => {
  test('does not wait for nodes: without the right to list them, everything else is complete', async () => {
    await using rig = await makeRig({ wanted: { topology: 'nodes' } });
    rig.server.faults.add({ resource: 'nodes', fault: { kind: 'status', status: 403 } });
    fill(rig);
    rig.start();
    await until(() => rig.source.synced);
    assert.deepEqual(rig.heard.names('Node'), []);
  });

  test('delivers the place of each node, but no change in its size', async () => {
    await using rig = await makeRig({ wanted: { topology: 'nodes' } });
    const node = (cpu: string, zone: string): KubeJson => ({
      metadata: { name: 'n1', labels: { 'topology.kubernetes.io/zone': zone } },
      spec: { podCIDRs: ['10.1.0.0/24', 'fd00:1::/64'] },
      status: {
        allocatable: { cpu },
        addresses: [
          { type: 'InternalIP', address: '192.168.0.7' },
          { type: 'ExternalIP', address: '203.0.113.7' },
        ],
      },
    });
    rig.server.put('nodes', node('4', 'a'));
    rig.start();
    await until(() => rig.heard.syncedKinds.length === 5 && rig.server.watches.size === 5);
    rig.heard.forget();
    rig.server.put('nodes', node('8', 'a'));
    rig.server.put('nodes', node('8', 'b'));
    await until(() => rig.heard.all.length === 1);
    const [change] = rig.heard.all;
    assert.ok(change?.verb === 'put' && change.object.kind === 'Node');
    const { zone, prefixes } = change.object;
    assert.deepEqual([zone, prefixes], ['b', ['192.168.0.7', '10.1.0.0/24', 'fd00:1::/64']]);
  });

  test('reports the same failure once a minute, however often it happens', async () => {
    await using rig = await makeRig();
    rig.server.faults.add({ resource: 'services', fault: { kind: 'status', status: 500 } });
    rig.start();
    await until(() => rig.lines.length === 1);
    for (let second = 0; second < 300; second += 5) {
      await rig.clock.advance(5000);
      await quiet(2);
    }
    const told = rig.lines.filter((line) => line.includes('services')).length;
    assert.ok(told >= 3 && told <= 6, `${told} lines in five minutes`);
    assert.match(rig.lines.at(-1)!, /failure \d+/);
  });

  test('identifies itself', async () => {
    await using rig = await makeRig();
    await synced(rig);
    assert.match(
      rig.server.seen.at(-1)!.headers['user-agent']!,
      /^CoreDNS-compatible ndots\/1\.2\.3 \(\w+\/\w+\)$/,
    );
  });

  test('counts its requests like client-go', async () => {
    const counted: string[] = [];
    const seconds: number[] = [];
    await using rig = await makeRig({
      source: {
        hooks: {
          requested: ({ method, host, code }) => counted.push(`${method} ${host} ${code}`),
          took: (_labels, value) => seconds.push(value),
        },
      },
    });
    rig.server.faults.add({
      resource: 'services',
      times: 1,
      fault: { kind: 'status', status: 503 },
    });
    rig.server.faults.add({ resource: 'pods', times: 1, fault: { kind: 'drop' } });
    rig.start();
    await elapse(rig.clock, 5000, () => rig.source.synced);
    const host = `127.0.0.1:${rig.server.port}`;
    assert.ok(counted.includes(`GET ${host} 200`));
    assert.ok(counted.includes(`GET ${host} 503`));
    assert.ok(counted.includes(`GET ${host} <error>`));
    assert.equal(seconds.length, 1, 'watches are not timed, the version request is');
  });

  test('respects a configured request rate', async () => {
    const held: number[] = [];
    await using rig = await makeRig({
      server: { minor: 20 },
      source: {
        limits: { perSecond: 1, burst: 2, inFlight: 1 },
        hooks: { heldBack: (_labels, value) => held.push(value) },
      },
    });
    fill(rig);
    rig.start();
    await elapse(rig.clock, 30_000, () => rig.source.synced && rig.server.watches.size === 4);
    assert.ok(Math.max(...held) >= 2, 'later requests wait');
    assert.equal(held[0], 0);
  });

  test('stops at once, whatever it is doing', async () => {
    const rig = await makeRig();
    rig.server.faults.add({ fault: { kind: 'hang' } });
    rig.start();
    await until(() => rig.server.seen.length > 0);
    await rig.source.stop();
    assert.equal(rig.clock.pending, 0);
    await rig.server.stop();
  });

  test('gives a late worker the whole state', async () => {
    await using rig = await makeRig();
    fill(rig, 20);
    await synced(rig);
    rig.server.delete('services', 'team-3', 'service-3');
    rig.server.put('namespaces', namespace('later'));
    await until(() => rig.heard.names('Namespace').includes('later'));
    await until(() => !rig.heard.names('Service').includes('service-3'));
    const snapshot = [...rig.source.snapshot()].map(wholeObject);
    const told = [...rig.heard.state.values()].map((object) =>
      object.kind === 'EndpointSlice' ? { ...object, triggeredAt: 0 } : object,
    );
    const sort = (objects: readonly object[]): string[] =>
      objects.map((object) => JSON.stringify(object, Object.keys(object).sort())).sort();
    assert.deepEqual(sort(snapshot), sort(told));
  });

  test('reports when the change behind a slice happened', async () => {
    await using rig = await makeRig();
    await synced(rig);
    rig.server.put('endpointslices', slice(0, 0, 1));
    await until(() => rig.heard.names('EndpointSlice').length === 1);
    const [change] = rig.heard.all.filter(
      (one) => one.verb === 'put' && one.object.kind === 'EndpointSlice',
    );
    assert.ok(change?.verb === 'put' && change.object.kind === 'EndpointSlice');
    assert.equal(change.object.triggeredAt, Date.UTC(2026, 0, 1));
  });
});
