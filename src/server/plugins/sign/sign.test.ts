import assert from 'node:assert/strict';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test, type TestContext } from 'node:test';
import { every } from '../../base/clock.ts';
import { problemsIn } from '../../base/problem.ts';
import { VirtualClock } from '../../base/virtual-clock.ts';
import { makeWorld, type World } from '../../../../test/kit/world.ts';
import { writeZoneKey, zoneKey, type ZoneKey } from '../../../../test/kit/zone-keys.ts';
import { TYPE, typeName } from '../../wire/iana.ts';
import { dataOf } from '../../wire/message.ts';
import { cds, nsec, rrsig, soa } from '../../wire/record/table.ts';
import { parseZone, type ZoneRecord } from '../../wire/zone-text.ts';

const text = `$TTL 300
@ 3600 SOA ns hostmaster 7 7200 3600 1209600 60
@ NS ns
@ DNSKEY 257 3 13 AAAA
@ CDS 1 13 2 ${'ab'.repeat(32)}
ns A 192.0.2.1
ns RRSIG A 13 3 300 20300101000000 20200101000000 1 example.org. AAAA
Www A 192.0.2.2
*.wild TXT "x"
deep.below.empty A 192.0.2.4
cut NS ns.cut
cut A 192.0.2.7
ns.cut A 192.0.2.5
safe NS ns.cut
safe DS 1 13 2 ${'ab'.repeat(32)}
`;

interface Stage {
  readonly directory: string;
  readonly clock: VirtualClock;
  readonly key: ZoneKey;
  /** Starts a server with this directory. The last server is closed at the end. */
  open(more?: string): Promise<World>;
  signed(): readonly ZoneRecord[];
  serial(): number;
  /**
   * Moves the start and end of the signatures' validity, in days from now, as if the zone had been signed at a
   * different time.
   */
  rewrite(inception: number, expiration: number): void;
  until(condition: () => boolean): Promise<void>;
}

function stage(t: TestContext, made: Readonly<Record<string, string>> = {}): Stage {
  const directory = mkdtempSync(join(tmpdir(), 'ndots-sign-'));
  t.after(() => rmSync(directory, { recursive: true }));
  writeFileSync(join(directory, 'db'), text);
  for (const [name, content] of Object.entries(made)) writeFileSync(join(directory, name), content);
  mkdirSync(join(directory, 'keys'));
  const key = zoneKey('example.org.');
  writeZoneKey(join(directory, 'keys'), key);
  const clock = new VirtualClock(Date.now());
  let world: World | null = null;
  t.after(() => world?.close());
  const signed = (): readonly ZoneRecord[] => {
    const file = join(directory, 'db.example.org.signed');
    return [...parseZone(readFileSync(file, 'utf8'), { file })];
  };
  return {
    directory,
    clock,
    key,
    async open(more = 'key directory keys') {
      await world?.close();
      const corefile = `example.org:53 {
        file db.example.org.signed
        sign db {
          directory .
          ${more}
        }
        prometheus 127.0.0.1:0
      }`;
      // Other threads sign concurrently.
      const ticks = every(clock, 1, () => undefined);
      try {
        return (world = await makeWorld(corefile, { directory, clock }));
      } finally {
        ticks.cancel();
      }
    },
    signed,
    serial: () => signed().flatMap((record) => dataOf(record, soa)?.serial ?? [])[0]!,
    rewrite(inception, expiration) {
      const file = join(directory, 'db.example.org.signed');
      const at = (days: number): string =>
        new Date(clock.wall() + days * day).toISOString().replaceAll(/[-:T]|\.\d+Z/g, '');
      const times = / \d{14} \d{14} /g;
      const old = readFileSync(file, 'utf8');
      writeFileSync(file, old.replaceAll(times, ` ${at(expiration)} ${at(inception)} `));
    },
    async until(condition) {
      for (let turns = 0; turns < 2000 && !condition(); turns++) await clock.advance(1);
      // The system's threads make the signatures, which takes real time.
      for (let waits = 0; waits < 2000 && !condition(); waits++)
        await new Promise((done) => setTimeout(done, 5));
      assert.ok(condition());
    },
  };
}

