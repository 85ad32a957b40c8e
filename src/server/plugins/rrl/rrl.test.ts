import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { every } from '../../base/clock.ts';
import { VirtualClock } from '../../base/virtual-clock.ts';
import { writeZoneKey, zoneKey } from '../../../../test/kit/zone-keys.ts';
import { makeWorld, type AskOptions, type World } from '../../../../test/kit/world.ts';
import { FLAG } from '../../wire/iana.ts';

const corefileWith = (...lines: readonly string[]): string =>
  `.:53 {
 prometheus 127.0.0.1:0
 rrl {
  ${lines.join('\n  ')}
 }
 template IN ANY fails.example.org {
  rcode SERVFAIL
 }
 template IN A www.example.org other.example.org {
  answer "{{ .Name }} 300 IN A 192.0.2.1"
 }
 template IN TXT www.example.org {
  answer "{{ .Name }} 300 IN TXT text"
 }
 template IN AAAA www.example.org {
  authority "example.org. 300 IN SOA ns.example.org. host.example.org. 1 7200 3600 86400 60"
 }
 template IN ANY child.example.org {
  authority "child.example.org. 300 IN NS ns.child.example.org."
 }
 template IN ANY example.org {
  rcode NXDOMAIN
  authority "example.org. 300 IN SOA ns.example.org. host.example.org. 1 7200 3600 86400 60"
 }
 template IN ANY example.net {
  rcode NXDOMAIN
  authority "example.net. 300 IN SOA ns.example.net. host.example.net. 1 7200 3600 86400 60"
 }
}`;

const worldWith = (...lines: readonly string[]): Promise<World> =>
  makeWorld(corefileWith(...lines));

/** Returns one character per reply: `-` for none, `t` for truncated and `.` for complete. */
async function fates(
  world: World,
  times: number,
  question: string,
  options: AskOptions = {},
): Promise<string> {
  let text = '';
  for (let i = 0; i < times; i++) {
    const reply = await world.tryAsk(question, options);
    text += reply === null ? '-' : (reply.flags & FLAG.TC) !== 0 ? 't' : '.';
  }
  return text;
}

