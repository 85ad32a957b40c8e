import { MemoryPolicy } from '../../runtime/memory-policy.ts';
import assert from 'node:assert/strict';
import { chmodSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { makeWorld, type World } from '../../../../test/kit/world.ts';
import { FLAG, OPCODE, RCODE, rcodeName } from '../../wire/iana.ts';
import type { Message } from '../../wire/message.ts';

const directory = mkdtempSync(join(tmpdir(), 'ndots-hosts-'));
after(() => rmSync(directory, { recursive: true }));

let files = 0;
function hostsFile(text: string): string {
  const path = join(directory, `hosts-${files++}`);
  writeFileSync(path, text);
  return path;
}

const sample = `
127.0.0.1  localhost localhost.domain   # comment
10.0.0.1   example.org
::1        localhost
10.0.0.2   example.org Mixed.Case.Example.ORG
2001:db8::2 six.example.org
::ffff:10.0.0.9 mapped.example.org
fe80::1%eth0 zoned.example.org
nonsense   line
10.0.0.3   *.wild.example.org exact.wild.example.org
10.0.0.4
`;

const worldWith = (rest: string, zone = '.', file = hostsFile(sample)): Promise<World> =>
  makeWorld(`${zone}:53 {\n hosts ${file} ${rest}\n whoami\n}`);

/** Formats the answer section as `TYPE data` words or, if it is empty, as the result code. */
function brief(reply: Message): string {
  if (reply.rcode !== RCODE.NOERROR) return rcodeName(reply.rcode);
  if (reply.additional.length > 0) return 'next';
  return reply.answer.map(({ data }) => Object.values(data).join(' ')).join(', ') || 'NODATA';
}

async function answers(world: World, ...questions: readonly string[]): Promise<readonly string[]> {
  const found: string[] = [];
  for (const question of questions) found.push(brief(await world.ask(question)));
  return found;
}

describe('hosts', () => {
  test('names beyond max_names are omitted, both from the file and from the Corefile', async () => {
    const file = hostsFile('10.0.0.1 a.\n10.0.0.2 b.\n10.0.0.3 c.\n');
    const lines =
      '{\n 10.0.0.4 d.\n 10.0.0.5 e.\n 10.0.0.6 f.\n no_reverse\n max_names 2\n fallthrough\n}';
    const world = await worldWith(lines, '.', file);
    assert.deepEqual(await answers(world, 'a.', 'b.', 'c.', 'd.', 'e.', 'f.'), [
      '10.0.0.1',
      '10.0.0.2',
      'next',
      '10.0.0.4',
      '10.0.0.5',
      'next',
    ]);
    assert.match(world.log.join('\n'), /has more than 2 names, .* \(max_names\)/);
  });

  test("A and AAAA come from the file, authoritative, in the client's spelling", async () => {
    const world = await worldWith('');
    const reply = await world.ask('Example.ORG. A');
    assert.equal(brief(reply), '10.0.0.1, 10.0.0.2');
    assert.equal(reply.flags & (FLAG.AA | FLAG.RA), FLAG.AA);
    assert.deepEqual(
      reply.answer.map(({ name, ttl }) => [name, ttl]),
      [
        ['Example.ORG.', 3600],
        ['Example.ORG.', 3600],
      ],
    );
    assert.equal((await world.ask('eXAMPLE.org. A')).answer[0]!.name, 'eXAMPLE.org.');
    assert.deepEqual(
      await answers(
        world,
        'mixed.case.example.org.',
        'six.example.org. AAAA',
        'mapped.example.org. A',
        'zoned.example.org. AAAA',
        'localhost. AAAA',
      ),
      ['10.0.0.2', '2001:db8::2', '10.0.0.9', 'fe80::1', '::1'],
    );
    await world.close();
  });

  test('a NOTIFY does not prevent caching of answers for the same name', async () => {
    const world = await makeWorld(`.:53 {\n cache\n prometheus\n hosts ${hostsFile(sample)}\n}`);
    for (const opcode of [OPCODE.NOTIFY, OPCODE.QUERY, OPCODE.QUERY])
      await world.ask('example.org. A', { flags: FLAG.RD | (opcode << 11) });
    assert.match(world.metrics(), /^coredns_cache_hits_total\{.*type="success".*\} 1$/m);
    await world.close();
  });

  test('an existing name has no data for other types, rather than NXDOMAIN', async () => {
    const world = await worldWith('');
    assert.deepEqual(
      await answers(
        world,
        'six.example.org. A',
        'example.org. AAAA',
        'example.org. MX',
        'example.org. PTR',
        'example.org. HTTPS',
      ),
      ['NODATA', 'NODATA', 'NODATA', 'NODATA', 'NODATA'],
    );
    assert.deepEqual(
      await answers(world, '1.0.0.10.in-addr.arpa. A', '1.0.0.10.in-addr.arpa. SOA'),
      ['NODATA', 'NODATA'],
    );
    await world.close();
  });

  test('an unknown name gets SERVFAIL without fallthrough, and goes to the next plugin with it', async () => {
    const closed = await worldWith('');
    assert.deepEqual(await answers(closed, 'no.example.org. A', 'no.example.org. MX'), [
      'SERVFAIL',
      'SERVFAIL',
    ]);
    await closed.close();
    const open = await worldWith('{\n fallthrough example.org\n}');
    assert.deepEqual(
      await answers(open, 'no.example.org. A', 'no.example.net. A', 'example.org. AAAA'),
      ['next', 'SERVFAIL', 'NODATA'],
    );
    await open.close();
  });

  test('PTR returns all names of an address, and unknown addresses go to the next plugin even without fallthrough', async () => {
    const world = await worldWith('');
    assert.deepEqual(
      await answers(
        world,
        '1.0.0.127.in-addr.arpa. PTR',
        '2.0.0.10.IN-ADDR.arpa. PTR',
        '2.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa. PTR',
        '9.9.9.9.in-addr.arpa. PTR',
        '3.0.0.10.in-addr.arpa. PTR',
      ),
      [
        'localhost., localhost.domain.',
        'example.org., mixed.case.example.org.',
        'six.example.org.',
        'next',
        'exact.wild.example.org.',
      ],
    );
    await world.close();
  });

  test('PTR is answered although the zones do not include the reverse name', async () => {
    const world = await makeWorld(`.:53 {\n hosts ${hostsFile(sample)} example.org\n whoami\n}`);
    assert.deepEqual(
      await answers(
        world,
        '1.0.0.10.in-addr.arpa. PTR',
        '1.0.0.10.in-addr.arpa. A',
        '1.0.0.127.in-addr.arpa. PTR',
      ),
      ['example.org.', 'next', 'next'],
    );
    await world.close();
  });

  test('no_reverse leaves PTR to the next plugin', async () => {
    const world = await worldWith('{\n no_reverse\n}');
    assert.deepEqual(await answers(world, '1.0.0.10.in-addr.arpa. PTR', 'example.org. A'), [
      'next',
      '10.0.0.1, 10.0.0.2',
    ]);
    await world.close();
  });

  test('names outside the zones go to the next plugin, and are ignored in the file', async () => {
    const world = await worldWith('example.org');
    assert.deepEqual(await answers(world, 'localhost. A', 'example.org. A', 'no.example.org. A'), [
      'next',
      '10.0.0.1, 10.0.0.2',
      'SERVFAIL',
    ]);
    await world.close();
  });

  test('a wildcard matches exactly one label, and an exact name takes precedence for every type', async () => {
    const world = await worldWith('{\n 2001:db8::9 *.wild.example.org\n}');
    assert.deepEqual(
      await answers(
        world,
        'a.wild.example.org. A',
        'a.wild.example.org. AAAA',
        'a.wild.example.org. TXT',
        'a.b.wild.example.org. A',
        'wild.example.org. A',
        'exact.wild.example.org. AAAA',
        '*.wild.example.org. A',
      ),
      ['10.0.0.3', '2001:db8::9', 'NODATA', 'SERVFAIL', 'SERVFAIL', 'NODATA', '10.0.0.3'],
    );
    assert.equal(
      (await world.ask('Longer-Label.wild.example.org. A')).answer[0]!.name,
      'Longer-Label.wild.example.org.',
    );
    await world.close();
  });

  test('inline lines are added to the file; duplicates are returned once', async () => {
    const world = await worldWith(
      '{\n 10.0.0.7 example.org inline.example.org\n 10.0.0.1 example.org\n ttl 30\n fallthrough\n}',
    );
    const reply = await world.ask('example.org. A');
    assert.equal(brief(reply), '10.0.0.1, 10.0.0.2, 10.0.0.7');
    assert.equal(reply.answer[0]!.ttl, 30);
    assert.deepEqual(await answers(world, 'inline.example.org. A', '7.0.0.10.in-addr.arpa. PTR'), [
      '10.0.0.7',
      'example.org., inline.example.org.',
    ]);
    await world.close();
  });

  test('fallthrough_unsupported passes on other types for known names', async () => {
    const world = await worldWith('{\n fallthrough\n fallthrough_unsupported\n}');
    assert.deepEqual(
      await answers(world, 'example.org. MX', 'example.org. AAAA', 'example.org. A'),
      ['next', 'NODATA', '10.0.0.1, 10.0.0.2'],
    );
    await world.close();
  });

  test('a changed file is read at the next check', async () => {
    const file = hostsFile('10.0.0.1 a.example.org\n');
    const world = await worldWith('{\n reload 2s\n}', '.', file);
    assert.deepEqual(await answers(world, 'a.example.org. A'), ['10.0.0.1']);
    writeFileSync(file, '10.0.0.2 a.example.org\n10.0.0.3 a.example.org\n');
    utimesSync(file, 1_700_000_000, 1_700_000_000.5);
    await world.clock.advance(1999);
    assert.deepEqual(await answers(world, 'a.example.org. A'), ['10.0.0.1']);
    await world.clock.advance(2);
    assert.deepEqual(await answers(world, 'a.example.org. A'), ['10.0.0.2, 10.0.0.3']);
    assert.match(
      world.metrics(),
      new RegExp(`^coredns_hosts_entries\\{hostsfile="${file}"\\} 4$`, 'm'),
    );
    assert.match(world.metrics(), /^coredns_hosts_reload_timestamp_seconds 1\.7000000005e\+09$/m);
    rmSync(file);
    await world.clock.advance(4000);
    assert.deepEqual(await answers(world, 'a.example.org. A'), ['10.0.0.2, 10.0.0.3']);
    await world.close();
  });

  test('the memory of a replaced large table is collected', async (t) => {
    const large = (octet: number): string =>
      Array.from({ length: 50_000 }, (_, i) => `10.${octet}.${i >> 8}.${i & 255} n${i}.org`).join(
        '\n',
      );
    const file = hostsFile(large(1));
    const world = await worldWith('{\n reload 2s\n}', '.', file);
    const runtime = globalThis as { gc?: unknown };
    const before = runtime.gc;
    let collections = 0;
    runtime.gc = () => collections++;
    t.after(() => (runtime.gc = before));
    new MemoryPolicy({ clock: world.clock, rss: () => 0, isBusy: () => false }).begin();
    await world.clock.advance(1500);
    collections = 0;
    writeFileSync(file, large(22));
    // The file is read in turns of the real event loop, and a busy thread is not interrupted.
    for (let tries = 0; tries < 100 && collections < 1; tries++) {
      await world.clock.advance(5000);
      await sleep(30);
    }
    assert.equal(collections, 1);
    assert.deepEqual(await answers(world, 'n9.org. A'), ['10.22.0.9']);
    await world.close();
  });

  test('reload 0 disables checks', async () => {
    const file = hostsFile('10.0.0.1 a.example.org\n');
    const world = await worldWith('{\n reload 0s\n}', '.', file);
    writeFileSync(file, '10.0.0.200 a.example.org\n');
    await world.clock.advance(60_000);
    assert.deepEqual(await answers(world, 'a.example.org. A'), ['10.0.0.1']);
    await world.close();
  });

  test('a missing file and a directory only cause a warning; the file may be created later', async () => {
    const file = join(directory, 'later');
    const world = await worldWith('', '.', file);
    assert.deepEqual(world.log, [`[WARNING] plugin/hosts: File does not exist: ${file}`]);
    writeFileSync(file, '10.0.0.1 a.example.org\n');
    await world.clock.advance(5000);
    assert.deepEqual(await answers(world, 'a.example.org. A'), ['10.0.0.1']);
    await world.close();
    const other = await worldWith('', '.', directory);
    assert.deepEqual(other.log, [
      `[WARNING] plugin/hosts: Hosts file "${directory}" is a directory`,
    ]);
    await other.close();
  });

  test('a partly binary file is reported once per version, with its first such line, and the rest is used', async () => {
    const zeros = '\0'.repeat(200);
    const file = hostsFile(
      `10.0.0.1 a.example.org # \0\n${zeros}\n\x7fELF\x01\n10.0.0.2 b.example.org\n`,
    );
    const world = await worldWith('', '.', file);
    assert.deepEqual(await answers(world, 'a.example.org. A', 'b.example.org. A'), [
      '10.0.0.1',
      '10.0.0.2',
    ]);
    const rest = 'lines without an address and names are ignored; check that the file is complete';
    assert.deepEqual(world.log, [
      `[WARNING] plugin/hosts: ${file}:2: this line and 1 more contain binary data: ${rest}`,
    ]);
    await world.clock.advance(20_000);
    assert.equal(world.log.length, 1);
    writeFileSync(file, `10.0.0.3 a.example.org\n${zeros}`);
    await world.clock.advance(5000);
    assert.deepEqual(await answers(world, 'a.example.org. A'), ['10.0.0.3']);
    assert.deepEqual(world.log.slice(1), [
      `[WARNING] plugin/hosts: ${file}:2: this line contains binary data: ${rest}`,
    ]);
    await world.close();
  });

  test('a temporarily unreadable file is reported once, and read as soon as possible', async () => {
    const file = hostsFile('10.0.0.1 a.example.org\n');
    const world = await worldWith('', '.', file);
    writeFileSync(file, '10.0.0.2 a.example.org\n10.0.0.3 b.example.org\n');
    chmodSync(directory, 0o755);
    chmodSync(file, 0);
    const root = process.getuid?.() === 0;
    if (root) process.seteuid!(65_534);
    await world.clock.advance(10_000).finally(() => root && process.seteuid!(0));
    assert.deepEqual(await answers(world, 'a.example.org. A'), ['10.0.0.1']);
    assert.deepEqual(world.log, [
      `[ERROR] plugin/hosts: ${file} cannot be read: permission denied; its names stay unchanged`,
    ]);
    chmodSync(file, 0o644);
    await world.clock.advance(5000);
    assert.deepEqual(await answers(world, 'a.example.org. A'), ['10.0.0.2']);
    await world.close();
  });

  test('ten thousand names are all found', async () => {
    const lines = Array.from(
      { length: 10_000 },
      (_, i) => `10.1.${i >> 8}.${i & 255} host${i}.example.org`,
    );
    const world = await worldWith('', '.', hostsFile(lines.join('\n')));
    for (let i = 0; i < 10_000; i += 997) {
      assert.deepEqual(
        await answers(
          world,
          `HOST${i}.example.org. A`,
          `${i & 255}.${i >> 8}.1.10.in-addr.arpa. PTR`,
        ),
        [`10.1.${i >> 8}.${i & 255}`, `host${i}.example.org.`],
      );
    }
    await world.close();
  });

  test("errors use CoreDNS's wording", async () => {
    await assert.rejects(worldWith('{\n ttl 0\n}'), /ttl provided is invalid/);
    await assert.rejects(worldWith('{\n ttl 65536\n}'), /ttl provided is invalid/);
    await assert.rejects(worldWith('{\n ttl long\n}'), /ttl needs a number of second/);
    await assert.rejects(worldWith('{\n reload 5\n}'), /invalid duration for reload '5'/);
    await assert.rejects(
      worldWith('{\n reload -5s\n}'),
      /invalid negative duration for reload '-5s'/,
    );
    await assert.rejects(
      worldWith('{\n fallthrough\n 10.0.0.1 late.example.org\n}'),
      /unknown property '10\.0\.0\.1'/,
    );
    await assert.rejects(
      worldWith('{\n fallthrough_unsupported\n}'),
      /fallthrough_unsupported requires fallthrough/,
    );
    await assert.rejects(
      makeWorld('.:53 {\n hosts\n hosts\n}'),
      /only be used once per Server Block/,
    );
  });
});
