import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { makeWorld } from '../../../../test/kit/world.ts';
import { makeLog, pluginLog } from '../../base/log.ts';
import { VirtualClock } from '../../base/virtual-clock.ts';
import { systemClock } from '../../base/clock.ts';
import { parseName } from '../../wire/name.ts';
import type { PackedZone } from '../../zone/packed-zone.ts';
import { readZoneFile } from '../../zone/zone-file.ts';
import { ZonePublisher } from '../../zone/zone-publisher.ts';
import { readCatalog } from './catalog.ts';
import type { FollowedZone } from './followed-zone.ts';
import { MemberZones } from './member-zones.ts';

const directory = mkdtempSync(join(tmpdir(), 'ndots-catalog-'));
after(() => rmSync(directory, { recursive: true }));

const head = '@ 0 SOA invalid. hostmaster.invalid. 1 3600 600 604800 0\n@ 0 NS invalid.\n';
const version = 'version 0 TXT "2"\n';

async function zone(text: string, origin = 'catalog.example.'): Promise<PackedZone> {
  const file = join(directory, 'db');
  writeFileSync(file, text);
  const { packed, problems } = await readZoneFile(file, parseName(origin), systemClock);
  assert.deepEqual(problems, []);
  return packed!;
}

describe('a catalog zone', () => {
  test('lists zones with their labels and destinations', async () => {
    const text = `${head}${version}b.zones 0 PTR Example.NET.\na.zones 0 PTR example.com.\ngroup.a.zones 0 TXT "unsigned"\ncoo.b.zones 0 PTR Other.example.\nignored 0 TXT "value"\n`;
    const members = readCatalog(await zone(text), 100);
    assert.deepEqual(
      members.toSorted((a, b) => (a.id < b.id ? -1 : 1)),
      [
        { zone: 'example.com.', id: 'a', goesTo: null },
        { zone: 'example.net.', id: 'b', goesTo: 'other.example.' },
      ],
    );
  });

  test('is reported if invalid', async () => {
    for (const [text, message] of [
      [`@ 0 SOA invalid. invalid. 1 1 1 1 1\n${version}`, /no NS record/],
      [head, /exactly one version/],
      [`${head}${version}version 0 TXT "3"\n`, /exactly one version/],
      [`${head}version 0 TXT "1"\n`, /unsupported version "1"/],
      [`${head}${version}a.zones 0 PTR b.\na.zones 0 PTR c.\n`, /exactly one PTR/],
      [`${head}${version}a.zones 0 PTR c.\nb.zones 0 PTR c.\n`, /listed by both/],
      [
        `${head}${version}a.zones 0 PTR c.\ncoo.a.zones 0 PTR d.\ncoo.a.zones 0 PTR e.\n`,
        /more than one coo/,
      ],
    ] as const) {
      const packed = await zone(text);
      assert.throws(() => readCatalog(packed, 100), message, text);
    }
    const named = await zone(`${head}${version}a.zones 0 PTR b.\nb.zones 0 PTR c.\n`);
    assert.throws(() => readCatalog(named, 1), /lists more than 1 zones \(max_members\)$/);
  });
});

test('must only list zones', async () => {
  await assert.rejects(
    makeWorld('. {\n secondary {\n transfer from 192.0.2.1\n catalog :\n }\n}'),
    /invalid catalog member zone ":/,
  );
});

interface Followed {
  readonly members: MemberZones;
  readonly publisher: ZonePublisher;
  readonly log: string[];
  /** Lets some time pass, then returns the zones that were started and stopped, in order. */
  happened(): Promise<string[]>;
}

function follow(allowed: readonly (readonly [string, readonly string[]])[]): Followed {
  const clock = new VirtualClock();
  const log: string[] = [];
  const events: string[] = [];
  const publisher = new ZonePublisher(
    (() => ({
      publish: () => undefined,
      whenApplied: (run: () => void) => run(),
      close: () => undefined,
    })) as never,
    clock,
  );
  const members = new MemberZones({
    publisher,
    clock,
    log: pluginLog(
      makeLog((line) => log.push(line)),
      'secondary',
    ),
    most: 100,
    fixed: new Set(['fixed.example.']),
    allowed: new Map(allowed),
    follow: (name, catalog) =>
      ({
        start: () => events.push(`start ${name} ${catalog}`),
        stop: () => events.push(`stop ${name} ${catalog}`),
      }) as unknown as FollowedZone,
  });
  return {
    members,
    publisher,
    log,
    async happened() {
      await clock.advance(1000);
      return events.splice(0);
    },
  };
}

