import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { healthy, play, STORY_START } from '../../../test/kit/story.ts';
import { cartOwners as owners, shopPod, watched } from '../../../test/kit/watched.ts';
import { LiveModel } from './live-model.ts';
import { nameFilter } from './name-filter.ts';
import { viewNames, type ViewName } from './view.ts';

const names = ['redis.cache', 'api.example.com', 'no.such.example.net'];
const lookups = (from: number): { atMs: number; name: string }[] =>
  Array.from({ length: 12 }, (_, at) => ({ atMs: from + at * 1500, name: names[at % 3]! }));
const packets = await play(
  [
    { address: '10.244.1.1', resolver: 'glibc', lookups: lookups(0) },
    { address: '10.244.1.2', resolver: 'musl', lookups: lookups(40) },
    {
      address: '10.244.1.3',
      resolver: 'go',
      lookups: [...lookups(80), { atMs: 9000, name: 'lost.example.com' }],
    },
  ],
  (passing) =>
    passing.name.startsWith('lost.')
      ? { lost: true }
      : { behind: '10.244.0.5', ...healthy(passing) },
);
const untilMs = packets.at(-1)!.timeMs + 40_000;
const model: LiveModel = watched(packets, { owners }, undefined, untilMs);

test('inputs that are away for the same reason share one remark, which names a few', () => {
  const many = new LiveModel();
  many.advance(STORY_START);
  for (let at = 0; at < 1000; at++)
    many.open(`pod ${at}`).away(at < 990 ? 'refused' : `reason ${at}`);
  assert.deepEqual(
    many.view({ view: 'now' }).remarks.map((remark) => remark.replace(/since .* UTC/, 'since T')),
    [
      '1000 of 1000 inputs are away since T. pod 0, pod 1, pod 2 and 987 more: refused; pod 990: reason 990; pod 991: reason 991; 8 more for other reasons',
    ],
  );
});

