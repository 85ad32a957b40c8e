import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test, type TestContext } from 'node:test';
import { costsAtMost } from '../../../../test/kit/growth.ts';
import { VirtualClock } from '../../base/virtual-clock.ts';
import { bindDirective } from '../../corefile/syntax.ts';
import { parseCorefile } from '../../corefile/parse.ts';
import type { Plugin } from '../../engine/contract/plugin.ts';
import type { ControlContext } from '../../engine/contract/control-context.ts';
import { RCODE } from '../../wire/iana.ts';
import { printData, printRecord } from '../../wire/print.ts';
import { strangerCertificate, testCertificate, testKey } from '../../../../test/kit/certificate.ts';
import { FakeEtcd } from '../../../../test/kit/fake-etcd.ts';
import { plugins } from '../../../../test/kit/plugins.ts';
import { makeWorld, type World } from '../../../../test/kit/world.ts';
import { etcd as plugin } from './etcd.ts';
import { EtcdFollower } from './follower.ts';
import { roomFor } from './key-memory.ts';
import { syntax, type EtcdOptions } from './etcd-options.ts';
import { planEtcd, planKey, rangesOf } from './etcd-plan.ts';

/** A world with an in-memory etcd. The first server block contains the plugin with these lines in its braces. */
async function world(
  t: TestContext,
  entries: Readonly<Record<string, object | string>> = {},
  lines = '',
  away = false,
  { more = '', share = 2 ** 30 } = {},
): Promise<World & { readonly fake: FakeEtcd }> {
  const fake = new FakeEtcd();
  fake.away = away;
  for (const [key, value] of Object.entries(entries))
    fake.put(key, typeof value === 'string' ? value : JSON.stringify(value));
  const control = (options: EtcdOptions, context: ControlContext): void => {
    const plan = planEtcd(options, (file) => context.path(file));
    const room = roomFor(context, planKey(plan), plan.maxBytes, () => share);
    const follower = context.replicated(
      planKey(plan),
      (open) => new EtcdFollower({ ...context, plan, open, room, client: fake.client }),
    );
    context.readiness(() => follower.synced);
    context.onStart(() => {
      follower.start();
      return follower.whenSynced(options.startupTimeoutMs);
    });
  };
  const faked: Plugin = { ...plugin, control: control as Plugin['control'] & object };
  const made = await makeWorld(
    `. {
      hosts {
        192.0.2.7 web.ext.test
        fallthrough
      }
      etcd shop.test 10.in-addr.arpa {
        ${lines}
      }
      whoami
    }
    ${more}`,
    {
      plugins: plugins.map((one) => (one.name === 'etcd' ? faked : one)),
      clock: new VirtualClock(),
    },
  );
  t.after(() => made.close());
  return { ...made, fake };
}

/** Returns the answer as `NAME TYPE DATA` lines, without TTLs. */
async function answer(it: World, question: string): Promise<string[]> {
  const text = await it.dig(question);
  const section = /;; ANSWER SECTION:\n([^]*?)(?:\n\n|\n?$)/.exec(text)?.[1] ?? '';
  return section
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => line.replaceAll(/\s+/g, ' ').replace(/^(\S+) \d+ IN /, '$1 '));
}

const shop = {
  '/skydns/test/shop/web/a1': { host: '10.0.0.1', port: 80 },
  '/skydns/test/shop/web/a2': { host: '10.0.0.2', port: 81, weight: 300 },
  '/skydns/test/shop/www': { host: 'web.shop.test' },
  '/skydns/test/shop/out': { host: 'web.ext.test' },
  '/skydns/test/shop/note': { text: 'hello' },
  '/skydns/arpa/in-addr/10/0/0/1': { host: 'web.shop.test' },
};

