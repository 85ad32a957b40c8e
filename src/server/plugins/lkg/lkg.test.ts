import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { VirtualClock } from '../../base/virtual-clock.ts';
import { FLAG, RCODE, TYPE } from '../../wire/iana.ts';
import { printMessage } from '../../wire/print.ts';
import { scriptedNetwork, type Answer, type Asked } from '../../../../test/kit/upstream.ts';
import { makeWorld, type World } from '../../../../test/kit/world.ts';
import type { HeldReport } from './held-answers.ts';

const soa = 'example.org. 60 SOA ns.example.org. h.example.org. 1 1 1 1 60';
const nxdomain: Answer = { rcode: 'NXDOMAIN', authority: [soa] };
const nodata: Answer = { authority: [soa] };

interface Scene {
  readonly world: World;
  readonly clock: VirtualClock;
  says(script: (asked: Asked) => Answer): void;
  popular(question: string): Promise<void>;
  /** Returns `ADDRESS` or the result code, followed by the extended error. */
  told(question: string): Promise<string>;
}

const good = ({ type }: Asked): Answer =>
  type === TYPE.A
    ? { answer: ['@ 60 A 192.0.2.1'] }
    : type === TYPE.TXT
      ? { answer: ['@ 60 TXT x'] }
      : nodata;

async function scene(lines = '', cache = '', before = ''): Promise<Scene> {
  const clock = new VirtualClock();
  let script: (asked: Asked) => Answer = good;
  const network = scriptedNetwork(clock, (asked) => script(asked));
  const world = await makeWorld(
    `.:53 {\n prometheus 127.0.0.1:0\n ${cache}\n ${before}\n lkg {\n hold 10m\n ${lines}\n }\n forward . 192.0.2.53\n}`,
    { clock, network },
  );
  return {
    world,
    clock,
    says: (next) => {
      script = next;
    },
    popular: async (question) => {
      for (let i = 0; i < 3; i++) {
        await world.ask(question);
        await clock.advance(61_000);
      }
    },
    told: async (question) => {
      const reply = await world.ask(question, { edns: true });
      const error = /EDE: (\d+)/.exec(printMessage(reply));
      const what =
        reply.rcode !== RCODE.NOERROR ? 'NXDOMAIN' : reply.answer.length > 0 ? 'answer' : 'nothing';
      return error === null ? what : `${what} EDE ${error[1]}`;
    },
  };
}

const admin = 'admin 127.0.0.1:0';

async function command(
  world: World,
  what: string,
  name?: string,
): Promise<{
  readonly status: number;
  readonly results: readonly (Partial<HeldReport> & { readonly released?: string })[];
}> {
  const words = new URLSearchParams({ command: what, ...(name !== undefined && { name }) });
  const port = world.server.httpPort('127.0.0.1:0');
  const response = await fetch(`http://127.0.0.1:${port}/v1/command?${words.toString()}`, {
    method: 'POST',
    headers: { 'ndots-admin': '1' },
  });
  const results = response.ok
    ? ((await response.json()) as { results: readonly object[] }).results
    : [];
  return { status: response.status, results };
}

/** Returns the held answers as `NAME TYPE`. */
async function listed(world: World): Promise<readonly string[]> {
  const { results } = await command(world, 'lkg/list');
  return results.flatMap(({ held }) => (held ?? []).map(({ name, type }) => `${name} ${type}`));
}

