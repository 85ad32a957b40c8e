import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { VirtualClock } from '../../base/virtual-clock.ts';
import { RCODE } from '../../wire/iana.ts';
import type { Message } from '../../wire/message.ts';
import { printMessage } from '../../wire/print.ts';
import { scriptedNetwork } from '../../../../test/kit/upstream.ts';
import { makeWorld, type World } from '../../../../test/kit/world.ts';

const directory = mkdtempSync(join(tmpdir(), 'ndots-fairqueue-'));
after(() => rmSync(directory, { recursive: true }));
const pod = (namespace: string, ip: string): object => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: `client-${ip.replaceAll('.', '-')}`, namespace },
  spec: { containers: [] },
  status: { phase: 'Running', podIP: ip, podIPs: [{ ip }] },
});
writeFileSync(
  join(directory, 'objects.json'),
  JSON.stringify({
    apiVersion: 'v1',
    kind: 'List',
    items: [
      pod('noisy', '10.244.0.1'),
      pod('noisy', '10.244.0.2'),
      pod('calm', '10.244.0.3'),
      { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'calm' } },
      {
        apiVersion: 'v1',
        kind: 'Service',
        metadata: { name: 'web', namespace: 'calm' },
        spec: { clusterIP: '10.96.0.1', ports: [{ port: 80 }] },
      },
    ],
  }),
);

/** A server with an upstream that takes a second for each name. */
function serve(lines: string, more = ''): Promise<World> {
  const clock = new VirtualClock();
  const network = scriptedNetwork(clock, () => ({ afterMs: 1000, answer: ['@ 300 A 192.0.2.1'] }));
  return makeWorld(
    `.:53 {
 prometheus 127.0.0.1:0
 fairqueue {
  ${lines}
 }
 ${more}
 kubernetes cluster.local {
  manifests ${directory}
  pods verified
 }
 forward . 192.0.2.53
}`,
    { clock, network },
  );
}

let number = 0;
async function flood(world: World, client: string, count: number): Promise<number> {
  let refused = 0;
  for (let i = 0; i < count; i++) {
    void asked(world, client, `n${number++}.example.org. A`).then((reply) => {
      if (reply.rcode === RCODE.REFUSED) refused++;
    });
  }
  for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve));
  return refused;
}

/** The world's clock must be stopped, because `ask` would advance it until the reply arrives. */
async function asked(world: World, client: string, question: string): Promise<Message> {
  return (await world.begin(question, { client, edns: true }))!;
}