const day = 86_400_000;

describe('sign', () => {
  test('the zone is signed before it is served', async (t) => {
    const world = await stage(t).open();
    const wants = { dnssecOk: true, udpSize: 4096 };
    const { answer } = await world.ask('www.example.org. A', wants);
    assert.deepEqual(
      answer.map(({ type }) => typeName(type)),
      ['A', 'RRSIG'],
    );
    const denial = await world.ask('none.example.org. A', wants);
    assert.ok(denial.authority.some(({ type }) => type === TYPE.NSEC));
    assert.ok(
      world.log.some((line) =>
        /Successfully signed zone "example\.org\." in ".*" with key tags "\d+" and \d+ SOA serial/.test(
          line,
        ),
      ),
    );
    assert.match(world.metrics(), /ndots_sign_zones_total\{zone="example\.org\."\} 1\n/);
  });

  test('signatures start 3 to 21 hours ago and end in 32 to 37 days, and the serial is the time', async (t) => {
    const { open, signed, serial, clock, key } = stage(t);
    const before = Math.floor(clock.wall() / 1000);
    await open();
    const now = clock.wall() / 1000;
    assert.ok(serial() >= before && serial() <= now);
    const all = signed().flatMap((record) => dataOf(record, rrsig) ?? []);
    const { inception, expiration } = all[0]!;
    assert.ok(before - inception >= 3 * 3600 - 1 && now - inception <= 21 * 3600 + 1);
    assert.ok(expiration - now >= 32 * 86_400 - 1 && expiration - before <= 37 * 86_400 + 1);
    for (const one of all)
      assert.deepEqual(
        [one.inception, one.expiration, one.keyTag, one.signer],
        [inception, expiration, key.tag, 'example.org.'],
      );
  });

  test('the keys are in the zone, and CDS and CDNSKEY records are replaced', async (t) => {
    const { open, signed, key } = stage(t);
    await open();
    const data = (type: number): ZoneRecord[] => signed().filter((record) => record.type === type);
    assert.equal(data(TYPE.DNSKEY).length, 1);
    assert.equal(data(TYPE.CDNSKEY).length, 1);
    assert.deepEqual(
      data(TYPE.CDS).map((record) => {
        const { keyTag, digestType, digest } = dataOf(record, cds)!;
        return [keyTag, digestType, digest.length];
      }),
      [[key.tag, 2, 32]],
      'no new digest is made with SHA-1 (RFC 9904)',
    );
    assert.deepEqual(new Set(data(TYPE.DNSKEY).map(({ ttl }) => ttl)), new Set([3600]));
  });

  test('each name in the zone leads to the next in canonical order, and the last to the first', async (t) => {
    const { open, signed } = stage(t);
    await open();
    const chain = signed().flatMap((record) => {
      const data = dataOf(record, nsec);
      return data === null
        ? []
        : [
            {
              owner: record.name,
              ttl: record.ttl,
              next: data.next,
              types: data.types.map(typeName),
            },
          ];
    });
    assert.deepEqual(
      chain.map(({ owner, next }) => `${owner} ${next}`),
      [
        'example.org. cut.example.org.',
        'cut.example.org. deep.below.empty.example.org.',
        'deep.below.empty.example.org. ns.example.org.',
        'ns.example.org. safe.example.org.',
        'safe.example.org. *.wild.example.org.',
        '*.wild.example.org. Www.example.org.',
        'Www.example.org. example.org.',
      ],
    );
    // The SOA record's TTL or its last field, whichever is less.
    assert.deepEqual(new Set(chain.map(({ ttl }) => ttl)), new Set([60]));
    assert.deepEqual(chain[0]!.types, ['NS', 'SOA', 'RRSIG', 'NSEC', 'DNSKEY', 'CDS', 'CDNSKEY']);
    assert.deepEqual(chain[1]!.types, ['NS', 'RRSIG', 'NSEC']);
    assert.deepEqual(chain[4]!.types, ['NS', 'DS', 'RRSIG', 'NSEC']);
  });

  test('records in a delegated zone are not signed', async (t) => {
    const { open, signed } = stage(t);
    await open();
    const covered = (name: string): string[] =>
      signed().flatMap((record) => {
        const data = record.name === name ? dataOf(record, rrsig) : null;
        return data === null ? [] : [typeName(data.typeCovered)];
      });
    assert.deepEqual(covered('cut.example.org.'), ['NSEC']);
    assert.deepEqual(covered('ns.cut.example.org.'), []);
    assert.deepEqual(covered('safe.example.org.'), ['DS', 'NSEC']);
    assert.deepEqual(covered('ns.example.org.'), ['A', 'NSEC']);
  });

  test('valid signatures are retained', async (t) => {
    const { open, serial, clock, rewrite } = stage(t);
    await open();
    const before = serial();
    rewrite(-5.9, 14.1);
    const world = await open();
    await clock.advance(120_000);
    assert.equal(serial(), before);
    assert.ok(
      world.log.some((line) =>
        /Skipping signing zone "example\.org\." in ".*": signatures are valid/.test(line),
      ),
    );
  });

  const ends: readonly (readonly [string, number, number, string])[] = [
    ['six days after it was signed', -6.1, 30, 'was more than 6 days ago'],
    ['two weeks before the signatures end', -5, 13.9, 'is less than 14 days away'],
    ['with signatures that have not begun', 0.1, 30, 'is in the future'],
    ['with signatures that have ended', -40, -1, 'was more than 6 days ago'],
  ];
  for (const [when, inception, expiration, why] of ends)
    test(`a zone is signed again ${when}, and served`, async (t) => {
      const { open, serial, clock, rewrite, until } = stage(t);
      const world = await open();
      const before = serial();
      rewrite(inception, expiration);
      await clock.advance(60_000);
      await until(() => serial() > before);
      assert.ok(world.log.some((line) => line.includes('Signing') && line.includes(why)));
      await clock.advance(61_000);
      const { answer } = await world.ask('example.org. SOA');
      assert.equal(dataOf(answer[0]!, soa)!.serial, serial());
    });

  test('a changed zone file is signed within a minute', async (t) => {
    const { open, signed, clock, directory, until, serial } = stage(t);
    await open();
    const before = serial();
    writeFileSync(join(directory, 'db'), `${text}\nnew A 192.0.2.8\n`);
    await clock.advance(60_000);
    await until(() => serial() > before);
    assert.ok(signed().some(({ name }) => name === 'new.example.org.'));
  });

  test('errors in a file leave the signed one unchanged, and are logged and counted once', async (t) => {
    const { open, clock, directory, until, serial } = stage(t);
    const world = await open();
    const before = serial();
    writeFileSync(join(directory, 'db'), `${text}\nnew A 192.0.2.800\nother B x\n`);
    await clock.advance(60_000);
    await until(() =>
      /ndots_sign_failures_total\{zone="example\.org\."\} 1\n/.test(world.metrics()),
    );
    await clock.advance(600_000);
    const told = world.log.filter((line) => /Error signing "example\.org\."/.test(line));
    assert.equal(told.length, 2);
    assert.match(told[0]!, /db:17:/);
    assert.equal(serial(), before);
    assert.deepEqual(
      readdirSync(directory).filter((name) => name.endsWith('.new')),
      [],
    );
  });

  test('a zone that cannot be signed does not stop the server', async (t) => {
    const { open, directory } = stage(t, { db: 'nothing' });
    const world = await open();
    assert.ok(!existsSync(join(directory, 'db.example.org.signed')));
    assert.ok(
      world.log.some((line) =>
        /\[WARNING\] plugin\/sign: Error signing "example\.org\."/.test(line),
      ),
    );
  });

  test('a missing zone file is reported with its path', async (t) => {
    const { open, directory } = stage(t);
    rmSync(join(directory, 'db'));
    const world = await open();
    assert.ok(
      world.log.some((line) => /Error signing .*open \S+db: no such file or directory,/.test(line)),
      world.log.join('\n'),
    );
  });

  test('a zone that could not be written is retried within two minutes', async (t) => {
    const { directory, clock, open, until } = stage(t);
    const blocked = join(directory, 'db.example.org.signed.new');
    mkdirSync(blocked);
    const world = await open();
    await until(() => world.log.some((line) => /Error signing "example\.org\."/.test(line)));
    rmSync(blocked, { recursive: true });
    await clock.advance(130_000);
    await until(() => world.log.some((line) => /Successfully signed zone/.test(line)));
  });

  test("the same applies if the machine's clock is set back by a year in between", async (t) => {
    const { directory, clock, open, until } = stage(t);
    const blocked = join(directory, 'db.example.org.signed.new');
    mkdirSync(blocked);
    const world = await open();
    await until(() => world.log.some((line) => /Error signing "example\.org\."/.test(line)));
    rmSync(blocked, { recursive: true });
    clock.setWall(-365 * day);
    await clock.advance(130_000);
    await until(() => world.log.some((line) => /Successfully signed zone/.test(line)));
  });

  test('new keys cause the zone to be signed again', async (t) => {
    const { open, serial, directory } = stage(t);
    await open();
    const before = serial();
    writeZoneKey(join(directory, 'keys'), zoneKey('example.org.', 15));
    const world = await open();
    assert.ok(world.log.some((line) => /because its keys have changed/.test(line)));
    for (let i = 0; i < 100 && serial() === before; i++)
      await new Promise((done) => setImmediate(done));
  });

  test('a version from the same second has another serial', async (t) => {
    const { open, serial, directory, clock, until } = stage(t);
    await open();
    const before = serial();
    utimesSync(join(directory, 'db'), new Date(), new Date(Date.now() + 60_000));
    await open();
    await until(() => serial() > before);
    assert.ok(serial() <= clock.wall() / 1000 + 2);
  });

  test('if there are several keys, each signs every record', async (t) => {
    const { open, signed, directory, key } = stage(t);
    const other = zoneKey('example.org.', 15);
    writeZoneKey(directory, other, 'other');
    await open(`key file keys/${key.name}.key other.private`);
    const tags = signed().flatMap((record) => dataOf(record, rrsig)?.keyTag ?? []);
    assert.deepEqual(new Set(tags), new Set([key.tag, other.tag]));
    assert.equal(tags.length % 2, 0);
  });

  test('without a key nothing is signed, which causes a warning', async (t) => {
    const { open, directory } = stage(t, { 'db.example.org.signed': text });
    const { log } = await open('');
    assert.match(log.join('\n'), /nothing is signed because there is no key to sign with/);
    assert.equal(readFileSync(join(directory, 'db.example.org.signed'), 'utf8'), text);
  });

  test('a file whose name is not UTF-8 is rejected, even without a key', async () => {
    await assert.rejects(
      makeWorld('example.org {\n sign "\uFFFD"\n whoami\n}'),
      /dbfile "\uFFFD" contains invalid characters/,
    );
  });

  const refusals: readonly (readonly [string, RegExp])[] = [
    ['key', /Wrong argument count/],
    ['key file', /Wrong argument count/],
    ['key other x', /unknown key source 'other'/],
    ['key directory nowhere', /open .*nowhere: no such file or directory/],
    ['key directory .', /there is no key signing key for example\.org\. in/],
    ['key file nothing', /nothing\.key: no such file/],
    ['key file zsk', /DNSKEY in ".*zsk\.key" is not a CSK\/KSK/],
    ['directory a b', /Wrong argument count/],
  ];
  for (const [lines, message] of refusals)
    test(`rejected: ${lines || 'no key'}`, async (t) => {
      const { open, directory } = stage(t);
      writeZoneKey(directory, zoneKey('example.org.', 13, 256), 'zsk');
      await assert.rejects(open(lines), (error) => {
        assert.match(
          (problemsIn(error) ?? []).map((problem) => problem.message).join('\n'),
          message,
        );
        return true;
      });
    });
});
