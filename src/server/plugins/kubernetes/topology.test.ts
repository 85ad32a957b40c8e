import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import fc from 'fast-check';
import { rcodeName, TYPE } from '../../wire/iana.ts';
import { printData } from '../../wire/print.ts';
import { makeWorld, type World } from '../../../../test/kit/world.ts';

const NODES = ['a1', 'a2', 'b1', 'nowhere'] as const;
const zoneOf = (node: string): string => (node === 'nowhere' ? '' : `zone-${node[0]}`);
const rangeOf = (node: string): string => `10.1.${(NODES as readonly string[]).indexOf(node) + 1}`;

const node = (name: string, zone = zoneOf(name)): object => ({
  apiVersion: 'v1',
  kind: 'Node',
  metadata: { name, labels: zone === '' ? {} : { 'topology.kubernetes.io/zone': zone } },
  spec: { podCIDR: `${rangeOf(name)}.0/24`, podCIDRs: [`${rangeOf(name)}.0/24`] },
  status: {
    addresses: [
      { type: 'InternalIP', address: `192.168.0.${rangeOf(name).slice(-1)}` },
      { type: 'Hostname', address: name },
    ],
  },
});
const headless = (name: string, spec: object = {}): object => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name, namespace: 'shop' },
  spec: {
    clusterIP: 'None',
    selector: { app: 'web' },
    ports: [{ name: 'http', port: 80 }],
    ...spec,
  },
});
const pod = (name: string, on: string, ip: string, labels: object, ready = true): object => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: {
    name,
    namespace: 'shop',
    labels,
    annotations: ready ? {} : { 'ndots.dev/ready': 'false' },
  },
  spec: { nodeName: on, containers: [{ name: 'c' }] },
  status: { phase: 'Running', podIP: ip, podIPs: [{ ip }] },
});
const web = { app: 'web' };

/** An endpoint from a slice in a manifest, as in the API. */
interface WrittenEndpoint {
  readonly address: string;
  readonly ready: boolean;
  readonly zones: readonly string[];
  readonly nodes: readonly string[];
}

const named = (names: readonly string[]): object[] => names.map((name) => ({ name }));
const slice = (
  service: string,
  endpoints: readonly WrittenEndpoint[],
  name = `${service}-1`,
): object => ({
  apiVersion: 'discovery.k8s.io/v1',
  kind: 'EndpointSlice',
  metadata: { name, namespace: 'shop', labels: { 'kubernetes.io/service-name': service } },
  addressType: endpoints[0]?.address.includes(':') ? 'IPv6' : 'IPv4',
  ports: [{ name: 'http', port: 80, protocol: 'TCP' }],
  endpoints: endpoints.map(({ address, ready, zones, nodes }) => ({
    addresses: [address],
    conditions: { ready },
    ...(zones.length + nodes.length === 0
      ? {}
      : { hints: { forZones: named(zones), forNodes: named(nodes) } }),
  })),
});

const directory = mkdtempSync(join(tmpdir(), 'ndots-topology-'));
after(() => rmSync(directory, { recursive: true }));
const write = (name: string, items: readonly object[]): void =>
  writeFileSync(join(directory, name), JSON.stringify({ apiVersion: 'v1', kind: 'List', items }));

write(
  'nodes.json',
  NODES.map((name) => node(name)),
);
write('shop.json', [
  headless('near', { trafficDistribution: 'PreferSameZone' }),
  headless('close', { trafficDistribution: 'PreferClose' }),
  headless('local', { trafficDistribution: 'PreferSameNode' }),
  headless('plain'),
  headless('cluster', { clusterIP: '10.96.0.7', trafficDistribution: 'PreferSameZone' }),
  headless('v6', { ipFamilies: ['IPv6'], trafficDistribution: 'PreferSameZone' }),
  pod('w1', 'a1', '10.1.1.10', web),
  pod('w2', 'a2', '10.1.2.10', web),
  pod('w3', 'b1', '10.1.3.10', web),
  pod('lost', 'b1', '10.9.9.9', { app: 'client' }),
  pod('unready', 'a1', '10.1.1.11', web, false),
]);