describe('rrl', () => {
  test('a reload retains the accounts, so a limited client stays limited', async () => {
    const world = await worldWith('responses-per-second 3', 'slip-ratio 0');
    assert.equal(await fates(world, 6, 'www.example.org. A'), '...---');
    world.setCorefile(corefileWith('responses-per-second 4', 'slip-ratio 0'));
    assert.ok(await world.server.reload());
    assert.equal(await fates(world, 3, 'www.example.org. A'), '---');
    // Other networks have separate accounts.
    world.setCorefile(corefileWith('responses-per-second 4', 'ipv4-prefix-length 32'));
    assert.ok(await world.server.reload());
    assert.equal(await fates(world, 3, 'www.example.org. A'), '...');
    await world.close();
  });

  test('beyond the allowance, every second reply is truncated and the others are dropped', async () => {
    const world = await worldWith('responses-per-second 3');
    assert.equal(await fates(world, 9, 'www.example.org. A'), '...-t-t-t');
    await world.close();
  });

  test('slip-ratio 1 truncates all, 0 drops all, 3 truncates every third', async () => {
    for (const [ratio, expected] of [
      [1, '..tttttt'],
      [0, '..------'],
      [3, '..--t--t'],
    ] as const) {
      const world = await worldWith('responses-per-second 2', `slip-ratio ${ratio}`);
      assert.equal(await fates(world, 8, 'www.example.org. A'), expected);
      await world.close();
    }
  });

  test('a truncated reply has no records, and gives the reason to EDNS clients', async () => {
    const world = await worldWith('responses-per-second 1', 'slip-ratio 1');
    await world.ask('www.example.org. A');
    const cut = await world.ask('www.example.org. A', { edns: true });
    assert.deepEqual([cut.rcode, cut.answer.length, cut.authority.length], [0, 0, 0]);
    assert.match(await world.dig('www.example.org. A', { edns: true }), /EDE: 0 .*rate limited/);
    await world.close();
  });

  test('TCP is never limited and does not use the allowance', async () => {
    const world = await worldWith('responses-per-second 1');
    assert.equal(await fates(world, 20, 'www.example.org. A', { proto: 'tcp' }), '.'.repeat(20));
    assert.equal(await fates(world, 2, 'www.example.org. A'), '.-');
    assert.equal(await fates(world, 3, 'www.example.org. A', { proto: 'tcp' }), '...');
    await world.close();
  });

  test('a client is a network: 24 bits for IPv4, 56 for IPv6', async () => {
    const world = await worldWith('responses-per-second 1', 'slip-ratio 0');
    const ask = (client: string): Promise<string> =>
      fates(world, 1, 'www.example.org. A', { client });
    assert.equal(await ask('10.0.0.1'), '.');
    assert.equal(await ask('10.0.0.200'), '-');
    assert.equal(await ask('10.0.1.1'), '.');
    assert.equal(await ask('2001:db8:0:1::1'), '.');
    assert.equal(await ask('2001:db8:0:2::1'), '-');
    assert.equal(await ask('2001:db8:0:100::1'), '.');
    await world.close();
  });

  test('an alias without other records is one account, for all queried types', async () => {
    const world = await makeWorld(
      `. {
 rrl {
  responses-per-second 1
  slip-ratio 0
 }
 template IN ANY example.org {
  answer "{{ .Name }} 300 IN CNAME elsewhere.example.net."
 }
}`,
    );
    let sent = 0;
    for (let type = 1000; type < 1010; type++)
      if ((await world.tryAsk(`www.example.org. TYPE${type}`)) !== null) sent++;
    assert.equal(sent, 1);
    await world.close();
  });

  test('refused internal lookups do not count as replies to the client', async (t) => {
    const directory = mkdtempSync(join(tmpdir(), 'ndots-rrl-'));
    t.after(() => rmSync(directory, { recursive: true }));
    writeFileSync(
      join(directory, 'db.example.org'),
      '@ 300 IN SOA ns hostmaster 1 7200 3600 86400 60\n@ 300 NS ns\nalias 300 CNAME elsewhere.example.net.\n',
    );
    const world = await makeWorld(
      'example.org {\n prometheus 127.0.0.1:0\n rrl {\n errors-per-second 2\n }\n file db.example.org\n}',
      { directory },
    );
    for (let i = 0; i < 6; i++)
      assert.equal((await world.ask('alias.example.org. A')).answer.length, 1);
    assert.equal(world.metrics().includes('ndots_rrl_dropped_total{'), false);
    assert.equal(await fates(world, 3, 'www.example.net. A'), '..-');
    await world.close();
  });

  test('refusals of unserved names count like others, except over TCP', async () => {
    const world = await makeWorld(
      'example.org {\n prometheus 127.0.0.1:0\n rrl {\n errors-per-second 2\n exempt-clients 192.0.2.0/24\n }\n whoami\n}',
    );
    assert.equal(await fates(world, 6, 'www.example.net. A'), '..----');
    assert.equal(await fates(world, 3, 'www.example.net. A', { proto: 'tcp' }), '...');
    assert.equal(await fates(world, 3, 'www.example.net. A', { client: '192.0.2.1' }), '...');
    assert.match(world.metrics(), /ndots_rrl_dropped_total\{category="error"[^}]*\} 4\n/);
    await world.close();
  });

  test('errors for messages that are not queries are counted too', async () => {
    const messages = {
      'an opcode that nobody knows': [0, 1, 0x10, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1],
      'two questions': [0, 1, 1, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0, 0, 1, 0, 1],
      'half a question': [0, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 3, 0x77],
      'a version of EDNS that nobody knows': [
        0, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0, 0, 1, 0, 1, 0, 0, 41, 4, 0xd0, 0, 1, 0, 0, 0, 0,
      ],
    };
    for (const limits of ['errors-per-second 2', 'all-per-second 2', 'requests-per-second 2'])
      for (const [what, bytes] of Object.entries(messages)) {
        const world = await makeWorld(
          `example.org {\n prometheus 127.0.0.1:0\n rrl {\n ${limits}\n exempt-clients 192.0.2.0/24\n }\n whoami\n}`,
        );
        const fatesOf = async (times: number, options: AskOptions = {}): Promise<string> => {
          let text = '';
          for (let i = 0; i < times; i++)
            text += (await world.send(Uint8Array.from(bytes), options)) === null ? '-' : '.';
          return text;
        };
        assert.equal(await fatesOf(5), '..---', `${limits}: ${what}`);
        assert.equal(await fatesOf(4, { client: '192.0.2.1' }), '....');
        assert.equal(await fatesOf(4, { proto: 'tcp' }), '....');
        assert.match(world.metrics(), /ndots_rrl_dropped_total\{[^}]*\} 3\n/);
        await world.close();
      }
  });

  test('requests-per-second includes queries that no server block serves', async () => {
    const world = await makeWorld(
      'example.org {\n prometheus 127.0.0.1:0\n rrl {\n requests-per-second 2\n }\n whoami\n}',
    );
    assert.equal(await fates(world, 5, 'www.example.net. A'), '..---');
    assert.match(world.metrics(), /ndots_rrl_dropped_total\{category="request"[^}]*\} 3\n/);
    await world.close();
  });

  test('a client is a prefix of any length except zero', async () => {
    const near = {
      1: '127.0.0.1',
      9: '10.127.0.1',
      24: '10.0.0.255',
      31: '10.0.0.1',
      32: '10.0.0.0',
    };
    for (const [bits, client] of Object.entries(near)) {
      const world = await worldWith(
        `responses-per-second 1`,
        'slip-ratio 0',
        `ipv4-prefix-length ${bits}`,
      );
      assert.equal(await fates(world, 1, 'www.example.org. A', { client: '10.0.0.0' }), '.');
      assert.equal(await fates(world, 1, 'www.example.org. A', { client }), '-', bits);
      assert.equal(
        await fates(world, 1, 'www.example.org. A', { client: '138.128.1.2' }),
        '.',
        bits,
      );
      await world.close();
    }
    for (const [bits, client, other] of [
      [1, '7fff::1', 'fd00::1'],
      [7, 'fc00::1', '2001:db8::1'],
      [56, 'fd00:0:0:ff::1', 'fd00:0:0:100::1'],
      [127, 'fd00::1', 'fd00::2'],
      [128, 'fd00::', 'fd00::1'],
    ] as const) {
      const first = bits === 1 ? '2001:db8::1' : 'fd00::';
      const world = await worldWith(
        `responses-per-second 1`,
        'slip-ratio 0',
        `ipv6-prefix-length ${bits}`,
      );
      assert.equal(await fates(world, 1, 'www.example.org. A', { client: first }), '.');
      assert.equal(await fates(world, 1, 'www.example.org. A', { client }), '-', String(bits));
      assert.equal(
        await fates(world, 1, 'www.example.org. A', { client: other }),
        '.',
        String(bits),
      );
      await world.close();
    }
    for (const line of [
      'ipv4-prefix-length 0',
      'ipv4-prefix-length 33',
      'ipv6-prefix-length 0',
      'ipv6-prefix-length 129',
      'ipv4-prefix-length -1',
      'ipv4-prefix-length 1.5',
    ])
      await assert.rejects(worldWith(line), /LENGTH|invalid syntax/, line);
  });

  test('each name and type has its own account, regardless of letter case', async () => {
    const world = await worldWith('responses-per-second 1', 'slip-ratio 0');
    assert.equal(await fates(world, 1, 'www.example.org. A'), '.');
    assert.equal(await fates(world, 1, 'wWw.eXample.org. A'), '-');
    assert.equal(await fates(world, 1, 'www.example.org. TXT'), '.');
    assert.equal(await fates(world, 1, 'www.example.org. AAAA'), '.');
    assert.equal(await fates(world, 1, 'other.example.org. A'), '.');
    await world.close();
  });

  test('invented names in a zone share one account, and so do referrals', async () => {
    const world = await worldWith(
      'responses-per-second 0',
      'nxdomains-per-second 2',
      'referrals-per-second 1',
      'slip-ratio 0',
    );
    let text = '';
    for (let i = 0; i < 6; i++) text += await fates(world, 1, `random-${i}.example.org. A`);
    assert.equal(text, '..----');
    assert.equal(await fates(world, 1, 'random.example.net. A'), '.');
    text = '';
    for (let i = 0; i < 3; i++) text += await fates(world, 1, `random-${i}.child.example.org. A`);
    assert.equal(text, '.--');
    assert.equal(await fates(world, 9, 'www.example.org. A'), '.'.repeat(9));
    await world.close();
  });

  test('invented names below a DNAME share one account, as do those denied by online signatures', async (t) => {
    const directory = mkdtempSync(join(tmpdir(), 'ndots-rrl-'));
    t.after(() => rmSync(directory, { recursive: true }));
    writeFileSync(
      join(directory, 'db.example.org'),
      '@ 300 IN SOA ns hostmaster 1 7200 3600 86400 60\n@ 300 NS ns\nd 300 DNAME e\n*.e 300 A 192.0.2.1\n*.w 300 A 192.0.2.1\nhost A 192.0.2.2\nother A 192.0.2.2\n',
    );
    const key = writeZoneKey(directory, zoneKey('example.org.'));
    const sent = async (name: (i: number) => string, options: AskOptions = {}): Promise<string> => {
      const clock = new VirtualClock();
      const world = await makeWorld(
        `example.org {\n rrl {\n responses-per-second 2\n slip-ratio 0\n }\n dnssec {\n key file ${key}\n }\n file db.example.org\n}`,
        { directory, clock },
      );
      // Signing takes several turns of the event loop.
      const ticks = every(clock, 1, () => undefined);
      let text = '';
      for (let i = 0; i < 6; i++) text += await fates(world, 1, name(i), options);
      ticks.cancel();
      await world.close();
      return text;
    };
    for (const options of [{}, { dnssecOk: true, udpSize: 4096 }]) {
      assert.equal(await sent((i) => `r${i}.d.example.org. A`, options), '..----', 'DNAME');
      assert.equal(await sent((i) => `r${i}.w.example.org. A`, options), '..----', 'wildcard');
      assert.equal(await sent((i) => `r${i}.example.org. A`, options), '..----', 'NXDOMAIN');
    }
  });

  describe('names that always exist', () => {
    const sent = async (lines: string, name: (i: number) => string): Promise<string> => {
      const directory = mkdtempSync(join(tmpdir(), 'ndots-rrl-'));
      const clock = new VirtualClock();
      writeFileSync(
        join(directory, 'ns.yaml'),
        'apiVersion: v1\nkind: Namespace\nmetadata: {name: web}\n',
      );
      writeFileSync(
        join(directory, 'db.example.org'),
        '@ 300 IN SOA ns hostmaster 1 7200 3600 86400 60\n@ 300 NS ns\n*.w 300 A 192.0.2.1\n',
      );
      const world = await makeWorld(
        `.:53 {\n rrl {\n responses-per-second 2\n slip-ratio 0\n }\n ${lines.replace('FOLDER', directory)}\n}`,
        { directory, clock },
      );
      let text = '';
      for (let i = 0; i < 6; i++) text += await fates(world, 1, name(i));
      await world.close();
      rmSync(directory, { recursive: true });
      return text;
    };
    const pods = 'kubernetes cluster.local {\n manifests FOLDER\n pods insecure\n }';

    test('pods in a namespace (`pods insecure`) share one account', async () => {
      assert.equal(await sent(pods, (i) => `10-0-0-${i}.web.pod.cluster.local. A`), '..----');
    });

    test('pods and template names without one address family have separate accounts, since clients query A and AAAA', async () => {
      const noSix = 'template ANY AAAA . {\n rcode NOERROR\n }\n hosts {\n 192.0.2.1 a.test\n }';
      assert.equal(await sent(noSix, (i) => `host-${i}.example.net. AAAA`), '......');
      assert.equal(await sent(pods, (i) => `10-0-0-${i}.web.pod.cluster.local. AAAA`), '......');
    });

    test('names that a template answers have separate accounts, whether there are two or many', async () => {
      for (const match of ['^[a-z]', '^r[0-5]\\.t\\.test\\.$']) {
        const made = `template IN A t.test {\n match ${match}\n answer "{{ .Name }} 60 IN A 192.0.2.1"\n }`;
        assert.equal(await sent(made, (i) => `r${i}.t.test. A`), '......');
      }
    });

    test("a wildcard's missing types share one account, as in BIND", async () => {
      const zone = 'file db.example.org example.org';
      assert.equal(await sent(zone, (i) => `r${i}.w.example.org. AAAA`), '..----');
    });
  });

  test("a client's failures share one account, and none slips, because there is nothing to truncate", async () => {
    const world = await worldWith('errors-per-second 1', 'slip-ratio 1');
    assert.equal((await world.ask('a.fails.example.org. A')).rcode, 2);
    assert.equal(await fates(world, 3, 'b.fails.example.org. TXT'), '---');
    assert.match(
      world.metrics(),
      /ndots_rrl_dropped_total\{category="error",server="dns:\/\/:53",view=""\} 3\n/,
    );
    await world.close();
  });

  test('a second restores the allowance, and debts last no longer than the window', async () => {
    const world = await worldWith('responses-per-second 2', 'window 3', 'slip-ratio 0');
    assert.equal(await fates(world, 4, 'www.example.org. A'), '..--');
    // Two replies are owed, which takes a second, and a third takes another half.
    await world.clock.advance(1000);
    assert.equal(await fates(world, 1, 'www.example.org. A'), '-');
    await fates(world, 1000, 'www.example.org. A');
    await world.clock.advance(2900);
    assert.equal(await fates(world, 1, 'www.example.org. A'), '-');
    await world.clock.advance(4000);
    assert.equal(await fates(world, 3, 'www.example.org. A'), '..-');
    await world.close();
  });

  test('all-per-second drops without slipping, and requests-per-second applies before any lookup', async () => {
    const world = await worldWith('all-per-second 2', 'slip-ratio 1');
    assert.equal(await fates(world, 1, 'www.example.org. A'), '.');
    assert.equal(await fates(world, 1, 'random.example.org. A'), '.');
    assert.equal(await fates(world, 2, 'other.example.org. A'), '--');
    await world.close();
    const early = await worldWith('requests-per-second 2');
    assert.equal(await fates(early, 4, 'www.example.org. A'), '..--');
    assert.match(
      early.metrics(),
      /ndots_rrl_dropped_total\{category="request",server="dns:\/\/:53",view=""\} 2\n/,
    );
    await early.close();
  });

  test('exempt clients are neither limited nor counted', async () => {
    const world = await worldWith('responses-per-second 1', 'exempt-clients 10.0.0.0/8 fd00::/8');
    assert.equal(await fates(world, 5, 'www.example.org. A', { client: '10.1.1.1' }), '.....');
    assert.equal(await fates(world, 5, 'www.example.org. A', { client: 'fd00::1' }), '.....');
    assert.equal(await fates(world, 3, 'www.example.org. A', { client: '11.1.1.1' }), '.-t');
    await world.close();
  });

  test('report-only answers all, counts the replies it would limit, and logs the network', async () => {
    const world = await worldWith('responses-per-second 1', 'report-only');
    assert.equal(
      await fates(world, 9, 'www.example.org. A', { client: '192.0.2.77' }),
      '.........',
    );
    await world.clock.advance(60_000);
    assert.match(
      world.metrics(),
      /ndots_rrl_dropped_total\{category="response",server="dns:\/\/:53",view=""\} 4\n/,
    );
    assert.match(world.metrics(), /ndots_rrl_top_clients\{client="192\.0\.2\.0\/24"\} 8\n/);
    assert.ok(
      world.log.some(
        (line) =>
          line.includes('8 replies or queries would have been limited') &&
          line.includes('192.0.2.0/24'),
      ),
    );
    await world.close();
  });

  test('a flood of invented clients uses only the existing accounts, and only ten are named', async () => {
    const world = await worldWith('responses-per-second 1', 'max-table-size 64', 'slip-ratio 0');
    for (let i = 0; i < 3000; i++) {
      const client = `10.${i >> 8}.${i & 255}.1`;
      await world.tryAsk('www.example.org. A', { client });
      await world.tryAsk('www.example.org. A', { client });
    }
    await world.clock.advance(10_000);
    const shown = world
      .metrics()
      .split('\n')
      .filter((line) => line.startsWith('ndots_rrl_top_clients{'));
    assert.equal(shown.length, 10);
    const evicted = /^ndots_rrl_evictions_total (\d+)$/m.exec(world.metrics())?.[1];
    assert.ok(Number(evicted) > 2000, `${evicted} evictions`);
    await world.close();
  });

  test('without an allowance nothing is limited, which causes a warning', async () => {
    const world = await makeWorld('.:53 {\n rrl\n whoami\n}');
    assert.ok(world.log.some((line) => line.includes('nothing is limited')));
    assert.equal(await fates(world, 5, 'example.org. A'), '.....');
    await world.close();
  });
});