describe('views of a small cluster', () => {
  test('every view is plain data that survives JSON unchanged', () => {
    for (const view of viewNames) {
      const seen = model.view({ view });
      assert.deepEqual(JSON.parse(JSON.stringify(seen)), seen, view);
      assert.equal(seen.view, view);
      assert.equal(seen.inputs[0]!.name, 'interface veth0, port 53');
    }
  });

  test('now: sums are those of all queries, and lists of clients, names and servers add up to them', () => {
    const now = model.view({ view: 'now' });
    const queries = model.inputs[0]!.reading.totals.exchanges;
    assert.equal(now.queries, queries);
    assert.equal(now.lookups, 37);
    assert.equal(now.lost, model.inputs[0]!.reading.totals.lost);
    assert.ok(now.lost > 0);
    assert.equal(
      now.rcodes.reduce((sum, { count }) => sum + count, now.lost),
      queries,
    );
    const { series } = now;
    for (const [of, sum] of [
      [series.queries, now.queries],
      [series.lookups, now.lookups],
      [series.wasted, now.wasted],
      [series.lost, now.lost],
    ] as const)
      assert.equal(
        of.reduce((one, other) => one + other, 0),
        sum,
      );
    const clients = model.view({ view: 'clients' });
    assert.deepEqual([clients.shown, clients.total, clients.error, clients.leftOut], [3, 3, 0, 0]);
    for (const key of ['queries', 'lost', 'wasted', 'lookups', 'failed'] as const)
      assert.equal(
        clients.rows.reduce((sum, row) => sum + row[key], 0),
        now[key],
        key,
      );
    const all = model.view({ view: 'names' });
    assert.equal(
      all.rows.reduce((sum, row) => sum + row.lookups, 0),
      37,
    );
    assert.equal(
      all.rows.reduce((sum, row) => sum + row.queries, 0),
      queries,
    );
    assert.equal(now.waiting, 0);
    assert.equal(now.clients, 3);
  });

  test('lookups: each has its queries with reasons, the newest first', () => {
    const { rows, total, sampledShare } = model.view({ view: 'lookups' });
    assert.deepEqual([total, sampledShare], [37, 1]);
    const isNewest = rows.every((row, at) => at === 0 || row.startMs <= rows[at - 1]!.startMs);
    assert.ok(isNewest, 'in the order of the time that is shown');
    const [first] = model.view({ view: 'lookups', most: 1 }).rows;
    assert.deepEqual(first, rows[0]);
    const [oldest] = model.view({ view: 'lookups', most: 1, reversed: true }).rows;
    assert.equal(oldest!.startMs, rows.at(-1)!.startMs);
    const one = rows.find(
      ({ name, client }) => name === 'api.example.com' && client.name === 'shop/cart-1',
    )!;
    assert.equal(one.outcome, 'answered');
    assert.equal(one.wasted, 6);
    assert.deepEqual(
      one.queries.map(({ type, reason, why, server }) => [type, reason, why, server.name]),
      [
        ['A', 'first', 'search domain shop.svc.cluster.local', 'kube-system/kube-dns'],
        ['AAAA', 'other-family', 'the same name for IPv6', 'kube-system/kube-dns'],
        [
          'A',
          'search',
          'search domain svc.cluster.local (no such name before)',
          'kube-system/kube-dns',
        ],
        ['AAAA', 'other-family', 'the same name for IPv6', 'kube-system/kube-dns'],
        [
          'A',
          'search',
          'search domain cluster.local (no such name before)',
          'kube-system/kube-dns',
        ],
        ['AAAA', 'other-family', 'the same name for IPv6', 'kube-system/kube-dns'],
        ['A', 'as-written', 'the name as written (no such name before)', 'kube-system/kube-dns'],
        ['AAAA', 'other-family', 'the same name for IPv6', 'kube-system/kube-dns'],
      ],
    );
    const lost = rows.find(({ name }) => name.startsWith('lost.'))!;
    assert.equal(lost.outcome, 'lost');
    assert.ok(lost.queries.some(({ reason }) => reason === 'no-reply'));
    const failed = rows.find(({ name }) => name.startsWith('no.such'))!;
    assert.deepEqual([failed.outcome, failed.rcode], ['no-such-name', 'NXDOMAIN']);
    const [only] = model.view({ view: 'lookups', id: one.id }).rows;
    assert.deepEqual(only, one);
    const before = model.view({ view: 'lookups', before: one.id, most: 1 }).rows[0]!;
    assert.equal(before.id, one.id - 1);
  });

  test('clients show their workload and resolver, and stay when the pod is gone', () => {
    const rows = model.view({ view: 'clients', sort: 'name' }).rows;
    assert.deepEqual(
      rows.map(({ name, workload, resolver }) => [name, workload, resolver.kinds]),
      [
        ['', '', ['go']],
        ['shop/cart-1', 'deploy/cart', ['glibc']],
        ['shop/cart-2', 'deploy/cart', ['musl']],
      ],
    );
    const rest = new Map([...owners].filter(([address]) => address !== '10.244.1.2'));
    model.name(rest);
    const gone = model.view({ view: 'clients', id: '10.244.1.2' }).rows[0]!;
    assert.deepEqual([gone.name, gone.isGone], ['shop/cart-2', true]);
    assert.ok(
      model
        .view({ view: 'now' })
        .changes.rows.some(({ text }) => text === 'pod shop/cart-2 is gone'),
    );
    // Another pod gets the address, while the previous one keeps its lookups.
    model.name(new Map([...rest, ['10.244.1.2', shopPod('web-1', 'deploy/web')]]));
    assert.equal(model.view({ view: 'clients', id: '10.244.1.2' }).rows[0]!.name, 'shop/cart-2');
    model.name(owners);
  });

  test('a lookup leads to its own client, even if another pod had the address before', async () => {
    const lookup = { atMs: 0, name: 'api.example.com' };
    const asked = await play(
      [{ address: '10.244.1.2', resolver: 'go', lookups: [lookup] }],
      healthy,
    );
    const reused = new LiveModel({ owners });
    const input = reused.open('veth0');
    for (const name of ['cart-2', 'web-1']) {
      const atMs = asked[0]!.timeMs + (name === 'web-1' ? 60_000 : 0);
      reused.advance(atMs);
      reused.name(new Map([['10.244.1.2', shopPod(name, 'deploy/web')]]));
      for (const { bytes, timeMs } of asked)
        input.reading.takeNetwork(bytes, 0, bytes.length, atMs + timeMs - asked[0]!.timeMs, 0);
      reused.advance(atMs + 30_000);
    }
    const { rows } = reused.view({ view: 'lookups' });
    assert.equal(rows.length, 2);
    for (const { client, clientId } of rows) {
      const found = reused.view({ view: 'clients', id: clientId }).rows;
      assert.deepEqual([found.length, found[0]?.name], [1, client.name]);
    }
  });

  test('servers: the service, and the pod behind it', () => {
    const { rows } = model.view({ view: 'servers' });
    assert.deepEqual(
      rows.map(({ id, name, role, behind }) => [
        id,
        name,
        role,
        behind.map(({ address }) => address),
      ]),
      [
        ['10.96.0.10', 'kube-system/kube-dns', 'server', ['10.244.0.5']],
        ['10.244.0.5', '', 'behind', []],
      ],
    );
    assert.equal(rows[0]!.clients, 3);
  });

  test('filters use the words of capture and apply to every view', () => {
    const filters = [{ word: 'workload', value: 'deploy/cart', negated: true }] as const;
    const seen = (view: 'clients' | 'lookups' | 'names'): number =>
      model.view({ view, filters }).total;
    assert.deepEqual([seen('clients'), seen('lookups'), seen('names')], [1, 13, 4]);
    const now = model.view({ view: 'now', filters });
    assert.equal(now.lookups, 13);
    assert.equal(now.queries, model.view({ view: 'clients', id: '10.244.1.3' }).rows[0]!.queries);
    assert.throws(
      () =>
        model.view({
          view: 'names',
          filters: [{ word: 'type', value: 'nonsense', negated: false }],
        }),
      { code: 'usage' },
    );
  });

  test('the filter of a name selects its lookups, even if only search domains were tried', () => {
    const { rows } = model.view({ view: 'names' });
    assert.equal(rows.length, 4);
    for (const { name, lookups: count } of rows) {
      const filters = [nameFilter(name)];
      assert.equal(model.view({ view: 'lookups', filters }).total, count, name);
    }
  });

  test('a page of a list shows the total number of rows', () => {
    const { rows, shown, total } = model.view({ view: 'names', most: 2, skip: 1, sort: 'name' });
    assert.deepEqual(
      [rows.map(({ name }) => name), shown, total],
      [['lost.example.com', 'no.such.example.net'], 2, 4],
    );
    const turned = model.view({ view: 'names', most: 1, sort: 'name', reversed: true });
    assert.equal(turned.rows[0]!.name, 'redis.cache');
  });

  test('waste: each workload shows the cost of its search path, and the patch that avoids it', async () => {
    await model.plans.settled;
    const { waste, wasted, queries } = model.view({ view: 'now' });
    assert.deepEqual([waste.queries, waste.share], [wasted, wasted / queries]);
    assert.deepEqual(
      waste.workloads.rows.map(({ id, clients }) => [id, clients]),
      [
        ['shop/deploy/cart', 2],
        ['10.244.1.3', 1],
      ],
    );
    assert.equal(
      waste.workloads.rows.reduce((sum, row) => sum + row.wasted, 0),
      wasted,
    );
    const plan = waste.workloads.rows[0]!.plan!;
    assert.equal(plan.ndots, 2);
    assert.ok(plan.queriesThen < plan.queriesNow, `${plan.queriesThen} of ${plan.queriesNow}`);
    assert.deepEqual(JSON.parse(plan.patch).spec.template.spec.dnsConfig, {
      options: [{ name: 'ndots', value: '2' }],
    });
    assert.deepEqual(plan.dotted[0]?.name, 'api.example.com.');
  });

  test('the model reports its memory use, which is below the limit', () => {
    const { usedBytes, limitBytes, dropped } = model.view({ view: 'now' }).memory;
    assert.ok(usedBytes > 0 && usedBytes < limitBytes);
    assert.equal(dropped, '');
  });
});

