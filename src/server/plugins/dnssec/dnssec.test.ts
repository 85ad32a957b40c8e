import assert from 'node:assert/strict';
import { createPublicKey, verify } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test, type TestContext } from 'node:test';
import { every } from '../../base/clock.ts';
import { VirtualClock } from '../../base/virtual-clock.ts';
import { problemsIn } from '../../base/problem.ts';
import { makeWorld, type AskOptions, type World } from '../../../../test/kit/world.ts';
import { scriptedNetwork } from '../../../../test/kit/upstream.ts';
import { writeZoneKey, zoneKey, type ZoneKey } from '../../../../test/kit/zone-keys.ts';
import { OPTION, RCODE, TYPE, typeName } from '../../wire/iana.ts';
import { dataOf, type DnsRecord, type Message } from '../../wire/message.ts';
import { printRecord } from '../../wire/print.ts';
import { nsec, rrsig } from '../../wire/record/table.ts';

const zone = `$TTL 300
@ SOA ns hostmaster 1 7200 3600 1209600 60
@ NS ns
@ MX 10 mail.cut
@ MX 20 www
ns A 192.0.2.1
www A 192.0.2.3
www A 192.0.2.2
alias CNAME www
lost CNAME nothing
out CNAME www.example.net.
*.wild A 192.0.2.9
deep.below.empty A 192.0.2.4
cut NS ns.cut
ns.cut A 192.0.2.5
mail.cut A 192.0.2.6
safe NS ns.cut
safe DS 1 13 2 ${'ab'.repeat(32)}
`;

interface Made {
  readonly keys?: readonly ZoneKey[];
  readonly lines?: string;
  readonly more?: string;
  readonly blocks?: string;
  readonly text?: string;
}

/** A signed zone. Its clock keeps running while signatures are made in other threads. */
async function signed(t: TestContext, made: Made = {}): Promise<World> {
  const directory = mkdtempSync(join(tmpdir(), 'ndots-dnssec-'));
  t.after(() => rmSync(directory, { recursive: true }));
  writeFileSync(join(directory, 'db'), made.text ?? zone);
  const keys = made.keys ?? [zoneKey('example.org.')];
  const files = keys.map((key) => writeZoneKey(directory, key));
  const clock = new VirtualClock();
  const corefile = `example.org:53 {
    file db
    dnssec {
      ${files.length === 0 ? '' : `key file ${files.join(' ')}`}
      ${made.lines ?? ''}
    }
    prometheus 127.0.0.1:0
    ${made.more ?? ''}
  }\n${made.blocks ?? ''}`;
  const network = scriptedNetwork(clock, () => ({ answer: ['@ 60 A 192.0.2.77'] }));
  const world = await makeWorld(corefile, { directory, clock, network });
  t.after(() => world.close());
  return {
    ...world,
    ask: async (question, options) => {
      const ticks = every(clock, 1, () => undefined);
      try {
        return await world.ask(question, options);
      } finally {
        ticks.cancel();
      }
    },
  };
}

const wants: AskOptions = { dnssecOk: true, udpSize: 4096 };

function lines(records: readonly DnsRecord[]): string[] {
  return records.map((record) => {
    const covers = dataOf(record, rrsig);
    const text = printRecord(record).replaceAll(/\s+/g, ' ').replace(' IN ', ' ');
    return covers === null
      ? text
      : `${record.name} ${record.ttl} RRSIG ${typeName(covers.typeCovered)}`;
  });
}

function denials(message: Message): { owner: string; next: string; types: string[] }[] {
  return [...message.answer, ...message.authority].flatMap((record) => {
    const data = dataOf(record, nsec);
    return data === null
      ? []
      : [{ owner: record.name, next: data.next, types: data.types.map(typeName) }];
  });
}

function metric(world: World, name: string): number {
  return Number(new RegExp(`^${name}(?:\\{[^}]*\\})? (\\S+)$`, 'm').exec(world.metrics())?.[1]);
}