/** A Corefile with the plugin and additional lines. */
const corefile = (lines: string, around = ''): string =>
  `. {\n${around}\nkubernetes cluster.local in-addr.arpa {\nmanifests ${directory}\n${lines}\n}\n}`;

const serve = (lines: string, around = ''): Promise<World> =>
  makeWorld(corefile(lines, around), { directory });

const ON = { a1: '10.1.1.77', a2: '10.1.2.77', b1: '10.1.3.77', nowhere: '10.1.4.77' } as const;
const ALL = '10.1.1.10 10.1.2.10 10.1.3.10';

async function say(world: World, question: string, client: string): Promise<string> {
  const name = question.replace(/^\S+/, (short) => `${short}.shop.svc.cluster.local.`);
  const { rcode, answer } = await world.ask(name, { client });
  const data = answer
    // `autopath` adds the name that it found.
    .filter(({ type }) => type !== TYPE.CNAME)
    .map((record) => printData(record.type, record.data))
    .toSorted();
  return [...(rcode === 0 ? [] : [rcodeName(rcode)]), ...data].join(' ');
}

describe('a headless service with trafficDistribution', () => {
  let world: World;
  before(async () => {
    world = await serve('topology nodes');
  });
  after(() => world.close());

  for (const name of ['near', 'close']) {
    test(`is answered with the endpoints in the client’s zone (${name})`, async () => {
      assert.equal(await say(world, name, ON.a1), '10.1.1.10 10.1.2.10');
      assert.equal(await say(world, name, ON.a2), '10.1.1.10 10.1.2.10');
      assert.equal(await say(world, name, ON.b1), '10.1.3.10');
    });
  }

  test("PreferSameNode prefers endpoints on the client's node, then in its zone", async () => {
    write('zz-b2.json', [{ ...node('b2', 'zone-b'), spec: { podCIDR: '10.1.9.0/24' } }]);
    await world.clock.advance(3000);
    assert.equal(await say(world, 'local', ON.a1), '10.1.1.10');
    assert.equal(await say(world, 'local', ON.b1), '10.1.3.10');
    assert.equal(await say(world, 'local', '10.1.9.4'), '10.1.3.10', 'no endpoint on its node');
  });

  test("is answered with all endpoints if the client's zone has none or is unknown", async () => {
    assert.equal(await say(world, 'near', ON.nowhere), ALL);
    assert.equal(await say(world, 'near', '203.0.113.9'), ALL);
    assert.equal(await say(world, 'local', '203.0.113.9'), ALL);
  });

  test("treats a node's own address as the node, for node caches and pods on the host network", async () => {
    assert.equal(await say(world, 'near', '192.168.0.3'), '10.1.3.10');
    assert.equal(await say(world, 'local', '192.168.0.2'), '10.1.2.10');
  });

  test('lists the same endpoints for SRV, including named ports', async () => {
    for (const name of ['near SRV', '_http._tcp.near SRV']) {
      assert.equal(
        await say(world, name, ON.b1),
        '0 100 80 10-1-3-10.near.shop.svc.cluster.local.',
        name,
      );
    }
  });

  test('returns the same to all clients for single endpoints, reverse names and zonal names', async () => {
    assert.equal(await say(world, '10-1-3-10.near', ON.a1), '10.1.3.10');
    const pointer = await world.ask('10.3.1.10.in-addr.arpa. PTR', { client: ON.a1 });
    assert.ok(pointer.answer.length > 0);
    const zonal = await serve('topology nodes\nzonal');
    assert.equal(await say(zonal, 'zone-b.pin._zone.near', ON.a1), '10.1.3.10');
    await zonal.close();
  });

  test('is unaffected without hints, with a cluster IP, and for missing types', async () => {
    assert.equal(await say(world, 'plain', ON.b1), ALL);
    assert.equal(await say(world, 'cluster', ON.b1), '10.96.0.7');
    assert.equal(await say(world, 'near AAAA', ON.b1), '');
    assert.equal(await say(world, 'missing', ON.b1), 'NXDOMAIN');
  });

  test('has a metric for the chosen endpoints', async () => {
    await say(world, 'near', ON.b1);
    assert.match(world.metrics(), /ndots_kubernetes_topology_answers_total\{by="zone"\} [1-9]/);
    assert.match(world.metrics(), /ndots_kubernetes_topology_answers_total\{by="all"\} [1-9]/);
  });

  test('follows a node that changes its zone', async () => {
    assert.equal(await say(world, 'near', ON.a2), '10.1.1.10 10.1.2.10');
    write(
      'nodes.json',
      NODES.map((name) => node(name, name === 'a2' ? 'zone-b' : zoneOf(name))),
    );
    await world.clock.advance(3000);
    assert.equal(await say(world, 'near', ON.a2), '10.1.2.10 10.1.3.10');
    write(
      'nodes.json',
      NODES.map((name) => node(name)),
    );
    await world.clock.advance(3000);
    assert.equal(await say(world, 'near', ON.a2), '10.1.1.10 10.1.2.10');
  });
});

