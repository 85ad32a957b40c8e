import assert from 'node:assert/strict';
import { afterEach, describe, test } from 'node:test';
import { VirtualClock } from '../../base/virtual-clock.ts';
import { parseAddress } from '../../base/ip.ts';
import { FLAG, RCODE, TYPE, typeName } from '../../wire/iana.ts';
import { printRecord } from '../../wire/print.ts';
import { scriptedNetwork, type Answer, type Asked } from '../../../../test/kit/upstream.ts';
import { makeWorld, type AskOptions, type World } from '../../../../test/kit/world.ts';
import { parseNet, printAddress } from '../../base/ip.ts';
import { Prefix } from './prefix.ts';

let world: World | null = null;
afterEach(async () => {
  await world?.close();
  world = null;
});

const v6: AskOptions = { client: '2001:db8::9' };
const soa = (ttl: number): string => `@ ${ttl} SOA foo. bar. 1 1 1 1 1`;

async function upstreams(
  lines: string,
  script: Readonly<Record<string, Answer>>,
): Promise<World & { asked: () => string[] }> {
  const clock = new VirtualClock();
  const network = scriptedNetwork(
    clock,
    ({ name, type }: Asked) =>
      script[`${name} ${typeName(type)}`] ?? script[typeName(type)] ?? { rcode: 'REFUSED' },
  );
  world = await makeWorld(`.:53 {\n ${lines}\n prometheus 127.0.0.1:0\n forward . 192.0.2.53\n}`, {
    clock,
    network,
  });
  return Object.assign(world, {
    asked: () => network.asked.map(({ name, type }) => `${name} ${typeName(type)}`),
  });
}

/** Returns the records in the answer as `NAME TTL TYPE DATA`. */
async function answers(question: string, options: AskOptions = v6): Promise<string[]> {
  const { answer } = await world!.ask(question, options);
  return answer.map((record) => printRecord(record).replaceAll(/\s+/g, ' ').replace(' IN ', ' '));
}

const twoAddresses: Answer = {
  answer: ['@ 60 A 192.0.2.42', '@ 5000 A 192.0.2.43'],
};

describe("dns64: CoreDNS's cases", () => {
  test("no AAAA and two A records: each is embedded in the prefix, for no longer than the denial's SOA", async () => {
    await upstreams('dns64', { AAAA: { authority: [soa(70)] }, A: twoAddresses });
    const reply = await world!.ask('example.com. AAAA', v6);
    assert.equal(reply.rcode, RCODE.NOERROR);
    assert.equal(reply.question[0]!.type, TYPE.AAAA);
    assert.deepEqual(await answers('example.com. AAAA'), [
      'example.com. 60 AAAA 64:ff9b::c000:22a',
      'example.com. 70 AAAA 64:ff9b::c000:22b',
    ]);
    assert.match(world!.metrics(), /dns64_requests_translated_total\{server="dns:\/\/:53"\} 2\n/);
  });

  test('neither A nor AAAA: the denial and its SOA are unchanged', async () => {
    await upstreams('dns64', { AAAA: { authority: [soa(70)] }, A: { authority: [soa(80)] } });
    const reply = await world!.ask('example.com. AAAA', v6);
    assert.deepEqual([reply.rcode, reply.answer.length, reply.authority.length], [0, 0, 1]);
    assert.equal(reply.authority[0]!.ttl, 70);
  });

  test('AAAA fails with a code other than NXDOMAIN: A decides, with a TTL of at most 600 s', async () => {
    await upstreams('dns64', { AAAA: { rcode: 'REFUSED' }, A: twoAddresses });
    assert.deepEqual(await answers('example.com. AAAA'), [
      'example.com. 60 AAAA 64:ff9b::c000:22a',
      'example.com. 600 AAAA 64:ff9b::c000:22b',
    ]);
  });

  test('NXDOMAIN: A is not queried', async () => {
    const { asked } = await upstreams('dns64', {
      AAAA: { rcode: 'NXDOMAIN', authority: [soa(70)] },
      A: twoAddresses,
    });
    assert.equal((await world!.ask('example.com. AAAA', v6)).rcode, RCODE.NXDOMAIN);
    assert.deepEqual(asked(), ['example.com. AAAA']);
  });

  test('existing AAAA records are unchanged', async () => {
    const { asked } = await upstreams('dns64', {
      AAAA: { answer: ['@ 60 AAAA 2001:db8::1', '@ 5000 AAAA 2001:db8::2'] },
      A: twoAddresses,
    });
    assert.deepEqual(await answers('example.com. AAAA'), [
      'example.com. 60 AAAA 2001:db8::1',
      'example.com. 5000 AAAA 2001:db8::2',
    ]);
    assert.deepEqual(asked(), ['example.com. AAAA']);
  });

  test('IPv4 clients get no synthesized records without allow_ipv4', async () => {
    for (const [lines, expected] of [
      ['dns64', 0],
      ['dns64 {\n allow_ipv4\n }', 2],
    ] as const) {
      await upstreams(lines, { AAAA: { authority: [soa(70)] }, A: twoAddresses });
      assert.equal((await world!.ask('example.com. AAAA')).answer.length, expected);
      await world!.close();
    }
    world = null;
  });

  test('other types and classes are unchanged', async () => {
    await upstreams('dns64', { AAAA: { authority: [soa(70)] }, A: twoAddresses });
    assert.deepEqual(await answers('example.com. A'), [
      'example.com. 60 A 192.0.2.42',
      'example.com. 5000 A 192.0.2.43',
    ]);
    assert.equal((await world!.ask('example.com. AAAA', { ...v6, qclass: 3 })).answer.length, 0);
  });

  test('translate_all: the IPv4 addresses replace the IPv6 ones', async () => {
    await upstreams('dns64 {\n translate_all\n }', {
      AAAA: { answer: ['@ 60 AAAA 2001:db8::1'] },
      A: { answer: ['@ 60 A 192.0.2.42'] },
    });
    assert.deepEqual(await answers('example.com. AAAA'), [
      'example.com. 60 AAAA 64:ff9b::c000:22a',
    ]);
  });
});

