import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { makeMmdb, type MmdbValue } from '../../../../test/kit/mmdb.ts';
import { makeWorld } from '../../../../test/kit/world.ts';
import { Problem, Problems } from '../../base/problem.ts';
import { seededRandom } from '../../base/random.ts';
import { Database, DatabaseError } from './database.ts';
import { noteCity, noteNetwork } from './notes.ts';
import { OPTION, RCODE, TYPE } from '../../wire/iana.ts';
import { writeMessage } from '../../wire/message.ts';

const directory = mkdtempSync(join(tmpdir(), 'ndots-geoip-'));
after(() => rmSync(directory, { recursive: true }));

const cambridge: MmdbValue = {
  city: { names: { de: 'Cambridge (England)', en: 'Cambridge' } },
  continent: { code: 'EU', names: { en: 'Europe' } },
  country: { iso_code: 'GB', is_in_european_union: true, names: { en: 'United Kingdom' } },
  location: { latitude: 52.2242, longitude: 0.1315, time_zone: 'Europe/London' },
  postal: { code: 'CB4' },
  subdivisions: [{ iso_code: 'ENG' }, { iso_code: 'CAM' }],
};
const network: MmdbValue = {
  autonomous_system_number: 12345,
  autonomous_system_organization: 'Test ASN Organization',
};

writeFileSync(
  join(directory, 'city.mmdb'),
  makeMmdb('GeoLite2-City', { '81.2.69.0/24': cambridge, '2001:db8:1::/48': cambridge }),
);
writeFileSync(
  join(directory, 'asn.mmdb'),
  makeMmdb('GeoLite2-ASN', {
    '81.2.69.0/24': network,
    '10.0.0.0/8': { autonomous_system_number: 0n, autonomous_system_organization: 'Not routed' },
  }),
);
writeFileSync(join(directory, 'odd.mmdb'), makeMmdb('UnknownDbType', { '10.0.0.0/8': 'x' }));
writeFileSync(join(directory, 'domain.mmdb'), makeMmdb('GeoIP2-Domain', { '10.0.0.0/8': 'x' }));
writeFileSync(join(directory, 'empty.mmdb'), '');

test('a list or map that claims millions of entries is rejected as bad data and takes no memory', () => {
  const whole = makeMmdb('GeoLite2-City', { '81.2.69.0/24': cambridge });
  const list = whole.indexOf(Buffer.from([2, 4]));
  const map = whole.indexOf(Buffer.from([0xe6]));
  assert.ok(list > 0 && map > 0);
  for (const [at, byte] of [
    [list, 0x1f],
    [map, 0xff],
  ] as const) {
    const broken = new Uint8Array(new SharedArrayBuffer(whole.length));
    broken.set(whole);
    broken[at] = byte;
    const database = new Database(broken);
    const before = process.memoryUsage().heapUsed;
    for (let i = 0; i < 5; i++)
      assert.throws(
        () => database.lookup('81.2.69.1'),
        /bad data: .* entries, but at most 4096 are allowed/,
      );
    assert.ok(process.memoryUsage().heapUsed - before < 20e6);
  }
});

test('a query for an address in a corrupt part of the database is answered without labels and counted', async () => {
  const whole = makeMmdb('GeoLite2-City', { '10.1.0.0/16': { city: { names: { en: 'Here' } } } });
  // The data no longer starts with a map.
  whole[whole.indexOf('city') - 2] = 0x1f;
  writeFileSync(join(directory, 'broken.mmdb'), whole);
  const world = await makeWorld(
    '. {\n metadata\n geoip broken.mmdb\n log . "{/geoip/city/name}"\n whoami\n}',
    { directory },
  );
  const broken = (): string | undefined =>
    /^ndots_geoip_failures_total (\d+)$/m.exec(world.metrics())?.[1];
  assert.equal((await world.ask('a.x. A', { client: '10.2.0.1' })).rcode, RCODE.NOERROR);
  assert.equal(broken(), '0');
  assert.equal((await world.ask('a.x. A', { client: '10.1.0.1' })).rcode, RCODE.NOERROR);
  assert.equal(broken(), '1');
  await world.close();
});

/** Returns the labels that log prints for a query from `client`, which may include a Client Subnet option. */
async function noted(
  database: string,
  labels: readonly string[],
  client: string,
  subnet?: readonly number[],
): Promise<string> {
  const format = labels.map((label) => `{/geoip/${label}}`).join('|');
  const world = await makeWorld(
    `.:53 {\n metadata\n geoip ${database}${subnet === undefined ? '' : ' {\n edns-subnet\n }'}\n log . "${format}"\n whoami\n}`,
    { directory },
  );
  const question = writeMessage({
    id: 1,
    flags: 0x0100,
    rcode: 0,
    question: [{ name: 'example.org.', type: TYPE.A, class: 1 }],
    answer: [],
    authority: [],
    additional: [],
    edns: {
      udpSize: 1232,
      version: 0,
      dnssecOk: false,
      options: subnet === undefined ? [] : [{ code: OPTION.ECS, data: Uint8Array.from(subnet) }],
    },
  });
  await world.send(question, { client });
  const [line] = world.log;
  await world.close();
  return line!.replace('[INFO] ', '');
}