describe('dnssec: answers', () => {
  test('a client that sets DO gets signatures in the section of each RRset', async (t) => {
    const world = await signed(t);
    const { answer, authority, rcode } = await world.ask('www.example.org. A', wants);
    assert.equal(rcode, RCODE.NOERROR);
    assert.deepEqual(lines(answer), [
      'www.example.org. 300 A 192.0.2.3',
      'www.example.org. 300 A 192.0.2.2',
      'www.example.org. 300 RRSIG A',
    ]);
    assert.deepEqual(lines(authority), [
      'example.org. 300 NS ns.example.org.',
      'example.org. 300 RRSIG NS',
    ]);
  });

  test('a client that does not set DO gets none, regardless of AD and CD', async (t) => {
    const world = await signed(t);
    for (const flags of [0x0100, 0x0130, 0x0110, 0x0120]) {
      const reply = await world.ask('www.example.org. A', { flags });
      assert.equal(reply.answer.length, 2);
      assert.equal((await world.ask('none.example.org. A', { flags })).rcode, RCODE.NXDOMAIN);
      const secure = await world.ask('www.example.org. A', { ...wants, flags });
      // Only validating resolvers set AD.
      assert.equal(secure.flags & 0x20, 0);
      assert.equal(secure.flags & 0x10, flags & 0x10);
      assert.equal(secure.answer.length, 3);
    }
  });

  for (const algorithm of [8, 10, 13, 14, 15])
    test(`a signature with algorithm ${algorithm} is valid over its RRset, for 8 days from 3 hours ago`, async (t) => {
      const key = zoneKey('example.org.', algorithm);
      const world = await signed(t, { keys: [key] });
      const { answer } = await world.ask('wWw.eXample.org. A', wants);
      const data = dataOf(answer.at(-1)!, rrsig)!;
      const now = Math.floor(world.clock.wall() / 1000);
      assert.ok(Math.abs(data.inception - (now - 3 * 3600)) < 3);
      assert.equal(data.expiration - data.inception, 8 * 86_400 + 3 * 3600);
      assert.deepEqual(
        [data.algorithm, data.labels, data.originalTtl, data.keyTag, data.signer],
        [algorithm, 3, 3600, key.tag, 'example.org.'],
      );
      const signer = Buffer.from('\x07example\x03org\0', 'latin1');
      const head = Buffer.alloc(18);
      head.writeUInt16BE(1, 0);
      head.set([algorithm, 3], 2);
      head.writeUInt32BE(3600, 4);
      head.writeUInt32BE(data.expiration, 8);
      head.writeUInt32BE(data.inception, 12);
      head.writeUInt16BE(key.tag, 16);
      // Sorted by data, so that the order in the reply does not matter.
      const record = (last: number): Buffer =>
        Buffer.from(
          `\x03www\x07example\x03org\0\0\x01\0\x01\0\0\x0e\x10\0\x04\xc0\0\x02${String.fromCharCode(last)}`,
          'latin1',
        );
      const bytes = Buffer.concat([head, signer, record(2), record(3)]);
      const [, , , base64] = key.data.split(' ');
      const digest = { 8: 'sha256', 10: 'sha512', 13: 'sha256', 14: 'sha384' }[algorithm] ?? null;
      const raw = Buffer.from(base64!, 'base64');
      const half = raw.length / 2;
      const url = (part: Buffer): string => part.toString('base64url');
      const jwk =
        algorithm === 15
          ? { kty: 'OKP', crv: 'Ed25519', x: url(raw) }
          : algorithm < 13
            ? {
                kty: 'RSA',
                e: url(raw.subarray(1, 1 + raw[0]!)),
                n: url(raw.subarray(1 + raw[0]!)),
              }
            : {
                kty: 'EC',
                crv: algorithm === 13 ? 'P-256' : 'P-384',
                x: url(raw.subarray(0, half)),
                y: url(raw.subarray(half)),
              };
      const publicKey = createPublicKey({ key: jwk, format: 'jwk' });
      assert.ok(
        verify(digest, bytes, { key: publicKey, dsaEncoding: 'ieee-p1363' }, data.signature),
      );
    });

  test('each link in an alias chain is signed, except those outside the zone', async (t) => {
    const world = await signed(t, {
      blocks: 'example.net:53 {\n template IN A {\n answer "{{ .Name }} 60 IN A 192.0.2.8"\n }\n }',
    });
    assert.deepEqual(lines((await world.ask('alias.example.org. A', wants)).answer), [
      'alias.example.org. 300 CNAME www.example.org.',
      'www.example.org. 300 A 192.0.2.3',
      'www.example.org. 300 A 192.0.2.2',
      'alias.example.org. 300 RRSIG CNAME',
      'www.example.org. 300 RRSIG A',
    ]);
    assert.deepEqual(lines((await world.ask('out.example.org. A', wants)).answer), [
      'out.example.org. 300 CNAME www.example.net.',
      'www.example.net. 60 A 192.0.2.8',
      'out.example.org. 300 RRSIG CNAME',
    ]);
  });

  test('a wildcard answer is signed as if the name existed', async (t) => {
    const world = await signed(t);
    const { answer } = await world.ask('any.wild.example.org. A', wants);
    assert.equal(dataOf(answer[1]!, rrsig)!.labels, 4);
  });

  test('records that are already signed are unchanged', async (t) => {
    const times = '20380101000000 20200101000000 1 example.org. AAAA';
    const world = await signed(t, {
      text: `${zone}www RRSIG A 13 3 300 ${times}\n@ NSEC www A NSEC RRSIG\n@ RRSIG NSEC 13 2 300 ${times}\n`,
    });
    const { answer, authority } = await world.ask('www.example.org. A', wants);
    assert.deepEqual(
      answer.flatMap((record) => dataOf(record, rrsig)?.keyTag ?? []),
      [1],
    );
    assert.ok(authority.some((record) => (dataOf(record, rrsig)?.keyTag ?? 1) !== 1));
    // Plugins that prove their own denials are skipped.
    const denial = await world.ask('none.example.org. A', wants);
    assert.equal(denial.rcode, RCODE.NXDOMAIN);
    assert.ok(denials(denial).every(({ owner }) => owner === 'example.org.'));
  });

  test('the spelling of the question does not affect signatures', async (t) => {
    const world = await signed(t);
    const one = await world.ask('WWW.exaMPle.org. A', wants);
    const other = await world.ask('www.EXAMPLE.org. A', wants);
    assert.equal(one.answer[2]!.name, 'WWW.exaMPle.org.');
    assert.deepEqual(dataOf(one.answer[2]!, rrsig), dataOf(other.answer[2]!, rrsig));
    const [denial] = denials(await world.ask('nO.example.org. A', wants));
    assert.equal(denial!.next, '\\000.no.example.org.');
  });

  test('replies that exceed a datagram are truncated with TC', async (t) => {
    const world = await signed(t, { keys: [zoneKey('example.org.', 8)] });
    const reply = await world.ask('example.org. MX', { dnssecOk: true, udpSize: 512 });
    assert.notEqual(reply.flags & 0x0200, 0);
    const whole = await world.ask('example.org. MX', { ...wants, proto: 'tcp' });
    assert.equal(whole.flags & 0x0200, 0);
    assert.ok(whole.additional.some(({ type }) => type === TYPE.RRSIG));
  });
});

