import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { VirtualClock } from '../../base/virtual-clock.ts';
import { scriptedNetwork } from '../../../../test/kit/upstream.ts';
import { makeWorld, type World } from '../../../../test/kit/world.ts';

const directory = mkdtempSync(join(tmpdir(), 'ndots-top-'));
after(() => rmSync(directory, { recursive: true }));
writeFileSync(
  join(directory, 'objects.json'),
  JSON.stringify({
    apiVersion: 'v1',
    kind: 'List',
    items: [
      {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name: 'web-1', namespace: 'shop' },
        spec: { containers: [] },
        status: { phase: 'Running', podIP: '10.244.0.9', podIPs: [{ ip: '10.244.0.9' }] },
      },
      {
        apiVersion: 'v1',
        kind: 'Service',
        metadata: { name: 'backend', namespace: 'shop' },
        spec: { clusterIP: '10.96.0.1', ports: [{ port: 80 }] },
      },
    ],
  }),
);

/** A server whose upstream knows every name except those that start with `missing`, and fails for `broken`. */
function serve(top = 'top', pods = 'pods verified'): Promise<World> {
  const clock = new VirtualClock();
  const network = scriptedNetwork(clock, ({ name }) => {
    if (name.startsWith('missing')) return { rcode: 'NXDOMAIN' };
    if (name.startsWith('broken')) return { rcode: 'SERVFAIL' };
    return { answer: ['@ 300 A 192.0.2.1'] };
  });
  return makeWorld(
    `.:53 {
 prometheus 127.0.0.1:0
 ${top}
 kubernetes cluster.local {
  manifests ${directory}
  ${pods}
 }
 forward . 192.0.2.53
}`,
    { clock, network },
  );
}

/** Returns a metric family's series as they appear ten seconds later. */
async function series(world: World, name: string): Promise<readonly string[]> {
  await world.clock.advance(10_000);
  return world
    .metrics()
    .split('\n')
    .filter((line) => line.startsWith(`ndots_top_${name}{`))
    .map((line) => line.slice(`ndots_top_${name}`.length));
}

describe('top', () => {
  test('a pod that walks a search path is named with its queries', async () => {
    const world = await serve();
    for (const domain of ['shop.svc.cluster.local.', 'svc.cluster.local.', 'cluster.local.', ''])
      await world.ask(`api.example.com.${domain} A`);
    await world.ask('backend.shop.svc.cluster.local. A', { client: '10.244.7.7' });
    await world.ask('missing.example.com. A', { client: '10.244.7.7' });
    await world.ask('broken.example.com. A', { client: '10.244.7.7' });
    assert.deepEqual(await series(world, 'clients'), [
      '{client="10.244.0.9",namespace="shop",pod="web-1"} 4',
      '{client="10.244.7.7",namespace="",pod=""} 3',
    ]);
    assert.deepEqual(await series(world, 'search_clients'), [
      '{client="10.244.0.9",namespace="shop",pod="web-1"} 3',
    ]);
    assert.deepEqual(await series(world, 'nxdomain_clients'), [
      '{client="10.244.0.9",namespace="shop",pod="web-1"} 3',
      '{client="10.244.7.7",namespace="",pod=""} 1',
    ]);
    assert.deepEqual(await series(world, 'nxdomain_names'), [
      '{name="api.example.com.cluster.local."} 1',
      '{name="api.example.com.shop.svc.cluster.local."} 1',
      '{name="api.example.com.svc.cluster.local."} 1',
      '{name="missing.example.com."} 1',
    ]);
    assert.deepEqual(await series(world, 'failed_names'), ['{name="broken.example.com."} 1']);
    assert.equal((await series(world, 'names')).length, 7);
    await world.close();
  });

  test('without pods verified, a client is named by address', async () => {
    const world = await serve('top', 'pods insecure');
    await world.ask('backend.shop.svc.cluster.local. A');
    assert.deepEqual(await series(world, 'clients'), [
      '{client="10.244.0.9",namespace="",pod=""} 1',
    ]);
    await world.close();
  });

  test("clients may be networks, search domains may differ from the cluster's, and few may be shown", async () => {
    const world = await serve('top 1 {\n ipv4_prefix 24\n search example.com\n}');
    await world.ask('missing.example.com. A', { client: '10.244.0.9' });
    await world.ask('missing.example.com. A', { client: '10.244.0.10' });
    await world.ask('missing.example.org. A', { client: '10.244.1.1' });
    assert.deepEqual(await series(world, 'clients'), [
      '{client="10.244.0.0/24",namespace="",pod=""} 2',
    ]);
    assert.deepEqual(await series(world, 'search_clients'), [
      '{client="10.244.0.0/24",namespace="",pod=""} 2',
    ]);
    await world.close();
  });

  test('hostile names become single-line labels of full length', async () => {
    const world = await serve();
    const label = '\\"\\010\\\\x}'.repeat(10);
    await world.ask(`${label}.\\000\\255.example. A`);
    const [line, ...others] = await series(world, 'names');
    assert.deepEqual(others, []);
    assert.match(line!, /^\{name="[^\n]*\\\\000\\\\255\.example\."\} 1$/);
    const longest = `${`${'\\000'.repeat(63)}.`.repeat(3)}${'\\000'.repeat(61)}. A`;
    await world.ask(longest);
    assert.ok((await series(world, 'names')).some((shown) => shown.length > 1000));
    await world.close();
  });

  test('during a flood of clients and names, the frequent client is shown, and others have low counts', async () => {
    const world = await serve('top 10 {\n track 64\n}');
    for (let i = 0; i < 3000; i++) {
      const client = `10.${i & 7}.${i >> 8}.${i & 255}`;
      await world.ask(`missing-${i}.example. A`, { client });
      if (i % 10 === 0) await world.ask('popular.example. A', { client: '10.244.0.9' });
    }
    const shown = (await series(world, 'names')).map((line) => ({
      popular: line.includes('"popular.example."'),
      count: Number(/ (\d+)$/.exec(line)![1]),
    }));
    assert.equal(shown.length, 10);
    const popular = shown.find((one) => one.popular)!;
    assert.ok(popular.count > 250 && popular.count <= 300, String(popular.count));
    for (const { count } of shown.filter((one) => !one.popular)) assert.ok(count <= 2);
    await world.close();
  });

  test('internal lookups do not count for a client', async () => {
    const world = await serve();
    await world.ask('backend.shop.svc.cluster.local. A', { proto: 'internal' });
    assert.deepEqual(await series(world, 'clients'), []);
    await world.close();
  });

  test('a reload removes the series', async () => {
    const world = await serve('top\n reload');
    await world.ask('backend.shop.svc.cluster.local. A');
    assert.equal((await series(world, 'clients')).length, 1);
    world.setCorefile('.:53 {\n prometheus 127.0.0.1:0\n reload\n whoami\n}');
    assert.ok(await world.server.reload());
    assert.deepEqual(await series(world, 'clients'), []);
    await world.close();
  });
});
