import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test, type TestContext } from 'node:test';
import { costsAtMost } from '../../../test/kit/growth.ts';
import { Problem } from '../base/problem.ts';
import { printRecord } from './print.ts';
import { parseRecord, parseZone, type ZoneTextParts } from './zone-text.ts';

function lines(text: string, parts: Partial<ZoneTextParts> = {}): string[] {
  return [...parseZone(text, { file: 'db.example', ...parts })].map((record) =>
    printRecord(record).replace(/[\t ]+/g, ' '),
  );
}

function problem(text: string, parts: Partial<ZoneTextParts> = {}): string {
  try {
    lines(text, parts);
  } catch (error) {
    assert.ok(error instanceof Problem, String(error));
    return error.message;
  }
  return assert.fail('there was no problem');
}

/** Based on RFC 1035, section 5.3, with additions from later RFCs. */
const example = `
$ORIGIN ISI.EDU.
$TTL 1h30m        ; for what follows
@   IN  SOA     VENERA      Action\\.domains (
                                 20     ; SERIAL
                                 2h     ; REFRESH
                                 600    ; RETRY
                                 1W     ; EXPIRE
                                 60)    ; MINIMUM

        NS      A.ISI.EDU.
        NS      VENERA
        MX      10      VENERA
A       A       26.3.0.103
VENERA  60 IN A 10.1.0.52
        IN 60   A       128.9.0.32
text    TXT     ( "one ; not a comment"
                  two\\;three "and \\"four\\"" )
_svc._tcp SRV   0 5 80 a
svc     HTTPS   1 . alpn="h2,h3" port=8443
odd     TYPE65280 \\# 4 ( 0a00
                        0001 )
also    A       \\# 4 0a000002
*       CNAME   @
`;