for (const [tcp, ending] of [
  ['refused', 'error'],
  ['dropped', 'error'],
  [undefined, 'answered'],
] as const)
  test(`a lookup with a truncated reply is ${ending} if TCP is ${tcp ?? 'accepted'}`, async () => {
    const client = {
      address: '10.244.1.9',
      resolver: 'glibc',
      lookups: [{ atMs: 0, name: 'large.example.com.' }],
    };
    const packets = await play([client], (passing) => ({
      ...healthy(passing),
      ...(passing.protocol === 'udp'
        ? { truncated: true, addresses: [] }
        : { addresses: ['192.0.2.1'], ...(tcp !== undefined && { tcp }) }),
    }));
    const model = watched(packets, {}, undefined, packets.at(-1)!.timeMs + 60_000);
    const { rows } = model.view({ view: 'lookups' });
    assert.deepEqual([...new Set(rows.map(({ outcome }) => outcome))], [ending]);
    const [name] = model.view({ view: 'names' }).rows;
    assert.equal(name!.outcome, ending);
  });

test('a model without inputs has all views, all empty', () => {
  const empty = new LiveModel();
  for (const view of viewNames as readonly ViewName[])
    assert.deepEqual(JSON.parse(JSON.stringify(empty.view({ view }))), empty.view({ view }));
  assert.equal(empty.view({ view: 'lookups' }).total, 0);
  empty.advance(STORY_START);
  assert.equal(empty.view({ view: 'now' }).queries, 0);
});
