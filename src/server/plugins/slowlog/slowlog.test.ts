import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { VirtualClock } from '../../base/virtual-clock.ts';
import { scriptedNetwork, type Answer, type Asked } from '../../../../test/kit/upstream.ts';
import { makeWorld, type World } from '../../../../test/kit/world.ts';

function serve(
  script: (asked: Asked) => Answer,
  lines = 'slowlog',
  upstreams = '192.0.2.53 192.0.2.54 {\n policy sequential\n}',
): Promise<World> {
  const clock = new VirtualClock();
  return makeWorld(
    `.:53 {\n prometheus 127.0.0.1:0\n ${lines}\n cache\n forward . ${upstreams}\n}`,
    { clock, network: scriptedNetwork(clock, script) },
  );
}

const slow = (afterMs: number): Answer => ({ afterMs, answer: ['@ 300 A 192.0.2.1'] });
const lines = (world: World): readonly string[] =>
  world.log.filter((line) => line.includes('plugin/slowlog'));

describe('slowlog', () => {
  test('a slow query causes one line with every attempt at every upstream', async () => {
    const world = await serve(({ to }) =>
      to.startsWith('192.0.2.53') ? { fail: 'timeout' } : slow(10),
    );
    await world.ask('api.example.com. A');
    const [line, ...others] = lines(world);
    assert.deepEqual(others, []);
    assert.match(
      line!,
      /^\[WARNING\] plugin\/slowlog: 10\.244\.0\.9:\d+ - \d+ "A IN api\.example\.com\. udp \d+ false \d+" NOERROR qr,rd,ra \d+ 2\.01s plugin=forward cache=miss upstreams=udp:\/\/192\.0\.2\.53:53\/no-reply\/2s,udp:\/\/192\.0\.2\.54:53\/NOERROR\/0\.01s spent=forward:2\.01s$/,
    );
    await world.close();
  });

  test('a query answered in time causes none, and neither does a cache hit', async () => {
    const world = await serve(() => slow(900));
    await world.ask('api.example.com. A');
    await world.ask('api.example.com. A');
    assert.deepEqual(lines(world), []);
    await world.close();
  });

  test("a query that joins another's exchange is distinguished from the one that started it", async () => {
    const world = await serve(() => slow(1900));
    const first = world.begin('api.example.com. A', { id: 1 });
    await world.clock.advance(500);
    const second = world.begin('api.example.com. A', { id: 2 });
    await world.clock.advance(2000);
    await Promise.all([first, second]);
    const [two, one] = lines(world);
    assert.match(
      one!,
      / - 1 ".* 1\.9s plugin=forward cache=miss upstreams=udp:.* spent=forward:1\.9s$/,
    );
    assert.match(two!, / - 2 ".* 1\.4s plugin=forward cache=joined upstreams=- spent=cache:1\.4s$/);
    await world.close();
  });

  test('a late stale answer is marked as stale', async () => {
    let down = false;
    const clock = new VirtualClock();
    const world = await makeWorld(
      '.:53 {\n slowlog\n cache {\n serve_stale 1h verify 1500ms\n }\n forward . 192.0.2.53\n}',
      {
        clock,
        network: scriptedNetwork(clock, () =>
          down ? { fail: 'timeout' } : { answer: ['@ 5 A 192.0.2.1'] },
        ),
      },
    );
    await world.ask('api.example.com. A');
    await clock.advance(10_000);
    down = true;
    await world.ask('api.example.com. A', { edns: true });
    assert.match(lines(world)[0]!, / 1\.5s plugin=cache cache=stale /);
    await world.close();
  });

  test('if every query is slow, few lines are written and the rest is counted', async () => {
    const world = await serve(() => ({ fail: 'timeout' }), 'slowlog 1s {\n rate 2\n}');
    const asked = Array.from({ length: 50 }, (_, i) => world.begin(`n${i}.example. A`));
    await world.clock.advance(10_000);
    await Promise.all(asked);
    assert.equal(lines(world).length, 2);
    assert.match(world.metrics(), /ndots_slowlog_queries_total\{server="dns:\/\/:53",view=""\} 50/);
    assert.match(world.metrics(), /ndots_slowlog_suppressed_total 48/);
    await world.ask('later.example. A');
    assert.match(lines(world).at(-1)!, / suppressed=48$/);
    await world.close();
  });

  test('a hostile name cannot add a line or words', async () => {
    const world = await serve(() => slow(1900));
    await world.ask('a\\010b\\"\\032plugin=x.example. A');
    const [line] = lines(world);
    assert.doesNotMatch(line!, /\n/);
    assert.match(line!, /a\\010b\\"\\032plugin=x\.example\./);
    await world.close();
  });

  test('a background refresh is not part of the query that caused it', async () => {
    const clock = new VirtualClock();
    const world = await makeWorld(
      '.:53 {\n slowlog\n cache {\n serve_stale 1h immediate\n }\n forward . 192.0.2.53\n}',
      {
        clock,
        network: scriptedNetwork(clock, () => ({ afterMs: 900, answer: ['@ 5 A 192.0.2.1'] })),
      },
    );
    await world.ask('api.example.com. A');
    await clock.advance(10_000);
    await world.ask('api.example.com. A');
    await world.ask('other.example.com. A');
    await clock.advance(3000);
    assert.deepEqual(lines(world), []);
    await world.close();
  });

  test('trace and slowlog can both record a query', async () => {
    const world = await serve(() => slow(1900), 'trace http://127.0.0.1:1\n slowlog');
    await world.ask('api.example.com. A');
    assert.match(lines(world)[0]!, / cache=miss upstreams=udp:.* spent=forward:1\.9s$/);
    await world.close();
  });
});