describe('etcd', () => {
  test('a name includes all keys below it', async (t) => {
    const it = await world(t, shop);
    assert.deepEqual(await answer(it, 'web.shop.test A'), [
      'web.shop.test. A 10.0.0.1',
      'web.shop.test. A 10.0.0.2',
    ]);
    assert.deepEqual(await answer(it, 'a1.web.shop.test A'), ['a1.web.shop.test. A 10.0.0.1']);
    assert.equal((await it.ask('eb.shop.test A')).rcode, 3);
  });

  test('a host that is a name is an alias, inside the zone and outside', async (t) => {
    const it = await world(t, shop);
    assert.deepEqual(await answer(it, 'www.shop.test A'), [
      'www.shop.test. CNAME web.shop.test.',
      'web.shop.test. A 10.0.0.1',
      'web.shop.test. A 10.0.0.2',
    ]);
    assert.deepEqual(await answer(it, 'out.shop.test A'), [
      'out.shop.test. CNAME web.ext.test.',
      'web.ext.test. A 192.0.2.7',
    ]);
  });

  test('SRV weights are percentages', async (t) => {
    const it = await world(t, shop);
    assert.deepEqual(await answer(it, 'web.shop.test SRV'), [
      'web.shop.test. SRV 10 25 80 a1.web.shop.test.',
      'web.shop.test. SRV 10 75 81 a2.web.shop.test.',
    ]);
  });

  test('owners use the spelling of the question', async (t) => {
    const it = await world(t, shop);
    assert.deepEqual(await answer(it, 'WeB.shop.TEST TXT'), []);
    assert.deepEqual(await answer(it, 'NoTe.shop.test TXT'), ['NoTe.shop.test. TXT "hello"']);
  });

  test('a name exists for all types or for none', async (t) => {
    const it = await world(t, shop);
    for (const type of [
      'A',
      'AAAA',
      'TXT',
      'SRV',
      'MX',
      'CNAME',
      'PTR',
      'NS',
      'SOA',
      'HINFO',
      'ANY',
    ]) {
      for (const name of ['web.shop.test', 'shop.test', '0.10.in-addr.arpa'])
        assert.equal((await it.ask(`${name} ${type}`)).rcode, 0, `${name} ${type}`);
      assert.equal((await it.ask(`nobody.shop.test ${type}`)).rcode, 3, type);
    }
  });

  test('SOA is at the apex, and its serial is the time of the last change', async (t) => {
    const it = await world(t, shop);
    const serial = async (): Promise<number> =>
      Number((await answer(it, 'shop.test SOA'))[0]!.split(' ')[4]);
    const before = await serial();
    await it.clock.advance(10_000);
    assert.equal(await serial(), before);
    it.fake.put('/skydns/test/shop/new', '{"host":"10.0.0.9"}');
    await it.clock.advance(10);
    assert.equal(await serial(), before + 10);
  });

  test('transfers are refused without the transfer plugin and with per_query', async (t) => {
    const it = await world(t, shop);
    assert.equal((await it.ask('shop.test AXFR', { proto: 'tcp' })).rcode, 5);
  });

  const given = '}\n transfer {\n to *\n';

  test('a transfer has the records of every name, and for aliases either themselves or their targets', async (t) => {
    const it = await world(
      t,
      {
        ...shop,
        '/skydns/test/shop/dns/ns/ns1': { host: '192.0.2.53' },
        '/skydns/test/shop/mixed/a': { host: '10.0.0.3', ttl: 60 },
        '/skydns/test/shop/mixed/b': { host: 'web.shop.test' },
        '/skydns/test/shop/mixed/c': { host: 'web.ext.test' },
        '/skydns/test/shop/gone': { host: 'nobody.shop.test' },
        '/skydns/test/shop/Loud': { host: '10.0.0.4' },
      },
      given,
    );
    const axfr = async (zone: string): Promise<string[]> =>
      (await it.ask(`${zone} AXFR`, { proto: 'tcp' })).answer.map((record) =>
        printRecord(record)
          .replaceAll(/\s+/g, ' ')
          .replace(/^(\S+) \d+ IN /, '$1 '),
      );
    const lines = await axfr('shop.test');
    assert.match(
      lines[0]!,
      /^shop\.test\. SOA ns\.dns\.shop\.test\. hostmaster\.shop\.test\. \d+ /,
    );
    assert.equal(lines.at(-1), lines[0]);
    const of = (name: string): string[] =>
      lines
        .filter((line) => line.startsWith(`${name} `))
        .map((line) => line.slice(name.length + 1));
    assert.deepEqual(
      of('shop.test.').filter((line) => line.startsWith('NS')),
      ['NS ns1.ns.dns.shop.test.'],
    );
    assert.deepEqual(of('ns1.ns.dns.shop.test.')[0], 'A 192.0.2.53');
    assert.deepEqual(of('www.shop.test.'), ['CNAME web.shop.test.']);
    assert.deepEqual(of('out.shop.test.'), ['CNAME web.ext.test.']);
    assert.deepEqual(of('note.shop.test.'), ['TXT "hello"']);
    assert.deepEqual(of('gone.shop.test.'), []);
    assert.deepEqual(of('loud.shop.test.'), []);
    assert.deepEqual(of('web.shop.test.'), [
      'A 10.0.0.1',
      'A 10.0.0.2',
      'SRV 10 25 80 a1.web.shop.test.',
      'SRV 10 75 81 a2.web.shop.test.',
    ]);
    assert.deepEqual(
      of('mixed.shop.test.').filter((line) => line.startsWith('A ')),
      ['A 10.0.0.3', 'A 10.0.0.1', 'A 10.0.0.2'],
    );
    assert.deepEqual(
      (await axfr('10.in-addr.arpa')).map((line) => line.split(' ').slice(0, 2)),
      [
        ['10.in-addr.arpa.', 'SOA'],
        ['10.in-addr.arpa.', 'NS'],
        ['1.0.0.10.in-addr.arpa.', 'PTR'],
        ['10.in-addr.arpa.', 'SOA'],
      ],
    );
  });

  test('a second change within one second gets its own serial when the second is over', async (t) => {
    const it = await world(t, shop);
    const serial = async (): Promise<number> =>
      Number((await answer(it, 'shop.test SOA'))[0]!.split(' ')[4]);
    await it.clock.advance(10_000);
    const first = await serial();
    it.fake.put('/skydns/test/shop/new', '{"host":"10.0.0.9"}');
    await it.clock.advance(1);
    const second = await serial();
    it.fake.put('/skydns/test/shop/new', '{"host":"10.0.0.8"}');
    await it.clock.advance(1);
    assert.equal(await serial(), second);
    await it.clock.advance(1000);
    assert.ok(first < second && second < (await serial()), 'the serial rises');
    await it.clock.advance(10_000);
    assert.equal(await serial(), second + 1);
  });

  test('missing names fall through, but names without data do not', async (t) => {
    const it = await world(t, shop, 'fallthrough');
    // whoami answers with additional records only.
    assert.equal((await it.ask('nobody.shop.test A')).additional.length, 2);
    assert.equal((await it.ask('web.shop.test MX')).additional.length, 0);
  });

  test('classes other than IN do not change the answers for IN', async (t) => {
    const it = await world(t, shop);
    await it.tryAsk('web.shop.test A', { qclass: 3 });
    await it.tryAsk('web.shop.test A', { qclass: 3 });
    assert.equal((await answer(it, 'web.shop.test A')).length, 2);
  });

  test('answers are SERVFAIL before the first listing, not NXDOMAIN, and complete afterwards', async (t) => {
    for (const lines of ['startup_timeout 1s', 'startup_timeout 1s\nfallthrough']) {
      const it = await world(t, shop, lines, true);
      const { rcode, edns } = await it.ask('web.shop.test A', { edns: true });
      assert.equal(rcode, 2);
      assert.equal(edns?.options.find(({ code }) => code === 15)?.data[1], 14);
      it.fake.away = false;
      await it.clock.advance(2000);
      assert.equal((await answer(it, 'web.shop.test A')).length, 2);
    }
  });

  test('an unavailable etcd removes nothing, and changes appear when it returns', async (t) => {
    const it = await world(t, shop);
    it.fake.crash();
    await it.clock.advance(3_600_000);
    assert.equal((await answer(it, 'web.shop.test A')).length, 2);
    it.fake.delete('/skydns/test/shop/web/a2');
    it.fake.away = false;
    await it.clock.advance(2000);
    assert.deepEqual(await answer(it, 'web.shop.test A'), ['web.shop.test. A 10.0.0.1']);
    assert.match(it.metrics(), /ndots_etcd_following\{path="\/skydns"\} 1/);
    assert.match(it.metrics(), /ndots_etcd_lists_total\{path="\/skydns",reason="start"\} 1/);
  });

  test('an invalid value is logged once, counted, and forgotten when it is fixed', async (t) => {
    const it = await world(t, { '/skydns/test/shop/bad': '{"host":7}' });
    assert.equal((await it.ask('bad.shop.test A')).rcode, 0);
    assert.match(it.metrics(), /ndots_etcd_skipped_keys\{path="\/skydns",reason="json"\} 1/);
    it.fake.put('/skydns/test/shop/bad', '{"host":"10.0.0.7"}');
    await it.clock.advance(10);
    assert.deepEqual(await answer(it, 'bad.shop.test A'), ['bad.shop.test. A 10.0.0.7']);
    assert.match(it.metrics(), /ndots_etcd_skipped_keys\{path="\/skydns",reason="json"\} 0/);
    assert.equal(it.log.filter((line) => line.includes('ignored')).length, 1);
  });

  test('a flood of bad values causes ten log lines a minute', async (t) => {
    const many = Object.fromEntries(
      Array.from({ length: 100 }, (_, i) => [`/skydns/test/shop/bad/${i}`, 'x']),
    );
    const it = await world(t, many);
    await it.clock.advance(61_000);
    const lines = it.log.filter((line) => line.includes('ignored'));
    assert.equal(lines.length, 11);
    assert.match(lines[10]!, /90 more keys are ignored/);
  });

  test('keys beyond max_keys are omitted and counted', async (t) => {
    const it = await world(t, shop, 'max_keys 2');
    assert.match(it.metrics(), /ndots_etcd_keys\{path="\/skydns"\} 2/);
    assert.match(it.metrics(), /ndots_etcd_omitted_keys\{path="\/skydns"\} 4/);
    assert.equal(it.log.filter((line) => line.includes('max_keys')).length, 1);
  });

  test('keys beyond max_bytes are omitted and counted, and a key that outgrows it has no records any more', async (t) => {
    const text = 'x'.repeat(9000);
    const names = Array.from({ length: 20 }, (_, i) => `/skydns/test/shop/n${i + 10}`);
    const entries = Object.fromEntries(names.map((name) => [name, { text }]));
    const it = await world(t, entries, 'max_bytes 64KiB');
    assert.match(it.metrics(), /ndots_etcd_keys\{path="\/skydns"\} 7\n/);
    assert.match(it.metrics(), /ndots_etcd_omitted_keys\{path="\/skydns"\} 13\n/);
    const bytes = /ndots_etcd_bytes\{path="\/skydns"\} (\S+)\n/.exec(it.metrics())?.[1] ?? '';
    assert.ok(Number(bytes) > 60_000 && Number(bytes) <= 65_536, bytes);
    assert.match(
      it.log.join('\n'),
      /take more than 65536 bytes; ndots omits keys above the limit \(max_bytes\)/,
    );
    assert.equal((await it.ask('n10.shop.test TXT', { proto: 'tcp' })).answer.length, 1);
    assert.equal((await it.ask('n29.shop.test TXT')).rcode, RCODE.NXDOMAIN);
    it.fake.put('/skydns/test/shop/n10', JSON.stringify({ text: 'y'.repeat(12_000) }));
    await it.clock.advance(10);
    const outgrown = await it.ask('n10.shop.test TXT');
    assert.deepEqual([outgrown.rcode, outgrown.answer.length], [RCODE.NOERROR, 0]);
    it.fake.delete('/skydns/test/shop/n10');
    it.fake.put('/skydns/test/shop/n40', JSON.stringify({ host: '10.0.0.1' }));
    await it.clock.advance(10);
    assert.equal((await it.ask('n40.shop.test A')).answer.length, 1);
  });

  test('directives without a limit share one, and a directive with a limit has its own', async (t) => {
    const text = 'x'.repeat(9000);
    const entries = Object.fromEntries(
      ['shop', 'club', 'mill'].flatMap((zone) =>
        Array.from({ length: 8 }, (_, i) => [`/skydns/test/${zone}/n${i}`, { text }]),
      ),
    );
    const block = (zone: string, lines: string): string =>
      `${zone}.test {\n etcd ${zone}.test {\n ${lines}\n }\n}\n`;
    const it = await world(t, entries, '', false, {
      more: block('club', 'max_search 99') + block('mill', 'max_bytes 64KiB'),
      share: 65_536,
    });
    const found = async (zone: string): Promise<number> => {
      let count = 0;
      for (let i = 0; i < 8; i++) {
        const reply = await it.ask(`n${i}.${zone}.test TXT`, { proto: 'tcp' });
        count += reply.answer.length;
      }
      return count;
    };
    const [shopKeys, club, mill] = [await found('shop'), await found('club'), await found('mill')];
    assert.deepEqual([shopKeys + club, mill], [7, 7]);
    assert.match(it.log.join('\n'), /the keys of all etcd directives take more than 65536 bytes/);
    // A new configuration that changes a directive has room for the replacement.
    it.setCorefile(block('club', 'max_keys 98') + block('shop', 'max_keys 98'));
    assert.equal(await it.clock.run(it.server.reload()), true);
    assert.equal((await found('shop')) + (await found('club')), 7);
    // Once one of them is gone, its room is available to those that did not have enough.
    for (const zone of ['shop', 'club']) {
      it.setCorefile(block('club', 'max_keys 98') + block('shop', 'max_keys 98'));
      assert.equal(await it.clock.run(it.server.reload()), true);
      it.setCorefile(block(zone, 'max_keys 98'));
      assert.equal(await it.clock.run(it.server.reload()), true);
      await it.clock.advance(5000);
      assert.equal(await found(zone), 7);
    }
  });

  test('the log shows the start of a key that is too long for a name', async (t) => {
    const it = await world(t, { [`/skydns/test/shop/${'long'.repeat(1000)}`]: '{' });
    const line = it.log.find((one) => one.includes('is ignored'))!;
    assert.ok(line.length < 500, `${line.length}`);
  });

  test('a name that covers more keys than max_search gets SERVFAIL with the reason', async (t) => {
    const it = await world(t, shop, 'max_search 3');
    const { rcode, edns } = await it.ask('*.shop.test A', { edns: true });
    assert.equal(rcode, 2);
    assert.equal(edns?.options.find(({ code }) => code === 15)?.data[1], 18);
    assert.equal((await answer(it, 'web.shop.test A')).length, 2);
    // For types without records, it is enough that the name exists.
    assert.equal((await it.ask('*.shop.test HTTPS')).rcode, 0);
    assert.match(it.metrics(), /ndots_etcd_refused_total 1/);
  });

  test('alias loops and fans of aliases end', async (t) => {
    const entries: Record<string, object> = {};
    for (const from of ['a', 'b', 'c', 'd', 'e'])
      for (const to of ['a', 'b', 'c', 'd', 'e'])
        entries[`/skydns/test/shop/${from}/${to}${from}`] = { host: `${to}.shop.test` };
    const it = await world(t, entries);
    const { rcode, answer: records } = await it.ask('a.shop.test A', { proto: 'tcp' });
    assert.ok(rcode === 0 || rcode === 2);
    assert.equal(records.length, 0);
  });

  for (const type of ['A', 'SRV', 'MX'])
    test(`aliases that alternate between two zones end soon (${type})`, async (t) => {
      const entries: Record<string, object> = {};
      for (let key = 0; key < 6; key++) {
        entries[`/skydns/test/shop/out/${key}`] = { host: 'out.10.in-addr.arpa', port: 80 };
        entries[`/skydns/arpa/in-addr/10/out/${key}`] = { host: 'out.shop.test', port: 80 };
        entries[`/skydns/test/shop/fan/${key}`] = { host: `fan${key}.10.in-addr.arpa`, mail: true };
        entries[`/skydns/arpa/in-addr/10/fan${key}`] = { host: 'fan.shop.test', mail: true };
      }
      for (let key = 0; key < 900; key++)
        entries[`/skydns/test/shop/many/${key}`] = { host: `10.1.${key >> 8}.${key & 255}` };
      const it = await world(t, entries);
      for (const name of ['out', 'fan']) {
        const { rcode } = await it.ask(`${name}.shop.test ${type}`);
        assert.equal(rcode, RCODE.NOERROR);
        // The most that a query may cost is a name with a thousand addresses.
        await costsAtMost(
          100,
          () => it.ask(`${name}.shop.test ${type}`),
          () => it.ask('many.shop.test A', { proto: 'tcp' }),
        );
      }
    });

  test('a lease sets the TTL, and renewals are followed', async (t) => {
    const it = await world(t, { '/skydns/test/shop/leased': '{"host":"10.0.0.1"} lease 5' });
    const ttl = async (): Promise<number> => (await it.ask('leased.shop.test A')).answer[0]!.ttl;
    await it.clock.advance(100);
    assert.equal(await ttl(), 99);
    it.fake.leaseSeconds = 60;
    await it.clock.advance(30_000);
    assert.ok((await ttl()) <= 70);
    // After half its time, the lease is requested again and now has 60 s left.
    await it.clock.advance(25_000);
    assert.ok((await ttl()) >= 54, `${await ttl()}`);
    it.fake.leaseSeconds = 0;
    await it.clock.advance(60_000);
    assert.equal(await ttl(), 30);
  });

  test('an answer larger than a message is truncated with TC', async (t) => {
    const many = Object.fromEntries(
      Array.from({ length: 300 }, (_, i) => [
        `/skydns/test/shop/text/${String(i).padStart(3, '0')}`,
        { text: `${i} ${'x'.repeat(400)}` },
      ]),
    );
    const it = await world(t, many);
    const { flags, answer: records } = await it.ask('text.shop.test TXT', { proto: 'tcp' });
    assert.ok(records.length > 100);
    assert.equal(flags & 0x0200, 0x0200);
  });

  test('groups: the shallowest key determines which records answer', async (t) => {
    const it = await world(t, {
      '/skydns/test/shop/dom/a': { host: '10.0.0.1', group: 'g1' },
      '/skydns/test/shop/dom/sub/b': { host: '10.0.0.2', group: 'g1' },
      '/skydns/test/shop/dom/sub/c': { host: '10.0.0.3', group: 'g2' },
    });
    const { answer: records } = await it.ask('dom.shop.test A');
    assert.deepEqual(
      records.map(({ type, data }) => printData(type, data)),
      ['10.0.0.1', '10.0.0.2'],
    );
  });
});