describe('fairqueue', () => {
  test('a client alone may use all places; beyond them it is refused with the reason', async () => {
    const world = await serve('concurrent 16');
    assert.equal(await flood(world, '10.0.0.1', 16), 0);
    assert.equal(await flood(world, '10.0.0.1', 4), 4);
    const reply = await world.ask('other.example.org. A', { client: '10.0.0.1', edns: true });
    assert.equal(reply.rcode, RCODE.REFUSED);
    assert.match(printMessage(reply), /EDE: 0 .*too many in-flight queries from this client/);
    assert.match(world.metrics(), /ndots_fairqueue_waiting 16\n/);
    assert.match(world.metrics(), /ndots_fairqueue_clients 1\n/);
    assert.match(
      world.metrics(),
      /ndots_fairqueue_refused_total\{server="dns:\/\/:53",view=""\} 5\n/,
    );
    await world.clock.advance(10_000);
    assert.match(world.metrics(), /ndots_fairqueue_top_clients\{client="10\.0\.0\.1"\} 5\n/);
    assert.match(world.metrics(), /ndots_fairqueue_waiting 0\n/);
    assert.equal(await flood(world, '10.0.0.1', 16), 0);
    await world.clock.advance(2000);
    await world.close();
  });

  test('while one client uses all places, others are admitted', async () => {
    const world = await serve('concurrent 64');
    await flood(world, '10.0.0.1', 500);
    for (const client of ['10.0.0.2', '10.0.0.3', '2001:db8::1'])
      assert.equal(await flood(world, client, 2), 0, client);
    await world.clock.advance(2000);
    await world.close();
  });

  test('a network with many addresses does not get all places: others are admitted, and the metric names it', async () => {
    for (const [address, network] of [
      [(i: number) => `10.5.5.${i & 255}`, '10\\.5\\.5\\.0/24'],
      [(i: number) => `2001:db8:0:7::${i.toString(16)}`, '2001:db8:0:7::/64'],
    ] as const) {
      const world = await serve('concurrent 64');
      for (let i = 0; i < 300; i++) await flood(world, address(i), 1);
      for (const client of ['10.0.0.2', '10.0.1.3', '2001:db8::1'])
        assert.equal(await flood(world, client, 1), 0, client);
      await world.clock.advance(10_000);
      assert.match(
        world.metrics(),
        new RegExp(`ndots_fairqueue_top_clients\\{client="${network}"`),
      );
      await world.close();
    }
  });

  test('a client larger than a network also counts as one network, and nothing remains after its queries end', async () => {
    const world = await serve('concurrent 16\n  ipv4_prefix 16\n  ipv6_prefix 48');
    for (const [one, other] of [
      ['10.5.1.1', '10.5.2.1'],
      ['2001:db8:0:1::1', '2001:db8:0:2::1'],
    ] as const) {
      for (let round = 0; round < 20; round++) {
        assert.equal(await flood(world, one, 8), 0);
        assert.equal(await flood(world, other, 8), 0);
        await world.clock.advance(2000);
      }
      await flood(world, '10.0.0.1', 16);
      assert.equal(await flood(world, other, 1), 0);
      await world.clock.advance(2000);
    }
    await world.close();
  });

  test('cached names are answered for every client, regardless of the queries in flight', async () => {
    const world = await serve('concurrent 8', 'cache');
    await world.ask('known.example.org. A', { client: '10.0.0.1' });
    assert.equal(await flood(world, '10.0.0.1', 100), 92);
    const cached = await world.ask('known.example.org. A', { client: '10.0.0.1' });
    const local = await world.ask('web.calm.svc.cluster.local. A', { client: '10.0.0.1' });
    assert.deepEqual([cached.answer.length, local.answer.length], [1, 1]);
    await world.close();
  });

  test('a query that waits for an identical one counts as in flight', async () => {
    const world = await serve('concurrent 8', 'cache');
    for (let i = 0; i < 8; i++) void asked(world, '10.0.0.1', 'same.example.org. A');
    assert.match(world.metrics(), /ndots_fairqueue_waiting 8\n/);
    assert.equal((await asked(world, '10.0.0.1', 'same.example.org. A')).rcode, RCODE.REFUSED);
    await world.clock.advance(2000);
    await world.close();
  });

  test('pods in a namespace share if configured; others share by address', async () => {
    const world = await serve('concurrent 16\n by namespace');
    assert.equal(await flood(world, '10.244.0.1', 16), 0);
    assert.equal(await flood(world, '10.244.0.2', 2), 2);
    assert.equal(await flood(world, '10.244.0.3', 1), 0);
    assert.equal(await flood(world, '192.0.2.7', 1), 0);
    await world.clock.advance(10_000);
    assert.match(world.metrics(), /ndots_fairqueue_top_clients\{client="namespace\/noisy"\} 2\n/);
    await world.close();
  });

  test('prefixes treat a network as one client', async () => {
    const world = await serve('concurrent 8\n ipv4_prefix 24');
    await flood(world, '10.0.0.1', 8);
    assert.equal(await flood(world, '10.0.0.2', 1), 1);
    assert.equal(await flood(world, '10.0.1.1', 1), 0);
    await world.clock.advance(2000);
    await world.close();
  });

  test('report_only refuses no query', async () => {
    const world = await serve('concurrent 8\n report_only');
    assert.equal(await flood(world, '10.0.0.1', 20), 0);
    assert.match(world.metrics(), /ndots_fairqueue_refused_total\{[^}]*\} 12\n/);
    await world.clock.advance(2000);
    await world.close();
  });

  test('a failing upstream releases the places', async () => {
    const clock = new VirtualClock();
    const network = scriptedNetwork(clock, () => ({ fail: 'timeout' }));
    const world = await makeWorld(
      '. {\n prometheus 127.0.0.1:0\n fairqueue {\n concurrent 8\n }\n forward . 192.0.2.53\n}',
      { clock, network },
    );
    await flood(world, '10.0.0.1', 20);
    await clock.advance(10_000);
    assert.match(world.metrics(), /ndots_fairqueue_waiting 0\n/);
    await world.close();
  });
});
