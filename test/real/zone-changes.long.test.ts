import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test, type TestContext } from 'node:test';
import { seededRandom, type Random } from '../../src/server/base/random.ts';
import { freePorts } from '../kit/free-ports.ts';
import { startKnot, startNamed, type ZoneServer } from '../kit/zone-servers.ts';
import { has, ndots, scratch, transferred, until } from '../kit/zone-transfers.ts';

/**
 * A zone that changes continuously and randomly on a real name server. ndots follows that server (NOTIFY, IXFR), and
 * another real server follows ndots. After each change, all three must have the same records. `ZONES_SEED` sets the
 * seed and `ZONES_CHANGES` the number of changes.
 */
const seed = Number(process.env['ZONES_SEED'] ?? '1');
const changes = Number(process.env['ZONES_CHANGES'] ?? '25');

/** Serials wrap around (RFC 1982). */
const FIRST = 0xffff_fff0;
/** Names that never change. */
const HOSTS = 300;

interface NameServer {
  readonly program: string;
  primary(directory: string, port: number, told: number, file: string): Promise<ZoneServer>;
  secondary(directory: string, port: number, primary: number): Promise<ZoneServer>;
}

const servers: Readonly<Record<string, NameServer>> = {
  BIND: {
    program: 'named',
    primary: (directory, port, told, file) =>
      startNamed(
        directory,
        port,
        `zone "example.org" { type primary; check-names ignore; file "${file}"; ixfr-from-differences yes; notify explicit; also-notify { 127.0.0.1 port ${told}; }; notify-delay 0; };`,
        'startup-notify-rate 1000; notify-rate 1000; serial-query-rate 1000;',
      ),
    secondary: (directory, port, primary) =>
      startNamed(
        directory,
        port,
        `zone "example.org" { type secondary; file "${directory}/copy"; primaries { 127.0.0.1 port ${primary}; }; };`,
        'serial-query-rate 1000;',
      ),
  },
  Knot: {
    program: 'knotd',
    primary: (directory, port, told, file) =>
      startKnot(
        directory,
        port,
        { 'example.org': file },
        '    notify: other\n    acl: given\n    zonefile-load: difference\n    zonefile-sync: -1\n    journal-content: changes\n',
        `remote:\n  - id: other\n    address: 127.0.0.1@${told}\nacl:\n  - id: given\n    address: 127.0.0.1\n    action: transfer\n`,
      ),
    secondary: (directory, port, primary) =>
      startKnot(
        directory,
        port,
        { 'example.org': join(directory, 'copy') },
        '    master: primary\n    acl: told\n',
        `remote:\n  - id: primary\n    address: 127.0.0.1@${primary}\nacl:\n  - id: told\n    address: 127.0.0.1\n    action: [notify, transfer]\n`,
      ),
  },
};

/** A zone as lines in its file, with one record per line except for the SOA. */
class Changing {
  readonly #random: Random;
  #rrsets = new Map<string, { ttl: number; data: Set<string> }>();
  serial = FIRST;

  constructor(random: Random) {
    this.#random = random;
    for (let left = 60; left > 0; left--) this.#add();
  }