const named = (zoneName: string, id = 'a', goesTo: string | null = null) => ({
  zone: zoneName,
  id,
  goesTo,
});

describe('zones listed in catalogs', () => {
  test('are followed as long as they are listed', async () => {
    const { members, publisher, happened } = follow([['c.', []]]);
    members.apply('c.', [named('one.'), named('two.', 'b')]);
    assert.deepEqual(await happened(), ['start one. c.', 'start two. c.']);
    assert.deepEqual(publisher.names, ['one.', 'two.']);
    members.apply('c.', [named('two.', 'b')]);
    assert.deepEqual(await happened(), ['stop one. c.']);
    assert.deepEqual(publisher.names, ['two.']);
    members.apply('c.', [named('two.', 'new')]);
    assert.deepEqual(await happened(), ['stop two. c.', 'start two. c.'], 'another label: anew');
  });

  test('do not replace existing zones or leave the allowed range', async () => {
    const { members, log, happened } = follow([
      ['c.', ['org.', 'internal.example.']],
      ['d.', []],
    ]);
    members.apply('c.', [named('a.org.'), named('b.internal.example.', 'b'), named('x.net.', 'x')]);
    members.apply('d.', [named('fixed.example.'), named('a.org.', 'b')]);
    assert.deepEqual(await happened(), ['start a.org. c.', 'start b.internal.example. c.']);
    assert.ok(log.some((line) => line.includes('Skipped 1 member zones from catalog c.')));
    assert.equal(log.filter((line) => line.includes('zone already exists')).length, 2);
  });

  test('move to another catalog if theirs says so, and keep their content if their label is unchanged', async () => {
    const { members, publisher, happened } = follow([
      ['c.', []],
      ['d.', []],
    ]);
    members.apply('c.', [named('one.', 'a', 'd.'), named('two.', 'b', 'd.')]);
    await happened();
    const removed: string[] = [];
    const remove = publisher.remove.bind(publisher);
    publisher.remove = (name) => (removed.push(name), remove(name));
    members.apply('d.', [named('one.', 'a'), named('two.', 'other')]);
    assert.deepEqual(await happened(), [
      'stop one. c.',
      'stop two. c.',
      'start one. d.',
      'start two. d.',
    ]);
    assert.deepEqual(removed, ['two.']);
    members.apply('c.', []);
    assert.deepEqual(await happened(), [], 'they are not that catalog’s any more');
  });

  test('stay if another catalog also lists them when their own removes them', async () => {
    const { members, publisher, log, happened } = follow([
      ['c.', []],
      ['d.', ['org.']],
    ]);
    members.apply('c.', [named('one.org.'), named('two.net.', 'b')]);
    members.apply('d.', [named('one.org.', 'x'), named('two.net.', 'y')]);
    await happened();
    members.apply('c.', []);
    assert.deepEqual(await happened(), [
      'stop one.org. c.',
      'stop two.net. c.',
      'start one.org. d.',
    ]);
    assert.deepEqual(publisher.names, ['one.org.'], 'd. may not name the other one');
    assert.ok(
      log.some((line) => line.includes('Added catalog member zone one.org. from catalog d.')),
    );
  });

  test('move if their catalog says so after the new one has listed them', async () => {
    const { members, publisher, log, happened } = follow([
      ['c.', []],
      ['d.', []],
    ]);
    members.apply('c.', [named('one.')]);
    members.apply('d.', [named('one.')]);
    assert.deepEqual(await happened(), ['start one. c.']);
    members.apply('c.', [named('one.', 'a', 'd.')]);
    assert.deepEqual(await happened(), ['stop one. c.', 'start one. d.']);
    members.apply('c.', []);
    assert.deepEqual([await happened(), publisher.names], [[], ['one.']]);
    assert.equal(log.filter((line) => line.includes('zone already exists')).length, 1);
  });
});