describe('lkg', () => {
  test('a validating client (CD) gets the answer stored for others', async () => {
    const { world, says, popular } = await scene();
    await popular('www.example.org. A');
    for (const denial of [nxdomain, nodata]) {
      says(() => denial);
      for (const flags of [0x100, FLAG.CD, FLAG.CD | 0x100]) {
        const { answer } = await world.ask('www.example.org. A', { flags });
        assert.equal(answer.length, 1, `${denial.rcode ?? 'no data'}, flags ${flags}`);
      }
    }
    await world.close();
  });

  test('a popular name that suddenly disappears is held, marked as stale, and released in time', async () => {
    for (const denial of [nxdomain, nodata, {}]) {
      const { world, clock, says, popular, told } = await scene();
      await popular('www.example.org. A');
      says(() => denial);
      assert.equal(await told('www.example.org. A'), 'answer EDE 3');
      const reply = await world.ask('www.example.org. A');
      assert.equal(reply.answer[0]!.ttl, 30);
      await clock.advance(590_000);
      assert.equal(await told('www.example.org. A'), 'answer EDE 3');
      assert.match(world.metrics(), /ndots_lkg_held_answers 1\n/);
      await clock.advance(20_000);
      assert.equal(await told('www.example.org. A'), denial === nxdomain ? 'NXDOMAIN' : 'nothing');
      assert.equal(await told('www.example.org. A'), denial === nxdomain ? 'NXDOMAIN' : 'nothing');
      await clock.advance(10_000);
      assert.match(world.metrics(), /ndots_lkg_held_answers 0\n/);
      assert.match(world.metrics(), /ndots_lkg_held_replies_total 3\n/);
      assert.match(world.metrics(), /ndots_lkg_top_names\{name="www\.example\.org\."\} 2\n/);
      assert.ok(
        world.log.some(
          (line) => line.includes('[WARNING]') && line.includes('www.example.org. A ('),
        ),
      );
      assert.ok(world.log.some((line) => line.includes('are dropped')));
      await world.close();
    }
  });

  test('rarely queried names and failures pass unchanged', async () => {
    const { world, says, popular, told } = await scene();
    await world.ask('rare.example.org. A');
    await popular('www.example.org. A');
    says(() => nxdomain);
    assert.equal(await told('rare.example.org. A'), 'NXDOMAIN');
    assert.equal(await told('never.example.org. A'), 'NXDOMAIN');
    says(() => ({ rcode: 'SERVFAIL' }));
    assert.equal((await world.ask('www.example.org. A')).rcode, RCODE.SERVFAIL);
    await world.close();
  });

  test("a name's types agree: while one is held, the others have no data", async () => {
    const { world, clock, says, popular, told } = await scene();
    await popular('www.example.org. A');
    assert.equal(await told('www.example.org. AAAA'), 'nothing');
    says(() => nxdomain);
    assert.equal(await told('www.example.org. AAAA'), 'nothing EDE 3');
    assert.equal(await told('www.example.org. A'), 'answer EDE 3');
    await clock.advance(601_000);
    assert.equal(await told('www.example.org. AAAA'), 'NXDOMAIN');
    assert.equal(await told('www.example.org. A'), 'NXDOMAIN');
    await world.close();
  });

  test('a type that disappears while another remains is released in time, however often the other is answered', async () => {
    const { world, clock, says, popular, told } = await scene();
    await popular('www.example.org. A');
    await popular('www.example.org. TXT');
    says(({ type }) => (type === TYPE.TXT ? { answer: ['@ 60 TXT x'] } : nodata));
    for (let i = 0; i < 11; i++) {
      assert.equal(await told('www.example.org. A'), 'answer EDE 3');
      assert.equal(await told('www.example.org. TXT'), 'answer');
      await clock.advance(55_000);
    }
    assert.equal(await told('www.example.org. A'), 'nothing');
    await world.close();
  });

  test('NXDOMAIN starts the hold time of all types, so querying them in turn does not extend it', async () => {
    const { world, clock, says, popular, told } = await scene();
    await popular('www.example.org. A');
    await popular('www.example.org. TXT');
    says(() => nxdomain);
    assert.equal(await told('www.example.org. A'), 'answer EDE 3');
    await clock.advance(590_000);
    assert.equal(await told('www.example.org. TXT'), 'answer EDE 3');
    await clock.advance(20_000);
    for (const type of ['TXT', 'A', 'MX'])
      assert.equal(await told(`www.example.org. ${type}`), 'NXDOMAIN', type);
    await world.close();
  });

  test("NXDOMAIN without SOA, and for an alias's target, are denials", async () => {
    for (const denial of [
      { rcode: 'NXDOMAIN' },
      { rcode: 'NXDOMAIN', answer: ['@ 60 CNAME gone.example.net.'], authority: [soa] },
    ] satisfies readonly Answer[]) {
      const { world, says, popular, told } = await scene();
      await popular('www.example.org. A');
      says(() => denial);
      assert.equal(await told('www.example.org. A'), 'answer EDE 3');
      await world.close();
    }
  });

  test('a held answer has no AD bit', async () => {
    const { world, says } = await scene();
    says(() => ({ answer: ['@ 60 A 192.0.2.1'], flags: FLAG.AD }));
    for (let i = 0; i < 3; i++) await world.ask('www.example.org. A', { dnssecOk: true });
    const live = await world.ask('www.example.org. A', { dnssecOk: true });
    says(() => nxdomain);
    const held = await world.ask('www.example.org. A', { dnssecOk: true });
    assert.deepEqual([live.flags & FLAG.AD, held.flags & FLAG.AD], [FLAG.AD, 0]);
    assert.equal(held.answer.length, 1);
    await world.close();
  });

  test('large answers queried by one client do not displace those for popular names', async () => {
    const { world, says, popular, told } = await scene('max_bytes 64KiB');
    const text = `@ 60 TXT ${Array.from({ length: 30 }, () => `"${'x'.repeat(250)}"`).join(' ')}`;
    says(({ type }) => ({ answer: [type === TYPE.TXT ? text : '@ 60 A 192.0.2.1'] }));
    for (let i = 0; i < 20; i++)
      for (let n = 0; n < 3; n++) await world.ask(`n${i}.example.net. TXT`, { proto: 'tcp' });
    await popular('www.example.org. A');
    for (let i = 0; i < 20; i++)
      for (let n = 0; n < 3; n++) await world.ask(`m${i}.example.net. TXT`, { proto: 'tcp' });
    says(() => nxdomain);
    assert.equal(await told('www.example.org. A'), 'answer EDE 3');
    await world.close();
  });

  test('an upstream that answers again ends the hold, and the next one starts with its full time', async () => {
    const { world, clock, says, popular, told } = await scene();
    await popular('www.example.org. A');
    says(() => nxdomain);
    assert.equal(await told('www.example.org. A'), 'answer EDE 3');
    await clock.advance(500_000);
    says(() => ({ answer: ['@ 60 A 192.0.2.9'] }));
    assert.equal(await told('www.example.org. A'), 'answer');
    assert.match(world.metrics(), /ndots_lkg_held_answers 0\n/);
    says(() => nxdomain);
    await clock.advance(500_000);
    assert.equal(await told('www.example.org. A'), 'answer EDE 3');
    const { answer } = await world.ask('www.example.org. A');
    assert.equal(JSON.stringify(answer[0]!.data).includes('192.0.2.9'), true);
    await world.close();
  });

  test('with a cache in front, the held answer is queried again after 30 seconds', async () => {
    const { world, clock, says, popular, told } = await scene('', 'cache');
    await popular('www.example.org. A');
    says(() => nxdomain);
    assert.equal(await told('www.example.org. A'), 'answer EDE 3');
    await clock.advance(29_000);
    assert.equal(await told('www.example.org. A'), 'answer EDE 3');
    says(good);
    await clock.advance(2000);
    assert.equal(await told('www.example.org. A'), 'answer');
    await world.close();
  });

  test('cluster names, exceptions, and answers from other plugins are never held', async () => {
    const { world, says, popular, told } = await scene(
      'except gone.example',
      '',
      'hosts {\n 192.0.2.1 host.example\n fallthrough\n }',
    );
    const questions = ['web.shop.svc.cluster.local. A', 'x.gone.example. A'];
    for (const question of questions) await popular(question);
    await popular('host.example. A');
    says(() => nxdomain);
    for (const question of questions) assert.equal(await told(question), 'NXDOMAIN');
    assert.equal(await told('host.example. AAAA'), 'nothing');
    await world.close();
  });

  test('expired signatures are not held for clients that check them', async () => {
    const { world, clock, says } = await scene();
    const until = Math.floor(clock.wall() / 1000) + 400;
    const stamp = (seconds: number): string =>
      new Date(seconds * 1000).toISOString().replaceAll(/[-:T]|\.\d+Z/g, '');
    says(() => ({
      answer: [
        '@ 60 A 192.0.2.1',
        `@ 60 RRSIG A 13 3 60 ${stamp(until)} ${stamp(until - 1e6)} 1 example.org. AAAA`,
      ],
    }));
    for (let i = 0; i < 3; i++) {
      await world.ask('www.example.org. A', { dnssecOk: true });
      await world.ask('www.example.org. A');
    }
    says(() => nxdomain);
    assert.equal((await world.ask('www.example.org. A', { dnssecOk: true })).answer.length, 2);
    await clock.advance(401_000);
    assert.equal((await world.ask('www.example.org. A', { dnssecOk: true })).rcode, RCODE.NXDOMAIN);
    assert.equal((await world.ask('www.example.org. A')).answer.length, 2);
    await world.close();
  });

  test('the operator can list held answers and release one name or all', async () => {
    const { world, clock, says, popular, told } = await scene('', '', admin);
    await popular('www.example.org. A');
    await popular('api.example.org. A');
    says(() => nxdomain);
    await told('www.example.org. A');
    await told('api.example.org. A');
    await clock.advance(10);
    const [report] = (await command(world, 'lkg/list')).results;
    assert.deepEqual(
      { ...report, held: report!.held!.map(({ name, type, rcode }) => [name, type, rcode]) },
      {
        servers: ['dns://:53'],
        zones: ['.'],
        view: '',
        held: [
          ['api.example.org.', 'A', 'NXDOMAIN'],
          ['www.example.org.', 'A', 'NXDOMAIN'],
        ],
      },
    );
    const { since, until } = report!.held![0]!;
    assert.equal(Date.parse(until) - Date.parse(since), 600_000);
    for (const name of ['', '..'])
      assert.equal((await command(world, 'lkg/release', name)).status, 400, name);
    const released = await command(world, 'lkg/release', 'WWW.example.org');
    assert.equal(released.results[0]!.released, 'www.example.org.');
    await clock.advance(10);
    assert.equal(await told('www.example.org. A'), 'NXDOMAIN');
    assert.equal(await told('api.example.org. A'), 'answer EDE 3');
    assert.equal((await command(world, 'lkg/release', '*')).results[0]!.released, '*');
    await clock.advance(10);
    assert.equal(await told('api.example.org. A'), 'NXDOMAIN');
    assert.deepEqual(await listed(world), []);
    await world.close();
  });

  test("a release requires admin's header and address", async () => {
    const { world } = await scene('admin 127.0.0.1:0', '', 'admin localhost:0');
    const base = `http://127.0.0.1:${world.server.httpPort('127.0.0.1:0')}`;
    for (const path of ['/lkg', '/lkg/release?name=*'])
      assert.equal((await fetch(`${base}${path}`, { method: 'POST' })).status, 404, path);
    assert.ok(
      world.log.some((line) =>
        /'admin' is ignored: .*`admin` in the server block.*lkg\/release/.test(line),
      ),
      world.log.join('\n'),
    );
    const at = `http://127.0.0.1:${world.server.httpPort('localhost:0')}`;
    const bare = await fetch(`${at}/v1/command?command=lkg/release&name=*`, { method: 'POST' });
    assert.equal(bare.status, 401);
    await world.close();
  });

  test('a name stays in the list while any worker holds an answer for it', async () => {
    const { world, clock, says, popular, told } = await scene('', '', admin);
    await popular('www.example.org. A');
    for (let i = 0; i < 3; i++) await world.ask('www.example.org. A', { dnssecOk: true });
    says(() => nxdomain);
    await told('www.example.org. A');
    await world.ask('www.example.org. A', { dnssecOk: true });
    says(good);
    await told('www.example.org. A');
    await clock.advance(10);
    assert.deepEqual(await listed(world), ['www.example.org. A']);
    await world.ask('www.example.org. A', { dnssecOk: true });
    await clock.advance(10);
    assert.deepEqual(await listed(world), []);
    await world.close();
  });

  for (const [way, byMs] of [
    ['forward', 24 * 3600_000],
    ['back', -24 * 3600_000],
  ] as const) {
    test(`the list contains answers for as long as they are held, even if the machine's clock is set ${way}`, async () => {
      const { world, clock, says, popular, told } = await scene('', '', admin);
      await popular('www.example.org. A');
      says(() => nxdomain);
      await told('www.example.org. A');
      clock.setWall(byMs);
      assert.equal(await told('www.example.org. A'), 'answer EDE 3');
      assert.deepEqual(await listed(world), ['www.example.org. A']);
      // Workers that have ended cannot report it, so the list drops their answers when they expire.
      await clock.advance(3_600_000);
      assert.deepEqual(await listed(world), []);
      await world.close();
    });
  }

  test('a flood of random names evicts no popular one and takes no more memory', async () => {
    const { world, says, popular, told } = await scene('names 64');
    await popular('www.example.org. A');
    for (let i = 0; i < 30; i++) await world.ask('www.example.org. A');
    for (let i = 0; i < 2000; i++) {
      await world.ask(`n${i}.example.org. A`);
      if (i % 20 === 0) await world.ask('www.example.org. A');
    }
    says(() => nxdomain);
    assert.equal(await told('www.example.org. A'), 'answer EDE 3');
    assert.equal(await told('n1999.example.org. A'), 'NXDOMAIN');
    assert.match(world.metrics(), /ndots_lkg_names 64\n/);
    await world.close();
  });

  test('a flood of names below a wildcard, each queried once, evicts no popular name', async () => {
    const { world, says, popular, told } = await scene('names 64');
    for (let i = 0; i < 20; i++) await popular(`www${i}.example.org. A`);
    for (let i = 0; i < 5000; i++) await world.ask(`n${i}.wild.example.org. A`);
    // A name that is queried more than once is still counted.
    await popular('late.example.org. A');
    await popular('late.example.org. A');
    says(() => nxdomain);
    for (let i = 0; i < 20; i++)
      assert.equal(await told(`www${i}.example.org. A`), 'answer EDE 3', `www${i}`);
    assert.equal(await told('late.example.org. A'), 'answer EDE 3');
    await world.close();
  });

  test("a client without an answer of its own kind, signed or not, gets the other kind's records", async () => {
    for (const signed of [false, true]) {
      const { world, clock, says } = await scene();
      const now = Math.floor(clock.wall() / 1000);
      const stamp = (seconds: number): string =>
        new Date(seconds * 1000).toISOString().replaceAll(/[-:T]|\.\d+Z/g, '');
      says(({ query: { dnssecOk } }) => ({
        answer: [
          '@ 60 A 192.0.2.1',
          ...(dnssecOk
            ? [`@ 60 RRSIG A 13 3 60 ${stamp(now + 1e6)} ${stamp(now - 1e6)} 1 example.org. AAAA`]
            : []),
        ],
      }));
      for (let i = 0; i < 3; i++) await world.ask('www.example.org. A', { dnssecOk: signed });
      says(() => nxdomain);
      const types = async (dnssecOk: boolean): Promise<readonly number[]> =>
        (await world.ask('www.example.org. A', { dnssecOk })).answer.map(({ type }) => type);
      assert.deepEqual(await types(!signed), [TYPE.A], `signed: ${signed}`);
      assert.deepEqual(await types(signed), signed ? [TYPE.A, TYPE.RRSIG] : [TYPE.A]);
      await world.close();
    }
  });

  test('a held answer survives a flood that evicts its name, until it expires', async () => {
    const { world, clock, says, popular, told } = await scene('names 64');
    await popular('www.example.org. A');
    says(({ name }) => (name === 'www.example.org.' ? nxdomain : { answer: ['@ 60 A 192.0.2.2'] }));
    assert.equal(await told('www.example.org. A'), 'answer EDE 3');
    for (let i = 0; i < 1000; i++) await world.ask(`n${i}.example.org. A`);
    assert.equal(await told('www.example.org. A'), 'answer EDE 3');
    assert.equal(await told('www.example.org. TXT'), 'nothing EDE 3');
    assert.match(world.metrics(), /ndots_lkg_held_answers 1\n/);
    await clock.advance(601_000);
    assert.equal(await told('www.example.org. A'), 'NXDOMAIN');
    assert.match(world.metrics(), /ndots_lkg_held_answers 0\n/);
    await world.close();
  });

  test('the number of names with held answers is limited, however many are evicted', async () => {
    const { world, says } = await scene('names 16\n asked 1');
    for (let round = 0; round < 20; round++) {
      const names = Array.from({ length: 16 }, (_, i) => `r${round}-${i}.example.org. A`);
      says(good);
      for (const name of [...names, ...names]) await world.ask(name);
      says(() => nxdomain);
      for (const name of names) await world.ask(name);
    }
    const held = Number(/ndots_lkg_held_answers (\d+)/.exec(world.metrics())![1]);
    assert.ok(held > 16 && held <= 32, `${held}`);
    await world.close();
  });

  test('a duration in place of a zone is an error', async () => {
    for (const [word, kind] of [
      ['1h', 'time'],
      ['300', 'number'],
    ])
      await assert.rejects(
        makeWorld(`.:53 {\n lkg example.org ${word}\n forward . 192.0.2.53\n}`),
        (error) => {
          assert.match(String(error), new RegExp(`"${word}" is a ${kind}, not a zone`));
          return true;
        },
      );
  });

  test('property: nothing is held too long, and only answers from upstreams are', async () => {
    const names = ['a.example.org.', 'b.example.org.'];
    const step = fc.record({
      name: fc.constantFrom(...names),
      type: fc.constantFrom('A', 'TXT'),
      wait: fc.integer({ min: 0, max: 400 }),
      there: fc.boolean(),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
        const { world, clock, says, told } = await scene('asked 1');
        /** The times of the last answer and of the first denial after it, by name and type. */
        const last = new Map<string, { denied: number }>();
        for (const { name, type, wait, there } of steps) {
          await clock.advance(wait * 1000);
          says(there ? good : () => nxdomain);
          const found = await told(`${name} ${type}`);
          const now = clock.now();
          const key = `${name} ${type}`;
          if (there) {
            assert.equal(found, 'answer');
            last.set(key, { denied: -1 });
            continue;
          }
          // A denial that a name exists applies to all of its types.
          for (const [other, state] of [...last]) {
            if (!other.startsWith(name)) continue;
            if (state.denied < 0) state.denied = now;
            if (now - state.denied >= 600_000) last.delete(other);
          }
          const exists = [...last.keys()].some((other) => other.startsWith(name));
          const expected = last.has(key) ? 'answer EDE 3' : exists ? 'nothing EDE 3' : 'NXDOMAIN';
          assert.equal(found, expected);
        }
        await world.close();
      }),
      { numRuns: 40 },
    );
  });
});

describe('arguments that are not zones', () => {
  for (const line of [
    'lkg {\n  except a..b\n }',
    'lkg a..b',
    'leakguard {\n  except a..b\n }',
    'top {\n  search a..b\n }',
  ])
    test(`is an error: ${line.replace(/\s+/g, ' ')}`, async () => {
      await assert.rejects(makeWorld(`.:53 {\n ${line}\n whoami\n}`), /'a\.\.b' is not a zone/);
    });
});
