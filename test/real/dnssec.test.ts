import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test, type TestContext } from 'node:test';
import { seededRandom } from '../../src/server/base/random.ts';
import { FLAG, RCODE, TYPE, rcodeName, typeNumber } from '../../src/server/wire/iana.ts';
import { dataOf, readMessage, writeMessage, type Message } from '../../src/server/wire/message.ts';
import { printRecord } from '../../src/server/wire/print.ts';
import { nsec, rrsig } from '../../src/server/wire/record/table.ts';
import { printed, start } from '../kit/child.ts';
import { corednsPath } from '../kit/etcd.ts';
import { randomZone } from '../kit/random-zone.ts';
import { hasProgram } from '../kit/real-resolver.ts';
import { freePorts } from '../kit/free-ports.ts';
import { serveProcess, type ServeProcess } from '../kit/serve-process.ts';
import { delv, ValidatingUnbound, type TrustAnchor } from '../kit/validators.ts';
import { UdpClient } from '../kit/zone-servers.ts';

/** The output of `dnssec` and `sign`, checked by validating programs, with keys that `dnssec-keygen` generated. */

function missing(...programs: readonly string[]): string | false {
  const none = programs.filter((program) => !hasProgram(program));
  return none.length > 0 && `needs ${none.join(' and ')}`;
}

