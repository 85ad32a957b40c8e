import assert from 'node:assert/strict';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test, type TestContext } from 'node:test';
import { serveDelegatedZones, type DelegatedZones } from '../../../../test/kit/delegated-zones.ts';
import { freePorts } from '../../../../test/kit/free-ports.ts';
import { serveAnswers, type LocalAnswers } from '../../../../test/kit/local-answers.ts';
import { serveProcess } from '../../../../test/kit/serve-process.ts';
import { runCommand } from '../../../../test/kit/trace-command.ts';
import { FLAG } from '../../../server/wire/iana.ts';
import { readMessage, writeMessage, type DnsRecord } from '../../../server/wire/message.ts';
import type { Io } from '../command.ts';
import { parseQueryLine, reverseName } from './query-options.ts';
import { query } from './query.ts';

describe('the command line of ndots query', () => {
  const read = (line: string) => parseQueryLine(line.split(' ')).queries[0]!;

  test('dig and doggo syntax are equivalent', () => {
    const dig = read('@9.9.9.9 example.com MX +tcp +short');
    const doggo = read('MX example.com @tcp://9.9.9.9 --short');
    assert.deepEqual(dig, doggo);
    assert.equal(dig.type, 15);
    assert.equal(dig.transport, 'tcp');
  });

  test('the last of two types is used, and the ignored one gets a warning', () => {
    const { type, overridden } = read('one.test A AAAA @127.0.0.1');
    assert.deepEqual([type, overridden], [28, 'A']);
    assert.equal(read('one.test AAAA @127.0.0.1').overridden, null);
    const both = parseQueryLine('one.test A one.test AAAA @127.0.0.1'.split(' ')).queries;
    assert.deepEqual(
      both.map((each) => [each.type, each.overridden]),
      [
        [1, null],
        [28, null],
      ],
    );
  });

  test('servers may include a port, a scheme and a path', () => {
    const server = (text: string): string => {
      const options = read(`${text} example.com`);
      return `${options.transport} ${options.server ?? ''} ${options.port} ${options.path}`;
    };
    assert.equal(server('@127.0.0.1:5353'), 'udp 127.0.0.1 5353 /dns-query');
    assert.equal(server('@2001:db8::1'), 'udp 2001:db8::1 53 /dns-query');
    assert.equal(server('@[2001:db8::1]:5353'), 'udp 2001:db8::1 5353 /dns-query');
    assert.equal(server('@tls://dns.example'), 'tls dns.example 853 /dns-query');
    assert.equal(server('@https://dns.example/x'), 'https dns.example 443 /x');
  });

  test('types by number, classes, and the name of an address', () => {
    assert.equal(read('example.com TYPE65280').type, 65280);
    assert.equal(read('version.bind TXT CH').class, 3);
    assert.equal(reverseName('10.0.0.5'), '5.0.0.10.in-addr.arpa.');
    assert.match(
      reverseName('2001:db8::1'),
      /^1\.0\.0\.0\..*\.8\.b\.d\.0\.1\.0\.0\.2\.ip6\.arpa\.$/,
    );
    assert.equal(read('-x 10.0.0.5').type, 12);
  });

  for (const line of [
    '+nonsense',
    'a.example AAA',
    'a.example -t MXX',
    'a.example -c NOPE',
    'a.example @quic://9.9.9.9',
    'a.example @1.2.3.4:53:3',
    'a.example @[::1',
    'a.example -6 @127.0.0.1',
    'a.example AXFR +notcp',
    'a.example +subnet=here',
    'a.example --timeout 5h',
    'a.example -b',
    '-p 99999 a',
    '-t NOPE a',
    '--shrot a',
    '-x dns',
  ]) {
    test(`"${line}" is a usage error`, async () => {
      const { code, err, out } = await runCommand(query, line.split(' '));
      assert.equal(code, 3);
      assert.match(err, /^ndots query: /);
      assert.equal(out, '');
    });
  }
});

