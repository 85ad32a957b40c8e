import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { scriptedNetwork } from '../../../../test/kit/upstream.ts';
import { makeWorld, type AskOptions, type World } from '../../../../test/kit/world.ts';
import { problemsIn } from '../../base/problem.ts';
import { VirtualClock } from '../../base/virtual-clock.ts';
import { RCODE } from '../../wire/iana.ts';
import type { Message } from '../../wire/message.ts';
import { printMessage } from '../../wire/print.ts';
import { errors } from '../errors/errors.ts';
import { rewrite } from './rewrite.ts';
import { stub, texts, type Answers, type Stub } from './rewrite.fixture.test.ts';

interface Rig extends Stub {
  readonly world: World;
  readonly ask: (question: string, options?: AskOptions) => Promise<Message>;
}

async function rig(rules: string, answers: Answers = {}, later = false): Promise<Rig> {
  const made = stub(answers, later);
  const world = await makeWorld(`. {\n errors\n ${rules}\n stub\n}`, {
    plugins: [errors, rewrite, made.plugin],
  });
  return { ...made, world, ask: (question, options) => world.ask(question, options) };
}

async function problems(rules: string): Promise<string[]> {
  try {
    const { world } = await rig(rules);
    await world.close();
    return [];
  } catch (error) {
    return (problemsIn(error) ?? []).map(({ message }) => message);
  }
}

const a = (name: string): string => `${name} 60 IN A 192.0.2.1`;

describe('rewrite name', () => {
  test('an exact name is queried under the other name, and all names are mapped back', async () => {
    const { ask, seen } = await rig('rewrite name Red.example. blue.example', {
      'blue.example. A': [
        'blue.example. 60 IN CNAME www.blue.example.',
        a('www.blue.example.'),
        '@blue.example. 60 IN NS ns.other.example.',
      ],
    });
    const reply = await ask('rEd.eXample. A');
    assert.deepEqual(seen, ['blue.example. A']);
    assert.equal(reply.question[0]!.name, 'rEd.eXample.');
    assert.deepEqual(texts(reply.answer), [
      'rEd.eXample. 60 CNAME www.rEd.eXample.',
      'www.rEd.eXample. 60 A 192.0.2.1',
    ]);
    assert.deepEqual(texts(reply.authority), ['rEd.eXample. 60 NS ns.other.eXample.']);
    assert.equal(reply.rcode, RCODE.NOERROR);
  });

  test('a name without a matching rule is passed on unchanged, in its spelling', async () => {
    const { ask, seen } = await rig(
      'rewrite name red.example blue.example\nrewrite name suffix .x .y',
      { 'green.example. A': [a('green.example.')] },
    );
    const reply = await ask('GREEN.example. A');
    assert.deepEqual(seen, ['GREEN.example. A']);
    assert.deepEqual(texts(reply.answer), ['GREEN.example. 60 A 192.0.2.1']);
  });

  test('a prefix consists of whole labels, because CoreDNS appends a dot', async () => {
    const { ask, seen } = await rig('rewrite name prefix foo bar', {
      'bar.example. A': [a('bar.example.')],
    });
    const reply = await ask('foo.example. A');
    await ask('foobar.example. A');
    assert.deepEqual(seen, ['bar.example. A', 'foobar.example. A']);
    assert.equal(reply.question[0]!.name, 'foo.example.');
    assert.deepEqual(texts(reply.answer), ['bar.example. 60 A 192.0.2.1']);
  });

  test('a suffix has no label boundary at its left', async () => {
    const { ask, seen } = await rig('rewrite name suffix example.org example.net');
    await ask('www.example.org. A');
    await ask('myexample.org. A');
    await ask('example.org. A');
    assert.deepEqual(seen, ['www.example.net. A', 'myexample.net. A', 'example.net. A']);
  });

  test('a suffix that starts with a dot does not match the name itself', async () => {
    const { ask, seen } = await rig('rewrite name suffix .schmoogle.com. .google.com.');
    await ask('www.schmoogle.com. A');
    await ask('schmoogle.com. A');
    assert.deepEqual(seen, ['www.google.com. A', 'schmoogle.com. A']);
  });

  test('a substring must end at the end of a label, and every occurrence is replaced', async () => {
    const { ask, seen } = await rig('rewrite name substring core node');
    await ask('core.core.example. A');
    await ask('xcore.example. A');
    await ask('core-dns.example. A');
    assert.deepEqual(seen, ['node.node.example. A', 'xnode.example. A', 'core-dns.example. A']);
  });

  test('the substring rule in AKS documentation reaches services in the default namespace', async () => {
    const { ask, seen } = await rig(
      'rewrite name substring puglife.local default.svc.cluster.local',
    );
    await ask('web.puglife.local. A');
    assert.deepEqual(seen, ['web.default.svc.cluster.local. A']);
  });

  test('only a number without leading zeros refers to a group', async () => {
    const { ask, seen } = await rig('rewrite name regex ^(a)[.]$ {1}.{01}.{001}');
    await ask('a. A');
    assert.deepEqual(seen, ['a.{01}.{001}. A']);
  });

  test('a regex fills in its groups, and its answers keep the rewritten owner', async () => {
    const { ask, seen } = await rig(
      String.raw`rewrite name regex (.*)-(us-west-1)\.example\.org {1}.service.{2}.consul`,
      {
        'ftp.service.us-west-1.consul. A': [a('ftp.service.us-west-1.consul.')],
      },
    );
    const reply = await ask('ftp-us-west-1.example.org. A');
    assert.deepEqual(seen, ['ftp.service.us-west-1.consul. A']);
    assert.equal(reply.question[0]!.name, 'ftp-us-west-1.example.org.');
    assert.deepEqual(texts(reply.answer), ['ftp.service.us-west-1.consul. 60 A 192.0.2.1']);
  });

  test('an invalid name after the rewrite gets SERVFAIL, and the error names it', async () => {
    const { ask, seen, world } = await rig('rewrite name regex (.*) {0}.{0}');
    const reply = await ask('a.example. A');
    assert.equal(reply.rcode, RCODE.SERVFAIL);
    assert.deepEqual(seen, []);
    assert.equal(reply.question[0]!.name, 'a.example.');
    assert.deepEqual(
      world.log.filter((line) => line.includes('invalid name')),
      ['[ERROR] plugin/errors: 2 a.example. A: invalid name after rewrite: a.example..a.example..'],
    );
  });

  test('names with escaped characters match by their text', async () => {
    const { ask, seen } = await rig(
      String.raw`rewrite name suffix .old .new` + '\n' + String.raw`rewrite name prefix a\.b. c.`,
    );
    await ask(String.raw`x\.y.old. A`);
    await ask(String.raw`a\.b.example. A`);
    await ask('a.b.example. A');
    assert.deepEqual(seen, [String.raw`x\.y.new. A`, 'c.example. A', 'a.b.example. A']);
  });
});