describe('zone files', () => {
  test("$GENERATE creates a record for each number, in BIND's formats", () => {
    const made = (line: string): string[] => lines(line, { origin: 'example.', ttl: 1 });
    assert.deepEqual(made('$GENERATE 1-5/2 h$ A 192.0.2.$'), [
      'h1.example. 1 IN A 192.0.2.1',
      'h3.example. 1 IN A 192.0.2.3',
      'h5.example. 1 IN A 192.0.2.5',
    ]);
    assert.deepEqual(made('$GENERATE 30-30 h${1,4,x}-${0,0,o} 9 TXT "$$ ${-10}"'), [
      'h001f-36.example. 9 IN TXT "$ 20"',
    ]);
    assert.deepEqual(made('$GENERATE 18-18 ${0,5,n} PTR h${0,3}'), [
      '2.1.0.example. 1 IN PTR h018.example.',
    ]);
    assert.match(problem('$GENERATE 5-1 a A 192.0.2.$'), /:1:11: the range must be/);
    assert.match(problem('$GENERATE 1-2 ${x} A 192.0.2.1'), /:1:15: a format after \$/);
    assert.match(problem('$GENERATE 0-4000000 $ A 192.0.2.1'), /more than 4000000 records/);
    assert.match(
      problem('$GENERATE 1-2 a 1 A 192.0.2.1\n$GENERATE 1-4000000 $ 1 A 192.0.2.1'),
      /:2:11: .*more than 4000000 records/,
    );
  });

  test('with an error handler, reading continues after each error', () => {
    const told: string[] = [];
    const found = lines(
      'a A 192.0.2\n) x\nb A 192.0.2.1\n"open\nc A 192.0.2.2 more\nd A 192.0.2.3\n',
      {
        origin: '.',
        ttl: 1,
        problem: ({ place }) => told.push(`${place!.line}:${place!.column}`),
      },
    );
    assert.deepEqual(told, ['1:5', '2:1', '4:1', '5:15']);
    assert.deepEqual(found, ['b. 1 IN A 192.0.2.1', 'd. 1 IN A 192.0.2.3']);
  });

  test('owners, TTLs, classes, parentheses, quotes, comments and units are understood', () => {
    assert.deepEqual(lines(example), [
      'ISI.EDU. 5400 IN SOA VENERA.ISI.EDU. Action\\.domains.ISI.EDU. 20 7200 600 604800 60',
      'ISI.EDU. 5400 IN NS A.ISI.EDU.',
      'ISI.EDU. 5400 IN NS VENERA.ISI.EDU.',
      'ISI.EDU. 5400 IN MX 10 VENERA.ISI.EDU.',
      'A.ISI.EDU. 5400 IN A 26.3.0.103',
      'VENERA.ISI.EDU. 60 IN A 10.1.0.52',
      'VENERA.ISI.EDU. 60 IN A 128.9.0.32',
      'text.ISI.EDU. 5400 IN TXT "one ; not a comment" "two;three" "and \\"four\\""',
      '_svc._tcp.ISI.EDU. 5400 IN SRV 0 5 80 a.ISI.EDU.',
      'svc.ISI.EDU. 5400 IN HTTPS 1 . alpn="h2,h3" port=8443',
      'odd.ISI.EDU. 5400 IN TYPE65280 \\# 4 0A000001',
      'also.ISI.EDU. 5400 IN A 10.0.0.2',
      '*.ISI.EDU. 5400 IN CNAME ISI.EDU.',
    ]);
  });

  test("other systems' line ends and a missing final line end make no difference", () => {
    assert.deepEqual(lines('$TTL 5\r\na. A 10.0.0.1\r\n  A 10.0.0.2'), [
      'a. 5 IN A 10.0.0.1',
      'a. 5 IN A 10.0.0.2',
    ]);
    assert.deepEqual(lines(''), []);
    assert.deepEqual(lines('\n  \n; only a comment\n ; another'), []);
  });

  test("a record without TTL uses $TTL, the previous record's, the SOA’s minimum, or the default", () => {
    assert.deepEqual(lines('$TTL 7\na. 9 A 10.0.0.1\nb. A 10.0.0.2'), [
      'a. 9 IN A 10.0.0.1',
      'b. 7 IN A 10.0.0.2',
    ]);
    assert.deepEqual(lines('a. 9 A 10.0.0.1\nb. A 10.0.0.2'), [
      'a. 9 IN A 10.0.0.1',
      'b. 9 IN A 10.0.0.2',
    ]);
    const soa = lines('a. SOA ns. root. 1 2 3 4 55\nb. A 10.0.0.2');
    assert.deepEqual(soa, ['a. 55 IN SOA ns. root. 1 2 3 4 55', 'b. 55 IN A 10.0.0.2']);
    assert.deepEqual(lines('a. A 10.0.0.1', { ttl: 3 }), ['a. 3 IN A 10.0.0.1']);
    assert.match(problem('a. A 10.0.0.1'), /^db\.example:1:1: there is no TTL/);
  });

  test('a class applies to the records that follow it', () => {
    assert.deepEqual(lines('$TTL 1\na. CH TXT x\nb. TXT y\nc. IN TXT z'), [
      'a. 1 CH TXT "x"',
      'b. 1 CH TXT "y"',
      'c. 1 IN TXT "z"',
    ]);
  });

  test('names without a final dot are relative to the origin, unless the dot is escaped', () => {
    assert.deepEqual(lines('a\\. CNAME b', { origin: 'example.org', ttl: 1 }), [
      'a\\..example.org. 1 IN CNAME b.example.org.',
    ]);
  });

  test('owners that look like types, classes or numbers are owners', () => {
    assert.deepEqual(lines('$TTL 1\nA A 10.0.0.1\nIN IN A 10.0.0.2\n10 PTR a.'), [
      'A. 1 IN A 10.0.0.1',
      'IN. 1 IN A 10.0.0.2',
      '10. 1 IN PTR a.',
    ]);
  });

  test('words and entries longer than any possible record are cut off', () => {
    const ttl = '$TTL 60\n';
    const long = 'y'.repeat(3_000_000);
    assert.match(problem(`${ttl}a. TXT "${long}"`), /:2:8: the word is longer than any record/);
    assert.match(problem(`${ttl}a. TXT ${long}`), /:2:8: the word is longer than any record/);
    assert.match(problem(`${ttl}a. TXT a="${long}"`), /:2:10: the word is longer than any record/);
    const many = 'y '.repeat(500_000);
    assert.match(
      problem(`${ttl}a. TXT (\n${many})`),
      /:3:\d+: more words than any record can have/,
    );
    const [line] = lines(`${ttl}a. TYPE65280 \\# 60000 ${'ab'.repeat(60_000)}`);
    assert.match(line!, /60000/);
  });

  test('a problem reports its position as file, line and column', () => {
    const ttl = '$TTL 1\n';
    assert.match(
      problem(`${ttl}a. A 10.0.0.256`),
      /^db\.example:2:6: A address must be an IPv4 address, not "10.0.0.256"/,
    );
    assert.match(problem(`${ttl}a. MX 10`), /^db\.example:2:9: MX exchange is missing/);
    assert.match(
      problem(`${ttl}a. MX (\n  ten\n  b. )`),
      /^db\.example:3:3: MX preference must be a number from 0 to 65535, not "ten"/,
    );
    assert.match(
      problem(`${ttl}a. A 10.0.0.1 10.0.0.2`),
      /^db\.example:2:15: A has too many words/,
    );
    assert.match(
      problem(`${ttl}a. FOO bar`),
      /^db\.example:2:4: "FOO" is not a TTL, class or record type/,
    );
    assert.match(problem(`${ttl}a. OPT x`), /:2:4: OPT is not a record type/);
    assert.match(problem(`${ttl}a. TYPE65280 x`), /can only be written as/);
    assert.match(problem(`${ttl}a..b. A 10.0.0.1`), /^db\.example:2:1: .*empty label/);
    assert.match(problem(`${ttl}a. TXT "open`), /^db\.example:2:8: quote is never closed/);
    assert.match(
      problem(`${ttl}a. SOA ( a. b. 1`),
      /^db\.example:2:8: parenthesis is never closed/,
    );
    assert.match(problem(`${ttl}a. A ) 10.0.0.1`), /:2:6: closing parenthesis/);
    assert.match(problem(`${ttl}a. A (( 10.0.0.1`), /:2:7: parenthesis within/);
    assert.match(problem(`${ttl}a. TXT x\\`), /:2:9: backslash at the end of a line/);
    assert.match(problem(`${ttl}a. TXT \\300`), /:2:8: TXT strings has a bad escape/);
    assert.match(problem(`${ttl}a. TYPE1 \\# 4 0a0000`), /:2:13: the data has 3 bytes, not 4/);
    assert.match(problem(`${ttl}a. A \\# 3 0a0000`), /the data is not A/);
    assert.match(problem('  A 10.0.0.1'), /:1:3: the first record has no owner/);
    assert.match(problem('$TTL 3000000000'), /:1:6: the TTL must be seconds below 2147483648/);
    assert.match(problem('$MAKED 1-2 a A 10.0.0.$'), /:1:1: unknown directive \$MAKE/);
    assert.match(problem('$ORIGIN a. b.'), /:1:12: a word too many/);
  });

  test('files are included with their own origin and do not affect later lines', () => {
    const files: Readonly<Record<string, string>> = {
      'hosts.inc': 'x A 10.0.0.1\n$ORIGIN deep\ny A 10.0.0.2\n',
      'more.inc': '\n$INCLUDE nowhere.inc',
    };
    const include: ZoneTextParts['include'] = (name, from) => {
      const text = files[name];
      if (text === undefined)
        throw new Problem({
          code: 'missing-file',
          text: `${from.file}:${from.line}:${from.column} includes ${name}`,
        });
      return { file: name, text };
    };
    const text =
      '$ORIGIN example.\n$TTL 1\na A 10.0.0.0\n$INCLUDE hosts.inc sub\n  AAAA ::1\nb A 10.0.0.3\n';
    assert.deepEqual(lines(text, { include }), [
      'a.example. 1 IN A 10.0.0.0',
      'x.sub.example. 1 IN A 10.0.0.1',
      'y.deep.sub.example. 1 IN A 10.0.0.2',
      'a.example. 1 IN AAAA ::1',
      'b.example. 1 IN A 10.0.0.3',
    ]);
    const places = [...parseZone(text, { file: 'db', include })].map(
      ({ place }) => `${place.file}:${place.line}`,
    );
    assert.deepEqual(places, ['db:3', 'hosts.inc:1', 'hosts.inc:3', 'db:5', 'db:6']);
    assert.equal(problem('$INCLUDE more.inc', { include }), 'more.inc:2:1 includes nowhere.inc');
    assert.match(problem('$INCLUDE hosts.inc'), /:1:10: \$INCLUDE is not possible here/);
  });

  test('a file that includes itself is a problem, not a hang', () => {
    const once = (): { file: string; text: string } => ({ file: 'loop', text: '$INCLUDE loop' });
    assert.match(problem('$INCLUDE loop', { include: once }), /check for a loop/);
    const twice = (): { file: string; text: string } => ({
      file: 'loop',
      text: '$INCLUDE loop\n'.repeat(2),
    });
    assert.match(problem('$INCLUDE loop', { include: twice }), /check for a loop/);
    const wide = (name: string): { file: string; text: string } => ({ file: name, text: '' });
    assert.match(problem('$INCLUDE a\n'.repeat(1001), { include: wide }), /more than 1000 files/);
  });

  test('records are returned one at a time: an error later in the file does not hide earlier records', () => {
    const records = parseZone('$TTL 1\na. A 10.0.0.1\nb. A wrong\n', { file: 'db' });
    assert.equal(records.next().value?.name, 'a.');
    assert.throws(() => records.next(), Problem);
  });

  test('a single record is parsed with its omitted fields filled in', () => {
    assert.equal(
      printRecord(parseRecord('a A 10.0.0.1', 'example.')),
      'a.example.\t\t3600\tIN\tA\t10.0.0.1',
    );
    assert.throws(() => parseRecord(''), /there is no record/);
    assert.throws(
      () => parseRecord('a. A 10.0.0.1\nb. A 10.0.0.2'),
      /record:2:1: there is a second record/,
    );
  });
});

