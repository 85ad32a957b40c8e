import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { makeWorld, type World } from '../../../../test/kit/world.ts';
import { Problems } from '../../base/problem.ts';
import { directive } from '../../corefile/syntax.ts';
import { definePlugin } from '../../engine/contract/plugin.ts';
import { RCODE } from '../../wire/iana.ts';
import { failure } from '../../wire/reply.ts';
import { plugins } from '../../../../test/kit/plugins.ts';

/** Fails with the first label as the reason. `late.…` fails after a second, and `silent.…` without a reason. */
const failing = definePlugin({
  syntax: directive({ name: 'failing', summary: 'fails', repeat: 'last' }),
  setup(_options, { clock }) {
    return (query) => {
      const [label] = query.name.split('.');
      const cause = label === 'silent' ? null : new Error(`${label} happened`);
      const reply = failure(RCODE.SERVFAIL, 'failing', cause);
      if (label !== 'late') return reply;
      return new Promise((resolve) => {
        clock.after(1000, () => resolve(reply));
      });
    };
  },
});

const worldWith = (properties: string): Promise<World> =>
  makeWorld(`.:53 {\n errors {\n${properties}\n }\n failing\n}`, {
    plugins: [...plugins, failing],
  });

const refusal = async (properties: string): Promise<string> => {
  const error = await worldWith(properties).then(
    () => null,
    (reason: unknown) => reason,
  );
  assert.ok(error instanceof Problems);
  return error.message;
};

describe('errors', () => {
  test('a failure with a cause is logged with rcode, name and type', async () => {
    const world = await worldWith('stacktrace');
    await world.ask('Reason.Example.ORG. AAAA');
    assert.deepEqual(world.log, [
      '[ERROR] plugin/errors: 2 reason.example.org. AAAA: reason happened',
    ]);
    await world.close();
  });

  test('a delayed failure is logged too', async () => {
    const world = await worldWith('stacktrace');
    await world.ask('late.example.org. TYPE65280');
    assert.deepEqual(world.log, [
      '[ERROR] plugin/errors: 2 late.example.org. TYPE65280: late happened',
    ]);
    await world.close();
  });

  test('a failure without a cause is silent', async () => {
    const world = await worldWith('stacktrace');
    assert.equal((await world.ask('silent.example.org.')).rcode, RCODE.SERVFAIL);
    assert.deepEqual(world.log, []);
    await world.close();
  });

  test('the end of the chain is an error', async () => {
    const world = await makeWorld('.:53 {\n errors\n any\n}');
    await world.ask('example.org.');
    assert.deepEqual(world.log, [
      '[ERROR] plugin/errors: 2 example.org. A: plugin/any: no next plugin found',
    ]);
    await world.close();
  });

  test("consolidated errors become one line at the end of the period, at the pattern's level", async () => {
    const world = await worldWith('consolidate 5s "^dial" warning\n consolidate 1m ".*"');
    for (let i = 0; i < 3; i++) await world.ask('dial.example.org.');
    await world.clock.advance(4999);
    assert.deepEqual(world.log, []);
    await world.clock.advance(1);
    assert.deepEqual(world.log, [
      "[WARNING] plugin/errors: 3 errors like '^dial' occurred in last 5s",
    ]);
    await world.clock.advance(60_000);
    assert.equal(world.log.length, 1);
    await world.close();
  });

  test('the first matching pattern counts, and each period starts with its first error', async () => {
    const world = await worldWith('consolidate 1s a\n consolidate 1s b');
    await world.ask('ab.example.org.');
    await world.clock.advance(1000);
    await world.ask('b.example.org.');
    await world.clock.advance(1000);
    assert.deepEqual(world.log, [
      "[ERROR] plugin/errors: 1 errors like 'a' occurred in last 1s",
      "[ERROR] plugin/errors: 1 errors like 'a' occurred in last 1s",
    ]);
    await world.close();
  });

  test('show_first logs the first error at once, and a summary only if there are more', async () => {
    const world = await worldWith('consolidate 1s dial info show_first');
    await world.ask('dial.example.org.');
    assert.deepEqual(world.log, ['[INFO] plugin/errors: 2 dial.example.org. A: dial happened']);
    await world.clock.advance(1000);
    assert.equal(world.log.length, 1);
    await world.ask('dial.example.org.');
    await world.ask('dial.example.org.');
    await world.clock.advance(1000);
    assert.equal(
      world.log.at(-1),
      "[INFO] plugin/errors: 2 errors like 'dial' occurred in last 1s",
    );
    await world.close();
  });

  test('pending summaries are logged at shutdown', async () => {
    const world = await worldWith('consolidate 1h dial');
    await world.ask('dial.example.org.');
    await world.close();
    assert.deepEqual(world.log, [
      "[ERROR] plugin/errors: 1 errors like 'dial' occurred in last 1h0m0s",
    ]);
  });

  test("errors are reported in CoreDNS's wording", async () => {
    assert.match(
      await refusal('consolidate 1s'),
      /plugin\/errors: Corefile:3 - .*Wrong argument count/,
    );
    assert.match(await refusal('consolidate 1 a'), /time: missing unit in duration "1"/);
    assert.match(await refusal('consolidate 1s ('), /error parsing regexp: missing closing \)/);
    assert.match(
      await refusal(`consolidate 1s ${'a'.repeat(10_001)}`),
      /regex pattern too long: 10001 > 10000/,
    );
    assert.match(await refusal('consolidate 1s a loud'), /unknown option in consolidate: loud/);
    assert.match(
      await refusal('consolidate 1s a info error'),
      /multiple log levels specified in consolidate/,
    );
    assert.match(
      await refusal('consolidate 1s a show_first info'),
      /log level must come before show_first/,
    );
    await assert.rejects(
      makeWorld('.:53 {\n errors /var/log/errors\n}'),
      /invalid log file: \/var\/log\/errors/,
    );
    await assert.rejects(
      makeWorld('.:53 {\n errors\n errors\n}'),
      /only be used once per Server Block/,
    );
  });
});
