import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test, type TestContext } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { seededRandom, type Random } from '../../src/server/base/random.ts';
import { typeNumber } from '../../src/server/wire/iana.ts';
import { recordSamples } from '../fuzz/record-samples.ts';
import { randomZone } from '../kit/random-zone.ts';
import { freePorts } from '../kit/free-ports.ts';
import { startKnot, startNamed, startNsd, type ZoneServer } from '../kit/zone-servers.ts';
import { has, ndots, scratch, transferred } from '../kit/zone-transfers.ts';

/**
 * The same zone file, transferred by a real name server, by ndots, and by ndots as that server's secondary. All three
 * must agree record by record. `ZONES_SEED` sets the seed and `ZONES_COUNT` the number of zones.
 */
const seed = Number(process.env['ZONES_SEED'] ?? '1');
const count = Number(process.env['ZONES_COUNT'] ?? '4');

/** These types belong to signed zones or apexes, exclude other types at the same name, or are not zone data. */
const elsewhere = new Set(
  'SOA NS CNAME DNAME DS DNSKEY RRSIG NSEC NSEC3 NSEC3PARAM CDS CDNSKEY CSYNC ZONEMD TSIG TKEY NULL SIG KEY DLV'.split(
    ' ',
  ),
);

interface Primary {
  readonly program: string;
  /** Types whose text format it cannot parse, so the file contains their bytes (RFC 3597). */
  readonly bytes: readonly string[];
  /** Types that it rejects. */
  readonly refuses: readonly string[];
  start(
    directory: string,
    port: number,
    zones: Readonly<Record<string, string>>,
  ): Promise<ZoneServer>;
}

const primaries: Readonly<Record<string, Primary>> = {
  BIND: {
    program: 'named',
    bytes: [],
    refuses: ['MD', 'MF'],
    start: (directory, port, zones) =>
      startNamed(
        directory,
        port,
        Object.entries(zones)
          .map(
            ([zone, file]) =>
              `zone "${zone}" { type primary; check-names ignore; check-integrity no; check-sibling no; file "${file}"; };\n`,
          )
          .join(''),
      ),
  },
  Knot: {
    program: 'knotd',
    bytes: [
      'HIP',
      'PX',
      'MB',
      'MG',
      'MR',
      'MD',
      'MF',
      'X25',
      'ISDN',
      'GPOS',
      'AVC',
      'NINFO',
      'RESINFO',
      'NSAP-PTR',
      'TALINK',
      'RKEY',
      'TA',
      'AMTRELAY',
    ],
    refuses: [],
    start: (directory, port, zones) =>
      startKnot(
        directory,
        port,
        zones,
        '    acl: all\n',
        'acl:\n  - id: all\n    address: 127.0.0.0/8\n    action: transfer\n',
      ),
  },
  NSD: {
    program: 'nsd',
    bytes: ['HIP', 'GPOS', 'NINFO', 'RESINFO', 'NSAP-PTR', 'TALINK', 'RKEY', 'TA', 'AMTRELAY'],
    refuses: [],
    start: (directory, port, zones) =>
      startNsd(directory, port, zones, '  provide-xfr: 127.0.0.0/8 NOKEY\n'),
  },
};

/** Labels that only occur by accident, in zone file format. */
const odd: readonly string[] = [
  'a\\.b',
  'a\\032b',
  '\\000',
  '\\255\\254',
  'UPPER',
  'MiXed-Case',
  '_under._score',
  '\\@',
  '\\$x',
  'semi\\;colon',
  'quote\\"d',
  'back\\\\slash',
  'par\\(en\\)',
  '*',
  '*.star',
  'mid.*.dle',
  'l'.repeat(63),
  `${'d.'.repeat(90)}deep`,
  '-',
  '0',
  'xn--p1ai',
];

/** A zone with all difficult cases: difficult answers, odd names, and every type. */
function contents(random: Random, origin: string, { bytes, refuses }: Primary): string {
  const lines = recordSamples
    .filter(([type]) => !elsewhere.has(type) && !refuses.includes(type))
    .map(([type, text, hex], index) => {
      const owner = `${odd[random.integer(odd.length)]!}.r${index}`;
      const ttl = [0, 1, 300, 86_400, 2_147_483_647][random.integer(5)]!;
      return bytes.includes(type)
        ? `${owner} ${ttl} TYPE${typeNumber(type)!} \\# ${hex.length / 2} ${hex}`
        : `${owner} ${ttl} ${type} ${text}`;
    });
  return `${randomZone(random, origin, 0).text}${lines.join('\n')}\nbytes TYPE65280 \\# 3 010203\n`;
}

describe('zones record by record', () => {
  for (const [label, primary] of Object.entries(primaries)) {
    const skip = has(primary.program) ? false : `${primary.program} is not installed`;
    test(
      `${label}, ndots, and ndots behind ${label} hand out the same`,
      { skip, timeout: 200_000 },
      (t) => compare(t, primary),
    );
  }
});

async function compare(t: TestContext, primary: Primary): Promise<void> {
  const directory = scratch(t);
  const files: Record<string, string> = {};
  for (let zone = 0; zone < count; zone++) {
    const origin = `z${zone}.test.`;
    const file = join(directory, `z${zone}.db`);
    writeFileSync(file, contents(seededRandom((seed + zone) * 7919), origin, primary));
    files[`z${zone}.test`] = file;
  }
  const [port, own, behind] = await freePorts(3);
  const server = await primary.start(join(directory, 'primary'), port!, files);
  t.after(() => server.child.stop());
  const blocks = Object.entries(files).flatMap(([zone, file]) => {
    const transfer = ' bind 127.0.0.1\n transfer {\n  to *\n }\n';
    return [
      `${zone}:${own} {\n${transfer} file ${file}\n}\n`,
      `${zone}:${behind} {\n${transfer} secondary {\n  transfer from 127.0.0.1:${port}\n }\n}\n`,
    ];
  });
  const output = await ndots(t, directory, blocks.join(''));
  // Knot and NSD write names in lower case but preserve differences in one name's spelling.
  const at = async (where: number, zone: string): Promise<readonly string[]> =>
    (await transferred(where, `${zone}.`)).map((line) => line.toLowerCase()).toSorted();
  let compared = 0;
  for (const zone of Object.keys(files)) {
    const theirs = await at(port!, zone);
    assert.ok(
      theirs.length > 50,
      `${zone}, ${theirs.length} records: ${server.child.output().slice(-2000)}`,
    );
    assert.deepEqual(await at(own!, zone), theirs, `file ${files[zone]}`);
    let fetched: readonly string[] = [];
    for (let tries = 0; tries < 100 && fetched.length === 0; tries++) {
      fetched = await at(behind!, zone);
      if (fetched.length === 0) await pause(100);
    }
    assert.deepEqual(fetched, theirs, `secondary: ${output().slice(-2000)}`);
    compared += theirs.length;
  }
  t.diagnostic(`${compared} records, seed ${seed}`);
}
