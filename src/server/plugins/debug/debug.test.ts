import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { makeWorld } from '../../../../test/kit/world.ts';
import { directive } from '../../corefile/syntax.ts';
import { definePlugin } from '../../engine/contract/plugin.ts';
import { RCODE } from '../../wire/iana.ts';
import { plugins } from '../../../../test/kit/plugins.ts';

const broken = definePlugin({
  syntax: directive({ name: 'broken', summary: 'throws', repeat: 'last' }),
  setup: () => () => {
    throw new Error('a bug');
  },
});

describe('debug', () => {
  test('without it, a bug causes SERVFAIL, a count and a log line', async () => {
    const world = await makeWorld('.:53 {\n broken\n}', { plugins: [...plugins, broken] });
    assert.equal((await world.ask('example.org.')).rcode, RCODE.SERVFAIL);
    assert.match(world.log[0]!, /^\[ERROR\] Recovered from panic in server: "dns:\/\/:53" .*a bug/);
    assert.match(world.metrics(), /^coredns_panics_total 1$/m);
    await world.close();
  });

  test('with it, a bug ends the worker', async () => {
    const world = await makeWorld('.:53 {\n debug\n broken\n}', { plugins: [...plugins, broken] });
    assert.equal((await world.ask('example.org.')).rcode, RCODE.SERVFAIL);
    assert.deepEqual(world.log, ['[FATAL] Error: a bug']);
    assert.match(world.metrics(), /^coredns_panics_total 1$/m);
    await world.close();
  });

  test('DEBUG lines are logged, both at startup and for queries', async () => {
    const corefile = (more: string): string =>
      `.:53 {
        ${more}
        local
        hosts /nonexistent {
          10.0.0.1 a.example.org
        }
      }`;
    const world = await makeWorld(corefile('debug'));
    await world.ask('kube.localhost. AAAA');
    assert.deepEqual(world.log.slice(-2), [
      '[DEBUG] plugin/hosts: Parsed hosts file into 2 entries',
      '[DEBUG] plugin/local: Intercepting localhost query for "kube.localhost." AAAA, from 10.244.0.9',
    ]);
    world.setCorefile(corefile(''));
    await world.clock.run(world.server.reload());
    const before = world.log.length;
    await world.ask('kube.localhost. AAAA');
    assert.equal(world.log.length, before);
    await world.close();
  });

  test('a configuration that cannot serve leaves no DEBUG lines behind', async () => {
    const world = await makeWorld('.:53 {\n local\n whoami\n}');
    world.setCorefile(
      '.:53 {\n debug\n local\n file /nonexistent/db example.org {\n reload 0\n }\n}',
    );
    await world.clock.run(world.server.reload());
    assert.ok(
      world.log.some((line) => /^\[ERROR\] .*nonexistent/.test(line)),
      world.log.join('\n'),
    );
    await world.ask('kube.localhost. A');
    assert.ok(!world.log.some((line) => line.startsWith('[DEBUG]')), world.log.join('\n'));
    await world.close();
  });

  test('it takes no arguments', async () => {
    await assert.rejects(
      makeWorld('.:53 {\n debug on\n}'),
      /plugin\/debug: .*Wrong argument count/,
    );
  });
});