function workDirectory(t: TestContext): string {
  const directory = mkdtempSync(join(tmpdir(), 'ndots-dnssec-real-'));
  t.after(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

interface Key extends TrustAnchor {
  /** A path without suffix. */
  readonly base: string;
}

function keygen(
  directory: string,
  zone: string,
  algorithm: string,
  ...more: readonly string[]
): Key {
  const words = ['-q', '-K', directory, '-a', algorithm, ...more, zone];
  const base = join(directory, execFileSync('dnssec-keygen', words, { encoding: 'utf8' }).trim());
  const record = readFileSync(`${base}.key`, 'utf8')
    .split('\n')
    .find((line) => /\sDNSKEY\s/.test(line))!;
  return { base, zone, key: record.split(/\sDNSKEY\s/)[1]!.trim() };
}

async function served(t: TestContext, directives: string): Promise<ServeProcess> {
  const server = await serveProcess(`errors\n${directives}`);
  t.after(() => server.stop());
  return server;
}

async function validator(
  t: TestContext,
  directory: string,
  server: number,
  anchors: readonly TrustAnchor[],
  more: readonly string[] = [],
): Promise<ValidatingUnbound> {
  const [port] = await freePorts(1);
  const unbound = await ValidatingUnbound.start(directory, port!, server, anchors, more);
  t.after(() => unbound.close());
  return unbound;
}

const isSecure = (reply: Message): boolean => (reply.flags & FLAG.AD) !== 0;

/**
 * If type DNAME is queried under a DNAME, Unbound 1.17 requires a signature on the synthesised CNAME, which has none.
 * It does so even if Knot serves the zone.
 */
const asksBelowDname = / DNAME IN>: no signatures for CNAME/;

/** Checks that every question is answered and validated. */
async function judge(
  unbound: ValidatingUnbound,
  questions: readonly string[],
): Promise<{ readonly secure: number; readonly denied: number }> {
  let secure = 0;
  let denied = 0;
  for (const question of questions) {
    const reply = await unbound.ask(question);
    const told = `${question}: ${rcodeName(reply.rcode)}\n${unbound.log.split('\n').slice(-3).join('\n')}`;
    assert.notEqual(reply.rcode, RCODE.SERVFAIL, told);
    assert.ok(isSecure(reply), `${told} is not secure`);
    secure++;
    if (reply.answer.length === 0) denied++;
  }
  return { secure, denied };
}

const zone = `$TTL 300
@ 3600 SOA ns hostmaster 1 7200 3600 1209600 60
@ NS ns
@ MX 10 mail
ns A 192.0.2.1
mail AAAA 2001:db8::25
_sip._tcp SRV 1 2 5060 mail
$GENERATE 1-60 host-\${0,2} A 192.0.2.$
$GENERATE 1-60 alias-\${0,2} CNAME host-\${0,2}
$GENERATE 1-20 lost-\${0,2} CNAME nothing-\${0,2}
*.wild A 192.0.2.9
*.wild TXT "Wild"
deep.below.empty TXT "x"
old DNAME new
x.new A 192.0.2.6
CAPS PTR MAIL
service HTTPS 1 Mail alpn=h2
caa CAA 0 issue "x.example"
cut NS ns.cut
ns.cut A 192.0.2.5
*.b\\.c TXT "dot"
`;

/**
 * Combinations of names and types, most of which do not exist. Unbound queries only the parent zone for DS records, and
 * does not accept a DNAME's alias as the answer to a CNAME question.
 */
function questionsOf(origin: string): readonly string[] {
  const two = (i: number): string => String(i).padStart(2, '0');
  const names = [
    ...['', 'ns.', 'mail.', '_sip._tcp.', 'empty.', 'below.empty.', 'x.old.', 'y.old.', 'old.'],
    ...['any.wild.', 'a.b.wild.', 'wild.', 'caps.', 'service.', 'caa.', 'x.b\\.c.', 'None.'],
    ...Array.from({ length: 12 }, (_, i) => `host-${two(i + 1)}.`),
    ...Array.from({ length: 12 }, (_, i) => `alias-${two(i + 1)}.`),
    ...Array.from({ length: 4 }, (_, i) => `lost-${two(i + 1)}.`),
    ...Array.from({ length: 10 }, (_, i) => `none-${i}.`),
    `${'l'.repeat(63)}.${'m'.repeat(63)}.${'n'.repeat(63)}.${'o'.repeat(250 - 3 * 64 - origin.length)}.`,
  ];
  const types = [
    'A',
    'AAAA',
    'MX',
    'TXT',
    'SRV',
    'CNAME',
    'PTR',
    'DS',
    'HTTPS',
    'CAA',
    'SOA',
    'NS',
  ];
  return names
    .flatMap((name) => types.map((type) => `${name}${origin} ${type}`))
    .filter((question) => question !== `${origin} DS` && !/^[xy]\.old\..* CNAME$/.test(question));
}

describe('dnssec, validated by Unbound', { skip: missing('unbound', 'dnssec-keygen') }, () => {
  const algorithms = ['RSASHA256', 'RSASHA512', 'ECDSAP256SHA256', 'ECDSAP384SHA384', 'ED25519'];
  for (const algorithm of algorithms)
    test(`a zone file with ${algorithm}: names × types are secure`, async (t) => {
      const directory = workDirectory(t);
      writeFileSync(join(directory, 'db'), zone);
      const bits = algorithm.startsWith('RSA') ? ['-b', '2048'] : [];
      const key = keygen(directory, 'example.test.', algorithm, '-f', 'KSK', ...bits);
      const server = await served(
        t,
        `file ${directory}/db example.test\ndnssec example.test {\n key file ${key.base}\n}`,
      );
      const unbound = await validator(t, directory, server.port, [key]);
      const step = algorithm === 'ECDSAP256SHA256' ? 1 : 5;
      const questions = questionsOf('example.test.').filter((_, i) => i % step === 0);
      const { secure, denied } = await judge(unbound, questions);
      t.diagnostic(`${secure} secure, ${denied} of them denials`);
      assert.ok(secure > 500 / step && denied > 300 / step);
      // The child zone is provably unsigned, so there is neither SERVFAIL nor AD.
      for (const question of ['cut.example.test. DS', 'none.example.test. DS'])
        assert.ok(isSecure(await unbound.ask(question)), question);
    });

  test('a split into KSK and ZSK, and random zones with cuts, aliases and wildcards', async (t) => {
    const directory = workDirectory(t);
    const [port] = await freePorts(1);
    // The directive may only be used once per block, so each zone has its own block.
    const blocks: string[] = [];
    const anchors: TrustAnchor[] = [];
    const questions: string[] = [];
    for (let i = 0; i < 6; i++) {
      const origin = `z${i}.test.`;
      const made = randomZone(seededRandom(4000 + i), origin, 150);
      writeFileSync(join(directory, `${i}.db`), made.text);
      const ksk = keygen(directory, origin, 'ECDSAP256SHA256', '-f', 'KSK');
      const zsk = keygen(directory, origin, 'ECDSAP256SHA256');
      anchors.push(ksk);
      questions.push(...made.questions);
      blocks.push(
        `${origin}:${port} {\n bind 127.0.0.1\n file ${directory}/${i}.db\n dnssec {\n key file ${zsk.base} ${ksk.base}\n }\n}\n`,
      );
    }
    const corefile = join(directory, 'Corefile');
    writeFileSync(corefile, blocks.join(''));
    const child = start('ndots', [
      join(import.meta.dirname, '../../bin/ndots'),
      'serve',
      '-conf',
      corefile,
    ]);
    t.after(() => child.stop());
    await printed(child, /ndots-\d/, 20_000);
    const unbound = await validator(t, directory, port!, anchors);
    let failed = 0;
    let secure = 0;
    for (const question of questions) {
      const reply = await unbound.ask(question);
      if (isSecure(reply)) secure++;
      // A chain may lead to a name that is not served, but no result may be bogus.
      if (reply.rcode === RCODE.SERVFAIL) failed++;
    }
    const bogus = unbound.log.split('\n').filter((line) => line.includes('validation failure'));
    assert.deepEqual(bogus, []);
    t.diagnostic(`${questions.length} questions, ${secure} secure, ${failed} lead nowhere`);
    assert.ok(secure > questions.length / 2);
  });

  test('a cluster: services, pods, reverse names and missing names', async (t) => {
    const directory = workDirectory(t);
    mkdirSync(join(directory, 'objects'));
    const services = Array.from(
      { length: 20 },
      (_, i) =>
        `apiVersion: v1\nkind: Service\nmetadata: {name: svc-${i}, namespace: shop}\nspec:\n  clusterIP: 10.96.1.${i}\n  clusterIPs: [10.96.1.${i}]\n  ports: [{name: http, port: 80, protocol: TCP}]\n`,
    );
    writeFileSync(
      join(directory, 'objects/all.yaml'),
      ['apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n', ...services].join('---\n'),
    );
    const forward = keygen(directory, 'cluster.test.', 'ECDSAP256SHA256', '-f', 'KSK');
    const reverse = keygen(directory, '96.10.in-addr.arpa.', 'ED25519', '-f', 'KSK');
    const [port] = await freePorts(1);
    const corefile = join(directory, 'Corefile');
    const block = (origin: string, { base }: Key): string =>
      `${origin}:${port} {\n bind 127.0.0.1\n errors\n kubernetes cluster.test 96.10.in-addr.arpa {\n manifests ${directory}/objects\n pods insecure\n }\n dnssec {\n key file ${base}\n }\n cache 30\n}\n`;
    writeFileSync(corefile, block('cluster.test', forward) + block('96.10.in-addr.arpa', reverse));
    const child = start('ndots', [
      join(import.meta.dirname, '../../bin/ndots'),
      'serve',
      '-conf',
      corefile,
    ]);
    t.after(() => child.stop());
    await printed(child, /ndots-\d/, 20_000);
    const unbound = await validator(t, directory, port!, [forward, reverse]);
    const names = Array.from({ length: 20 }, (_, i) => [
      `svc-${i}.shop.svc.cluster.test.`,
      `none-${i}.shop.svc.cluster.test.`,
      `_http._tcp.svc-${i}.shop.svc.cluster.test.`,
      `10-244-0-${i}.shop.pod.cluster.test.`,
      `${i}.1.96.10.in-addr.arpa.`,
      `${i}.2.96.10.in-addr.arpa.`,
    ]).flat();
    const more = [
      'cluster.test.',
      'svc.cluster.test.',
      'shop.svc.cluster.test.',
      'none.cluster.test.',
    ];
    const questions = [...names, ...more]
      .flatMap((name) => ['A', 'AAAA', 'SRV', 'PTR', 'TXT', 'DS'].map((type) => `${name} ${type}`))
      .filter((question) => question !== 'cluster.test. DS');
    const { secure, denied } = await judge(unbound, questions);
    t.diagnostic(`${secure} secure, ${denied} of them denials`);
    assert.equal(secure, questions.length);
  });

  test('a resolver that uses proofs for other questions does not deny existing names', async (t) => {
    const directory = workDirectory(t);
    writeFileSync(join(directory, 'db'), zone);
    const key = keygen(directory, 'example.test.', 'ECDSAP256SHA256', '-f', 'KSK');
    const server = await served(
      t,
      `file ${directory}/db example.test\ndnssec example.test {\n key file ${key.base}\n}`,
    );
    const unbound = await validator(t, directory, server.port, [key], ['aggressive-nsec: yes']);
    const there = ['caps PTR', 'service HTTPS', 'caa CAA', 'mail AAAA', 'host-01 A'];
    for (const question of there) {
      const [name, type] = question.split(' ');
      await unbound.ask(`${name}.example.test. LOC`);
      const reply = await unbound.ask(`${name}.example.test. ${type}`);
      assert.ok(reply.answer.length > 0, question);
    }
  });
});

describe('dnssec, validated by delv', { skip: missing('delv', 'dnssec-keygen') }, () => {
  test('answers and denials are fully validated', async (t) => {
    const directory = workDirectory(t);
    writeFileSync(join(directory, 'db'), zone);
    const key = keygen(directory, 'example.test.', 'ED25519', '-f', 'KSK');
    const server = await served(
      t,
      `file ${directory}/db example.test\ndnssec example.test {\n key file ${key.base}\n}`,
    );
    const questions = questionsOf('example.test.').filter((_, i) => i % 31 === 0);
    for (const question of questions)
      assert.match(await delv(directory, server.port, key, question), /fully validated/, question);
    t.diagnostic(`${questions.length} questions`);
  });
});

const coredns = corednsPath();

describe(
  'dnssec compared with CoreDNS',
  {
    skip:
      coredns === null
        ? 'CoreDNS is not there (coredns on PATH, or COREDNS=FILE)'
        : missing('dnssec-keygen'),
  },
  () => {
    test('the same keys, the same records with signatures of the same fields', async (t) => {
      const directory = workDirectory(t);
      writeFileSync(
        join(directory, 'db'),
        zone.replace('3600 SOA', '60 SOA').replaceAll(/^\$GENERATE.*\n/gm, '') +
          'host-01 A 192.0.2.1\nalias-01 CNAME host-01\n',
      );
      const key = keygen(directory, 'example.test.', 'ECDSAP256SHA256', '-f', 'KSK');
      const body = `file ${directory}/db example.test\ndnssec example.test {\n key file ${key.base}\n}`;
      const server = await served(t, body);
      const [port] = await freePorts(1);
      const corefile = join(directory, 'Corefile');
      writeFileSync(corefile, `.:${port} {\n bind 127.0.0.1\n ${body}\n}\n`);
      const child = start('coredns', [coredns!, '-conf', corefile]);
      t.after(() => child.stop());
      await printed(child, /CoreDNS-/, 20_000);
      const ours = new UdpClient(server.port);
      const theirs = new UdpClient(port!);
      t.after(() => {
        ours.close();
        theirs.close();
      });
      const ask = async (client: UdpClient, question: string): Promise<Message> => {
        const [name, type] = question.split(' ') as [string, string];
        return readMessage(
          await client.ask(
            writeMessage({
              id: 7,
              flags: FLAG.RD,
              rcode: 0,
              answer: [],
              authority: [],
              additional: [],
              question: [
                {
                  name: `${name}.example.test.`.replace(/^@\./, ''),
                  type: typeNumber(type)!,
                  class: 1,
                },
              ],
              edns: { udpSize: 4096, version: 0, dnssecOk: true, options: [] },
            }),
          ),
        );
      };
      /** Leaves out random and time-dependent parts, as well as the types listed in a proof. */
      const essence = (reply: Message): object => {
        const lines = (records: Message['answer']): string[] =>
          records
            .map((record) => {
              const signature = dataOf(record, rrsig);
              const denial = dataOf(record, nsec);
              if (signature !== null) {
                const { typeCovered, algorithm, labels, originalTtl, keyTag, signer } = signature;
                return [
                  record.name,
                  record.ttl,
                  'RRSIG',
                  typeCovered,
                  algorithm,
                  labels,
                  originalTtl,
                  keyTag,
                  signer,
                ].join(' ');
              }
              if (denial !== null) return [record.name, record.ttl, 'NSEC', denial.next].join(' ');
              // CoreDNS stores all names from a file in lower case.
              return printRecord(record).replaceAll(/\s+/g, ' ').toLowerCase();
            })
            .toSorted();
        const { rcode, answer, authority } = reply;
        return { rcode, answer: lines(answer), authority: lines(authority) };
      };
      const questions = [
        ...[
          'host-01 A',
          'host-01 AAAA',
          'none A',
          'alias-01 A',
          '@ DNSKEY',
          '@ SOA',
          '@ NS',
          '@ MX',
        ],
        ...[
          'any.wild A',
          'any.wild MX',
          'empty.none A',
          'service HTTPS',
          'caa CAA',
          '_sip._tcp SRV',
          'none NSEC',
        ],
      ];
      for (const question of questions)
        assert.deepEqual(
          essence(await ask(ours, question)),
          essence(await ask(theirs, question)),
          question,
        );
      // Documented differences.
      const isCut = (reply: Message): boolean =>
        reply.authority.some((record) => dataOf(record, nsec)?.types.includes(TYPE.NS) === true);
      assert.equal(isCut(await ask(theirs, 'host-01 DS')), true);
      assert.equal(isCut(await ask(ours, 'host-01 DS')), false);
      assert.equal(isCut(await ask(ours, 'cut DS')), true);
    });
  },
);

describe(
  'sign, checked by validators of zones',
  { skip: missing('dnssec-keygen', 'named-checkzone', 'ldns-verify-zone', 'dnssec-verify') },
  () => {
    test('random zones are whole, for every algorithm, and served securely', async (t) => {
      const directory = workDirectory(t);
      mkdirSync(join(directory, 'signed'));
      const algorithms = [
        'ECDSAP256SHA256',
        'RSASHA256',
        'ED25519',
        'ECDSAP384SHA384',
        'RSASHA512',
      ];
      const lines: string[] = [];
      const anchors: Key[] = [];
      const questions: string[] = [];
      for (const [i, algorithm] of algorithms.entries()) {
        const origin = `s${i}.test.`;
        const made =
          i === 0
            ? { text: zone, questions: questionsOf(origin) }
            : randomZone(seededRandom(5000 + i), origin, 150);
        writeFileSync(join(directory, `${i}.db`), made.text);
        const key = keygen(
          directory,
          origin,
          algorithm,
          '-f',
          'KSK',
          ...(algorithm.startsWith('RSA') ? ['-b', '2048'] : []),
        );
        anchors.push(key);
        lines.push(
          `sign ${directory}/${i}.db ${origin} {\n key ${i % 2 === 0 ? `file ${key.base}` : `directory ${directory}`}\n directory ${directory}/signed\n}`,
          `file ${directory}/signed/db.${origin}signed ${origin}`,
        );
        questions.push(...made.questions);
      }
      const server = await served(t, lines.join('\n'));
      for (const { zone: origin } of anchors) {
        const file = join(directory, 'signed', `db.${origin}signed`);
        const told = (program: string, ...words: string[]): void => {
          const { status, stdout, stderr } = spawnSync(program, words, { encoding: 'utf8' });
          assert.equal(status, 0, `${program} ${origin}: ${stdout}${stderr}`);
        };
        told('named-checkzone', '-i', 'none', origin, file);
        told('ldns-verify-zone', file);
        told('dnssec-verify', '-z', '-o', origin, file);
      }
      assert.deepEqual(
        readdirSync(join(directory, 'signed')).filter((name) => name.endsWith('.new')),
        [],
      );
      if (!hasProgram('unbound')) return;
      const unbound = await validator(t, directory, server.port, anchors);
      let secure = 0;
      for (const question of questions) if (isSecure(await unbound.ask(question))) secure++;
      const bogus = unbound.log
        .split('\n')
        .filter((line) => line.includes('validation failure') && !asksBelowDname.test(line));
      assert.deepEqual(bogus, []);
      t.diagnostic(`${questions.length} questions, ${secure} secure`);
      assert.ok(secure > questions.length / 2);
    });
  },
);
