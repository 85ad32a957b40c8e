import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { makeWorld } from '../../../../test/kit/world.ts';
import { Problem } from '../../base/problem.ts';
import { directive, type Syntax } from '../../corefile/syntax.ts';
import { word } from '../../corefile/word-values.ts';
import { required } from '../../corefile/positions.ts';
import { FLAG, RCODE, TYPE } from '../../wire/iana.ts';
import { SECTION } from '../../wire/writer.ts';
import { definePlugin, type Plugin } from '../contract/plugin.ts';

/** Answers every A question with one address. */
const fixed: Plugin = definePlugin({
  syntax: directive({
    name: 'fixed',
    summary: 'answers one address',
    repeat: 'once',
    args: { address: required(word('ADDRESS')) },
  }),
  setup:
    ({ address }, context) =>
    (query) => {
      context.writer.reply(query, FLAG.AA);
      context.writer.record(
        SECTION.answer,
        null,
        TYPE.A,
        30,
        Uint8Array.from(address.split('.'), Number),
      );
      return context.writer.finish(RCODE.NOERROR, 'fixed');
    },
});

const bare = (name: string, parts: Partial<Plugin>): Plugin => ({
  ...parts,
  name,
  syntax: directive({ name, summary: 'for tests', repeat: 'once' }) as Syntax,
});

const throwing = bare('throwing', {
  setup: () => () => {
    throw new Error('a bug');
  },
});

const rejecting = bare('rejecting', { setup: () => () => Promise.reject(new Error('a late bug')) });

const later = bare('later', {
  setup: (_options, _context, next) => (query) => {
    const kept = query.keep();
    return Promise.resolve().then(() => next(kept));
  },
});

/**
 * Counts up on the main thread and answers with the count in workers. This requires a control part, a channel, and an
 * object that survives reloads.
 */
const counting = bare('counting', {
  control: (_options, context) => {
    const count = context.keep('count', () => ({ value: 0, close: () => undefined }));
    count.value++;
    context.onJoin(() => [count.value]);
  },
  setup: (_options, context) => {
    let value = 0;
    context.onMessage((message) => {
      value = message as number;
    });
    return (query) => {
      context.writer.reply(query, 0);
      context.writer.record(SECTION.answer, null, TYPE.A, 1, Uint8Array.of(0, 0, 0, value));
      return context.writer.finish(RCODE.NOERROR, 'counting');
    };
  },
});

const unable = bare('unable', {
  control: () => {
    throw new Problem({ code: 'test-unable', text: 'cannot work today', remedy: 'Try tomorrow.' });
  },
});

/** Hangs on demand; its promises never resolve. */
const hanging: Plugin = definePlugin({
  syntax: directive({
    name: 'hanging',
    summary: 'for tests',
    repeat: 'once',
    args: { where: required(word('WHERE')) },
  }),
  control: ({ where }, context) => {
    const never = (): Promise<void> => new Promise(() => undefined);
    if (where === 'stop') context.onStop(never);
    else if (where === 'close') context.keep('hanging', () => ({ close: never }));
    else if (where === 'shutdown') context.onShutdown(never, 2000);
    else context.onShutdown(() => assert.fail('a bug'));
  },
});

/** The open resources of `keeping`. */
let keptOpen = 0;

/** Keeps a separate object for each ADDRESS. */
const keeping: Plugin = definePlugin({
  syntax: directive({
    name: 'keeping',
    summary: 'for tests',
    repeat: 'once',
    args: { address: required(word('ADDRESS')) },
  }),
  control: ({ address: name }, context) => {
    context.keep(`keeping/${name}`, () => {
      keptOpen++;
      return { close: () => void keptOpen-- };
    });
  },
});

/** A plugin whose worker part throws when it starts to serve. */
const stumbling = bare('stumbling', {
  setup: (_options, context, next) => {
    context.onStart(() => {
      throw new Error('a bug at the start');
    });
    return next;
  },
});

/** Throws on queries outside its chain, which are those that no block matched and those it is asked to recognize. */
const clumsy: Plugin = definePlugin({
  syntax: directive({
    name: 'clumsy',
    summary: 'for tests',
    repeat: 'once',
    args: { where: required(word('WHERE')) },
  }),
  setup: ({ where }, context, next) => {
    const fail = (): never => {
      throw new Error(`a bug in ${where}`);
    };
    if (where === 'dropped') context.onDropped(fail);
    else if (where === 'judge') context.judgeDropped(fail);
    else context.filter(fail);
    return next;
  },
});

const plugins = [
  clumsy,
  keeping,
  stumbling,
  hanging,
  later,
  throwing,
  rejecting,
  counting,
  unable,
  fixed,
];
const address = (reply: { answer: readonly { data: unknown }[] }): string =>
  JSON.stringify(reply.answer[0]?.data ?? null);

