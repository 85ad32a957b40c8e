import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { healthy, play } from '../../../test/kit/story.ts';
import { cartOwners as owners, watched } from '../../../test/kit/watched.ts';
import { parseFilterLine } from '../capture/filter-line.ts';
import type { LiveModel } from './live-model.ts';
import type { MapView } from './map-shape.ts';
import { PrivateViews } from './view-privacy.ts';

const names = ['redis.cache', 'api.example.com', 'lost.example.com'];

async function modelOf(others: number): Promise<LiveModel> {
  const addresses = ['10.244.1.1', '10.244.1.2'];
  for (let at = 0; at < others; at++) addresses.push(`10.244.2.${at + 1}`);
  const clients = addresses.map((address, client) => ({
    address,
    resolver: 'glibc' as const,
    lookups: Array.from({ length: 4 + (client % 3) }, (_, at) => ({
      atMs: client * 7 + at * 900,
      name: names[at % 3]!,
    })),
  }));
  const packets = await play(clients, (passing) =>
    passing.name.startsWith('lost.')
      ? { lost: true }
      : { behind: `10.244.0.${5 + (passing.name.length % 2)}`, ...healthy(passing) },
  );
  return watched(packets, { owners }, undefined, packets.at(-1)!.timeMs + 40_000);
}

/** Checks that each edge counts as many lookups as the list shows for its filter. */
function assertExact(model: LiveModel, map: MapView): void {
  assert.ok(map.edges.length > 0);
  for (const { id, filter, lookups } of map.edges) {
    const filters = parseFilterLine(filter);
    assert.equal(model.view({ view: 'lookups', filters, most: 1 }).total, lookups, id);
  }
}

describe('the map', async () => {
  const model = await modelOf(3);
  const map = model.map({ view: 'map' });

  test('groups pods by workload, and leads through the service to the pods behind it', () => {
    const cart = map.nodes.find(({ name }) => name === 'shop/deploy/cart')!;
    assert.deepEqual([cart.role, cart.clients], ['clients', 2]);
    const roles = new Map(map.nodes.map(({ address, role }) => [address, role]));
    assert.equal(roles.get('10.96.0.10'), 'server');
    assert.equal(roles.get('10.244.0.5'), 'behind');
    assert.equal(map.nodes.find(({ role }) => role === 'server')!.name, 'kube-system/kube-dns');
    const [edge] = map.edges.filter(({ from }) => from === cart.id);
    assert.equal(edge!.to, '10.96.0.10');
    assert.ok(edge!.lost > 0 && edge!.rate > 0 && edge!.latency.p50! > 0);
  });

  test('each edge counts the lookups that match its filter', () => assertExact(model, map));

  test('the same holds with a filter on the page, even for the same word', () => {
    for (const line of [
      'rcode=NXDOMAIN',
      'not name=*lost*',
      'from-ip=10.244.2.0/24',
      'workload=shop/deploy/cart',
      'to-ip=10.244.0.5',
    ])
      assertExact(model, model.map({ view: 'map', filters: parseFilterLine(line) }));
  });

  test('clients beyond a dozen groups are one node, whose edge counts exactly its lookups', async () => {
    const many = await modelOf(20);
    const wide = many.map({ view: 'map' });
    const more = wide.nodes.find((node) => node.more > 0)!;
    assert.deepEqual([more.more, more.clients], [9, 9]);
    assert.equal(wide.nodes.filter(({ role }) => role === 'clients').length, 13);
    assertExact(many, wide);
  });

  test('clients that lose queries or get errors are drawn by name before busier ones without faults', async () => {
    const [loser, failing] = ['10.244.3.1', '10.244.3.2'];
    const healthyOnes = Array.from({ length: 20 }, (_, at) => `10.244.2.${at + 1}`);
    const clients = [...healthyOnes, loser, failing].map((address, client) => ({
      address,
      resolver: 'glibc' as const,
      lookups: Array.from({ length: address.startsWith('10.244.3') ? 1 : 3 }, (_, at) => ({
        atMs: client * 7 + at * 900,
        name: `api${at}.example.com.`,
      })),
    }));
    const packets = await play(clients, (passing) => {
      if (passing.client === loser) return { lost: true };
      return passing.client === failing ? { rcode: 2 } : healthy(passing);
    });
    const faulty = watched(packets, {}, undefined, packets.at(-1)!.timeMs + 40_000);
    const drawn = faulty.map({ view: 'map' });
    const named = drawn.nodes
      .filter(({ role }) => role === 'clients')
      .map(({ address }) => address);
    assert.ok(named.includes(loser) && named.includes(failing), named.join());
    const more = drawn.edges.find(({ from }) => from === 'more')!;
    assert.deepEqual([more.lost, more.failed], [0, 0]);
    assertExact(faulty, drawn);
  });

  test('without client addresses, edges that would need one have no filter', () => {
    const views = new PrivateViews(model, 'no-clients', 'key');
    const hidden = views.map({ view: 'map' });
    assert.ok(!JSON.stringify(hidden).includes('10.244.2.1'));
    assert.ok(JSON.stringify(hidden).includes('shop/deploy/cart'));
    for (const { from, to, filter } of hidden.edges) {
      assert.ok(
        hidden.nodes.some(({ id }) => id === from) && hidden.nodes.some(({ id }) => id === to),
      );
      if (filter !== '') views.view({ view: 'lookups', filters: parseFilterLine(filter) });
    }
    assert.throws(() => new PrivateViews(model, 'counts', 'key').map({ view: 'map' }), /hidden/);
  });
});