describe('dnssec: denials', () => {
  test('a missing name becomes NODATA with a proof generated for it', async (t) => {
    const world = await signed(t);
    const reply = await world.ask('none.example.org. A', wants);
    assert.equal(reply.rcode, RCODE.NOERROR);
    assert.deepEqual(
      lines(reply.authority).map((line) => line.split(' ').slice(0, 4).join(' ')),
      [
        'example.org. 60 SOA ns.example.org.',
        'none.example.org. 60 NSEC \\000.none.example.org.',
        'example.org. 60 RRSIG SOA',
        'none.example.org. 60 RRSIG NSEC',
      ],
    );
  });

  test('the proof lists every possible type except the queried one', async (t) => {
    const world = await signed(t);
    const [denial] = denials(await world.ask('www.example.org. TXT', wants));
    for (const type of ['A', 'AAAA', 'MX', 'PTR', 'SRV', 'CAA', 'HTTPS', 'RRSIG', 'NSEC'])
      assert.ok(denial!.types.includes(type), type);
    for (const type of ['TXT', 'NS', 'SOA', 'CNAME', 'DNAME', 'DS', 'DNSKEY'])
      assert.ok(!denial!.types.includes(type), type);
  });

  test('at the zone apex it lists NS, SOA and DNSKEY', async (t) => {
    const world = await signed(t);
    const [denial] = denials(await world.ask('example.org. TXT', wants));
    for (const type of ['NS', 'SOA', 'DNSKEY']) assert.ok(denial!.types.includes(type), type);
  });

  test('after an alias, the target is denied and not the alias', async (t) => {
    const world = await signed(t);
    const reply = await world.ask('lost.example.org. A', wants);
    assert.equal(reply.rcode, RCODE.NOERROR);
    assert.deepEqual(lines(reply.answer), [
      'lost.example.org. 300 CNAME nothing.example.org.',
      'lost.example.org. 300 RRSIG CNAME',
    ]);
    assert.equal(denials(reply)[0]!.owner, 'nothing.example.org.');
  });

  test('an empty non-terminal has no data', async (t) => {
    const world = await signed(t);
    const reply = await world.ask('empty.example.org. A', wants);
    assert.equal(denials(reply)[0]!.owner, 'empty.example.org.');
  });

  test('an NSEC query is answered with the record itself', async (t) => {
    const world = await signed(t);
    const reply = await world.ask('www.example.org. NSEC', wants);
    assert.equal(reply.authority.length, 0);
    assert.deepEqual(
      reply.answer.map(({ type }) => typeName(type)),
      ['NSEC', 'RRSIG'],
    );
    assert.ok(denials(reply)[0]!.types.includes('A'));
  });

  test('names of 255 bytes have a proof too', async (t) => {
    const world = await signed(t);
    const label = 'a'.repeat(59);
    const name = `${label}.${label}.${label}.${'b'.repeat(61)}.example.org.`;
    for (const first of ['', 'c']) {
      const reply = await world.ask(`${first}${name.slice(first.length)} A`, {
        ...wants,
        proto: 'tcp',
      });
      assert.equal(denials(reply).length, 1);
    }
  });
});