describe('dns64: RFC 6147', () => {
  test('a CNAME chain is retained, and its end is translated', async () => {
    await upstreams('dns64 64:1337::/96', {
      AAAA: { answer: ['@ 30 CNAME a.example.net.', 'a.example.net. 40 CNAME b.example.net.'] },
      A: {
        answer: [
          '@ 30 CNAME a.example.net.',
          'a.example.net. 40 CNAME b.example.net.',
          'b.example.net. 50 A 192.0.2.1',
        ],
        authority: ['example.net. 70 NS ns.example.net.'],
        additional: ['ns.example.net. 80 A 192.0.2.2'],
      },
    });
    const reply = await world!.ask('wWw.example.com. AAAA', v6);
    assert.deepEqual(await answers('www.example.com. AAAA'), [
      'www.example.com. 30 CNAME a.example.net.',
      'a.example.net. 40 CNAME b.example.net.',
      'b.example.net. 50 AAAA 64:1337::c000:201',
    ]);
    // The additional section is passed on unchanged (section 5.3.2).
    assert.equal(reply.additional[0]!.type, TYPE.A);
    assert.equal(reply.authority.length, 1);
    assert.equal(reply.answer[0]!.name, 'wWw.example.com.');
  });

  test('translate_all keeps the addresses of an IPv6-only name', async () => {
    await upstreams('dns64 {\n translate_all\n }', {
      AAAA: { answer: ['@ 60 AAAA 2001:db8::1'] },
      A: { authority: [soa(70)] },
    });
    assert.deepEqual(await answers('example.com. AAAA'), ['example.com. 60 AAAA 2001:db8::1']);
  });

  test('if the A query fails, so does the AAAA query, rather than returning no data', async () => {
    await upstreams('dns64', { AAAA: { authority: [soa(70)] }, A: { rcode: 'SERVFAIL' } });
    const reply = await world!.ask('example.com. AAAA', v6);
    assert.equal(reply.rcode, RCODE.SERVFAIL);
    assert.equal(reply.question[0]!.type, TYPE.AAAA);
  });

  test('if both queries fail, the first failure is returned', async () => {
    await upstreams('dns64', { AAAA: { rcode: 'REFUSED' }, A: { rcode: 'SERVFAIL' } });
    assert.equal((await world!.ask('example.com. AAAA', v6)).rcode, RCODE.REFUSED);
  });

  test('AAAA fails and there is no A: no data, as in the reply for A', async () => {
    await upstreams('dns64', { AAAA: { rcode: 'NOTIMP' }, A: { authority: [soa(80)] } });
    const reply = await world!.ask('example.com. AAAA', v6);
    assert.deepEqual([reply.rcode, reply.answer.length, reply.authority.length], [0, 0, 1]);
    assert.equal(reply.question[0]!.type, TYPE.AAAA);
  });

  test('IPv4-mapped AAAA records are ignored (section 5.1.4)', async () => {
    await upstreams('dns64', { AAAA: { answer: ['@ 60 AAAA ::ffff:192.0.2.9'] }, A: twoAddresses });
    assert.deepEqual(await answers('example.com. AAAA'), [
      'example.com. 60 AAAA 64:ff9b::c000:22a',
      'example.com. 600 AAAA 64:ff9b::c000:22b',
    ]);
  });

  test('excluded AAAA records are omitted if there are others', async () => {
    await upstreams('dns64 {\n exclude 2001:db8:bad::/48\n }', {
      AAAA: { answer: ['@ 60 AAAA 2001:db8:bad::1', '@ 61 AAAA 2001:db8::1'] },
      A: twoAddresses,
    });
    assert.deepEqual(await answers('example.com. AAAA'), ['example.com. 61 AAAA 2001:db8::1']);
  });

  test('IPv4 networks can be excluded from translation', async () => {
    await upstreams('dns64 {\n exclude 10.0.0.0/8 192.0.2.43\n }', {
      AAAA: { authority: [soa(70)] },
      'private.test. A': { answer: ['@ 60 A 10.0.0.1'] },
      A: twoAddresses,
    });
    assert.deepEqual(await answers('example.com. AAAA'), [
      'example.com. 60 AAAA 64:ff9b::c000:22a',
    ]);
    assert.deepEqual(await answers('private.test. AAAA'), []);
  });

  test('a validating client (DO and CD) gets no unsigned synthesized records', async () => {
    const { asked } = await upstreams('dns64', {
      AAAA: { authority: [soa(70)] },
      A: twoAddresses,
    });
    const options = { ...v6, dnssecOk: true, flags: FLAG.RD | FLAG.CD };
    assert.deepEqual(await answers('example.com. AAAA', options), []);
    assert.deepEqual(asked(), ['example.com. AAAA']);
  });

  test('with only DO: translated, without AD and without signatures over A', async () => {
    const signature = (type: string): string =>
      `@ 60 RRSIG ${type} 13 2 60 20380101000000 20200101000000 1 example.com. AAAA`;
    await upstreams('dns64', {
      AAAA: { authority: [soa(70)], flags: FLAG.AD },
      A: { ...twoAddresses, answer: [...twoAddresses.answer!, signature('A')], flags: FLAG.AD },
    });
    const reply = await world!.ask('example.com. AAAA', { ...v6, dnssecOk: true });
    assert.deepEqual(
      reply.answer.map(({ type }) => typeName(type)),
      ['AAAA', 'AAAA'],
    );
    assert.equal(reply.flags & FLAG.AD, 0);
    assert.notEqual(reply.flags & FLAG.RA, 0);
  });

  const pointer = (address: string): string =>
    `${Buffer.from(parseAddress(address)!).toString('hex').split('').toReversed().join('.')}.ip6.arpa.`;

  test('an address in the prefix has the names of its IPv4 address (section 5.3.1)', async () => {
    const { asked } = await upstreams('dns64', {
      '42.2.0.192.in-addr.arpa. PTR': { answer: ['@ 300 PTR www.example.com.'] },
      PTR: { rcode: 'NXDOMAIN', authority: [soa(70)] },
    });
    const name = pointer('64:ff9b::c000:22a');
    assert.deepEqual(await answers(`${name} PTR`), [
      `${name} 600 CNAME 42.2.0.192.in-addr.arpa.`,
      '42.2.0.192.in-addr.arpa. 300 PTR www.example.com.',
    ]);
    assert.deepEqual(asked(), ['42.2.0.192.in-addr.arpa. PTR']);
    const other = pointer('2001:db8::c000:22a');
    assert.equal((await world!.ask(`${other} PTR`, v6)).rcode, RCODE.NXDOMAIN);
    assert.equal(asked().at(-1), `${other} PTR`);
  });

  test('a zone in the prefix, and names that only resemble addresses, go to the next plugin', async () => {
    const { asked } = await upstreams('dns64', {
      PTR: { rcode: 'NXDOMAIN', authority: [soa(70)] },
    });
    const whole = pointer('64:ff9b::c000:22a');
    for (const name of [whole.slice(2), `a.${whole}`, whole.replace(/^./, 'g')]) {
      await world!.ask(`${name} PTR`, v6);
      assert.equal(asked().at(-1), `${name} PTR`);
    }
  });
});