describe('the server', () => {
  test('a query is answered by the block for its zone, REFUSED if there is none, and an empty block refuses', async () => {
    const world = await makeWorld('a.test. {\n fixed 10.0.0.1\n}\nb.test. {\n}\n', { plugins });
    assert.match(address(await world.ask('x.a.test. A')), /10\.0\.0\.1/);
    assert.equal((await world.ask('x.b.test. A')).rcode, RCODE.REFUSED);
    assert.equal((await world.ask('c.test. A')).rcode, RCODE.REFUSED);
    await world.close();
  });

  test("the question and owner names have the client's spelling", async () => {
    const world = await makeWorld('. {\n fixed 10.0.0.1\n}\n', { plugins });
    const reply = await world.ask('MiXeD.TeSt. A');
    assert.equal(reply.question[0]?.name, 'MiXeD.TeSt.');
    assert.equal(reply.answer[0]?.name, 'MiXeD.TeSt.');
    await world.close();
  });

  test('a query outlives the datagram it arrived in', async () => {
    const world = await makeWorld('. {\n later\n fixed 10.0.0.1\n}\n', { plugins });
    assert.equal((await world.ask('KeEp.me. A')).answer[0]?.name, 'KeEp.me.');
    await world.close();
  });

  for (const name of ['throwing', 'rejecting']) {
    test(`a bug in a plugin is SERVFAIL, counted and logged (${name})`, async () => {
      const world = await makeWorld(`. {\n ${name}\n}\n`, { plugins });
      assert.equal((await world.ask('x. A')).rcode, RCODE.SERVFAIL);
      assert.match(world.metrics(), /coredns_panics_total 1/);
      assert.match(world.log.join('\n'), /Recovered from panic in server: "dns:\/\/:53"/);
      await world.close();
    });
  }

  for (const where of ['dropped', 'judge', 'filter']) {
    test(`so is a bug in a plugin outside its chain (${where})`, async () => {
      const world = await makeWorld(`a.test. {\n clumsy ${where}\n fixed 10.0.0.1\n}\n`, {
        plugins,
      });
      const name = where === 'filter' ? 'a.test.' : 'b.test.';
      assert.equal((await world.ask(`${name} A`)).rcode, RCODE.SERVFAIL);
      assert.match(world.metrics(), /coredns_panics_total 1/);
      assert.match(world.log.join('\n'), new RegExp(`Recovered from panic .*a bug in ${where}`));
      await world.close();
    });
  }

  test("the end of the chain is SERVFAIL with CoreDNS's cause", async () => {
    const world = await makeWorld('. {\n later\n}\n', { plugins });
    assert.equal((await world.ask('x. A')).rcode, RCODE.SERVFAIL);
    await world.close();
  });

  test('EDNS versions other than 0 are BADVERS, whatever the zone', async () => {
    const world = await makeWorld('a.test. {\n fixed 10.0.0.1\n}\n', { plugins });
    const bytes = Uint8Array.from([
      0, 9, 1, 0, 0, 1, 0, 0, 0, 0, 0, 1, 1, 0x78, 0, 0, 1, 0, 1, 0, 0, 41, 4, 0xd0, 0, 1, 0, 0, 0,
      0,
    ]);
    const reply = (await world.send(bytes))!;
    assert.equal(reply[3]! & 15, 0);
    const opt = reply.length - 11;
    assert.equal(reply[opt + 5], 1, 'extended rcode 16');
    assert.equal((reply[opt + 3]! << 8) | reply[opt + 4]!, 0, 'UDP size 0');
    await world.close();
  });

  test('classes other than IN are REFUSED', async () => {
    const world = await makeWorld('. {\n fixed 10.0.0.1\n}\n', { plugins });
    assert.equal((await world.ask('x. A', { qclass: 3 })).rcode, RCODE.REFUSED);
    await world.close();
  });

  test('several questions are FORMERR, other opcodes NOTIMP, replies and fragments are ignored', async () => {
    const world = await makeWorld('. {\n fixed 10.0.0.1\n}\n', { plugins });
    const two = Uint8Array.from([0, 1, 1, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0, 0, 1, 0, 1]);
    assert.equal((await world.send(two))![3]! & 15, RCODE.FORMERR);
    const update = Uint8Array.from([0, 1, 0x28, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 6, 0, 1]);
    assert.equal((await world.send(update))![3]! & 15, RCODE.NOTIMP);
    const reply = Uint8Array.from([0, 1, 0x81, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1]);
    assert.equal(await world.send(reply), null);
    assert.equal(await world.send(new Uint8Array(11)), null);
    await world.close();
  });
});