describe("dig's habits", () => {
  const read = (line: string) => parseQueryLine(line.split(' ')).queries;

  test('each name is a query; options before the first apply to all', () => {
    const [one, two, three, ...more] = read(
      '@9.9.9.9 +tcp a.example MX b.example +notcp -x 10.0.0.1',
    );
    assert.deepEqual(
      [one, two, three].map(
        (each) => `${each!.name} ${each!.type} ${each!.transport} ${each!.server}`,
      ),
      [
        'a.example 15 tcp 9.9.9.9',
        'b.example 1 udp 9.9.9.9',
        '1.0.0.10.in-addr.arpa. 12 tcp 9.9.9.9',
      ],
    );
    assert.equal(more.length, 0);
  });

  test('a letter may be directly followed by its value', () => {
    const [one] = read('-p1053 -tMX -x10.0.0.1');
    assert.equal(one!.port, 1053);
    assert.equal(one!.name, '1.0.0.10.in-addr.arpa.');
  });

  test('the first bytes of an address are a reverse zone', () => {
    assert.equal(read('-x 10.3.0')[0]!.name, '0.3.10.in-addr.arpa.');
  });

  test('a port may follow a number sign, too', () => {
    assert.equal(read('@9.9.9.9#5353 a')[0]!.port, 5353);
    assert.equal(read('@fd00::a#5353 a')[0]!.server, 'fd00::a');
    assert.equal(read('@[fd00::a]#5353 a')[0]!.port, 5353);
  });

  test('zones are requested over TCP, an IXFR with its serial', () => {
    const [axfr] = read('example. AXFR');
    assert.equal(axfr!.transport, 'tcp');
    const [ixfr] = read('example. IXFR=7');
    assert.deepEqual([ixfr!.type, ixfr!.serial, ixfr!.transport], [251, 7, 'tcp']);
  });

  test('a non-ASCII name is sent in its xn-- form', () => {
    assert.equal(read('München.de')[0]!.name, 'xn--mnchen-3ya.de');
    assert.equal(read('+noidnin München.de')[0]!.name, 'München.de');
  });

  test('EDNS options are those that were requested', () => {
    const [one] = read('a +nsid +subnet=10.1.0.0/16 +ednsopt=65001:beef +cookie=0102030405060708');
    assert.deepEqual(
      one!.ednsOptions.map(({ code, data }) => `${code}:${Buffer.from(data).toString('hex')}`),
      ['3:', '8:000110000a01', '65001:beef', '10:0102030405060708'],
    );
    assert.equal(read('a +nsid +nonsid')[0]!.ednsOptions.length, 0);
  });
});

describe('words in any order', () => {
  const read = (line: string) => parseQueryLine(line.split(' ')).queries;
  const asked = (line: string): string[] =>
    read(line).map((each) => `${each.name} ${each.type} ${each.class}`);

  for (const line of [
    'CH TXT version.bind',
    'version.bind CH TXT',
    'version.bind TXT CH',
    'TXT CH version.bind',
    'ch txt version.bind',
    '-c CH -t TXT version.bind',
    '-c ch -q version.bind txt',
  ]) {
    test(line, () => assert.deepEqual(asked(line), ['version.bind 16 3']));
  }

  test('a lowercase type may precede the name', () => {
    assert.deepEqual(asked('mx example.com'), ['example.com 15 1']);
    assert.deepEqual(asked('a.example mx b.example'), ['a.example 15 1', 'b.example 1 1']);
  });

  test('a lone word that could be a type is a name', () => {
    assert.deepEqual(asked('mx'), ['mx 1 1']);
    assert.deepEqual(asked('ch'), ['ch 1 1']);
    assert.deepEqual(asked('MX'), ['. 15 1']);
    assert.deepEqual(asked('-q mx mx'), ['mx 15 1']);
  });
});

