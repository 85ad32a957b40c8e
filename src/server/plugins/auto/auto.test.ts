import assert from 'node:assert/strict';
import {
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test, type TestContext } from 'node:test';
import { RCODE } from '../../wire/iana.ts';
import { makeWorld, type World } from '../../../../test/kit/world.ts';

const zone = (serial: number, address = '192.0.2.1'): string =>
  `$TTL 60\n@ SOA ns host ${serial} 2 3 4 5\n@ NS ns\nns A 192.0.2.9\nwww A ${address}\n`;

function directory(t: TestContext, files: Readonly<Record<string, string>>): string {
  const path = mkdtempSync(join(tmpdir(), 'ndots-auto-'));
  t.after(() => rmSync(path, { recursive: true }));
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(join(path, name, '..'), { recursive: true });
    writeFileSync(join(path, name), text);
  }
  return path;
}

async function served(
  t: TestContext,
  path: string,
  directory = 'zones',
  zones = '.',
): Promise<World> {
  const world = await makeWorld(
    `. {\n auto ${zones} {\n directory ${directory}\n reload 10s\n }\n whoami\n}`,
    { directory: path },
  );
  t.after(() => world.close());
  return world;
}

async function later(world: World): Promise<void> {
  await world.clock.advance(10_001);
  for (let i = 0; i < 20; i++) await new Promise((resolve) => setImmediate(resolve));
}

/** Returns the address in the answer. Names outside all zones are answered by whoami. */
async function www(world: World, zoneName: string): Promise<string> {
  const { rcode, answer, additional } = await world.ask(`www.${zoneName}. A`);
  if (additional.length > 0) return 'whoami';
  return (answer[0]?.data as { address: string } | undefined)?.address ?? `rcode ${rcode}`;
}