/** Returns the options of the Corefile's `etcd` directive, or its error message. */
function optionsOf(text: string): EtcdOptions | string {
  const { corefile } = parseCorefile({
    file: 'Corefile',
    text: `.:53 {\n${text}\n}`,
    dnsPort: 53,
    env: {},
    directives: ['etcd'],
    syntaxes: [syntax],
    readFile: () => '',
    glob: () => [],
  });
  const { options, problems } = bindDirective(syntax, corefile.blocks[0]!.directives, {
    zones: ['.'],
  });
  return problems.length > 0 ? problems.map(({ message }) => message).join('\n') : options[0]!;
}

describe('the directive etcd', () => {
  test('has the same meaning as in CoreDNS', () => {
    const read = (text: string): EtcdOptions => {
      const found = optionsOf(text);
      if (typeof found === 'string') throw new Error(found);
      return found;
    };
    const plain = read('etcd');
    assert.deepEqual([plain.path, plain.minLeaseTtl, plain.maxLeaseTtl], ['/skydns', 30, 86_400]);
    assert.equal(plain.endpoints[0]!.port, 2379);
    const full = read(`etcd skydns.local 10.0.0.0/24 {
      path /dns
      endpoint localhost:300 https://etcd-1:2379
      credentials user pass
      stubzones
      upstream 1.1.1.1
      debug
      min-lease-ttl 60
      max-lease-ttl 1h
      fallthrough in-addr.arpa
      tls cert.pem key.pem ca.pem
    }`);
    assert.deepEqual(full.zones, ['skydns.local.', '0.0.10.in-addr.arpa.']);
    assert.deepEqual(full.credentials, { user: 'user', password: 'pass' });
    assert.deepEqual([full.minLeaseTtl, full.maxLeaseTtl], [60, 3600]);
    assert.deepEqual(full.tls, { certificate: 'cert.pem', key: 'key.pem', authority: 'ca.pem' });
  });

  test("reports errors in CoreDNS's wording", () => {
    for (const [text, told] of [
      ['etcd {\nendpoints localhost:300\n}', /unknown property 'endpoints'/],
      ['etcd {\nendpoint\n}', /Wrong argument count/],
      ['etcd {\npath\n}', /Wrong argument count/],
      ['etcd {\ncredentials\n}', /Wrong argument count/],
      ['etcd {\ncredentials user\n}', /credentials requires 2 arguments, username and password/],
      ['etcd {\nmin-lease-ttl soon\n}', /invalid min-lease-ttl value: invalid TTL format/],
      ['etcd {\nmax-lease-ttl -5s\n}', /invalid max-lease-ttl value: TTL must be non-negative/],
      ['etcd {\ntls a b c d\n}', /maximum of three arguments allowed for TLS config, found 4/],
      ['etcd {\nendpoint ftp://x\n}', /not an etcd endpoint/],
    ] as const) {
      const found = optionsOf(text);
      assert.match(typeof found === 'string' ? found : 'nothing', told);
    }
  });

  test('rejects a missing certificate, or one for another key, before connecting to etcd', async (t) => {
    const directory = mkdtempSync(join(tmpdir(), 'ndots-etcd-'));
    t.after(() => rmSync(directory, { recursive: true }));
    writeFileSync(join(directory, 'cert.pem'), testCertificate);
    writeFileSync(join(directory, 'other.pem'), strangerCertificate);
    writeFileSync(join(directory, 'key.pem'), testKey);
    const start = (files: string): Promise<unknown> =>
      makeWorld(`. {\n etcd {\n endpoint https://127.0.0.1:1\n tls ${files}\n }\n}`, { directory });
    await assert.rejects(start('cert.pem missing.pem'), /could not load TLS file missing\.pem/);
    await assert.rejects(start('missing.pem'), /could not load TLS file missing\.pem/);
    await assert.rejects(start('other.pem key.pem'), /could not load TLS cert/);
  });

  test("reads only the zones' keys, because etcd may allow no others", () => {
    const options = optionsOf(
      'etcd shop.test a.shop.test other.test { \npath dns/prod/\n}',
    ) as EtcdOptions;
    const ranges = rangesOf(planEtcd(options, (file) => file));
    assert.deepEqual(
      ranges.map(({ key, end }) => [key.toString(), end?.toString()]),
      [
        ['/dns/prod/test/other', undefined],
        ['/dns/prod/test/other/', '/dns/prod/test/other0'],
        ['/dns/prod/test/shop', undefined],
        ['/dns/prod/test/shop/', '/dns/prod/test/shop0'],
      ],
    );
    const all = rangesOf(planEtcd(optionsOf('etcd . {\npath /\n}') as EtcdOptions, (file) => file));
    assert.deepEqual(
      all.map(({ key, end }) => [key.toString(), end?.toString()]),
      [['/', '0']],
    );
  });
});
