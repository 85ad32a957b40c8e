import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { freePorts } from '../../../../test/kit/free-ports.ts';
import { makeWorld, type World } from '../../../../test/kit/world.ts';

const address = '127.0.0.1:0';

async function get(world: World, path = '/health'): Promise<{ status: number; body: string }> {
  const reply = await fetch(`http://127.0.0.1:${world.server.httpPort(address)}${path}`);
  return { status: reply.status, body: await reply.text() };
}

/** Waits in real time until the metrics match. */
async function until(world: World, expected: RegExp): Promise<void> {
  const end = Date.now() + 5000;
  while (!expected.test(world.metrics()) && Date.now() < end) {
    await new Promise((resolve) => {
      setTimeout(resolve, 5);
    });
  }
  assert.match(world.metrics(), expected);
}

describe('health', () => {
  test('/health is OK while queries are answered', async () => {
    const world = await makeWorld(`.:53 {\n health ${address}\n}`);
    assert.deepEqual(await get(world), { status: 200, body: 'OK' });
    assert.equal((await get(world, '/')).status, 404);
    await world.close();
  });

  test('lameduck delays shutdown while queries are still answered', async () => {
    const world = await makeWorld(`.:53 {\n health ${address} {\n lameduck 5s\n }\n whoami\n}`);
    const ended = world.server.stop();
    await world.clock.advance(4999);
    assert.deepEqual(world.log, ['[INFO] plugin/health: Going into lameduck mode for 5s']);
    assert.equal((await world.ask('example.org.')).rcode, 0);
    assert.equal((await get(world)).status, 200);
    await world.clock.run(ended);
    await assert.rejects(world.ask('example.org.'), /nothing listens/);
  });

  test('a reload has no lameduck', async () => {
    const world = await makeWorld(`.:53 {\n health ${address} {\n lameduck 5s\n }\n whoami\n}`);
    assert.ok(await world.server.reload());
    assert.ok(!world.log.some((line) => line.includes('lameduck')));
    await world.clock.run(world.server.stop());
  });

  test('it sends itself a request every second and measures it', async () => {
    const [port] = await freePorts(1);
    const world = await makeWorld(`.:53 {\n health 127.0.0.1:${port}\n}`);
    await world.clock.advance(1000);
    await until(world, /^coredns_health_request_duration_seconds_count 1$/m);
    assert.match(world.metrics(), /^coredns_health_request_failures_total 0$/m);
    assert.equal(
      world.metrics().match(/coredns_health_request_duration_seconds_bucket/g)!.length,
      6,
    );
    await world.close();
  });

  test("errors use CoreDNS's wording", async () => {
    await assert.rejects(
      makeWorld('.:53 {\n health localhost\n}'),
      /address localhost: missing port in address/,
    );
    await assert.rejects(
      makeWorld('.:53 {\n health {\n lameduck 5\n }\n}'),
      /unable to parse lameduck duration value: '5' : time: missing unit/,
    );
    await assert.rejects(makeWorld('.:53 {\n health a:1 b:2\n}'), /Wrong argument count/);
  });
});