describe('auto', () => {
  test('a reload does not repeat warnings about zones whose files are unchanged', async (t) => {
    const path = directory(t, { 'zones/db.example.org': zone(1) });
    const world = await served(t, path);
    const before = world.log.length;
    await world.server.reload();
    await later(world);
    assert.doesNotMatch(world.log.slice(before).join('\n'), /serial/);
    writeFileSync(join(path, 'zones/db.example.org'), zone(1, '192.0.2.7'));
    await world.server.reload();
    await later(world);
    assert.match(world.log.slice(before).join('\n'), /has changed but its serial has not \(1\)/);
  });

  test('files in a directory and its subdirectories are served as zones named after them', async (t) => {
    const path = directory(t, {
      'zones/db.example.org': zone(1),
      'zones/deep/db.Example.NET': zone(1, '192.0.2.2'),
      'zones/notes.txt': 'no zone',
    });
    const world = await served(t, path);
    assert.equal(await www(world, 'example.org'), '192.0.2.1');
    assert.equal(await www(world, 'example.net'), '192.0.2.2');
    assert.equal(await www(world, 'example.com'), 'whoami');
  });

  test("the pattern and the template determine each file's zone", async (t) => {
    const path = directory(t, {
      'zones/org.example.zone': zone(1),
      'zones/org.example.zone.bak': '(',
    });
    const world = await served(t, path, String.raw`zones ^(\w+)\.(\w+)\.zone$ {2}.{1}`);
    assert.equal(await www(world, 'example.org'), '192.0.2.1');
    assert.deepEqual(
      world.log.filter((line) => line.startsWith('[ERROR]')),
      [],
    );
  });

  test("only names in the directive's zones are answered", async (t) => {
    const path = directory(t, { 'zones/db.example.org': zone(1), 'zones/db.example.net': zone(1) });
    const world = await served(t, path, 'zones', 'org');
    assert.equal(await www(world, 'example.org'), '192.0.2.1');
    assert.equal(await www(world, 'example.net'), 'whoami');
  });

  test('new, changed and removed files are picked up, and an error changes nothing', async (t) => {
    const path = directory(t, { 'real/db.example.org': zone(1) });
    symlinkSync(join(path, 'real'), join(path, 'zones'));
    const world = await served(t, path);
    writeFileSync(join(path, 'real/db.example.net'), zone(1));
    writeFileSync(join(path, 'real/db.example.com'), `${zone(1)}x A y\n`);
    writeFileSync(join(path, 'real/db.example.org'), zone(2, '192.0.2.3'));
    await later(world);
    assert.equal(await www(world, 'example.net'), '192.0.2.1');
    assert.equal(await www(world, 'example.org'), '192.0.2.3');
    assert.equal(await www(world, 'example.com'), 'whoami');
    unlinkSync(join(path, 'real/db.example.net'));
    writeFileSync(join(path, 'real/db.example.org'), `${zone(3)})\n`);
    await later(world);
    assert.equal(await www(world, 'example.net'), 'whoami');
    assert.equal(await www(world, 'example.org'), '192.0.2.3');
    assert.ok(world.log.some((line) => /Deleting zone `example\.net\.'/.test(line)));
  });

  test('an unreadable directory or file removes no zone', async (t) => {
    const path = directory(t, { 'zones/db.example.org': zone(1), 'zones/db.example.net': zone(1) });
    const [zones, file, aside] = ['zones', 'zones/db.example.org', 'aside'].map((name) =>
      join(path, name),
    ) as [string, string, string];
    const world = await served(t, path);
    for (const what of [zones, file]) {
      renameSync(what, aside);
      // Circular links cannot be read, even with full permissions.
      symlinkSync(what, what);
      await later(world);
      assert.equal(await www(world, 'example.org'), '192.0.2.1', what);
      const told = world.log.filter((line) => line.startsWith('[WARNING]'));
      assert.match(told.at(-1)!, /error reading .*: .*; keeping its zones/);
      unlinkSync(what);
      renameSync(aside, what);
      await later(world);
    }
    // An unreadable entry such as `lost+found` must not keep a zone from another directory alive.
    symlinkSync(aside, aside);
    renameSync(aside, join(zones, 'db.example.com'));
    unlinkSync(file);
    await later(world);
    assert.equal(await www(world, 'example.org'), 'whoami');
    assert.equal(await www(world, 'example.net'), '192.0.2.1');
  });

  test('an unreadable file does not remove its zone on a reload either', async (t) => {
    const path = directory(t, { 'zones/db.example.org': zone(1), 'zones/db.example.net': zone(1) });
    const world = await served(t, path);
    const file = join(path, 'zones/db.example.org');
    unlinkSync(file);
    symlinkSync(file, file);
    await world.server.reload();
    assert.equal(await www(world, 'example.org'), '192.0.2.1');
    unlinkSync(file);
    await later(world);
    assert.equal(await www(world, 'example.org'), 'whoami');
    assert.equal(await www(world, 'example.net'), '192.0.2.1');
  });

  test('a missing directory causes a warning and may be created later', async (t) => {
    const path = directory(t, {});
    const world = await served(t, path);
    assert.match(world.log[0]!, /Directory does not exist/);
    mkdirSync(join(path, 'zones'));
    writeFileSync(join(path, 'zones/db.example.org'), zone(1));
    await later(world);
    assert.equal(await www(world, 'example.org'), '192.0.2.1');
  });

  test('without a directory nothing is served, as in CoreDNS, and a warning is logged', async () => {
    const world = await makeWorld('. {\n auto\n}');
    assert.match(world.log.join('\n'), /no zone is served because 'directory’ is missing/);
    assert.equal((await world.ask('example.org. A')).rcode, RCODE.SERVFAIL);
    await world.close();
  });

  test('invalid directives are rejected', async () => {
    await assert.rejects(makeWorld('. {\n auto {\n directory x y\n }\n}'), /Wrong argument count/);
    await assert.rejects(makeWorld('. {\n auto {\n directory x y {1}\n }\n}'), /sub expression/);
    await assert.rejects(makeWorld('. {\n auto {\n directory x (y {1}\n }\n}'), /missing/);
  });
});