describe('shutdown', () => {
  for (const [where, inOrder, limitMs] of [
    ['stop', false, 4300],
    ['shutdown', false, 2000 + 4300],
    ['nowhere', true, 4300],
  ] as const) {
    test(`a hanging control part (${where}) does not keep the process from ending`, async () => {
      const world = await makeWorld(`. {\n hanging ${where}\n fixed 10.0.0.1\n}\n`, { plugins });
      const { clock, server } = world;
      const begun = clock.now();
      assert.equal(await clock.run(server.stop()), inOrder);
      assert.ok(clock.now() - begun <= limitMs, `${clock.now() - begun} ms`);
      await assert.rejects(world.ask('x.'), /nothing listens/);
    });
  }

  for (const where of ['stop', 'close'] as const) {
    test(`a hanging control part (${where}) does not prevent the next Corefile from being loaded`, async () => {
      const world = await makeWorld(`. {\n hanging ${where}\n fixed 10.0.0.1\n}\n`, { plugins });
      for (const last of [2, 3]) {
        world.setCorefile(`. {\n fixed 10.0.0.${last}\n}\n`);
        assert.equal(await world.clock.run(world.server.reload()), true);
        assert.match(address(await world.ask('x. A')), new RegExp(`10\\.0\\.0\\.${last}`));
      }
      await world.close();
    });

    test(`nor does one in a rejected Corefile (${where})`, async () => {
      const world = await makeWorld('. {\n fixed 10.0.0.1\n}\n', { plugins });
      world.setCorefile(`. {\n hanging ${where}\n unable\n}\n`);
      assert.equal(await world.clock.run(world.server.reload()), false);
      world.setCorefile('. {\n fixed 10.0.0.2\n}\n');
      assert.equal(await world.clock.run(world.server.reload()), true);
      await world.close();
    });
  }
});

describe('reload', () => {
  test('a new Corefile replaces the old one, and surviving objects stay', async () => {
    const world = await makeWorld('. {\n counting\n}\n', { plugins });
    assert.match(address(await world.ask('x. A')), /0\.0\.0\.1/);
    world.setCorefile('. {\n counting\n}\nb. {\n fixed 10.0.0.2\n}\n');
    assert.equal(await world.clock.run(world.server.reload()), true);
    assert.match(address(await world.ask('x. A')), /0\.0\.0\.2/);
    assert.match(address(await world.ask('b. A')), /10\.0\.0\.2/);
    await world.close();
  });

  for (const [what, text] of [
    ['does not parse', '. {\n fixed\n'],
    ['has a directive that is not known', '. {\n fixd 10.0.0.2\n}\n'],
    ['has a plugin that cannot work', '. {\n unable\n}\n'],
    ['is empty', ''],
    ['is a comment', '# to be continued\n'],
    ['names a zone twice', '. {\n fixed 10.0.0.2\n}\n. {\n fixed 10.0.0.3\n}\n'],
  ] as const) {
    test(`a Corefile that ${what} changes nothing and is counted`, async () => {
      const world = await makeWorld('. {\n fixed 10.0.0.1\n}\n', { plugins });
      world.setCorefile(text);
      assert.equal(await world.clock.run(world.server.reload()), false);
      assert.match(address(await world.ask('x. A')), /10\.0\.0\.1/);
      assert.match(world.metrics(), /coredns_reload_failed_total 1/);
      world.setCorefile('. {\n fixed 10.0.0.4\n}\n');
      assert.equal(await world.clock.run(world.server.reload()), true);
      assert.match(address(await world.ask('x. A')), /10\.0\.0\.4/);
      await world.close();
    });
  }

  test('everything opened for a rejected Corefile is closed again', async () => {
    const world = await makeWorld('. {\n keeping one\n fixed 10.0.0.1\n}\n', { plugins });
    assert.equal(keptOpen, 1);
    world.setCorefile('. {\n keeping two\n unable\n}\n');
    assert.equal(await world.clock.run(world.server.reload()), false);
    assert.equal(keptOpen, 1);
    await world.close();
    assert.equal(keptOpen, 0);
  });

  test('a bug in a worker when it starts to serve is logged, and the new Corefile is still served', async () => {
    const world = await makeWorld('. {\n fixed 10.0.0.1\n}\n', { plugins });
    world.setCorefile('. {\n stumbling\n fixed 10.0.0.2\n}\n');
    assert.equal(await world.clock.run(world.server.reload()), true);
    assert.match(address(await world.ask('x. A')), /10\.0\.0\.2/);
    assert.match(world.log.join('\n'), /\[ERROR\] .*a bug at the start/);
    assert.doesNotMatch(world.log.join('\n'), /stays in use/);
    await world.close();
  });

  test('a reload requested during another reads the file again', async () => {
    const world = await makeWorld('. {\n fixed 10.0.0.1\n}\n', { plugins });
    world.setCorefile('. {\n fixed 10.0.0.2\n}\n');
    const first = world.server.reload();
    // The first reload has read the file by now, and a change made after that must not be missed.
    await Promise.resolve();
    world.setCorefile('. {\n fixed 10.0.0.3\n}\n');
    const second = world.server.reload();
    assert.deepEqual(await world.clock.run(Promise.all([first, second])), [true, true]);
    assert.match(address(await world.ask('x. A')), /10\.0\.0\.3/);
    await world.close();
  });

  test('all errors in a Corefile are reported at once, with their positions', async () => {
    await assert.rejects(
      makeWorld('. {\n fixed\n fixd\n}\n', { plugins }),
      (error: { problems: readonly Problem[] }) => {
        assert.ok(
          error.problems.length >= 2,
          error.problems.map((problem) => problem.message).join(' | '),
        );
        assert.match(error.problems.map((problem) => problem.message).join('\n'), /Corefile:2/);
        assert.match(
          error.problems.map((problem) => problem.message).join('\n'),
          /Corefile:3.*Unknown directive 'fixd'/,
        );
        return true;
      },
    );
  });
});
