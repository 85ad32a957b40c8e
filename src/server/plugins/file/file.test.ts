import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, unlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test, type TestContext } from 'node:test';
import { makeWorld, type AskOptions, type World } from '../../../../test/kit/world.ts';
import { printRecord } from '../../wire/print.ts';
import { rcodeName } from '../../wire/iana.ts';
import type { DnsRecord, Message } from '../../wire/message.ts';

const zone = `$TTL 300
@ 3600 IN SOA ns1 hostmaster 1 7200 3600 1209600 60
@ NS ns1
@ NS ns2.example.net.
@ MX 10 Mail
ns1 A 192.0.2.1
mail A 192.0.2.2
mail AAAA 2001:db8::2
www A 192.0.2.3
alias CNAME www
alias2 CNAME alias
lost CNAME nothing
out CNAME www.example.net.
loop CNAME loop2
loop2 CNAME loop
*.wild A 192.0.2.9
a.sub.wild TXT "here"
*.many CNAME www
deep.below.empty A 192.0.2.4
cut NS ns.cut
cut NS ns.elsewhere.
cut DS 1 13 2 ${'ab'.repeat(32)}
ns.cut A 192.0.2.5
bare NS ns.elsewhere.
old DNAME new
x.new A 192.0.2.6
long DNAME ${'l'.repeat(60)}.${'l'.repeat(60)}.${'l'.repeat(60)}.example.org.
_sip._tcp SRV 1 2 5060 mail
$GENERATE 1-3 host-\${0,2} A 192.0.2.1$
`;

function directory(t: TestContext, files: Readonly<Record<string, string>>): string {
  const path = mkdtempSync(join(tmpdir(), 'ndots-file-'));
  t.after(() => rmSync(path, { recursive: true }));
  for (const [name, text] of Object.entries(files)) writeFileSync(join(path, name), text);
  return path;
}

async function served(t: TestContext, text = zone, more = ''): Promise<World> {
  const path = directory(t, { 'db.example.org': text });
  const world = await makeWorld(`.:53 {\n file db.example.org example.org {\n${more}\n}\n}`, {
    directory: path,
  });
  t.after(() => world.close());
  return world;
}

/** Formats a reply as `NOERROR aa`, followed by a line for each record, which names its section except for answers. */
function show(message: Message): string[] {
  const lines = (records: readonly DnsRecord[], section: string): string[] =>
    records.map(
      (record) => `${section}${printRecord(record).replace(/\s+/g, ' ').replace(' IN', '')}`,
    );
  const code = `${rcodeName(message.rcode)}${(message.flags & 0x400) === 0 ? '' : ' aa'}`;
  return [
    code,
    ...lines(message.answer, ''),
    ...lines(message.authority, 'authority '),
    ...lines(message.additional, 'additional '),
  ];
}

async function ask(world: World, question: string, options?: AskOptions): Promise<string[]> {
  return show(await world.ask(question.replace('@', 'example.org.'), options));
}

const servers = [
  'authority example.org. 300 NS ns1.example.org.',
  'authority example.org. 300 NS ns2.example.net.',
];
const soa =
  'authority example.org. 60 SOA ns1.example.org. hostmaster.example.org. 1 7200 3600 1209600 60';