describe('dnssec: delegations', () => {
  test('name servers and their addresses are not signed, and the absence of DS records is proven at the cut', async (t) => {
    const world = await signed(t);
    const reply = await world.ask('x.cut.example.org. A', wants);
    assert.deepEqual(
      lines(reply.authority).map((line) => line.split(' ').slice(0, 4).join(' ')),
      [
        'cut.example.org. 300 NS ns.cut.example.org.',
        'cut.example.org. 300 NSEC cut\\000.example.org.',
        'cut.example.org. 300 RRSIG NSEC',
      ],
    );
    assert.deepEqual(denials(reply)[0]!.types, ['NS', 'RRSIG', 'NSEC']);
    assert.deepEqual(lines(reply.additional), ['ns.cut.example.org. 300 A 192.0.2.5']);
  });

  test('DS records at the cut are signed', async (t) => {
    const world = await signed(t);
    const reply = await world.ask('x.safe.example.org. A', wants);
    assert.deepEqual(
      reply.authority.map(({ type }) => typeName(type)),
      ['NS', 'DS', 'RRSIG'],
    );
    assert.deepEqual(
      (await world.ask('safe.example.org. DS', wants)).answer.map(({ type }) => typeName(type)),
      ['DS', 'RRSIG'],
    );
  });

  test('a denial of DS shows whether the name is a separate zone', async (t) => {
    const world = await signed(t);
    const [cut] = denials(await world.ask('cut.example.org. DS', wants));
    assert.deepEqual(cut!.types, ['NS', 'RRSIG', 'NSEC']);
    for (const name of ['www', 'none', 'below.empty']) {
      const [none] = denials(await world.ask(`${name}.example.org. DS`, wants));
      assert.ok(!none!.types.includes('NS') && !none!.types.includes('DS'), name);
    }
  });

  test('addresses below a cut are not included in answers', async (t) => {
    const world = await signed(t);
    const { additional } = await world.ask('example.org. MX', wants);
    assert.deepEqual([...new Set(additional.map(({ name }) => name))], ['www.example.org.']);
  });
});