  get text(): string {
    const records = [...this.#rrsets].flatMap(([key, { ttl, data }]) => {
      const [owner, type] = key.split(' ');
      return [...data].map((each) => `${owner} ${ttl} ${type} ${each}`);
    });
    const soa = `@ 3600 SOA ns host ${this.serial} 60 5 3600 60`;
    // Differences larger than the zone are not requested.
    const hosts = Array.from({ length: HOSTS }, (_, i) => `host${i} 300 A 192.0.2.1`);
    return [soa, '@ 300 NS ns', 'ns 300 A 192.0.2.1', ...hosts, ...records, ''].join('\n');
  }

  change(): void {
    const random = this.#random;
    this.serial = (this.serial + 1 + random.integer(3)) >>> 0;
    const kind = random.integer(10);
    // Changes only the zone's serial, the whole zone, or a few of its records.
    if (kind === 0) return;
    if (kind === 1) this.#rrsets.clear();
    for (let left = kind === 1 ? 40 : 1 + random.integer(8); left > 0; left--) {
      const draw = random.integer(3);
      const keys = [...this.#rrsets.keys()];
      const key = keys[random.integer(keys.length || 1)];
      if (draw === 0 || key === undefined) this.#add();
      else if (draw === 1) this.#rrsets.get(key)!.ttl = 60 + random.integer(1000);
      else {
        const { data } = this.#rrsets.get(key)!;
        data.delete([...data][random.integer(data.size)]!);
        if (data.size === 0) this.#rrsets.delete(key);
      }
    }
  }

  #add(): void {
    const random = this.#random;
    const label = `${['a', 'b.c', 'x.y.z', '*.w', '_s._tcp'][random.integer(5)]!}${random.integer(9)}`;
    const n = random.integer(250);
    const [owner, type, data] = [
      [label, 'A', `192.0.2.${n}`],
      [label, 'AAAA', `2001:db8::${n}`],
      [label, 'TXT', `"text ${n}" "${'x'.repeat(n)}"`],
      [label, 'MX', `${n % 3} mail${n}`],
      [`alias-${label.replace('*.', '')}`, 'CNAME', `a${n % 9}`],
      [`cut-${label.replace('*.', '')}`, 'NS', `ns${n}.elsewhere.`],
      [label, 'TYPE65300', `\\# 2 00${n.toString(16).padStart(2, '0')}`],
      [label, 'SRV', `1 2 ${n} host`],
      [label, 'HTTPS', `1 . port=${n}`],
    ][random.integer(9)] as [string, string, string];
    const key = `${owner} ${type}`;
    const rrset = this.#rrsets.get(key) ?? { ttl: 300, data: new Set() };
    if (type === 'CNAME') rrset.data.clear();
    rrset.data.add(data);
    this.#rrsets.set(key, rrset);
  }
}

async function follow(
  t: TestContext,
  above: NameServer,
  below: NameServer,
): Promise<readonly [taken: number, given: number]> {
  const directory = scratch(t);
  const file = join(directory, 'db.example.org');
  const zone = new Changing(seededRandom(seed * 7919));
  writeFileSync(file, zone.text);
  const [port, abovePort, belowPort] = (await freePorts(3)) as [number, number, number];
  const first = await above.primary(join(directory, 'above'), abovePort, port, file);
  t.after(() => first.child.stop());
  const output = await ndots(
    t,
    directory,
    `example.org:${port} {\n bind 127.0.0.1\n secondary {\n transfer from 127.0.0.1:${abovePort}\n }\n transfer {\n to 127.0.0.1:${belowPort} *\n }\n errors\n}`,
  );
  await until('ndots', port, zone.serial, output);
  const last = await below.secondary(join(directory, 'below'), belowPort, port);
  t.after(() => last.child.stop());
  for (let change = 0; change <= changes; change++) {
    const said = (): string =>
      `seed ${seed}, change ${change}\n${first.child.output()}\n${output()}\n${last.child.output()}`;
    await until('ndots', port, zone.serial, said);
    await until('the last one', belowPort, zone.serial, said);
    const [theirs, ours, theirsAgain] = await Promise.all(
      [abovePort, port, belowPort].map((each) => transferred(each)),
    );
    assert.ok(theirs!.length > 1);
    assert.deepEqual(ours, theirs, `seed ${seed}, change ${change}`);
    assert.deepEqual(theirsAgain, theirs, `seed ${seed}, change ${change}`);
    zone.change();
    writeFileSync(file, zone.text);
    first.child.signal('SIGHUP');
  }
  const count = (what: RegExp): number => (output().match(what) ?? []).length;
  return [count(/records of differences/g), count(/Outgoing incremental transfer/g)];
}

describe('a zone that changes', () => {
  for (const [one, other] of [
    ['BIND', 'Knot'],
    ['Knot', 'BIND'],
  ] as const) {
    const [above, below] = [servers[one]!, servers[other]!];
    const missing = [above, below].find(({ program }) => !has(program));
    const skip = missing === undefined ? false : `needs ${missing.program}`;
    const title = `at ${one} is the same here and, from here, at ${other}, by differences`;
    test(title, { skip, timeout: changes * 20_000 }, async (t) => {
      const [taken, given] = await follow(t, above, below);
      t.diagnostic(`${changes} changes, ${taken} taken and ${given} given as differences`);
      assert.ok(taken > changes / 2, `${taken} of ${changes} taken as differences`);
      assert.ok(given > changes / 2, `${given} of ${changes} given as differences`);
    });
  }
});