describe('file', () => {
  test('an existing name is answered with its records of the type', async (t) => {
    const world = await served(t);
    assert.deepEqual(await ask(world, 'www.example.org. A'), [
      'NOERROR aa',
      'www.example.org. 300 A 192.0.2.3',
      ...servers,
    ]);
    assert.deepEqual(await ask(world, 'host-02.example.org. A'), [
      'NOERROR aa',
      'host-02.example.org. 300 A 192.0.2.12',
      ...servers,
    ]);
  });

  test('missing data and missing names return the SOA with the lesser of TTL and minimum', async (t) => {
    const world = await served(t);
    assert.deepEqual(await ask(world, 'www.example.org. MX'), ['NOERROR aa', soa]);
    assert.deepEqual(await ask(world, 'nothing.example.org. MX'), ['NXDOMAIN aa', soa]);
  });

  test('an empty non-terminal exists without data', async (t) => {
    const world = await served(t);
    assert.deepEqual(await ask(world, 'below.empty.example.org. A'), ['NOERROR aa', soa]);
  });

  test('aliases are followed within the zone, and the last target decides the result code', async (t) => {
    const world = await served(t);
    assert.deepEqual(await ask(world, 'alias2.example.org. A'), [
      'NOERROR aa',
      'alias2.example.org. 300 CNAME alias.example.org.',
      'alias.example.org. 300 CNAME www.example.org.',
      'www.example.org. 300 A 192.0.2.3',
      ...servers,
    ]);
    assert.deepEqual(await ask(world, 'lost.example.org. A'), [
      'NXDOMAIN aa',
      'lost.example.org. 300 CNAME nothing.example.org.',
      soa,
    ]);
    assert.deepEqual((await ask(world, 'alias.example.org. CNAME')).slice(0, 2), [
      'NOERROR aa',
      'alias.example.org. 300 CNAME www.example.org.',
    ]);
  });

  test('an SOA record with another name is used for a zone that has none', async (t) => {
    const world = await served(
      t,
      '$TTL 60\nother.example. SOA ns host 7 2 3 4 5\nwww A 192.0.2.1\n',
    );
    assert.equal((await ask(world, 'www.example.org. A'))[1], 'www.example.org. 60 A 192.0.2.1');
    const [, text] = await ask(world, 'example.org. SOA');
    assert.match(text!, /^example\.org\. 60 SOA .* 7 2 3 4 5$/);
    assert.match(world.log.join('\n'), /db\.example\.org:2:1: other\.example\. SOA: .* is used/);
    const own = await served(t, `${zone}x.example.org. SOA ns host 9 2 3 4 5\n`);
    assert.match(own.log.join('\n'), /x\.example\.org\. SOA: .* is left out/);
    assert.doesNotMatch((await ask(own, 'example.org. SOA'))[1]!, / 9 2 3 4 5$/);
  });

  test('if there are several SOA records with other names, each is reported with its line and the last is used', async (t) => {
    const world = await served(
      t,
      '$TTL 60\none.example. SOA ns host 7 2 3 4 5\nwww A 192.0.2.1\ntwo.example. SOA ns host 8 2 3 4 5\n',
    );
    assert.match((await ask(world, 'example.org. SOA'))[1]!, / 8 2 3 4 5$/);
    const log = world.log.join('\n');
    assert.match(log, /db\.example\.org:2:1: one\.example\. SOA: .* is left out/);
    assert.match(log, /db\.example\.org:4:1: two\.example\. SOA: .* is used/);
  });

  test('invalid UTF-8 is preserved in names and texts, and ignored in comments', async (t) => {
    const latin1 = Buffer.from(`${zone}; B\xfcro\ncaf\xe9 TXT "\xa7 1"\n`, 'latin1');
    const path = directory(t, { db: '' });
    writeFileSync(join(path, 'db'), latin1);
    const world = await makeWorld('example.org {\n file db\n}', { directory: path });
    t.after(() => world.close());
    assert.equal(
      (await ask(world, 'caf\\233.example.org. TXT'))[1],
      'caf\\233.example.org. 300 TXT "\\167 1"',
    );
  });

  test('a UTF-16 file is rejected with that reason', async (t) => {
    const path = directory(t, { db: '' });
    writeFileSync(join(path, 'db'), Buffer.from(`\uFEFF${zone}`, 'utf16le'));
    await assert.rejects(
      makeWorld('example.org {\n file db\n}', { directory: path }),
      /db:1:1: the file is UTF-16/,
    );
  });

  test("another zone's file is rejected", async (t) => {
    await assert.rejects(
      served(t, '$ORIGIN other.example.\n@ 60 SOA ns host 7 2 3 4 5\nwww 60 A 192.0.2.1\n'),
      /has no SOA record for origin example\.org\./,
    );
  });

  test('an alias loop gets SERVFAIL, but a single alias in it is answered', async (t) => {
    const world = await served(t, `${zone}*.foo CNAME bar.foo\nself CNAME self\n`);
    for (const name of ['loop', 'loop2', 'self', 'x.foo', 'bar.foo'])
      assert.deepEqual(await ask(world, `${name}.example.org. A`), ['SERVFAIL'], name);
    assert.deepEqual((await ask(world, 'loop.example.org. CNAME')).slice(0, 2), [
      'NOERROR aa',
      'loop.example.org. 300 CNAME loop2.example.org.',
    ]);
  });

  test('SERVFAIL for an alias loop includes an Extended DNS Error', async (t) => {
    const world = await served(t);
    assert.match(
      await world.dig('loop.example.org. A', { edns: true }),
      /EDE: 0 .*the aliases of loop\.example\.org\. form a loop/,
    );
  });

  test('a chain of aliases beyond the limit ends in an alias', async (t) => {
    const chain = Array.from({ length: 20 }, (_, i) => `c${i} CNAME c${i + 1}\n`).join('');
    const world = await served(t, `${zone}${chain}c20 A 192.0.2.1\n`);
    const [code, ...answers] = await ask(world, 'c0.example.org. A');
    assert.equal(code, 'NOERROR aa');
    assert.match(
      answers.findLast((line) => line.includes('CNAME'))!,
      /^c10\.example\.org\. 300 CNAME c11/,
    );
    assert.equal((await ask(world, 'c12.example.org. A'))[9], 'c20.example.org. 300 A 192.0.2.1');
  });

  test('an alias to a name outside the zone is followed through the whole server', async (t) => {
    const path = directory(t, {
      'db.example.org': zone,
      'db.example.net': '@ 60 IN SOA ns host 1 2 3 4 5\nwww 60 A 192.0.2.77\n',
    });
    const world = await makeWorld(
      'example.org {\n file db.example.org\n}\nexample.net {\n file db.example.net\n}',
      { directory: path },
    );
    t.after(() => world.close());
    assert.deepEqual(await ask(world, 'out.example.org. A'), [
      'NOERROR aa',
      'out.example.org. 300 CNAME www.example.net.',
      'www.example.net. 60 A 192.0.2.77',
      ...servers,
    ]);
    const negative = await ask(world, 'out.example.org. TXT');
    assert.deepEqual(negative, [
      'NOERROR aa',
      'out.example.org. 300 CNAME www.example.net.',
      'authority example.net. 5 SOA ns.example.net. host.example.net. 1 2 3 4 5',
    ]);
  });

  test('an alias into a delegated zone without name servers is followed', async (t) => {
    const path = directory(t, {
      'db.example.org':
        '@ 60 IN SOA ns host 1 2 3 4 5\nwww 60 CNAME www.foo\nlost 60 CNAME no.foo\n',
      'db.foo': '@ 60 IN SOA ns host 6 2 3 4 5\nwww 60 A 192.0.2.53\n',
    });
    const both = 'file db.example.org example.org\nfile db.foo foo.example.org';
    const apart = 'file db.example.org\n}\nfoo.example.org {\nfile db.foo';
    for (const block of [`. {\n${both}\n}`, `example.org {\n${apart}\n}`]) {
      const world = await makeWorld(block, { directory: path });
      assert.deepEqual(await ask(world, 'www.example.org. A'), [
        'NOERROR aa',
        'www.example.org. 60 CNAME www.foo.example.org.',
        'www.foo.example.org. 60 A 192.0.2.53',
      ]);
      assert.deepEqual(await ask(world, 'lost.example.org. A'), [
        'NXDOMAIN aa',
        'lost.example.org. 60 CNAME no.foo.example.org.',
        'authority foo.example.org. 5 SOA ns.foo.example.org. host.foo.example.org. 6 2 3 4 5',
      ]);
      await world.close();
    }
  });

  test('a wildcard matches missing names, and no existing ones', async (t) => {
    const world = await served(t);
    assert.deepEqual(
      (await ask(world, 'a.b.wild.example.org. A'))[1],
      'a.b.wild.example.org. 300 A 192.0.2.9',
    );
    assert.deepEqual(await ask(world, 'x.wild.example.org. TXT'), ['NOERROR aa', soa]);
    assert.deepEqual(await ask(world, 'sub.wild.example.org. A'), ['NOERROR aa', soa]);
    assert.deepEqual(await ask(world, 'b.sub.wild.example.org. A'), ['NXDOMAIN aa', soa]);
    assert.deepEqual((await ask(world, 'any.many.example.org. A')).slice(1, 3), [
      'any.many.example.org. 300 CNAME www.example.org.',
      'www.example.org. 300 A 192.0.2.3',
    ]);
  });

  test("names below a cut get the delegated zone's name servers and their addresses", async (t) => {
    const world = await served(t);
    for (const name of ['cut', 'deep.cut', 'ns.cut']) {
      assert.deepEqual(await ask(world, `${name}.example.org. A`), [
        'NOERROR',
        'authority cut.example.org. 300 NS ns.cut.example.org.',
        'authority cut.example.org. 300 NS ns.elsewhere.',
        'additional ns.cut.example.org. 300 A 192.0.2.5',
      ]);
    }
    assert.match((await ask(world, 'cut.example.org. DS'))[1]!, /^cut\.example\.org\. 300 DS 1 13/);
    assert.deepEqual(await ask(world, 'bare.example.org. DS'), ['NOERROR aa', soa]);
  });

  test('a DNAME redirects names below it, and not itself', async (t) => {
    const world = await served(t);
    assert.deepEqual((await ask(world, 'X.old.example.org. A')).slice(0, 4), [
      'NOERROR aa',
      'old.example.org. 300 DNAME new.example.org.',
      'X.old.example.org. 300 CNAME x.new.example.org.',
      'x.new.example.org. 300 A 192.0.2.6',
    ]);
    assert.deepEqual(await ask(world, 'old.example.org. A'), ['NOERROR aa', soa]);
    const long = `${'y'.repeat(60)}.${'z'.repeat(20)}.long.example.org. A`;
    assert.equal((await ask(world, long))[0], 'YXDOMAIN aa');
  });

  test('a DNAME that leads to itself, in a loop or ever deeper gets SERVFAIL', async (t) => {
    const dnames = 'self DNAME self\nring DNAME ring2\nring2 DNAME ring\ndeep DNAME x.deep\n';
    const world = await served(t, zone + dnames);
    for (const name of ['x.self', 'X.Self', 'x.ring', 'x.deep']) {
      assert.deepEqual(await ask(world, `${name}.example.org. A`), ['SERVFAIL'], name);
    }
    // The question is answered by the first step.
    assert.equal((await ask(world, 'x.ring.example.org. CNAME'))[0], 'NOERROR aa');
    assert.deepEqual(await ask(world, 'x.self.example.org. CNAME'), ['SERVFAIL']);
  });

  test('SRV and MX include the addresses of their targets, spelled as in the file', async (t) => {
    const world = await served(t);
    const addresses = [
      'additional mail.example.org. 300 A 192.0.2.2',
      'additional mail.example.org. 300 AAAA 2001:db8::2',
    ];
    assert.deepEqual((await ask(world, '_sip._tcp.example.org. SRV')).slice(-2), addresses);
    const mail = await ask(world, '@ MX');
    assert.equal(mail[1], 'example.org. 300 MX 10 Mail.example.org.');
    assert.deepEqual(mail.slice(-2).join().toLowerCase(), addresses.join().toLowerCase());
  });

  test('ANY is answered with all records of the name', async (t) => {
    const world = await served(t);
    const types = (await world.ask('example.org. ANY')).answer.map(({ type }) => type);
    assert.deepEqual(types, [2, 2, 6, 15]);
  });

  test('transfers and notifications are refused', async (t) => {
    const world = await served(t);
    assert.deepEqual(await ask(world, '@ AXFR', { proto: 'tcp' }), ['REFUSED']);
    assert.deepEqual(await ask(world, '@ SOA', { flags: 0x2000 }), ['REFUSED']);
    assert.deepEqual(await ask(world, 'example.net. A'), ['REFUSED']);
  });

  test('with fallthrough, a name without records goes to the next plugin', async (t) => {
    const path = directory(t, { 'db.example.org': zone });
    const world = await makeWorld(
      '.:53 {\n file db.example.org example.org {\n fallthrough\n }\n whoami\n}',
      { directory: path },
    );
    t.after(() => world.close());
    assert.equal((await world.ask('nothing.example.org. A')).additional.length, 2);
    assert.equal((await world.ask('below.empty.example.org. A')).additional.length, 2);
    assert.deepEqual(await ask(world, 'www.example.org. MX'), ['NOERROR aa', soa]);
  });

  test("DS at a zone's apex is left to the parent zone", async (t) => {
    const path = directory(t, {
      'db.example.org': zone,
      'db.cut': '@ 60 IN SOA ns host 9 2 3 4 5\n@ 60 NS ns\nwww 60 A 192.0.2.8\n',
    });
    const world = await makeWorld(
      '.:53 {\n file db.cut cut.example.org\n file db.example.org example.org\n}',
      { directory: path },
    );
    t.after(() => world.close());
    assert.equal((await world.ask('cut.example.org. DS')).answer.length, 1);
    assert.equal((await world.ask('www.cut.example.org. A')).answer.length, 1);
  });

  test('all errors in a file are reported at startup, each with its location', async (t) => {
    const path = directory(t, {
      'db.bad':
        '$TTL 60\n@ SOA ns host 1 2 3 4 5\nwww A 192.0.2\nwww AAA ::1\n$INCLUDE no.inc\n( open A 192.0.2.1\n',
    });
    await assert.rejects(
      makeWorld('example.org {\n file db.bad\n}', { directory: path }),
      (error) => {
        const { problems } = error as { problems: { message: string }[] };
        assert.deepEqual(
          problems.map(({ message }) =>
            message.replace(/^.*db\.bad/, '').replace(/ \S*\/no\.inc/, ' no.inc'),
          ),
          [
            ':3:7: A address must be an IPv4 address, not "192.0.2"',
            ':4:5: "AAA" is not a TTL, class or record type',
            ':5:1: $INCLUDE: cannot read no.inc: no such file or directory',
            ':6:1: parenthesis is never closed',
          ],
        );
        return true;
      },
    );
  });

  test('a transfer printed by dig is a valid zone file, with its SOA record at both ends', async (t) => {
    const soa = 'example.org. 60 IN SOA ns.example.org. host.example.org. 1 2 3 4 5\n';
    const whole = `${soa}example.org. 60 IN NS ns.example.org.\nns.example.org. 60 IN A 192.0.2.1\n`;
    const path = directory(t, { db: whole + soa, two: whole + soa.replace(' 1 2', ' 2 2') });
    const world = await makeWorld('example.org {\n file db\n}', { directory: path });
    t.after(() => world.close());
    assert.equal((await world.ask('example.org. SOA')).answer.length, 1);
    await assert.rejects(
      makeWorld('example.org {\n file two\n}', { directory: path }),
      /another SOA record/,
    );
  });

  test('a byte order mark before the first line is ignored', async (t) => {
    const path = directory(t, { db: '\uFEFF$TTL 60\r\n@ SOA ns host 1 2 3 4 5\r\n@ NS ns\r\n' });
    const world = await makeWorld('example.org {\n file db\n}', { directory: path });
    t.after(() => world.close());
    assert.equal((await world.ask('example.org. NS')).answer.length, 1);
  });

  test('a directory is not accepted as a zone, unlike a missing file', async (t) => {
    const path = directory(t, { db: '' });
    await assert.rejects(
      makeWorld(`example.org {\n file ${path}\n}`),
      /plugin\/file: open .*directory|directory/,
    );
    const world = await makeWorld('example.org {\n file not-yet\n}', { directory: path });
    await world.close();
  });

  test('a file without an SOA record is not a zone', async (t) => {
    const path = directory(t, { db: '$TTL 60\nwww A 192.0.2.1\n' });
    await assert.rejects(
      makeWorld('example.org {\n file db\n}', { directory: path }),
      /no SOA record/,
    );
  });

  test('a new serial is served after the reload time; an error leaves the zone unchanged', async (t) => {
    const path = directory(t, { db: zone });
    const world = await makeWorld('example.org {\n file db {\n reload 10s\n }\n}', {
      directory: path,
    });
    t.after(() => world.close());
    const address = async (): Promise<string | undefined> =>
      (await ask(world, 'www.example.org. A'))[1];
    const later = async (text: string): Promise<void> => {
      writeFileSync(join(path, 'db'), text);
      await world.clock.advance(10_001);
      for (let i = 0; i < 20; i++) await new Promise((resolve) => setImmediate(resolve));
    };
    await later(zone.replace('192.0.2.3', '192.0.2.33'));
    assert.equal(await address(), 'www.example.org. 300 A 192.0.2.3', 'the serial is the same');
    await later(zone.replace('192.0.2.3', '192.0.2.33').replace('hostmaster 1', 'hostmaster 2'));
    assert.equal(await address(), 'www.example.org. 300 A 192.0.2.33');
    await later(zone.replace('hostmaster 1', 'hostmaster 3') + 'x A y\n');
    assert.equal(await address(), 'www.example.org. 300 A 192.0.2.33');
    assert.match(
      world.log.at(-1)!,
      /^\[ERROR\] plugin\/file: Parsing zone "example\.org\.": .*db:\d+:5: /,
    );
    unlinkSync(join(path, 'db'));
    await world.clock.advance(10_001);
    for (let i = 0; i < 20; i++) await new Promise((resolve) => setImmediate(resolve));
    assert.equal(await address(), 'www.example.org. 300 A 192.0.2.33');
    assert.match(world.log.at(-1)!, /Failed to open zone "example\.org\."/);
  });

  test('a changed included file is detected like the zone file, both its serial and a fixed error', async (t) => {
    const soa = (serial: number): string => `@ SOA ns host ${serial} 2 3 4 5\n`;
    const path = directory(t, {
      db: '$TTL 60\n$INCLUDE soa.inc\n@ NS ns\nns A 192.0.2.9\n$INCLUDE hosts.inc\n',
      'soa.inc': soa(1),
      'hosts.inc': 'www A 192.0.2.1\n',
    });
    const world = await makeWorld('example.org {\n file db {\n reload 10s\n }\n}', {
      directory: path,
    });
    t.after(() => world.close());
    const later = async (files: Readonly<Record<string, string>>): Promise<string | undefined> => {
      for (const [name, text] of Object.entries(files)) writeFileSync(join(path, name), text);
      await world.clock.advance(10_001);
      for (let i = 0; i < 20; i++) await new Promise((resolve) => setImmediate(resolve));
      return (await ask(world, 'www.example.org. A'))[1]?.split(' ').at(-1);
    };
    assert.equal(await later({ 'soa.inc': soa(2), 'hosts.inc': 'www A 192.0.2.2\n' }), '192.0.2.2');
    assert.equal(await later({ 'soa.inc': soa(3), 'hosts.inc': 'www A 192.0.2\n' }), '192.0.2.2');
    assert.match(world.log.at(-1)!, /hosts\.inc:1:7: A address/);
    assert.equal(await later({ 'hosts.inc': 'www A 192.0.2.3\n' }), '192.0.2.3');
    unlinkSync(join(path, 'hosts.inc'));
    assert.equal(await later({ 'soa.inc': soa(4) }), '192.0.2.3');
    assert.equal(await later({ 'hosts.inc': 'www A 192.0.2.4\n' }), '192.0.2.4');
    const lines = world.log.length;
    assert.equal(await later({}), '192.0.2.4');
    assert.equal(world.log.length, lines, 'nothing has changed');
  });

  test('a decreasing serial, or an unchanged one in a changed file, causes a warning about secondaries', async (t) => {
    const text = (serial: number, address: string): string =>
      zone.replace('hostmaster 1', `hostmaster ${serial}`).replace('192.0.2.3', address);
    const path = directory(t, { db: text(5, '192.0.2.3') });
    const world = await makeWorld('example.org {\n file db {\n reload 10s\n }\n}', {
      directory: path,
    });
    t.after(() => world.close());
    const later = async (content: string): Promise<string> => {
      const before = world.log.length;
      writeFileSync(join(path, 'db'), content);
      await world.clock.advance(10_001);
      for (let i = 0; i < 20; i++) await new Promise((resolve) => setImmediate(resolve));
      return world.log.slice(before).join('\n');
    };
    const same = await later(text(5, '192.0.2.4'));
    assert.match(same, /^\[WARNING\] plugin\/file: .*db" has changed but its serial has not \(5\)/);
    assert.match(same, /not served.*secondaries/);
    assert.equal(await later(text(5, '192.0.2.3')), '', 'that is what is served');
    const back = await later(text(4, '192.0.2.5'));
    assert.match(back, /\[WARNING\] plugin\/file: .* decreased from 5 to 4: secondaries/);
    assert.match(back, /\[INFO\] plugin\/file: Successfully reloaded zone/);
    const ahead = await later(text(0x7fff_ffff, '192.0.2.6'));
    assert.match(ahead, /^\[INFO\].* 2147483647 SOA serial$/);
    // Serials wrap around, so this one is newer.
    assert.match(await later(text(0xffff_fffe, '192.0.2.7')), /^\[INFO\]/);
    assert.match(await later(text(0, '192.0.2.8')), /^\[INFO\]/);
  });

  test('a reload of the Corefile gives the same warnings about serials', async (t) => {
    const text = (serial: number, address: string): string =>
      zone.replace('hostmaster 1', `hostmaster ${serial}`).replace('192.0.2.3', address);
    const path = directory(t, { db: text(5, '192.0.2.3') });
    const world = await makeWorld('example.org {\n file db\n}', { directory: path });
    t.after(() => world.close());
    const reloaded = async (content: string): Promise<string> => {
      const before = world.log.length;
      writeFileSync(join(path, 'db'), content);
      await world.server.reload();
      return world.log.slice(before).join('\n');
    };
    assert.doesNotMatch(await reloaded(text(5, '192.0.2.3')), /serial/);
    assert.match(
      await reloaded(text(5, '192.0.2.4')),
      /\[WARNING\] plugin\/file: .*db" has changed but its serial has not \(5\): secondaries will not/,
    );
    assert.doesNotMatch(await reloaded(text(6, '192.0.2.4')), /WARNING/);
    assert.match(await reloaded(text(4, '192.0.2.4')), /WARNING.* decreased from 6 to 4/);
  });

  test('a missing file causes SERVFAIL until it appears', async (t) => {
    const path = directory(t, {});
    const world = await makeWorld('example.org {\n file db {\n reload 10s\n }\n}', {
      directory: path,
    });
    t.after(() => world.close());
    assert.match(
      world.log[0]!,
      /^\[WARNING\] plugin\/file: Failed to open ".*db": trying again in 10s/,
    );
    assert.equal((await ask(world, 'www.example.org. A'))[0], 'SERVFAIL');
    writeFileSync(join(path, 'db'), zone);
    await world.clock.advance(10_001);
    for (let i = 0; i < 20; i++) await new Promise((resolve) => setImmediate(resolve));
    assert.equal((await ask(world, 'www.example.org. A'))[0], 'NOERROR aa');
  });

  test('a reload to a missing file is accepted, as in CoreDNS, with a warning that names it', async (t) => {
    const world = await makeWorld('. {\n whoami\n}', { directory: directory(t, {}) });
    t.after(() => world.close());
    world.setCorefile('example.org {\n file db.nope\n}');
    assert.equal(await world.clock.run(world.server.reload()), true);
    assert.match(
      world.log.join('\n'),
      /^\[WARNING\] plugin\/file: Failed to open ".*db\.nope": trying again in 60s: no such file/m,
    );
    assert.equal((await ask(world, 'www.example.org. A'))[0], 'SERVFAIL');
  });

  test('records outside the zone are ignored, with a warning', async (t) => {
    const world = await served(t, `${zone}www.example.net. A 192.0.2.1\nalias A 192.0.2.1\n`);
    assert.equal(world.log.length, 2);
    assert.match(world.log[0]!, /www\.example\.net\. A: is not in the zone example\.org\./);
    assert.match(world.log[1]!, /a name with a CNAME record has no other records/);
  });

  test('a target without its final dot causes a warning with its location', async (t) => {
    const records = [
      'a.test MX 10 mail.example.org',
      'b.test MX 10 mail.example.org.example.org.',
      'c.test MX 10 mx.other.example',
      '_s._tcp SRV 0 0 80 www.example.org',
      'd.test CNAME www.example.org',
      'e.test NS ns.e.test',
      'f.test MX 10 a.wild.test',
      'g.test MX 10 mail.other.example.',
      'h.test CNAME not.there',
      '*.wild.test A 192.0.2.1',
    ];
    const world = await served(t, `${zone}${records.join('\n')}\n`);
    const warnings = world.log.filter((line) => line.includes('its target'));
    assert.equal(warnings.length, 3, warnings.join('\n'));
    assert.match(
      warnings[0]!,
      /db\.example\.org:\d+:\d+: a\.test\.example\.org\. MX: its target mail\.example\.org\.example\.org\. is not in the zone/,
    );
    assert.match(
      warnings[0]!,
      /The trailing dot is missing: mail\.example\.org means a name under example\.org\., while mail\.example\.org\. /,
    );
    assert.match(warnings[1]!, /c\.test.*mx\.other\.example\.example\.org\./);
    assert.match(warnings[2]!, /SRV: its target www\.example\.org\.example\.org\./);
    assert.equal((await ask(world, 'a.test.example.org. MX'))[0], 'NOERROR aa', 'it is served');
  });
});
