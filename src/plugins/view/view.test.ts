import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { makeWorld, type World } from '../../../test/kit/world.ts';
import { RCODE } from '../../wire/iana.ts';

/** A # would begin a comment. */
const quoted = (expression: string): string =>
  expression.includes('#') ? `"${expression}"` : expression;

/** One block with this expression that answers, before one that refuses nothing. */
const worldWith = (expression: string): Promise<World> =>
  makeWorld(`.:53 {\n view here {\n expr ${quoted(expression)}\n }\n whoami\n}\n.:53 {\n any\n}`);

async function takes(
  expression: string,
  question = 'Client.Example.ORG. A',
  options: Parameters<World['ask']>[1] = {},
): Promise<boolean> {
  const world = await worldWith(expression);
  const { rcode } = await world.ask(question, options);
  await world.close();
  return rcode === RCODE.NOERROR;
}

describe('view', () => {
  const isTrue: readonly string[] = [
    "name() == 'client.example.org.'",
    "type() == 'A' && class() == 'IN'",
    "type() in ['A', 'AAAA']",
    "type() not in ['MX', 'TXT']",
    "not (type() in ['MX'])",
    "!(proto() == 'tcp')",
    "incidr(client_ip(), '10.244.0.0/16')",
    "incidr(client_ip(), '10.0.0.0/8') and not incidr(client_ip(), '10.96.0.0/12')",
    "incidr(server_ip(), '10.96.0.0/12') or false",
    "client_ip() == '10.244.0.9'",
    "port() == '40000' and server_port() == '53'",
    'id() == 4711 && opcode() == 0',
    'bufsize() == 512 && size() == 36 && not do()',
    'id() > 4710 and id() <= 4711 and id() != 1',
    'id() % 2 == 1',
    'id() - 1 == 4710 && -id() == 0 - 4711',
    '2 + 3 * 4 == 14 && (2 + 3) * 4 == 20 && 2 ** 3 ** 2 == 512 && 7 / 2 == 3.5',
    '0x10 == 16 && 1_000 == 1e3 && .5 == 0.5',
    "name() startsWith 'client' && name() endsWith '.org.' && name() contains 'example'",
    "name() not contains 'xyz'",
    "name() matches '^client\\\\.[a-z]+\\\\.org\\\\.$'",
    "name() matches '(?i)EXAMPLE'",
    "name() > 'b' && name() < 'd'",
    "len(name()) == 19 && upper(type()) == 'A' && lower('Ab') == 'ab'",
    "split(name(), '.')[0] == 'client' && split(name(), '.')[-2] == 'org'",
    "name()[0:6] == 'client' && name()[7:] == 'example.org.' && name()[:-1] == 'client.example.org'",
    "join(['a', 'b'], '-') == 'a-b' && indexOf(name(), '.') == 6",
    "trimSuffix(name(), '.') == 'client.example.org' && trim(' a ') == 'a'",
    "hasPrefix(name(), 'client') && (name() | hasSuffix('org.'))",
    "any(['a.', 'example.org.'], name() endsWith #)",
    'all([1, 2, 3], {# > 0}) && none([1], # > 1) && one([1, 2], # == 2)',
    'count(1..5, # % 2 == 1) == 3 && filter([1, 2], # > 1) == [2] && map([1], # + 1) == [2]',
    "int(port()) == 40000 && string(id()) == '4711' && float('1.5') == 1.5",
    "type() == 'A' ? true : false",
    'nil ?? true',
    'true or 1 / 0 == 0',
    "metadata('no/such') == ''",
    'max(1, id()) == id() && min(1, 2) == 1 && abs(-3) == 3',
    'true // and a comment',
    '4711 in 4000..5000',
  ];
  for (const expression of isTrue) {
    test(`takes a query when ${expression}`, async () => {
      assert.equal(await takes(expression), true);
    });
  }

  const isFalse: readonly string[] = [
    "type() == 'AAAA'",
    "incidr(client_ip(), '192.168.0.0/16')",
    "incidr(name(), '10.0.0.0/8')",
    "incidr('10.0.0.1', name())",
    'name()',
    'id()',
    'id() % 0 == 1',
    'int(name()) == 1',
    "[1, 2][0] == 'a'",
    "first([]) == 'a'",
    'len(1..20000) > 0',
  ];
  for (const expression of isFalse) {
    test(`leaves a query when ${expression}`, async () => {
      assert.equal(await takes(expression), false);
    });
  }

  test('transport, family and EDNS are seen', async () => {
    assert.equal(
      await takes("proto() == 'tcp' && bufsize() == 65535", 'a. A', { proto: 'tls' }),
      true,
    );
    assert.equal(
      await takes("client_ip() == '2001:db8::1' && incidr(client_ip(), '2001:db8::/32')", 'a. A', {
        client: '2001:db8::1',
      }),
      true,
    );
    assert.equal(
      await takes('do() && bufsize() == 4096', 'a. A', { dnssecOk: true, udpSize: 4096 }),
      true,
    );
  });

  test('of several expressions all must be true', async () => {
    const world = await makeWorld(
      ".:53 {\n view here {\n expr type() == 'A'\n expr name() startsWith 'a'\n }\n whoami\n}",
    );
    assert.equal((await world.ask('a.test. A')).rcode, RCODE.NOERROR);
    assert.equal((await world.ask('b.test. A')).rcode, RCODE.REFUSED);
    assert.equal((await world.ask('a.test. MX')).rcode, RCODE.REFUSED);
    await world.close();
  });

  test('blocks of a zone are tried from top to bottom, then shorter zones', async () => {
    const world = await makeWorld(
      `example.org:53 {
         prometheus 127.0.0.1:0
         view inside {
           expr incidr(client_ip(), '10.0.0.0/8')
         }
         whoami
       }
       example.org:53 {
         view tcp {
           expr proto() == 'tcp'
         }
         any
       }
       .:53 {
         erratic {
           drop 0
         }
       }`,
    );
    const ask = async (client: string, proto: 'udp' | 'tcp'): Promise<readonly number[]> => {
      const { rcode, answer, additional } = await world.ask('example.org. A', { client, proto });
      return [rcode, answer.length, additional.length];
    };
    assert.deepEqual(await ask('10.0.0.1', 'tcp'), [RCODE.NOERROR, 0, 2]);
    assert.deepEqual(await ask('11.0.0.1', 'tcp'), [RCODE.SERVFAIL, 0, 0]);
    assert.deepEqual(await ask('11.0.0.1', 'udp'), [RCODE.NOERROR, 1, 0]);
    assert.match(
      world.metrics(),
      /coredns_dns_requests_total\{.*view="inside",zone="example\.org\."\} 1/,
    );
    await world.close();
  });

  test('a mistake in a view is the only problem: its block does not clash with the one it stands before', async () => {
    await assert.rejects(worldWith("name( == 'a'"), (error: unknown) => {
      const { problems } = error as { problems: readonly Error[] };
      assert.equal(problems.length, 1);
      return true;
    });
  });

  test('what is no expression is refused, with its place and what was meant', async () => {
    const cases: readonly (readonly [string, RegExp])[] = [
      ["name( == 'a'", /unexpected token "==" \(1:7\)/],
      ["nam() == 'a'", /unknown name nam, did you mean name\? \(1:1\)/],
      ["name == 'a'", /name is a function: write name\(\) \(1:1\)/],
      ['name() == 1', /invalid operation: == \(mismatched types string and number\)/],
      ['not name()', /invalid operation: not \(mismatched type string\)/],
      ["name() matches '('", /error parsing regexp: missing closing \)/],
      ["incidr(client_ip(), '10.0.0.0')", /invalid CIDR address: 10\.0\.0\.0/],
      ["incidr('10.0.0.1')", /not enough arguments to call incidr/],
      ['name(1)', /too many arguments to call name/],
      ["'abc", /literal not terminated \(1:1\)/],
      ['true true', /unexpected token "true" \(1:6\)/],
      ['', /unexpected end of the expression/],
      ['# == 1', /# stands only inside a predicate/],
      ['id() > 0 ; true', /unrecognized character: ";"/],
      ["constructor('x')", /unknown name constructor/],
      [`${'('.repeat(200)}true${')'.repeat(200)}`, /nested too deeply/],
    ];
    for (const [expression, message] of cases)
      await assert.rejects(worldWith(expression), message, expression);
    await assert.rejects(
      makeWorld('.:53 {\n view a\n view b\n}'),
      /only be used once per Server Block/,
    );
  });

  test('an expression that can never be true is warned about', async () => {
    const world = await worldWith('name()');
    assert.match(
      world.log.join('\n'),
      /\[WARNING\] plugin\/view: 'name\(\)' is never true: it gives a string/,
    );
    await world.close();
  });
});
