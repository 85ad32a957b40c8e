import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { describe, test, type TestContext } from 'node:test';
import { costsAtMost } from '../../../test/kit/growth.ts';
import { systemClock } from '../base/clock.ts';
import { foldName, parseName } from '../wire/name.ts';
import { loadZone } from './load-zone.ts';
import { bytesOf } from './packed-zone.ts';
import { ZoneData } from './zone-data.ts';

const names = 30_000;
const origin = parseName('example.org.');
const text = (more = ''): string =>
  `$TTL 60\n@ SOA ns host 7 2 3 4 5\n@ NS ns\n${Array.from({ length: names }, (_, i) => `host-${i} A 10.0.${i >> 8}.${i & 255}\n`).join('')}${more}`;

function file(t: TestContext, content: string): string {
  const directory = mkdtempSync(join(tmpdir(), 'ndots-load-'));
  t.after(() => rmSync(directory, { recursive: true }));
  writeFileSync(join(directory, 'db'), content);
  return join(directory, 'db');
}

describe('a large zone file', () => {
  test('is read in its own thread, to a zone that takes less than twice its text', async (t) => {
    const content = text();
    assert.ok(content.length > 600_000);
    const { packed, problems } = await loadZone(file(t, content), origin, systemClock, null);
    assert.deepEqual(problems, []);
    assert.equal(packed!.records, names + 2);
    assert.ok(packed!.data.buffer instanceof SharedArrayBuffer);
    assert.ok(bytesOf(packed!) < 2 * content.length);
    const zone = new ZoneData(packed!);
    for (let i = 0; i < names; i += 7) {
      const name = foldName(parseName(`host-${i}.example.org.`));
      assert.equal(zone.walk(name, name.length), 'exact');
      assert.ok(zone.find(zone.node, 1));
    }
    const other = parseName('host-x.example.org.');
    assert.equal(zone.walk(other, other.length), 'nothing');
  });

  test('returns its errors too, and nothing if its serial is known', async (t) => {
    const path = file(t, text('x A y\n'));
    const { packed, problems, digest } = await loadZone(path, origin, systemClock, null);
    assert.equal(packed, null);
    assert.match(problems[0]!.message, /db:30004:5: A address must be an IPv4 address/);
    assert.deepEqual(await loadZone(path, origin, systemClock, 7), {
      packed: null,
      problems: [],
      warnings: [],
      digest,
      included: [],
    });
  });

  test('that needs more memory than available, with its includes, is refused in advance', async (t) => {
    const path = file(t, text('$INCLUDE more\n'));
    writeFileSync(join(dirname(path), 'more'), 'x A 192.0.2.1\n'.repeat(20));
    const size = statSync(path).size;
    const within = (bytes: number): ReturnType<typeof loadZone> =>
      loadZone(path, origin, systemClock, null, { room: () => bytes });
    assert.equal((await within(size + 1000)).packed!.records, names + 3);
    for (const [bytes, files] of [
      [size - 1, []],
      [size + 1, ['more']],
    ] as const) {
      const { packed, problems, included } = await within(bytes);
      assert.equal(packed, null);
      assert.deepEqual(
        included.map(([more]) => basename(more)),
        files,
        'what is smaller later on is read then',
      );
      assert.match(problems[0]!.message, /db: reading it needs more memory than available/);
    }
  });

  test('a file larger than any zone is refused', async (t) => {
    const path = file(t, '');
    truncateSync(path, 600 * 1024 * 1024);
    const { packed, problems } = await loadZone(path, origin, systemClock, null);
    assert.equal(packed, null);
    assert.match(problems[0]!.message, /db: is larger than 500 MiB/);
  });

  test("that does not exist is an error with the system's code", async () => {
    await assert.rejects(
      async () => loadZone('/no/such/zone', origin, systemClock, null),
      (error: NodeJS.ErrnoException) => error.code === 'ENOENT',
    );
  });

  test('includes and $GENERATE count as well, so that the requesting thread is not blocked', async (t) => {
    const big = file(t, text().replace(/^.*\n.*\n.*\n/, ''));
    const head = '$TTL 60\n@ SOA ns host 7 2 3 4 5\n@ NS ns\n';
    for (const [line, count] of [
      [`$INCLUDE ${big}`, names],
      ['$GENERATE 1-60000 host-$ A 10.0.0.1', 60_000],
    ] as const) {
      const { packed } = await loadZone(file(t, `${head}${line}\n`), origin, systemClock, null);
      assert.equal(packed!.records, count + 2);
    }
  });
});

describe('errors in a zone file', () => {
  const head = '$TTL 60\n@ SOA ns host 7 2 3 4 5\n@ NS ns\n';

  test('are reported up to a limit, however many there are', async (t) => {
    const wrong = file(t, ')))\n'.repeat(1_000_000));
    for (const path of [
      wrong,
      file(t, `${head}$INCLUDE ${wrong}\n`),
      file(t, 'no\n'.repeat(1000)),
    ]) {
      const { packed, problems } = await loadZone(path, origin, systemClock, null);
      assert.equal(packed, null);
      assert.equal(problems.length, 20);
    }
  });

  test('too many records for the available memory are an error, and a large $GENERATE is stopped early', async (t) => {
    const share = 1_000_000;
    const read = async (lines: string): Promise<readonly string[]> => {
      const path = file(t, head + lines);
      const result = await loadZone(path, origin, systemClock, null, { share });
      assert.equal(result.packed, null);
      return result.problems.map(({ message }) => message);
    };
    const [generated, ...others] = await read(
      'a A 10.0.0.1\n$GENERATE 1-4 a$ A 10.0.0.$\n$GENERATE 1-3999990 h$ A 10.0.0.1\n',
    );
    assert.deepEqual(others, []);
    assert.match(generated!, /db:6:\d+: the zone.s records up to here exceed 1000000 bytes/);
    // Expanding all of it takes ten times as long if there are ten times as many records.
    await costsAtMost(
      4,
      () => read('$GENERATE 1-3999990 h$ A 10.0.0.1\n'),
      () => read('$GENERATE 1-399999 h$ A 10.0.0.1\n'),
    );
    const written = Array.from({ length: 40_000 }, (_, i) => `h${i} A 10.0.0.1\n`).join('');
    const [line] = await read(written);
    assert.match(line!, /db:2\d{4}:1: the zone.s records up to here/);
  });

  test('data that does not fit into any message is an error with its position', async (t) => {
    const long = `t TXT ${'"x" '.repeat(40_000)}\n`;
    const { packed, problems } = await loadZone(file(t, head + long), origin, systemClock, null);
    assert.equal(packed, null);
    assert.match(problems[0]!.message, /db:4:1: the data of TXT has more than 65535 bytes/);
  });
});

test('a zone file with zero bytes is reported with the position of the first', async (t) => {
  const path = file(t, '$TTL 60\n@ SOA ns host 7 2 3 4 5\n@ NS ns.x.\nw\0w\0 A 192.0.2.1\n');
  const { packed, problems, warnings } = await loadZone(path, origin, systemClock, null);
  assert.deepEqual(problems, []);
  assert.equal(packed!.records, 3);
  assert.match(warnings[0]!.message, /db:4:2: there is a zero byte here/);
  const cut = file(t, '$TTL 60\n@ SOA ns host 7 2 3 4 5\n@ NS ns.x.\nwww A 192.\0\0\0\0');
  const lost = await loadZone(cut, origin, systemClock, null);
  assert.equal(lost.packed, null);
  assert.match(lost.problems[0]!.message, /db:4:7: /);
  assert.match(lost.warnings[0]!.message, /db:4:11: there is a zero byte/);
});