describe('without the option', () => {
  test('all clients get all endpoints', async () => {
    const world = await serve('');
    for (const client of Object.values(ON)) assert.equal(await say(world, 'near', client), ALL);
    await world.close();
  });
});

describe("a client's zone", () => {
  test('comes from prefixes in the configuration, the longest first', async () => {
    const world = await serve(
      'topology prefixes\ntopology_zone zone-a 10.0.0.0/8 fd00::/8\ntopology_zone zone-b 10.1.3.0/24',
    );
    assert.equal(await say(world, 'near', ON.b1), '10.1.3.10');
    assert.equal(await say(world, 'near', ON.nowhere), '10.1.1.10 10.1.2.10');
    assert.equal(await say(world, 'near', 'fd00::1'), '10.1.1.10 10.1.2.10');
    assert.equal(await say(world, 'near', '203.0.113.9'), ALL);
    await world.close();
  });

  test('comes from them for a node without a zone too, and the node still counts', async () => {
    const world = await serve('topology nodes\ntopology_zone zone-b 10.1.4.0/24');
    assert.equal(await say(world, 'near', ON.nowhere), '10.1.3.10');
    assert.equal(await say(world, 'near', ON.a1), '10.1.1.10 10.1.2.10', 'its node says so');
    await world.close();
  });

  test('comes from the node of the pod with its address, before all other sources', async () => {
    const lost = '10.9.9.9';
    const nodes = await serve('topology nodes');
    assert.equal(await say(nodes, 'near', lost), ALL);
    await nodes.close();
    const pods = await serve('topology pods\ntopology_zone zone-a 10.9.0.0/16');
    assert.equal(await say(pods, 'near', lost), '10.1.3.10');
    assert.equal(await say(pods, 'local', lost), '10.1.3.10');
    assert.equal(await say(pods, 'near', ON.b1), '10.1.3.10', 'by the range of its node');
    assert.equal(await say(pods, 'near', '10.9.9.8'), '10.1.1.10 10.1.2.10', 'by its prefix');
    await pods.close();
  });
});