describe('rewrite name … answer', () => {
  test('suffix with answer auto swaps the suffixes back in owners and values', async () => {
    const { ask } = await rig(
      'rewrite stop {\n name suffix .coredns.rocks .service.consul answer auto\n }',
      {
        'db.service.consul. SRV': [
          'db.service.consul. 30 IN SRV 0 1 80 a.service.consul.',
          '+a.service.consul. 30 IN A 192.0.2.7',
        ],
      },
    );
    const reply = await ask('db.coredns.rocks. SRV');
    assert.deepEqual(texts(reply.answer), ['db.coredns.rocks. 30 SRV 0 1 80 a.coredns.rocks.']);
    assert.deepEqual(texts(reply.additional), ['a.coredns.rocks. 30 A 192.0.2.7']);
  });

  test('answer name and answer value in a block map names by pattern', async () => {
    const { ask } = await rig(
      String.raw`rewrite stop {
        name regex (.*)-(us-west-1)\.coredns\.rocks {1}.service.{2}.consul
        answer name (.*)\.service\.(us-west-1)\.consul {1}-{2}.coredns.rocks
        answer value (.*)\.internal\. {1}.public.
      }`,
      {
        'ftp.service.us-west-1.consul. MX': [
          'ftp.service.us-west-1.consul. 9 IN MX 5 mail.internal.',
        ],
      },
    );
    const reply = await ask('FTP-us-west-1.coredns.rocks. MX');
    assert.deepEqual(texts(reply.answer), ['FTP-us-west-1.coredns.rocks. 9 MX 5 mail.public.']);
  });

  test('every type that refers to a name has its value rewritten, and others are copied', async () => {
    const { ask } = await rig('rewrite name suffix .in .out answer auto', {
      'x.out. ANY': [
        'x.out. 1 IN CNAME a.out.',
        'x.out. 1 IN DNAME a.out.',
        'x.out. 1 IN SOA a.out. b.out. 1 2 3 4 5',
        'x.out. 1 IN SRV 1 2 3 a.out.',
        'x.out. 1 IN MX 1 a.out.',
        'x.out. 1 IN NAPTR 1 2 "s" "x" "" a.out.',
        'x.out. 1 IN NS a.out.',
        'x.out. 1 IN PTR a.out.',
        'x.out. 1 IN TXT "a.out."',
        'x.out. 1 IN HTTPS 1 a.out. alpn=h2',
      ],
    });
    const reply = await ask('x.in. ANY');
    assert.deepEqual(
      texts(reply.answer).map((line) => line.replace('x.in. 1 ', '')),
      [
        'CNAME a.in.',
        'DNAME a.in.',
        'SOA a.in. b.out. 1 2 3 4 5',
        'SRV 1 2 3 a.in.',
        'MX 1 a.in.',
        'NAPTR 1 2 "s" "x" "" a.in.',
        'NS a.in.',
        'PTR a.in.',
        'TXT "a.out."',
        'HTTPS 1 a.out. alpn="h2"',
      ],
    );
  });

  test('with continue the replies are mapped back in reverse order', async () => {
    const { ask, seen } = await rig(
      'rewrite continue name exact a.x b.x\nrewrite name suffix .x .y answer auto',
      { 'b.y. A': [a('b.y.')] },
    );
    const reply = await ask('a.x. A');
    assert.deepEqual(seen, ['b.y. A']);
    assert.deepEqual(texts(reply.answer), ['a.x. 60 A 192.0.2.1']);
  });

  test('stop ends the rules, and continue does not', async () => {
    const { ask, seen } = await rig('rewrite name exact a.x b.x\nrewrite name exact b.x c.x');
    await ask('a.x. A');
    await ask('b.x. A');
    assert.deepEqual(seen, ['b.x. A', 'c.x. A']);
  });

  test('the question is restored after continue even without answer rules', async () => {
    const { ask, seen } = await rig('rewrite continue name regex ^a(.*)[.]$ b{1}', {
      'bc.x. A': [a('bc.x.')],
    });
    const reply = await ask('ac.x. A');
    assert.deepEqual(seen, ['bc.x. A']);
    assert.equal(reply.question[0]!.name, 'ac.x.');
    assert.deepEqual(texts(reply.answer), ['bc.x. 60 A 192.0.2.1']);
  });

  test('a delayed reply is mapped back in the same way', async () => {
    const { ask } = await rig(
      'rewrite name red.example blue.example',
      { 'blue.example. A': [a('blue.example.')] },
      true,
    );
    const reply = await ask('RED.example. A');
    assert.deepEqual(texts(reply.answer), ['RED.example. 60 A 192.0.2.1']);
  });

  test('a name that becomes too long in the reply gets SERVFAIL with a cause', async () => {
    const long = `${'x'.repeat(60)}.${'y'.repeat(60)}.${'z'.repeat(60)}`;
    const { ask, world } = await rig(`rewrite name suffix .${long}. .t. answer auto`, {
      'n.t. A': [`n.t. 1 IN CNAME ${'w'.repeat(60)}.${'v'.repeat(60)}.t.`],
    });
    assert.equal((await ask(`n.${long}. A`)).rcode, RCODE.SERVFAIL);
    assert.ok(world.log.some((line) => line.includes('the reply could not be rewritten')));
  });
});