describe('dnssec: keys', () => {
  test('DNSKEY records are answered, signed for DO', async (t) => {
    const key = zoneKey('example.org.');
    const world = await signed(t, { keys: [key] });
    assert.deepEqual(lines((await world.ask('example.org. DNSKEY')).answer), [
      `example.org. 3600 DNSKEY ${key.data}`,
    ]);
    const { answer, flags } = await world.ask('example.org. DNSKEY', wants);
    assert.deepEqual(lines(answer).slice(1), ['example.org. 3600 RRSIG DNSKEY']);
    assert.notEqual(flags & 0x0400, 0);
    assert.equal(denials(await world.ask('www.example.org. DNSKEY', wants)).length, 1);
  });

  test('with both kinds of keys, one signs the keys and the other everything else', async (t) => {
    const [ksk, zsk] = [zoneKey('example.org.', 13, 257), zoneKey('example.org.', 13, 256)];
    const world = await signed(t, { keys: [ksk, zsk] });
    const tags = async (question: string): Promise<number[]> =>
      (await world.ask(question, wants)).answer.flatMap(
        (record) => dataOf(record, rrsig)?.keyTag ?? [],
      );
    assert.deepEqual(await tags('example.org. DNSKEY'), [ksk.tag]);
    assert.deepEqual(await tags('www.example.org. A'), [zsk.tag]);
  });

  test('with keys of only one kind, each of them signs everything', async (t) => {
    const keys = [zoneKey('example.org.', 13), zoneKey('example.org.', 15)];
    const world = await signed(t, { keys });
    const tags = (await world.ask('www.example.org. A', wants)).answer.flatMap(
      (record) => dataOf(record, rrsig)?.keyTag ?? [],
    );
    assert.deepEqual(
      tags,
      keys.map(({ tag }) => tag),
    );
  });

  test('without keys nothing is signed, and a warning is logged', async (t) => {
    const world = await signed(t, { keys: [] });
    assert.equal((await world.ask('www.example.org. A', wants)).answer.length, 2);
    assert.equal((await world.ask('none.example.org. A', wants)).rcode, RCODE.NXDOMAIN);
    assert.ok(world.log.some((line) => /there are no keys, so nothing is signed/.test(line)));
  });

  const refusal = async (t: TestContext, made: Made): Promise<string> => {
    try {
      await signed(t, made);
    } catch (error) {
      return (problemsIn(error) ?? []).map((problem) => problem.print()).join('\n');
    }
    return '';
  };

  test("another zone's key is rejected", async (t) => {
    assert.match(
      await refusal(t, { keys: [zoneKey('example.net.')] }),
      /key example\.net\. \(keyid: \d+\) can not sign any of the zones/,
    );
    assert.equal(await refusal(t, { keys: [zoneKey('org.')] }), '');
  });

  test('keys stored at Amazon are rejected, with instructions', async (t) => {
    const text = await refusal(t, { keys: [], lines: 'key aws_secretsmanager x' });
    assert.match(text, /keys in AWS Secrets Manager are not supported/);
    assert.match(text, /key file KEY/);
  });

  for (const lines of [
    'key file',
    'key',
    'key other x',
    'cache_capacity',
    'cache_capacity x',
    'cache_capacity -1',
    'max_signing 0',
    'whatever',
  ])
    test(`rejected: ${lines}`, async (t) => {
      assert.notEqual(await refusal(t, { lines }), '');
    });
});