/** CoreDNS's labels, with the values that its own tests expect. */
const cityLabels: readonly (readonly [string, string])[] = [
  ['city/name', 'Cambridge'],
  ['country/code', 'GB'],
  ['country/name', 'United Kingdom'],
  ['country/is_in_european_union', 'true'],
  ['continent/code', 'EU'],
  ['continent/name', 'Europe'],
  ['latitude', '52.2242'],
  ['longitude', '0.1315'],
  ['timezone', 'Europe/London'],
  ['postalcode', 'CB4'],
  ['subdivisions/code', 'ENG,CAM'],
];
const labels = cityLabels.map(([label]) => label);
const values = cityLabels.map(([, value]) => value).join('|');

describe('geoip', () => {
  test("a city database provides CoreDNS's labels for IPv4 and IPv6", async () => {
    assert.equal(await noted('city.mmdb', labels, '81.2.69.142'), values);
    assert.equal(await noted('city.mmdb', labels, '2001:db8:1::5'), values);
  });

  test('a network database provides the number and the organisation', async () => {
    const asn = ['asn/number', 'asn/org'];
    assert.equal(await noted('asn.mmdb', asn, '81.2.69.142'), '12345|Test ASN Organization');
    assert.equal(await noted('asn.mmdb', asn, '10.0.0.1'), '0|Not routed');
    assert.equal(await noted('asn.mmdb', asn, '203.0.113.1'), '0|');
  });

  test('an address missing from the database has empty labels', async () => {
    assert.equal(await noted('city.mmdb', labels, '203.0.113.1'), '|||false|||||||');
  });

  test('edns-subnet uses the address in the query', async () => {
    const v4 = [0, 1, 24, 0, 81, 2, 69];
    const v6 = [0, 2, 48, 0, 0x20, 0x01, 0x0d, 0xb8, 0, 1];
    assert.equal(await noted('city.mmdb', labels, '127.0.0.1', v4), values);
    assert.equal(await noted('city.mmdb', labels, '127.0.0.1', v6), values);
  });

  test('an invalid option, or one without an address, is ignored', async () => {
    for (const odd of [
      [0, 3, 24, 0, 81],
      [0, 1],
      [0, 1, 24, 0, 81, 2, 69, 1, 1],
    ]) {
      assert.equal(await noted('city.mmdb', ['city/name'], '81.2.69.142', odd), 'Cambridge');
    }
  });

  const refused = async (lines: string): Promise<Problem> => {
    try {
      const world = await makeWorld(`.:53 {\n ${lines}\n whoami\n}`, { directory });
      await world.close();
    } catch (error) {
      if (error instanceof Problems) return error.problems[0]!;
      if (error instanceof Problem) return error;
      throw error;
    }
    throw new Error('it was taken');
  };

  for (const [lines, message] of [
    ['geoip', /Wrong argument count/],
    ['geoip city.mmdb {\n languages en fr\n }', /unknown property 'languages'/],
    ['geoip city.mmdb\n geoip city.mmdb', /can only be used once/],
    ['geoip 1 2 3', /Wrong argument count/],
    ['geoip gone.mmdb', /failed to open database file: open .*gone\.mmdb: no such file/],
    ['geoip odd.mmdb', /reader does not support the "UnknownDbType" database type/],
    ['geoip domain.mmdb', /database does not provide any supported schema \(city, asn\)/],
    ['geoip empty.mmdb', /failed to open database file: error opening database: invalid MaxMind/],
    ['geoip .', /failed to open database file: .*is a directory/],
  ] as const) {
    test(`rejected: ${lines.replaceAll('\n', '')}`, async () => {
      const problem = await refused(lines);
      assert.match(problem.message, message);
      assert.notEqual(problem.place, null);
    });
  }

  test('a truncated database is rejected or has no data, and never prevents an answer', async () => {
    const whole = makeMmdb('GeoLite2-City', { '81.2.69.0/24': cambridge });
    const tree = whole.indexOf('city');
    // The tree with most of its data removed, followed by the metadata.
    const cut = Buffer.concat([
      whole.subarray(0, tree),
      whole.subarray(whole.indexOf('MaxMind') - 3),
    ]);
    writeFileSync(join(directory, 'cut.mmdb'), cut);
    assert.match(await noted('cut.mmdb', ['city/name'], '81.2.69.142'), /^-?$/);
    for (const size of [1, 100, 600, whole.length - 40]) {
      writeFileSync(join(directory, 'cut.mmdb'), whole.subarray(0, size));
      assert.equal((await refused('geoip cut.mmdb')).code, 'geoip-database');
    }
  });

  test('lookups in a corrupt database always end, with text or a DatabaseError', () => {
    const random = seededRandom(7);
    const whole = makeMmdb('GeoLite2-City', {
      '81.2.69.0/24': { ...(cambridge as object), ...(network as object) },
    });
    let broken = 0;
    for (let round = 0; round < 3000; round++) {
      const shared = new Uint8Array(new SharedArrayBuffer(whole.length));
      shared.set(whole);
      for (let flips = 0; flips < 3; flips++)
        shared[random.integer(whole.length)] = random.integer(256);
      const notes = new Map<string, string>();
      try {
        const found = new Database(shared).lookup('81.2.69.142') ?? {};
        noteCity(found, notes);
        noteNetwork(found, notes);
      } catch (error) {
        assert.ok(error instanceof DatabaseError, String((error as Error).stack));
        broken++;
      }
      for (const value of notes.values()) assert.equal(typeof value, 'string');
    }
    assert.ok(broken > 100);
  });
});