describe('rewrite type and class', () => {
  test('another type is queried, and the reply has the original type', async () => {
    const { ask, seen } = await rig('rewrite type ANY HINFO', {
      'a.x. HINFO': ['a.x. 5 IN HINFO "a" "b"'],
    });
    const reply = await ask('A.x. ANY');
    assert.deepEqual(seen, ['A.x. HINFO']);
    assert.equal(reply.question[0]!.type, 255);
    assert.deepEqual(texts(reply.answer), ['A.x. 5 HINFO "a" "b"']);
  });

  test('another class is queried', async () => {
    const { ask, seen } = await rig('rewrite class IN CH');
    const reply = await ask('a.x. A');
    assert.deepEqual(seen, ['a.x. CLASS3 A']);
    assert.equal(reply.question[0]!.class, 1);
  });
});

describe('rewrite ttl', () => {
  const cases: readonly (readonly [string, number])[] = [
    ['a.x 15', 15],
    ['a.x 30-300', 60],
    ['a.x 100-300', 100],
    ['a.x -30', 30],
    ['a.x 90-', 90],
    ['suffix .x 7', 7],
    ['prefix a. 7', 7],
    ['substring .x 7', 7],
    ['regex ^a 7', 7],
    ['exact b.x 7', 60],
  ];
  for (const [rule, ttl] of cases) {
    test(`ttl ${rule} changes 60 seconds to ${ttl}`, async () => {
      const { ask } = await rig(`rewrite ttl ${rule}`, {
        'a.x. A': [a('a.x.'), '+b.x. 60 IN A 192.0.2.9'],
      });
      const reply = await ask('a.x. A');
      assert.deepEqual(
        [...reply.answer, ...reply.additional].map((record) => record.ttl),
        [ttl, ttl],
      );
    });
  }

  test('the original reply is unchanged', async () => {
    const { ask } = await rig('rewrite continue ttl a.x 15\nrewrite name a.x b.x', {
      'b.x. A': [a('b.x.')],
    });
    assert.deepEqual(texts((await ask('a.x. A')).answer), ['a.x. 15 A 192.0.2.1']);
  });
});

