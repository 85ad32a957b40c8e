import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { makeWorld, type World } from '../../../../test/kit/world.ts';
import { RCODE } from '../../wire/iana.ts';

/** An unquoted # would start a comment. */
const quoted = (expression: string): string =>
  expression.includes('#') ? `"${expression}"` : expression;

/** A block with this expression that answers, followed by one that does not refuse anything. */
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

const tenfold = (letter: string, times: number): string =>
  [
    `let ${letter}0 = [name()];`,
    ...Array.from(
      { length: times },
      (_, i) => `let ${letter}${i + 1} = [${Array(10).fill(`${letter}${i}`).join(', ')}];`,
    ),
  ].join(' ');

describe('view', () => {
  const isTrue: readonly string[] = [
    'all(1..100, all(1..100, # > 0))',
    'len(sort(map(1..10000, # * -1 + id()))) == 10000',
    "string([name(), {'a': nil}]) startsWith '['",
    "replace(name(), '', '-') startsWith '-c-l'",
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
    'let x = 1; x == 1',
    "let labels = split(name(), '.'); let host = labels[0]; host == 'client' && len(labels) == 4",
    '(let a = id(); a - 1) == 4710 && all([1, 2], {let twice = # * 2; twice > #})',
    "{'a': 1}.a == 1",
    "{a: {b: [1, 2]}}.a['b'][1] == 2 && {('x' + 'y'): 1,}.xy == 1 && {'a': 1}.b == nil",
    "let zones = {'client.example.org.': 'inside'}; zones[name()] == 'inside' && name() in zones",
    "{'a': 1}?.a == 1 && {'a': nil}.a?.b?.c == nil && ({'a': nil}?.a?.b ?? 2) == 2 && {'a': 1} == {'a': 1}",
    'filter([{n: 1}, {n: 2}], .n > 1) == [{n: 2}] && map([{n: 3}], #.n) == [3]',
    'bitand(1,1) == 1 && len(sort([2,1])) == 2',
    'bitor(4, 1) == 5 && bitxor(7, 2) == 5 && bitnand(7, 2) == 5 && bitnot(0) == -1 && bitshl(1, 40) == 1099511627776',
    'bitshr(8, 2) == 2 && bitshr(-8, 1) == -4 && bitushr(-1, 60) == 15 && bitand(id(), 0xff) == 0x67',
    "sort(['b', 'a']) == ['a', 'b'] && sort([1, 3, 2], 'desc') == [3, 2, 1] && reverse([1, 2]) == [2, 1]",
    'sum([1, 2.5]) == 3.5 && mean([1, 2]) == 1.5 && median([3, 1, 2]) == 2 && max([1, 3]) == 3 && min(2, [1, 3]) == 1',
    'floor(1.5) == 1 && ceil(1.5) == 2 && round(1.5) == 2 && round(-1.5) == -2',
    "repeat('ab', 2) == 'abab' && concat([1], [2, 3]) == [1, 2, 3] && uniq([1, 2, 1]) == [1, 2] && take([1, 2, 3], 2) == [1, 2]",
    'len(concat([1], [2], [3], [4], [5], [6], [7], [8], [9], [10], [11], [12], [13], [14], [15], [16], [17])) == 17',
    "keys({'a': 1, 'b': 2}) == ['a', 'b'] && values({'a': 1}) == [1] && len({'a': 1}) == 1 && get({'a': 1}, 'a') == 1 && get([1], 7) == nil",
    'flatten([1, [2, [3]]]) == [1, 2, 3] && find([1, 2], # > 1) == 2 && findIndex([1, 2], # > 1) == 1 && find([1], # > 1) == nil',
    'findLast([1, 2, 3], # < 3) == 2 && findLastIndex([1, 2, 3], # < 3) == 1',
  ];
  for (const expression of isTrue) {
    test(`accepts a query if ${expression}`, async () => {
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
    "{'a': 1}.b.c == 1",
    'bitand(1.5, 1) == 1',
    "repeat('ab', 1000000000) != ''",
    'len(take([1, 2], -1)) == 0',
    'len(take([1, 2], 1.5)) == 1',
    // Doubling in each step allocates no memory.
    `let a = repeat(name(), 100); let b = a + a + a + a; let c = b + b + b + b; let d = c + c + c + c; let e = d + d + d + d; e != ''`,
    'let a = map(1..9000, # + id()); let b = concat(a, a); len(b) > 1',
    'let a = map(1..9000, # + id()); len(flatten([a, a])) > 1',
    // The amount of work is limited to what one query may cost.
    'all(1..300, all(1..300, all(1..10, # > 0)))',
    'len(uniq(map(1..1000, [# + id()]))) == 1000',
    'all(1..100, len(sort(map(1..1000, # + id()))) == 1000)',
    'all(1..1000, len(lower(repeat(name(), 3000))) > 0)',
    `${tenfold('a', 6)} string(a6) != ''`,
    `${tenfold('a', 6)} ${tenfold('b', 6)} a6 == b6`,
    `${tenfold('a', 6).replace('name()', '1')} string(a6) != ''`,
    `${tenfold('a', 6).replace('name()', '[]')} len(flatten(a6)) == 0`,
  ];
  for (const expression of isFalse) {
    test(`rejects a query if ${expression}`, async () => {
      assert.equal(await takes(expression), false);
    });
  }

  test('transport, family and EDNS are visible', async () => {
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

  test('if there are several expressions, all must be true', async () => {
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

  test('an error in a view is the only problem: its block does not conflict with the next one', async () => {
    await assert.rejects(worldWith("name( == 'a'"), (error: unknown) => {
      const { problems } = error as { problems: readonly Error[] };
      assert.equal(problems.length, 1);
      return true;
    });
  });

  test('an invalid expression is rejected, with its place and a suggestion', async () => {
    const cases: readonly (readonly [string, RegExp])[] = [
      ["name( == 'a'", /unexpected token "==" \(1:7\)/],
      ["nam() == 'a'", /unknown name nam, did you mean name\? \(1:1\)/],
      ["name == 'a'", /name is a function; write name\(\) \(1:1\)/],
      ['name() == 1', /invalid operation: == \(mismatched types string and number\)/],
      ['not name()', /invalid operation: not \(mismatched type string\)/],
      ["name() matches '('", /error parsing regexp: missing closing \)/],
      ["incidr(client_ip(), '10.0.0.0')", /invalid CIDR address: 10\.0\.0\.0/],
      ["incidr('10.0.0.1')", /not enough arguments to call incidr/],
      ['name(1)', /too many arguments to call name/],
      ["'abc", /literal not terminated \(1:1\)/],
      ['true true', /unexpected token "true" \(1:6\)/],
      ['', /unexpected end of the expression/],
      ['# == 1', /# is only allowed inside a predicate/],
      ['id() > 0 @ true', /unrecognized character: "@"/],
      ['let x = 1', /unexpected end/],
      ['let name = 1; name == 1', /name is a function already \(1:5\)/],
      ['let x = 1; let x = 2; x == 1', /x already has a value \(1:16\)/],
      ['(let x = 1; x == 1) && x == 1', /unknown name x/],
      [
        `${Array.from({ length: 21 }, (_, i) => `let x${i} = 1; `).join('')}true`,
        /more than 20 names have values/,
      ],
      ['name().length > 1', /type string has no field length/],
      ['now().Hour() < 8', /now is not supported: views cannot depend on the time/],
      ['reduce([1], # + 1) == 1', /reduce is not supported: write sum\(\)/],
      ["constructor('x')", /unknown name constructor/],
      [`${'('.repeat(200)}true${')'.repeat(200)}`, /nested too deeply/],
      [`${'id() > 1 || '.repeat(6000)}true`, /more than 5000 operators \(1:\d+\)/],
      [`name()${'[0]'.repeat(6000)} == 'a'`, /more than 5000 operators/],
      [`name()${' | trim()'.repeat(6000)} == 'a'`, /more than 5000 operators/],
    ];
    for (const [expression, message] of cases)
      await assert.rejects(worldWith(expression), message, expression);
    await assert.rejects(
      makeWorld('.:53 {\n view a\n view b\n}'),
      /only be used once per Server Block/,
    );
  });

  test('a chain of operators as long as CoreDNS accepts is evaluated', async () => {
    const world = await worldWith(`${'id() + '.repeat(4998)}id() >= 0`);
    assert.equal((await world.ask('www.example.org. A')).rcode, RCODE.NOERROR);
    await world.close();
  });

  test('an expression that can never be true causes a warning', async () => {
    const world = await worldWith('name()');
    assert.match(
      world.log.join('\n'),
      /\[WARNING\] plugin\/view: 'name\(\)' is never true because its result is a string/,
    );
    await world.close();
  });
});