describe('printed zones', () => {
  const zone = [...parseZone(example, { file: 'db' })];

  test('are read by named-checkzone as the same records', (t) => {
    const printed = zone.map((record) => printRecord(record)).join('\n');
    const theirs = checkZone(t, printed);
    const again = [...parseZone(theirs ?? printed, { file: 'named' })];
    const sorted = (records: Iterable<Parameters<typeof printRecord>[0]>): string[] =>
      [...records].map((record) => printRecord(record).toLowerCase()).toSorted();
    if (theirs !== null) assert.deepEqual(sorted(again), sorted(zone));
  });

  test('and so is a hand-written zone file', (t) => {
    const theirs = checkZone(t, example);
    if (theirs === null) return;
    const sorted = (text: string): string[] =>
      [...parseZone(text, { file: 'zone' })]
        .map((record) => printRecord(record).toLowerCase())
        .toSorted();
    assert.deepEqual(sorted(theirs), sorted(example));
  });
});

/** Returns the zone as BIND writes it after reading `text`, or null if BIND's tools are missing. */
function checkZone(t: TestContext, text: string): string | null {
  const directory = mkdtempSync(join(tmpdir(), 'ndots-zone-'));
  try {
    const file = join(directory, 'db');
    writeFileSync(file, `${text}\n`);
    return execFileSync(
      'named-checkzone',
      ['-q', '-k', 'ignore', '-n', 'ignore', '-i', 'none', '-o', '-', '-D', 'isi.edu', file],
      {
        encoding: 'utf8',
      },
    );
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    t.skip('named-checkzone is not installed');
    return null;
  } finally {
    rmSync(directory, { recursive: true });
  }
}

test('a line of a hundred thousand words is an error, and the rest of it is dropped', () => {
  const problems: string[] = [];
  const text = `a TXT ( ${'"x" '.repeat(100_000)})\nb A 192.0.2.1\n`;
  const names = [
    ...parseZone(text, { file: 'f', ttl: 1, problem: ({ message }) => problems.push(message) }),
  ].map(({ name }) => name);
  assert.deepEqual(names, ['b.']);
  assert.equal(problems.length, 1);
  assert.match(problems[0]!, /^f:1:\d+: more words than any record can have$/);
});

test('a quoted string is read in one piece, however long it is', async () => {
  const read = (length: number): (() => void) => {
    const text = `a TXT "${'x'.repeat(length)}"\n`;
    return () =>
      assert.throws(
        () => [...parseZone(text, { file: 'f', ttl: 1 })],
        /the word is longer than any record/,
      );
  };
  await costsAtMost(24, read(16_000_000), read(2_000_000));
});