describe('rewrite rcode', () => {
  test('a failure without a message becomes an empty reply', async () => {
    const { ask } = await rig(
      String.raw`rewrite continue {` +
        '\n' +
        String.raw`rcode regex (.*)\.coredns\.rocks SERVFAIL NOERROR` +
        '\n}',
      {
        'a.coredns.rocks. AAAA': ['!2'],
        'b.other. AAAA': ['!2'],
      },
    );
    const reply = await ask('a.coredns.rocks. AAAA');
    assert.equal(reply.rcode, RCODE.NOERROR);
    assert.equal(reply.answer.length, 0);
    assert.equal((await ask('b.other. AAAA')).rcode, RCODE.SERVFAIL);
  });

  test('codes can be numbers, and other codes are unchanged', async () => {
    const { ask } = await rig('rewrite rcode exact a.x 3 5', { 'a.x. A': [a('a.x.')] });
    assert.equal((await ask('a.x. TXT')).rcode, RCODE.REFUSED);
    assert.equal((await ask('a.x. A')).rcode, RCODE.NOERROR);
  });
});

describe('rewrite cname', () => {
  const chain = {
    'my-app.com. A': [
      'my-app.com. 200 IN CNAME my-app.example.',
      'my-app.example. 200 IN CNAME my-app.com.cdn.example.net.',
      'my-app.com.cdn.example.net. 300 IN A 20.2.0.1',
      'my-app.com.cdn.example.net. 300 IN A 20.2.0.2',
    ],
    'my-app.com.other.cdn.com. A': ['my-app.com.other.cdn.com. 100 IN A 30.3.1.2'],
  };
  const wanted = [
    'my-app.com. 200 CNAME my-app.example.',
    'my-app.example. 200 CNAME my-app.com.other.cdn.com.',
    'my-app.com.other.cdn.com. 100 A 30.3.1.2',
  ];

  for (const later of [false, true]) {
    test(`the new target is looked up and replaces what followed${later ? ', also when answers take time' : ''}`, async () => {
      const { ask, seen } = await rig(
        'rewrite cname regex (.*).cdn.example.net. {1}.other.cdn.com.',
        chain,
        later,
      );
      const reply = await ask('my-app.com. A');
      assert.deepEqual(texts(reply.answer), wanted);
      assert.deepEqual(seen, ['my-app.com. A', 'my-app.com.other.cdn.com. A']);
    });
  }

  test('all match kinds find the target', async () => {
    for (const rule of [
      'my-app.com.cdn.example.net my-app.com.other.cdn.com',
      'suffix .cdn.example.net. .other.cdn.com.',
      'substring cdn.example.net other.cdn.com',
    ]) {
      const { ask } = await rig(`rewrite cname ${rule}`, chain);
      assert.deepEqual(texts((await ask('my-app.com. A')).answer), wanted, rule);
    }
  });

  for (const later of [false, true])
    test(`a target that leads back to itself is SERVFAIL with an extended error and a line in the log${later ? ', also when answers take time' : ''}`, async () => {
      const { ask, seen, world } = await rig(
        'rewrite cname exact b.x a.x',
        { 'a.x. A': ['a.x. 1 IN CNAME b.x.'] },
        later,
      );
      const reply = await ask('a.x. A', { edns: true });
      assert.deepEqual([reply.rcode, reply.answer.length], [RCODE.SERVFAIL, 0]);
      assert.match(printMessage(reply), /EDE: 0 .*aliases continue more than 20 times/);
      assert.ok(seen.length <= 21);
      const lines = world.log.filter((line) => line.includes('aliases continue'));
      assert.equal(lines.length, 1, lines.join('\n'));
      assert.match(lines[0]!, /the CNAME to a\.x\. created by a rule/);
    });
});