describe('with other plugins', () => {
  const both = async (world: World, name: string): Promise<string[]> => {
    const found: string[] = [];
    for (const client of [ON.a1, ON.b1, ON.a1, ON.b1, '203.0.113.9'])
      found.push(await say(world, name, client));
    return found;
  };
  const right = ['10.1.1.10 10.1.2.10', '10.1.3.10', '10.1.1.10 10.1.2.10', '10.1.3.10', ALL];
  const hits = (world: World): number =>
    Number(
      /coredns_cache_hits_total\{[^}]*type="success"[^}]*\} (\d+)/.exec(world.metrics())?.[1] ?? 0,
    );

  test('cache stores only answers that are the same for all clients', async () => {
    const world = await serve('topology nodes', 'cache 30');
    assert.deepEqual(await both(world, 'near'), right);
    assert.equal(hits(world), 0);
    await both(world, 'plain');
    assert.equal(hits(world), 4);
    await world.close();
  });

  test("cache with prefetch and serve_stale never sends a client another client's answer", async () => {
    const world = await serve('topology nodes', 'cache 30 {\nprefetch 1\nserve_stale 1h\n}');
    for (let round = 0; round < 4; round++) {
      assert.deepEqual(await both(world, 'near'), right);
      await world.clock.advance(4000);
    }
    await world.close();
  });

  test('autopath before the plugin and after cache', async () => {
    const world = await serve('topology nodes', 'cache 30\nautopath @name');
    assert.deepEqual(await both(world, 'near.shop.svc.cluster.local'), right);
    assert.deepEqual(await both(world, 'near.shop'), right);
    await world.close();
  });

  test('an alias in another server block with its own cache', async () => {
    const zone = 'web IN CNAME near.shop.svc.cluster.local.';
    writeFileSync(
      join(directory, 'zone.db'),
      `$ORIGIN example.org.\n@ 60 IN SOA ns host 1 7200 900 86400 60\n@ 60 IN NS ns\nns 60 IN A 192.0.2.1\n${zone}\n`,
    );
    const world = await makeWorld(
      `example.org {\ncache 30\nfile ${join(directory, 'zone.db')}\n}\n${corefile('topology nodes', 'cache 30')}`,
      { directory },
    );
    const found: string[] = [];
    for (const client of [ON.a1, ON.b1, ON.a1]) {
      const { answer } = await world.ask('web.example.org.', { client });
      found.push(
        answer
          .filter(({ type }) => type === TYPE.A)
          .map(({ type, data }) => printData(type, data))
          .toSorted()
          .join(' '),
      );
    }
    assert.deepEqual(found, [right[0], right[1], right[0]]);
    await world.close();
    rmSync(join(directory, 'zone.db'));
  });

  test('views each have their own option', async () => {
    const view = (name: string, expression: string, lines: string): string =>
      corefile(lines, `view ${name} {\nexpr ${expression}\n}\ncache 30`);
    const world = await makeWorld(
      `${view('zonal', "incidr(client_ip(), '10.1.3.0/24')", 'topology nodes')}\n${corefile('', 'cache 30')}`,
      { directory },
    );
    assert.deepEqual(await both(world, 'near'), [ALL, '10.1.3.10', ALL, '10.1.3.10', ALL]);
    await world.close();
  });

  test('a transfer includes all endpoints', async () => {
    const world = await serve('topology nodes', 'transfer {\nto *\n}');
    const { answer } = await world.ask('cluster.local. AXFR', { proto: 'tcp', client: ON.b1 });
    const found = answer
      .filter(({ name, type }) => name === 'near.shop.svc.cluster.local.' && type === TYPE.A)
      .map(({ type, data }) => printData(type, data));
    assert.deepEqual(found.toSorted().join(' '), ALL);
    await world.close();
  });
});

describe('the options', () => {
  for (const [lines, wrong] of [
    ['topology zones', /unknown value 'zones', expected prefixes, nodes, pods/],
    [
      'topology prefixes',
      /topology prefixes has no prefixes, so it cannot determine clients' zones/,
    ],
    ['topology_zone a 10.0.0.0/8', /topology_zone has no effect without topology/],
    ['topology nodes\ntopology_zone a 10.0.0.0/99', /invalid CIDR address: 10.0.0.0\/99/],
    ['topology nodes\nnoendpoints', /topology requires endpoints/],
  ] as const) {
    test(`reject ${lines.replace('\n', ', ')}`, async () => {
      await assert.rejects(serve(lines), wrong);
    });
  }
});