describe('addresses in a prefix (RFC 6052)', () => {
  const cases: readonly (readonly [string, string, string])[] = [
    // CoreDNS's cases.
    ['64:ff9b::/96', '64.64.64.64', '64:ff9b::4040:4040'],
    ['64:ff9b::/64', '64.64.64.64', '64:ff9b::40:4040:4000:0'],
    ['64:ff9b::/56', '64.64.64.64', '64:ff9b:0:40:40:4040::'],
    ['64::/32', '64.64.64.64', '64:0:4040:4040::'],
    // The examples in RFC 6052 section 2.4.
    ['2001:db8::/32', '192.0.2.33', '2001:db8:c000:221::'],
    ['2001:db8:100::/40', '192.0.2.33', '2001:db8:1c0:2:21::'],
    ['2001:db8:122::/48', '192.0.2.33', '2001:db8:122:c000:2:2100::'],
    ['2001:db8:122:300::/56', '192.0.2.33', '2001:db8:122:3c0:0:221::'],
    ['2001:db8:122:344::/64', '192.0.2.33', '2001:db8:122:344:c0:2:2100:0'],
    ['2001:db8:122:344::/96', '192.0.2.33', '2001:db8:122:344::c000:221'],
  ];
  for (const [net, from, to] of cases) {
    test(`${from} in ${net} is ${to}`, () => {
      const out = new Uint8Array(16).fill(0xff);
      new Prefix(parseNet(net)!).write(parseAddress(from)!, 0, out, 0);
      assert.equal(printAddress(out), to);
    });
  }
});