describe('ndots query against a server', () => {
  let server: LocalAnswers;
  before(async () => {
    server = await serveAnswers({
      rules: [
        { name: 'www.example.com', answer: '203.0.113.80 2001:db8::80' },
        { name: 'big.example.com', type: 'A', answer: 'n=200' },
        { name: 'bad.example.com', answer: 'SERVFAIL' },
        { name: 'silent.example.com', answer: 'DROP' },
      ],
    });
  });
  after(() => server.close());
  const ask = (...words: string[]) => runCommand(query, [`@127.0.0.1:${server.port}`, ...words]);

  test('prints the answer as dig does', async () => {
    const { code, out } = await ask('www.example.com');
    assert.equal(code, 0);
    assert.match(out, /status: NOERROR/);
    assert.match(out, /www\.example\.com\.\s+30\s+IN\s+A\s+203\.0\.113\.80/);
  });

  test('on a terminal the important parts are coloured; the text is the same', async () => {
    const words = [`@127.0.0.1:${server.port}`, 'www.example.com', '+nostats', '+qr'];
    const plain = (await runCommand(query, words)).out.replaceAll(/id: \d+/g, 'id');
    const coloured = (await runCommand(query, words, {}, { colour: true })).out;
    // eslint-disable-next-line no-control-regex -- matches colour escapes
    assert.equal(coloured.replaceAll(/\u001b\[\d+m/g, '').replaceAll(/id: \d+/g, 'id'), plain);
    assert.ok(coloured.includes('\u001b[32mNOERROR\u001b[0m'));
    assert.ok(coloured.includes('\u001b[32m203.0.113.80\u001b[0m'));
    for (const [word, terminal, want] of [
      ['--no-color', true, false],
      ['--color=never', true, false],
      ['+nocolor', true, false],
      ['--color=always', false, true],
      ['+color', false, true],
      ['--color=auto', false, false],
    ] as const) {
      const { out } = await runCommand(query, [...words, word], {}, { colour: terminal });
      assert.equal(out.includes('\u001b['), want, word);
    }
    const bad = await runCommand(query, [words[0]!, 'bad.example.com', '+color']);
    assert.ok(bad.out.includes('\u001b[31mSERVFAIL\u001b[0m'));
  });

  test('JSON contains the whole message: flags, TTL, size and raw bytes', async () => {
    const { out } = await ask('www.example.com', '--json');
    const document = JSON.parse(out) as Record<string, unknown>;
    assert.equal(document['kind'], 'Reply');
    assert.deepEqual(document['flags'], ['qr', 'aa', 'rd', 'ra']);
    assert.deepEqual(document['answer'], [
      { name: 'www.example.com.', type: 'A', class: 'IN', ttl: 30, data: '203.0.113.80' },
    ]);
    const bytes = Buffer.from(String(document['wire']), 'base64');
    assert.equal(bytes.length, document['size']);
    assert.equal(readMessage(bytes).answer.length, 1);
  });

  test('+short prints only the data', async () => {
    assert.equal((await ask('www.example.com', 'AAAA', '+short')).out, '2001:db8::80\n');
  });

  test('+noall +answer prints the records and nothing else', async () => {
    const { out } = await ask('www.example.com', '+noall', '+answer');
    assert.match(out, /^www\.example\.com\.\s+30\s+IN\s+A\s+203\.0\.113\.80\n$/);
    const bare = await ask('www.example.com', '+noall', '+answer', '+nottlid', '+noclass');
    assert.match(bare.out, /^www\.example\.com\.\s+A\s+203\.0\.113\.80\n$/);
  });

  test('+nocomments leaves the question and the records, +noquestion +nostats leave those out', async () => {
    const { out } = await ask('www.example.com', '+nocomments', '+nostats', '+noquestion');
    assert.match(out, /^www\.example\.com\.\s+30\s+IN\s+A\s+203\.0\.113\.80\n$/);
    const question = await ask('www.example.com', '+nocomments', '+nostats');
    assert.match(question.out, /^;www\.example\.com\.\s+IN\s+A\nwww/);
  });

  test('a server may be given by name', async () => {
    const { code, out } = await runCommand(query, [
      `@localhost:${server.port}`,
      '-4',
      'www.example.com',
    ]);
    assert.equal(code, 0);
    assert.match(out, new RegExp(`SERVER: 127\\.0\\.0\\.1#${server.port}\\(localhost\\)`));
    const nobody = await runCommand(query, ['@nobody.invalid', 'a']);
    assert.equal(nobody.code, 2);
    assert.match(nobody.err, /nobody\.invalid/);
  });

  test('several queries are all sent; the worst exit code counts', async () => {
    const { code, out } = await ask(
      '+short',
      'www.example.com',
      'nope.example.com',
      'www.example.com',
      'AAAA',
    );
    assert.equal(code, 1);
    assert.equal(out, '203.0.113.80\n2001:db8::80\n');
  });

  test('+bufsize=0 means no EDNS, as in dig', async () => {
    assert.doesNotMatch((await ask('www.example.com', '+bufsize=0', '+qr')).out, /OPT PSEUDO/);
    assert.match((await ask('www.example.com', '+qr')).out, /OPT PSEUDO/);
  });

  test('-o json prints a document', async () => {
    const document = JSON.parse((await ask('www.example.com', '-o', 'json')).out) as object;
    assert.ok(JSON.stringify(document).includes('203.0.113.80'));
  });

  test('a truncated answer is retried over TCP, except with +ignore', async () => {
    const { out } = await ask('big.example.com', '+short');
    assert.equal(out.trim().split('\n').length, 200);
    assert.deepEqual(server.asked.slice(-2), ['udp big.example.com. A', 'tcp big.example.com. A']);
    assert.equal((await ask('big.example.com', '+short', '+ignore')).out, '');
  });

  test('the exit code distinguishes answers, errors and timeouts', async () => {
    assert.equal((await ask('nope.example.com')).code, 1);
    assert.equal((await ask('bad.example.com')).code, 1);
    const silent = await ask('silent.example.com', '+timeout=1', '+tries=1');
    assert.equal(silent.code, 2);
    assert.match(silent.err, /^ndots query: /);
  });

  test('TCP is suggested only if nothing arrives over UDP', async () => {
    const silent = await ask('silent.example.com', '+timeout=1', '+tries=1');
    assert.match(silent.err, /no reply in 1 try of 1 s.*\n.*Try TCP: .*\+tcp/);
    const refused = await runCommand(query, ['@127.0.0.1:1', 'a.example']);
    assert.match(refused.err, /no server listens on that port/);
    assert.doesNotMatch(refused.err, /Try TCP/);
  });
});

test('reports an unreadable resolv.conf that was given', async () => {
  const { code, err } = await runCommand(query, ['www.example', '--resolv-conf', '/nowhere/conf']);
  assert.equal(code, 2);
  assert.match(err, /\/nowhere\/conf: cannot read the resolv\.conf: no such file or directory/);
});

describe('+search', () => {
  let server: LocalAnswers;
  const directory = mkdtempSync(join(tmpdir(), 'ndots-query-'));
  const conf = join(directory, 'resolv.conf');
  before(async () => {
    writeFileSync(conf, 'search a.test b.test\noptions ndots:2\n');
    server = await serveAnswers({
      rules: [
        { name: 'web.b.test', answer: '203.0.113.80' },
        { name: 'empty.a.test', answer: 'NODATA' },
        { name: 'empty.b.test', answer: '203.0.113.81' },
        { name: 'one.dot', answer: '203.0.113.82' },
      ],
    });
  });
  after(() => {
    rmSync(directory, { recursive: true });
    return server.close();
  });

  const asked = async (
    ...words: string[]
  ): Promise<{ names: string[]; out: string; code: number }> => {
    const count = server.asked.length;
    const { out, code } = await runCommand(query, [
      `@127.0.0.1:${server.port}`,
      '--resolv-conf',
      conf,
      ...words,
    ]);
    return { names: server.asked.slice(count).map((each) => each.split(' ')[1]!), out, code };
  };

  const cases: [words: string[], names: string[]][] = [
    [
      ['web', '+search'],
      ['web.a.test.', 'web.b.test.'],
    ],
    [['web'], ['web.']],
    [['web', '+search', '+nosearch'], ['web.']],
    [['web.', '+search'], ['web.']],
    [
      ['none', '+search'],
      ['none.a.test.', 'none.b.test.', 'none.'],
    ],
    [
      ['one.dot', '+search'],
      ['one.dot.a.test.', 'one.dot.b.test.', 'one.dot.'],
    ],
    [['one.dot', '+search', '+ndots=1'], ['one.dot.']],
    [['a.b.c', '+showsearch'], ['a.b.c.']],
    [['web.b', '+search', '+ndots=1'], ['web.b.']],
    [['web', '+domain=b.test'], ['web.b.test.']],
    [
      ['web', '+showsearch'],
      ['web.a.test.', 'web.b.test.'],
    ],
    // Unlike glibc, dig stops at an empty answer. Only NXDOMAIN makes it continue the search.
    [['empty', '+search'], ['empty.a.test.']],
    [['web', '+ndots=1'], ['web.']],
  ];
  for (const [words, names] of cases) {
    test(`${words.join(' ')}: ${names.join(' ')}`, async () => {
      assert.deepEqual((await asked(...words)).names, names);
    });
  }

  test('only the final reply is printed; with +showsearch all of them', async () => {
    assert.equal((await asked('web', '+search', '+short')).out, '203.0.113.80\n');
    assert.equal((await asked('web', '+search')).out.match(/->>HEADER<<-/g)?.length, 1);
    assert.equal((await asked('web', '+showsearch')).out.match(/->>HEADER<<-/g)?.length, 2);
    assert.equal((await asked('none', '+search')).code, 1);
  });
});

describe('+trace', () => {
  let zones: DelegatedZones;
  before(async () => {
    zones = await serveDelegatedZones();
  });
  after(() => zones.close());
  const trace = (...words: string[]) =>
    runCommand(query, [`@127.0.0.1`, '-p', String(zones.port), '+trace', ...words]);

  test('follows delegations from the root to the zone of the name, with and without glue', async () => {
    const { code, out, err } = await trace('www.example.test');
    assert.equal(code, 0, err);
    const from = [...out.matchAll(/^;; Received \d+ bytes from (\S+)#\d+\((\S+)\) in \d+ ms$/gm)];
    assert.deepEqual(
      from.map(([, address, name]) => `${address} ${name}`),
      ['127.0.0.1 127.0.0.1', '127.0.0.1 a.root', '127.0.0.2 ns.test', '127.0.0.3 ns.elsewhere'],
    );
    assert.match(out, /^test\.\t+60\tIN\tNS\tns\.test\.$/m);
    assert.match(out, /^www\.example\.test\.\t60\tIN\tA\t203\.0\.113\.80$/m);
    assert.match(out, /ndots trace NAME/);
  });

  test('+short prints only the answer, JSON all replies', async () => {
    assert.equal((await trace('www.example.test', '+short')).out, '203.0.113.80\n');
    const list = JSON.parse((await trace('www.example.test', '--json')).out) as unknown[];
    assert.equal(list.length, 4);
  });

  test('ends at a name that does not exist or has no record of the type', async () => {
    const gone = await trace('gone.example.test');
    assert.equal(gone.code, 1);
    assert.match(gone.out, /status: NXDOMAIN/);
    assert.equal((await trace('www.example.test', 'AAAA')).code, 0);
    assert.equal((await trace('nothing.invalid')).code, 1);
  });

  test('ends at a delegation that makes no progress', async () => {
    const { code, out } = await trace('x.loop.test');
    assert.equal(code, 1);
    assert.match(out, /refers to test\., which is not under test\./);
  });

  test('reports that no server answered', async () => {
    const { code, err } = await runCommand(query, ['@127.0.0.1', '-p', '1', '+trace', 'a.test']);
    assert.equal(code, 2);
    assert.match(err, /no answer from 127\.0\.0\.1#1/);
  });
});

test('a zone arrives record by record, in any number of messages', async (t) => {
  const soa = {
    mname: 'ns.example.',
    rname: 'root.example.',
    serial: 7,
    refresh: 1,
    retry: 1,
    expire: 1,
    minimum: 1,
  };
  const zone: DnsRecord = { name: 'example.', type: 6, class: 1, ttl: 60, data: soa };
  const host = (n: number): DnsRecord => ({
    name: `h${n}.example.`,
    type: 1,
    class: 1,
    ttl: 60,
    data: { address: `10.0.0.${n}` },
  });
  const parts = [[zone, host(1)], [host(2), host(3)], [zone]];
  const server = createServer((stream) => {
    stream.once('data', (bytes: Buffer) => {
      const { id, question } = readMessage(bytes.subarray(2));
      for (const answer of question[0]?.name === 'empty.' ? [[zone], [], [zone]] : parts) {
        const flags = FLAG.QR | FLAG.AA;
        const none = { authority: [], additional: [], edns: null, rcode: 0 };
        const message = Buffer.from(writeMessage({ id, flags, question, answer, ...none }));
        stream.write(
          Buffer.concat([Buffer.from([message.length >> 8, message.length & 255]), message]),
        );
      }
    });
    stream.on('error', () => {});
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  const { port } = server.address() as AddressInfo;
  const { code, out } = await runCommand(query, [`@127.0.0.1:${port}`, 'example.', 'AXFR']);
  assert.equal(code, 0);
  assert.equal(out.match(/^h\d\.example\./gm)?.length, 3);
  assert.match(out, /^;; XFR size: 5 records \(messages 3, bytes \d+\)$/m);
  const empty = await runCommand(query, [`@127.0.0.1:${port}`, 'empty.', 'AXFR']);
  assert.equal(empty.code, 1);
  assert.match(empty.out, /^; Transfer failed: a message without records\.$/m);
});

describe('a zone transfer that never ends', () => {
  /** A primary that sends single-record messages forever, starting with an SOA record. */
  async function endlessPrimary(t: TestContext): Promise<{ port: number; sent: () => number }> {
    let sent = 0;
    const server = createServer((stream) => {
      stream.on('error', () => {});
      stream.once('data', (bytes: Buffer) => {
        const { id, question } = readMessage(bytes.subarray(2));
        const record = (type: number, data: object): DnsRecord =>
          ({ name: 'example.', type, class: 1, ttl: 60, data }) as DnsRecord;
        const times = { refresh: 1, retry: 1, expire: 1, minimum: 1 };
        const soa = record(6, { mname: 'ns.', rname: 'root.', serial: 7, ...times });
        const framed = (answer: DnsRecord[]): Buffer => {
          const none = { authority: [], additional: [], edns: null, rcode: 0 };
          const flags = FLAG.QR | FLAG.AA;
          const message = Buffer.from(writeMessage({ id, flags, question, answer, ...none }));
          return Buffer.concat([Buffer.from([message.length >> 8, message.length & 255]), message]);
        };
        const rest = framed([record(1, { address: '10.0.0.1' })]);
        stream.write(framed([soa]));
        const more = (): void => {
          while (!stream.destroyed && stream.write(rest)) sent++;
        };
        stream.on('drain', more);
        more();
      });
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    t.after(() => server.close());
    return { port: (server.address() as AddressInfo).port, sent: () => sent };
  }

  for (const words of [[], ['+short'], ['-o', 'json']])
    test(`ends after --max-records ${words.join(' ')}`, async (t) => {
      const { port } = await endlessPrimary(t);
      const at = [`@127.0.0.1:${port}`, 'example.', 'AXFR', '--max-records', '500', ...words];
      const { code, out, err } = await runCommand(query, at);
      assert.equal(code, 2);
      assert.match(err, /has not ended after 500 records[^]*--max-records/);
      if (words.includes('json')) assert.equal((JSON.parse(out) as unknown[]).length, 500);
      else assert.equal(out.match(/\n/g)?.length, 500);
    });

  test('is read no faster than its output is consumed', async (t) => {
    const { port, sent } = await endlessPrimary(t);
    let printed = 0;
    let release = (): void => undefined;
    let asked = (): void => undefined;
    const io: Io = {
      out: () => void printed++,
      err: () => undefined,
      // Accepts each message only once the test allows it.
      taken: () =>
        new Promise<void>((resolve) => {
          release = resolve;
          asked();
        }),
      progress: () => undefined,
      env: {},
      colour: false,
      columns: 100,
      signal: new AbortController().signal,
      stdin: () => Promise.resolve(''),
      program: 'ndots',
    };
    const next = (): Promise<void> => new Promise((resolve) => (asked = resolve));
    const first = next();
    const words = [`@127.0.0.1:${port}`, 'example.', 'AXFR', '--max-records', '4'];
    const ended = query.run(words, io);
    await first;
    // Wait until the connection's buffers are full and the server has stopped sending.
    for (let before = -1; sent() !== before; await new Promise((done) => setTimeout(done, 50)))
      before = sent();
    assert.equal(printed, 1);
    const second = next();
    release();
    await second;
    assert.equal(printed, 2);
    const third = next();
    release();
    await third;
    release();
    assert.equal(await ended, 2);
    assert.equal(printed, 4);
  });
});

describe('queries of a file (-f)', () => {
  let server: LocalAnswers;
  const directory = mkdtempSync(join(tmpdir(), 'ndots-batch-'));
  before(async () => {
    server = await serveAnswers({ rules: [{ name: '*', answer: '192.0.2.7' }] });
  });
  after(async () => {
    rmSync(directory, { recursive: true });
    await server.close();
  });
  const run = (text: string, ...words: readonly string[]) => {
    const path = join(directory, 'names.txt');
    writeFileSync(path, text);
    return runCommand(query, [`@127.0.0.1:${server.port}`, '-f', path, ...words]);
  };

  test('are sent as if given on the command line, with its options', async () => {
    const before = server.asked.length;
    const { out, err, code } = await run(
      'a.example\n\n# b.example\n; c.example\nd.example MX +tcp\r\n',
      '+short',
    );
    assert.equal(err, '');
    assert.equal(code, 0);
    assert.deepEqual(server.asked.slice(before), ['udp a.example. A', 'tcp d.example. MX']);
    assert.match(out, /^192\.0\.2\.7$/m);
  });

  test('with errors are reported with their line, and the others are sent', async () => {
    const { out, err, code } = await run('a.example +nonsense\nb.example\n', '+short');
    assert.equal(code, 3);
    assert.match(err, /unknown option \+nonsense\n {2}at .*names\.txt:1/);
    assert.equal(out, '192.0.2.7\n');
  });

  test('may come through a pipe; an additional name and an empty file are errors', async () => {
    const at = `@127.0.0.1:${server.port}`;
    const { out } = await runCommand(query, [at, '-f', '-', '+short'], {}, {}, 'p.example\n');
    assert.equal(out, '192.0.2.7\n');
    assert.match((await run('', 'x.example')).err, /"x\.example" cannot be combined with -f/);
    assert.equal((await run('# nothing\n')).code, 2);
  });
});

describe('a query from an address of the machine (-b)', () => {
  test('is sent from there, over UDP and TCP', async () => {
    const socket = createSocket('udp4');
    socket.bind(0, '127.0.0.1');
    await once(socket, 'listening');
    const from = once(socket, 'message') as Promise<[Buffer, { address: string; port: number }]>;
    const [own] = await freePorts(1);
    const words = ['a.example', '+tries=1', '--timeout', '50ms'];
    const at = `@127.0.0.1:${socket.address().port}`;
    await runCommand(query, [at, '-b', `127.0.0.2#${own}`, ...words]);
    const [, { address, port }] = await from;
    socket.close();
    assert.deepEqual([address, port], ['127.0.0.2', own]);

    let remoteAddress: string | undefined;
    const server = createServer((connection) => {
      ({ remoteAddress } = connection);
      connection.destroy();
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port: tcp } = server.address() as AddressInfo;
    await runCommand(query, [`@127.0.0.1:${tcp}`, '+tcp', '-b', '127.0.0.3', 'a.example']);
    server.close();
    assert.equal(remoteAddress, '127.0.0.3');
  });

  test('that is missing, or of the other family, is reported', async () => {
    const foreign = await runCommand(query, ['@127.0.0.1:1', '-b', '192.0.2.99', 'a.example']);
    assert.match(foreign.err, /this machine does not have the -b address/);
    const other = await runCommand(query, ['@127.0.0.1:1', '-b', '::1', 'a.example']);
    assert.match(other.err, /127\.0\.0\.1 is an IPv4 address, and -b ::1 is not/);
  });
});

describe('a signed query (-y, -k)', () => {
  const secret = 'c2VjcmV0IG9mIHRoaXMgdGVzdCBhbmQgbm8gb3RoZXI=';
  const directory = mkdtempSync(join(tmpdir(), 'ndots-tsig-'));
  after(() => rmSync(directory, { recursive: true }));
  const file = (name: string, text: string): string => {
    writeFileSync(join(directory, name), text);
    return join(directory, name);
  };
  const zone = file(
    'zone',
    '$ORIGIN example.org.\n@ 60 SOA ns h 1 1 1 1 1\n@ 60 NS ns\nwww 60 A 192.0.2.1\n',
  );
  const directives = `file ${zone} example.org\n transfer {\n  to *\n }\n tsig {\n  secret k. ${secret}\n  require all\n }`;

  test('is answered, and its reply is verified; this includes zone transfers', async () => {
    const server = await serveProcess(directives);
    try {
      const at = `@127.0.0.1:${server.port}`;
      const good = await runCommand(query, [at, 'www.example.org', '-y', `k:${secret}`, '+short']);
      assert.deepEqual([good.code, good.out, good.err], [0, '192.0.2.1\n', '']);
      const written = file('key', `key "k" { algorithm hmac-sha512; secret "${secret}"; };\n`);
      const signed = await runCommand(query, [at, 'www.example.org', '-k', written]);
      assert.equal(signed.code, 0);
      assert.match(signed.out, /TSIG\s+hmac-sha512\./);
      const zoneOf = await runCommand(query, [
        at,
        'example.org',
        'AXFR',
        '-y',
        `hmac-sha1:k:${secret}`,
      ]);
      assert.equal(zoneOf.code, 0);
      assert.match(zoneOf.out, /^www\.example\.org\.\s+60\s+IN\s+A\s+192\.0\.2\.1$/m);

      const wrong = await runCommand(query, [at, 'www.example.org', '-y', 'k:d3Jvbmc=']);
      assert.equal(wrong.code, 2);
      assert.match(wrong.out, /status: NOTAUTH/);
      assert.match(
        wrong.err,
        /is not authenticated: the server reports BADSIG: its secret for the key "k\." is different/,
      );
      const unknown = await runCommand(query, [at, 'example.org', 'AXFR', '-y', `other:${secret}`]);
      assert.equal(unknown.code, 2);
      assert.match(unknown.err, /the server reports BADKEY/);
    } finally {
      await server.stop();
    }
  });

  test('parses a key, and reports errors in it', async () => {
    for (const [word, why] of [
      ['k', /needs a key’s name and secret/],
      ['hmac-md5:k:YQ==', /hmac-md5 must no longer be used/],
      ['hmac-sha257:k:YQ==', /there is no algorithm "hmac-sha257"/],
      ['k:???', /the secret of key "k" is not base64/],
    ] as const) {
      const { code, err } = await runCommand(query, ['a.example', '-y', word]);
      assert.equal(code, 3);
      assert.match(err, why);
    }
    assert.match(
      (await runCommand(query, ['a.example', '-k', '/nowhere/key'])).err,
      /key file \/nowhere\/key cannot be read/,
    );
  });
});

test('TLS and HTTPS to a port without TLS fail with an explanation', async (t) => {
  const ends = {
    'HTTP/1.1 400 Bad Request\r\n\r\n': /the other side does not use TLS/,
    '': /(?:closed|dropped) the connection/,
  };
  for (const [said, expected] of Object.entries(ends)) {
    const server = createServer((socket) => {
      socket.on('error', () => {});
      socket.once('data', () => socket.end(said));
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    t.after(() => server.close());
    const { port } = server.address() as AddressInfo;
    for (const url of [`tls://127.0.0.1:${port}`, `https://127.0.0.1:${port}/dns-query`]) {
      const { code, err } = await runCommand(query, ['a.test', `@${url}`]);
      assert.equal(code, 2, err);
      assert.match(err, expected, url);
      assert.doesNotMatch(err, /error:0A|routines|socket disconnected/, url);
    }
  }
});