describe('rewrite edns0', () => {
  const echoed = async (
    rules: string,
    options: AskOptions = { edns: true },
  ): Promise<[string[], string[] | null]> => {
    const { ask, seen } = await rig(rules);
    const { edns } = await ask('a.x. A', options);
    return [
      seen,
      edns?.options.map(({ code, data }) => `${code}=${Buffer.from(data).toString('hex')}`) ?? null,
    ];
  };

  test('a local option is sent upstream and, because it is configured, returned', async () => {
    assert.deepEqual(await echoed('rewrite edns0 local set 0xffee abcd'), [
      ['a.x. A 65518=61626364'],
      ['65518=61626364'],
    ]);
    assert.deepEqual(await echoed('rewrite edns0 local set 65518 0x6162'), [
      ['a.x. A 65518=6162'],
      ['65518=6162'],
    ]);
  });

  test('a rewritten query waits no longer than an unchanged one', async () => {
    const clock = new VirtualClock();
    const network = scriptedNetwork(clock, () => ({ answer: ['@ 60 A 192.0.2.1'] }));
    const world = await makeWorld(
      '. {\n rewrite edns0 local set 0xffee abcd\n forward . 192.0.2.53\n}',
      { clock, network },
    );
    assert.equal((await world.ask('a.x. A', { mayWait: false })).rcode, RCODE.REFUSED);
    assert.equal(network.asked.length, 0);
  });

  test('with revert it is not returned', async () => {
    assert.deepEqual(await echoed('rewrite edns0 local set 0xffee abcd revert'), [
      ['a.x. A 65518=61626364'],
      [],
    ]);
    assert.deepEqual(
      await echoed(
        'rewrite continue edns0 local set 0xffee abcd\nrewrite edns0 local replace 0xffee bcde revert',
      ),
      [['a.x. A 65518=62636465'], ['65518=61626364']],
    );
  });

  test('append adds only missing options, and replace changes only existing ones', async () => {
    assert.deepEqual((await echoed('rewrite edns0 local replace 1000 a'))[0], ['a.x. A']);
    assert.deepEqual(
      (
        await echoed(
          'rewrite continue edns0 local append 1000 a\nrewrite continue edns0 local append 1000 b',
        )
      )[0],
      ['a.x. A 1000=61'],
    );
    assert.deepEqual(
      (await echoed('rewrite continue edns0 local set 1000 a\nrewrite edns0 local unset 1000'))[0],
      ['a.x. A'],
    );
  });

  test('a rule without effect does not stop', async () => {
    assert.deepEqual(
      (await echoed('rewrite edns0 local replace 1000 a\nrewrite name a.x b.x'))[0],
      ['b.x. A'],
    );
  });

  test('append stops, whether or not it adds anything', async () => {
    const [seen] = await echoed(
      'rewrite continue edns0 local set 1000 a\nrewrite edns0 local append 1000 b\nrewrite name a.x b.x',
    );
    assert.deepEqual(seen, ['a.x. A 1000=61']);
  });

  test('variables have the values of the query and its client', async () => {
    const rules = [
      'qname',
      'qtype',
      'client_ip',
      'client_port',
      'protocol',
      'server_ip',
      'server_port',
    ].map((name, index) => `rewrite continue edns0 local set ${index + 1000} {${name}}`);
    const [[seen]] = await echoed(rules.join('\n'), { edns: true, client: '2001:db8::1' });
    assert.equal(
      seen,
      'a.x. A 1000=612e782e 1001=0001 1002=20010db8000000000000000000000001 1003=9c40 1004=756470 1005=0a60000a 1006=0035',
    );
  });

  test('missing metadata adds nothing', async () => {
    assert.deepEqual(
      (await echoed('rewrite edns0 local set 1000 {kubernetes/client-namespace}'))[0],
      ['a.x. A'],
    );
  });

  test("a client subnet has the configured number of bits of the client's address", async () => {
    assert.deepEqual((await echoed('rewrite edns0 subnet set 24 56'))[0], [
      'a.x. A 8=000118000af400',
    ]);
    assert.deepEqual(
      (await echoed('rewrite edns0 subnet set 24 56', { client: '2001:db8:1:2::3' }))[0],
      ['a.x. A 8=0002380020010db8000100'],
    );
  });

  test('a client without EDNS gets none, although the rewritten query has it', async () => {
    assert.deepEqual(await echoed('rewrite edns0 nsid set', {}), [['a.x. A 3='], null]);
  });
});