/** kube-proxy's rule (KEP-2433, KEP-4444, KEP-3015), implemented directly from its definition. */
function chosenByProxy(
  endpoints: readonly WrittenEndpoint[],
  node: string,
  zone: string,
): string[] {
  const ready = endpoints.filter((endpoint) => endpoint.ready);
  const forNode = ready.filter(({ nodes }) => nodes.includes(node));
  const forZone = ready.filter(({ zones }) => zones.includes(zone));
  const every = (has: (endpoint: WrittenEndpoint) => boolean): boolean => ready.every(has);
  const chosen =
    every(({ nodes }) => nodes.length > 0) && forNode.length > 0
      ? forNode
      : every(({ zones }) => zones.length > 0) && forZone.length > 0
        ? forZone
        : ready;
  return chosen.map(({ address }) => address).toSorted();
}

test('for any hints, the result is a non-empty subset and what kube-proxy chooses', async () => {
  const places = (from: readonly string[]): fc.Arbitrary<string[]> =>
    fc.oneof(
      { weight: 4, arbitrary: fc.subarray([...from], { minLength: 1, maxLength: 2 }) },
      { weight: 1, arbitrary: fc.constant<string[]>([]) },
    );
  const endpoint = fc.record({
    ready: fc.oneof({ weight: 5, arbitrary: fc.constant(true) }, fc.boolean()),
    zones: places(['zone-a', 'zone-b', 'zone-c']),
    nodes: fc.oneof(fc.constant<string[]>([]), places(['a1', 'a2', 'b1', 'gone'])),
  });
  const service = fc.record({
    v4: fc.array(endpoint, { minLength: 1, maxLength: 5 }),
    v6: fc.array(endpoint, { maxLength: 4 }),
  });
  const drawn = fc.sample(service, { numRuns: 200, seed: 7 });
  const cases = drawn.map(({ v4, v6 }, at) => ({
    name: `s${at}`,
    v4: v4.map((one, i) => ({ ...one, address: `10.${8 + (at >> 8)}.${at & 255}.${i + 1}` })),
    v6: v6.map((one, i) => ({ ...one, address: `fd00::${(at + 1).toString(16)}:${i + 1}` })),
  }));
  const own = mkdtempSync(join(tmpdir(), 'ndots-topology-laws-'));
  const items = [
    ...NODES.map((name) => node(name)),
    ...cases.flatMap(({ name, v4, v6 }) => [
      headless(name),
      // The rule applies across both slices.
      slice(name, v4.slice(0, 2)),
      slice(name, v4.slice(2), `${name}-2`),
      slice(name, v6, `${name}-3`),
    ]),
  ];
  writeFileSync(join(own, 'all.json'), JSON.stringify({ apiVersion: 'v1', kind: 'List', items }));
  const text = `. {\ncache 30\nkubernetes cluster.local {\nmanifests ${own}\ntopology nodes\n}\n}`;
  const world = await makeWorld(text, { directory: own });
  // A large file is read in another thread, which takes real time.
  while ((await say(world, 's0', '203.0.113.9')) === 'SERVFAIL') {
    await new Promise((resolve) => setTimeout(resolve, 5));
    await world.clock.advance(100);
  }
  const kinds = new Set<string>();
  for (const { name, v4, v6 } of cases) {
    for (const [on, client] of [...Object.entries(ON), ['', '203.0.113.9']] as const) {
      for (const [type, endpoints] of [
        ['A', v4],
        ['AAAA', v6],
      ] as const) {
        const got = (await say(world, `${name} ${type}`, client)).split(' ').filter(Boolean);
        const ready = endpoints.filter((one) => one.ready).map(({ address }) => address);
        if (ready.length === 0) {
          assert.ok(got.length === 0 || got[0] === 'NXDOMAIN');
          continue;
        }
        const label = `${name} ${type} on ${on}: ${got.join(' ')} of ${JSON.stringify(endpoints)}`;
        assert.ok(got.length > 0, label);
        assert.ok(
          got.every((address) => ready.includes(address)),
          label,
        );
        assert.deepEqual(got, chosenByProxy(endpoints, on, zoneOf(on || 'nowhere')), label);
        kinds.add(got.length === ready.length ? 'all' : 'some');
      }
    }
  }
  assert.deepEqual(kinds, new Set(['all', 'some']));
  await world.close();
  rmSync(own, { recursive: true });
});