describe('dnssec: stored signatures', () => {
  test('an identical answer is signed once', async (t) => {
    const world = await signed(t);
    await world.ask('www.example.org. A', wants);
    assert.equal(metric(world, 'coredns_dnssec_cache_misses_total'), 2);
    assert.equal(metric(world, 'coredns_dnssec_cache_entries'), 2);
    for (let i = 0; i < 3; i++) await world.ask('www.example.org. A', wants);
    assert.equal(metric(world, 'coredns_dnssec_cache_misses_total'), 2);
    assert.equal(metric(world, 'coredns_dnssec_cache_hits_total'), 6);
    assert.ok(metric(world, 'ndots_dnssec_reply_bytes') > 0);
  });

  test('names that are queried once are not stored, but repeated ones are', async (t) => {
    const world = await signed(t);
    const entries = (): number => metric(world, 'coredns_dnssec_cache_entries');
    for (let i = 0; i < 5; i++) await world.ask(`none${i}.example.org. A`, wants);
    // Only the entry for the SOA record, which all of them share.
    assert.equal(entries(), 1);
    await world.ask('none1.example.org. A', wants);
    assert.deepEqual([entries(), metric(world, 'ndots_dnssec_reply_bytes')], [2, 0]);
    await world.ask('none1.example.org. A', wants);
    assert.ok(metric(world, 'ndots_dnssec_reply_bytes') > 0);
  });

  test('concurrent queries for an RRset cause a single signature', async (t) => {
    const world = await signed(t);
    const replies = await Promise.all(
      Array.from({ length: 5 }, () => world.ask('www.example.org. A', wants)),
    );
    const all = replies.map(({ answer }) =>
      Buffer.from(dataOf(answer[2]!, rrsig)!.signature).toString('hex'),
    );
    assert.equal(new Set(all).size, 1);
    assert.equal(metric(world, 'coredns_dnssec_cache_entries'), 2);
  });

  test('the capacity is never exceeded, and used entries are retained', async (t) => {
    const world = await signed(t, { lines: 'cache_capacity 5' });
    const first = await world.ask('www.example.org. A', wants);
    for (let i = 0; i < 20; i++) {
      await world.ask(`none${i}.example.org. A`, wants);
      const again = await world.ask('www.example.org. TXT', wants);
      assert.equal(again.authority.length, 4);
      assert.ok(metric(world, 'coredns_dnssec_cache_entries') <= 5);
      const here = await world.ask('www.example.org. A', wants);
      assert.deepEqual(here.answer, first.answer);
    }
  });

  test('used entries are also retained without whole replies', async (t) => {
    const world = await signed(t, { lines: 'cache_capacity 5\nmax_bytes 0' });
    const first = await world.ask('www.example.org. A', wants);
    for (let i = 0; i < 12; i++) {
      await world.ask(`none${i}.example.org. A`, wants);
      assert.deepEqual((await world.ask('www.example.org. A', wants)).answer, first.answer);
      assert.ok(metric(world, 'coredns_dnssec_cache_entries') <= 5);
    }
    assert.equal(metric(world, 'ndots_dnssec_reply_bytes'), 0);
  });

  test('signatures are renewed two days before they expire, and the old ones are sent until then', async (t) => {
    const world = await signed(t);
    const expiration = async (): Promise<number> =>
      dataOf((await world.ask('www.example.org. A', wants)).answer[2]!, rrsig)!.expiration;
    const first = await expiration();
    await world.clock.advance(5.9 * 86_400_000);
    assert.equal(await expiration(), first);
    await world.clock.advance(0.2 * 86_400_000);
    assert.equal(await expiration(), first);
    while (metric(world, 'ndots_dnssec_signing') > 0) await world.clock.advance(1);
    assert.ok((await expiration()) > first + 5 * 86_400);
    await world.clock.advance(9 * 86_400_000);
    assert.ok((await expiration()) * 1000 > world.clock.wall() + 7 * 86_400_000);
  });

  test('queries refused beyond max_signing are logged once a minute as a count', async (t) => {
    const world = await signed(t, { more: 'errors' });
    const refused = async (times: number): Promise<void> => {
      for (let i = 0; i < times; i++)
        await world.ask('www.example.org. A', { ...wants, mayWait: false });
    };
    const lines = (): readonly string[] => world.log.filter((line) => /RRsets/.test(line));
    const line = (queries: string): string =>
      `[WARNING] plugin/dnssec: too many RRsets are being signed (max_signing 1000): ${queries} refused`;
    await refused(5);
    assert.deepEqual(lines(), [line('1 query was')]);
    await world.clock.advance(60_000);
    assert.deepEqual(lines().slice(1), [line('4 queries were')]);
    await world.clock.advance(120_000);
    assert.equal(lines().length, 2);
    await refused(1);
    assert.deepEqual(lines().slice(2), [line('1 query was')]);
  });

  test('beyond max_signing, or if no query may wait, the query is refused with the reason', async (t) => {
    const world = await signed(t, { lines: 'max_signing 2' });
    const replies = await Promise.all(
      ['www', 'alias', 'www'].map((name) => world.ask(`${name}.example.org. A`, wants)),
    );
    assert.deepEqual(
      replies.map(({ rcode }) => rcode),
      [RCODE.NOERROR, RCODE.REFUSED, RCODE.NOERROR],
    );
    const [error] = replies[1]!.edns!.options;
    assert.equal(error!.code, OPTION.EDE);
    assert.equal(metric(world, 'ndots_dnssec_refused_total'), 1);
    assert.equal((await world.ask('alias.example.org. A', wants)).rcode, RCODE.NOERROR);
    const other = await signed(t);
    const rcode = async (mayWait: boolean): Promise<number> =>
      (await other.ask('www.example.org. A', { ...wants, mayWait })).rcode;
    assert.equal(await rcode(false), RCODE.REFUSED);
    assert.equal(metric(other, 'ndots_dnssec_refused_total'), 1);
    assert.equal(await rcode(true), RCODE.NOERROR);
    assert.equal(await rcode(false), RCODE.NOERROR);
  });
});