describe('what rewrite rejects', () => {
  const long = 'a'.repeat(10_001);
  const cases: readonly (readonly [string, string])[] = [
    ['rewrite', 'no rule type specified for rewrite'],
    ['rewrite continue', 'continue rule must begin with a rule type'],
    ['rewrite frobnicate a b', 'invalid rule type "frobnicate"'],
    ['rewrite answer name a b', 'response rewrites must begin with a name rule'],
    ['rewrite name a', 'too few arguments for a name rule'],
    [
      'rewrite name fuzzy a b',
      'name rule supports only exact, prefix, suffix, substring, and regex name matching, received: fuzzy',
    ],
    ['rewrite name a {1}.b', 'invalid regex matching pattern: {1}.b.'],
    ['rewrite name regex ( b', 'invalid regex matching pattern: ('],
    ['rewrite ttl regex ( 5', 'invalid regex pattern in a ttl rule: ('],
    ['rewrite rcode regex ( NXDOMAIN NOERROR', 'invalid regex pattern in a rcode rule: ('],
    [
      'rewrite cname regex ( b.',
      'invalid cname rewrite regex pattern: error parsing regexp: missing closing ): `(`',
    ],
    [`rewrite name regex ${long} b`, 'regex pattern too long: 10001 > 10000'],
    [`rewrite ttl regex ${long} 5`, 'regex pattern too long in a ttl rule: 10001 > 10000'],
    [
      `rewrite rcode regex ${long} NXDOMAIN NOERROR`,
      'regex pattern too long in a rcode rule: 10001 > 10000',
    ],
    [`rewrite cname regex ${long} b.`, 'regex pattern too long in a cname rule: 10001 > 10000'],
    [
      'rewrite name regex (a) {1}{2}',
      'the rewrite regex pattern ({1}{2}) uses more subexpressions than its corresponding matching regex pattern ((a))',
    ],
    ['rewrite name exact a b c', 'invalid arguments for exact rule'],
    ['rewrite name exact a b answer', 'invalid arguments for exact rule'],
    [
      'rewrite name exact a b answer name x',
      'name answer rule for exact rule: 2 arguments required',
    ],
    [
      'rewrite name suffix a b answer auto name x y',
      'auto name answer rule cannot be combined with explicit name anwer rules',
    ],
    ['rewrite type A', 'type rules must have exactly two arguments'],
    ['rewrite type A FOO', 'invalid type "FOO"'],
    ['rewrite class IN XX', 'invalid class "XX"'],
    ['rewrite ttl a', 'too few (1) arguments for a ttl rule'],
    ['rewrite ttl a -', "invalid TTL '-' for a ttl rule"],
    ['rewrite ttl a 9-3', "invalid TTL '9-3' for a ttl rule"],
    ['rewrite ttl a 12345678901234567890', "invalid TTL '12345678901234567890' for a ttl rule"],
    ['rewrite rcode a SERVFAIL OOPS', "invalid replacement RCODE 'OOPS' for a rcode rule"],
    ['rewrite cname fuzzy a b', 'unknown cname rewrite type: fuzzy'],
    ['rewrite edns0 local frob 1 2', 'invalid action: "frob"'],
    ['rewrite edns0 local set 70000 x', 'strconv.ParseUint: parsing "70000": value out of range'],
    ['rewrite edns0 local set 1 {nope}', 'unsupported variable name "{nope}"'],
    ['rewrite edns0 subnet set 33 0', 'invalid IPv4 bit mask length 33'],
  ];
  for (const [rules, text] of cases) {
    test(`${rules}: ${text}`, async () => {
      assert.deepEqual(await problems(rules), [`plugin/rewrite: ${text}`]);
    });
  }

  test('a rule split between the line and braces', async () => {
    assert.match(
      (await problems('rewrite name a b {\n answer auto\n }'))[0]!,
      /either on the line or inside the braces/,
    );
  });
});
