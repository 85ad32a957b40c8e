import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { plugins } from '../../../../test/kit/plugins.ts';
import { makeWorld } from '../../../../test/kit/world.ts';
import { Problem } from '../../base/problem.ts';
import { directive } from '../../corefile/syntax.ts';
import { definePlugin } from '../../engine/contract/plugin.ts';

/** Fails just before a configuration starts serving, like a DNS port that is already in use. */
const taken = definePlugin({
  syntax: directive({ name: 'taken', summary: 'for tests', repeat: 'once' }),
  operational: true,
  control(_options, context) {
    context.onStart(async () => {
      await Promise.resolve();
      throw new Problem({ code: 'test-taken', text: 'address already in use' });
    });
  },
});

const fingerprintLine = /^\[INFO\] plugin\/reload: Running configuration SHA512 = [0-9a-f]{128}$/;

describe('reload', () => {
  test('a changed Corefile is loaded at the next check', async () => {
    const world = await makeWorld('.:53 {\n reload 10s 0s\n whoami\n}');
    assert.equal(world.log.length, 1);
    assert.match(world.log[0]!, fingerprintLine);
    assert.match(world.metrics(), /^coredns_reload_failed_total 0$/m);
    world.setCorefile('.:53 {\n reload 10s 0s\n any\n}');
    await world.clock.advance(9999);
    assert.equal((await world.ask('example.org.')).rcode, 0);
    await world.clock.advance(1);
    assert.equal((await world.ask('example.org.')).rcode, 2);
    assert.deepEqual(
      world.log.slice(1).map((line) => line.replace(/[0-9a-f]{128}/, 'SUM')),
      [
        '[INFO] Reloading',
        '[INFO] plugin/reload: Running configuration SHA512 = SUM',
        '[INFO] Reloading complete',
      ],
    );
    assert.match(
      world.metrics(),
      /^coredns_reload_version_info\{hash="sha512",value="[0-9a-f]{128}"\} 1$/m,
    );
    await world.close();
  });

  test('changes of comments and blanks are ignored', async () => {
    const world = await makeWorld('.:53 {\n reload 2s 0s\n whoami\n}');
    world.setCorefile('# hello\n.:53 {\n\n  reload 2s 0s # often\n  whoami\n}');
    await world.clock.advance(10_000);
    assert.equal(world.log.length, 1);
    await world.close();
  });

  test('changes of an imported file are detected', async () => {
    const files: Record<string, string> = { 'more.conf': 'whoami\n' };
    const world = await makeWorld('.:53 {\n reload 2s 0s\n import more.conf\n}', { files });
    files['more.conf'] = 'any\n';
    await world.clock.advance(2000);
    assert.equal((await world.ask('example.org.')).rcode, 2);
    await world.close();
  });

  test('a file that cannot be parsed is reported once, and loaded when it is valid again', async () => {
    const world = await makeWorld('.:53 {\n reload 2s 0s\n whoami\n}');
    world.setCorefile('.:53 {\n reload 2s 0s\n whoami\n');
    await world.clock.advance(6000);
    const warnings = world.log.filter((line) => line.startsWith('[WARNING]'));
    assert.equal(warnings.length, 1);
    assert.match(warnings[0]!, /plugin\/reload: Corefile parse failed: .*Syntax error/);
    assert.match(world.log.join('\n'), /The \{ at Corefile:1 is never closed/);
    assert.match(world.metrics(), /^coredns_reload_failed_total 0$/m);
    world.setCorefile('.:53 {\n reload 2s 0s\n any\n}');
    await world.clock.advance(2000);
    assert.equal((await world.ask('example.org.')).rcode, 2);
    await world.close();
  });

  test('an unknown directive fails the reload, which is counted once, and a corrected file is loaded', async () => {
    const world = await makeWorld('.:53 {\n reload 2s 0s\n whoami\n}');
    world.setCorefile('.:53 {\n reload 2s 0s\n nonsense\n}');
    await world.clock.advance(20_000);
    assert.match(world.metrics(), /^coredns_reload_failed_total 1$/m);
    assert.match(world.log.join('\n'), /Restart failed: .*Unknown directive 'nonsense'/);
    assert.equal(
      world.log.at(-1),
      '[ERROR] plugin/reload: Corefile changed but reload failed: the previous configuration stays in use',
    );
    world.setCorefile('.:53 {\n reload 2s 0s\n whoami\n}');
    await world.clock.advance(2000);
    assert.equal(world.log.length, 5, 'the file before is no change');
    world.setCorefile('.:53 {\n reload 2s 0s\n any\n}');
    await world.clock.advance(2000);
    assert.equal((await world.ask('example.org.')).rcode, 2);
    await world.close();
  });

  test('a configuration that cannot serve is tried once, until it changes again', async () => {
    const world = await makeWorld('.:53 {\n reload 2s 0s\n whoami\n}');
    world.setCorefile('.:53 {\n reload 2s 0s\n whoami\n bufsize 1\n}');
    await world.clock.advance(20_000);
    const tries = (): number => world.log.filter((line) => line === '[INFO] Reloading').length;
    assert.equal(tries(), 1);
    assert.equal(
      world.log.at(-1),
      '[ERROR] plugin/reload: Corefile changed but reload failed: the previous configuration stays in use',
    );
    assert.match(world.metrics(), /^coredns_reload_failed_total 1$/m);
    assert.equal((await world.ask('example.org.')).rcode, 0);
    world.setCorefile('.:53 {\n reload 2s 0s\n any\n}');
    await world.clock.advance(2000);
    assert.equal(tries(), 2);
    assert.equal((await world.ask('example.org.')).rcode, 2);
    await world.close();
  });

  test('a configuration that could not serve is never reported as running', async () => {
    const world = await makeWorld('.:53 {\n reload 2s 0s\n whoami\n}', {
      plugins: [...plugins, taken],
    });
    world.setCorefile('.:53 {\n reload 2s 0s\n whoami\n taken\n}');
    await world.clock.advance(2000);
    assert.deepEqual(world.log.slice(1), [
      '[INFO] Reloading',
      '[ERROR] Restart failed: address already in use',
      '[ERROR] The previous configuration stays in use.',
      '[ERROR] plugin/reload: Corefile changed but reload failed: the previous configuration stays in use',
    ]);
    world.setCorefile('.:53 {\n reload 2s 0s\n any\n}');
    await world.clock.advance(2000);
    assert.match(world.log.at(-2)!, fingerprintLine);
    assert.equal(world.log.at(-1), '[INFO] Reloading complete');
    await world.close();
  });

  test('several blocks with it report the running configuration once', async () => {
    const world = await makeWorld(
      'a.test:53 {\n reload 2s 0s\n whoami\n}\nb.test:53 {\n reload 2s 0s\n whoami\n}',
    );
    assert.equal(world.log.length, 1);
    assert.match(world.log[0]!, fingerprintLine);
    await world.close();
  });

  test('reverting to the previous file is a change too', async () => {
    const world = await makeWorld('.:53 {\n reload 2s 0s\n whoami\n}');
    world.setCorefile('.:53 {\n reload 2s 0s\n bufsize 1\n}');
    await world.clock.advance(2000);
    world.setCorefile('.:53 {\n reload 2s 0s\n whoami\n}');
    await world.clock.advance(2000);
    assert.equal(world.log.at(-1), '[INFO] Reloading complete');
    await world.close();
  });

  test('without reload in the new file there are no further checks', async () => {
    const world = await makeWorld('.:53 {\n reload 2s 0s\n whoami\n}');
    world.setCorefile('.:53 {\n any\n}');
    await world.clock.advance(2000);
    world.setCorefile('.:53 {\n whoami\n}');
    await world.clock.advance(60_000);
    assert.equal((await world.ask('example.org.')).rcode, 2);
    assert.equal(world.clock.pending, 0);
    await world.close();
  });

  test('jitter changes the interval by at most half of it, and is at most a quarter of the interval', async () => {
    for (let seed = 1; seed < 20; seed++) {
      const world = await makeWorld('.:53 {\n reload 10s 1h\n whoami\n}', { seed });
      world.setCorefile('.:53 {\n any\n}');
      await world.clock.advance(7499);
      assert.equal((await world.ask('example.org.')).rcode, 0);
      await world.clock.advance(5002);
      assert.equal((await world.ask('example.org.')).rcode, 2);
      await world.close();
    }
  });

  test("errors use CoreDNS's wording", async () => {
    await assert.rejects(
      makeWorld('.:53 {\n reload 1s\n}'),
      /interval value must be greater or equal to 2s/,
    );
    await assert.rejects(
      makeWorld('.:53 {\n reload 10s 500ms\n}'),
      /jitter value must be 0 or greater or equal to 1s/,
    );
    await assert.rejects(makeWorld('.:53 {\n reload 10\n}'), /time: missing unit in duration "10"/);
    await assert.rejects(makeWorld('.:53 {\n reload 10s 1s 1s\n}'), /Wrong argument count/);
  });
});