describe('dns64: the directive', () => {
  const problem = async (lines: string): Promise<string> => {
    try {
      const made = await makeWorld(`.:53 {\n ${lines}\n whoami\n}`);
      await made.close();
      return '';
    } catch (error) {
      return (error as Error).message;
    }
  };

  for (const lines of [
    'dns64',
    'dns64 64:dead::/96',
    'dns64 {\n translate_all\n }',
    'dns64 {\n prefix 64:ff9b::/32\n }',
    'dns64 {\n prefix 2002:ac12:b083::/96\n }',
    'dns64 {\n prefix 2002:c0a8:a88a::/48\n allow_ipv4\n }',
    'dns64 {\n prefix 64:ff9b::/72\n }',
  ]) {
    test(`accepted: ${lines.replaceAll('\n', '')}`, async () => {
      assert.equal(await problem(lines), '');
    });
  }

  for (const [lines, message] of [
    ['dns64 {\n prefix 64:ff9b::/52\n }', /invalid prefix length "64:ff9b::\/52"/],
    ['dns64 {\n prefix 64:ff9b::/104\n }', /invalid prefix length/],
    ['dns64 {\n prefix 8.8.8.8/24\n }', /invalid netmask 32 IPv6 address/],
    ['dns64 foobar {\n prefix 64:ff9b::/96\n }', /invalid CIDR address: foobar/],
    ['dns64 64:ff9b::/96 64:ff9b::/96', /Wrong argument count/],
    ['dns64 {\n foobar\n }', /unknown property 'foobar'/],
  ] as const) {
    test(`rejected: ${lines.replaceAll('\n', '')}`, async () => {
      assert.match(await problem(lines), message);
    });
  }
});
