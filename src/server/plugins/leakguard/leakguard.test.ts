import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { parseAddress } from '../../base/ip.ts';
import { VirtualClock } from '../../base/virtual-clock.ts';
import { FLAG, RCODE } from '../../wire/iana.ts';
import { printMessage } from '../../wire/print.ts';
import { foldName, parseName, printName } from '../../wire/name.ts';
import { localZones } from './local-zones.ts';
import { scriptedNetwork, type ScriptedNetwork } from '../../../../test/kit/upstream.ts';
import { makeWorld, type World } from '../../../../test/kit/world.ts';

async function serve(
  guard = 'leakguard',
  before = '',
): Promise<{ readonly world: World; readonly network: ScriptedNetwork }> {
  const clock = new VirtualClock();
  const network = scriptedNetwork(clock, () => ({ answer: ['@ 300 A 192.0.2.1'] }));
  const world = await makeWorld(
    `.:53 {\n prometheus 127.0.0.1:0\n ${before}\n ${guard}\n forward . 192.0.2.53\n}`,
    { clock, network },
  );
  return { world, network };
}

describe('leakguard', () => {
  test('names without external records are answered here, with the zone and the reason', async () => {
    const { world, network } = await serve();
    for (const [question, zone, reason] of [
      ['backend.shop.svc.cluster.local. A', 'cluster.local.', 'cluster names'],
      ['wpad. A', '.', 'single labels'],
      ['7.0.0.10.in-addr.arpa. PTR', '10.in-addr.arpa.', 'RFC 6303'],
      ['1.0.16.172.in-addr.arpa. PTR', '16.172.in-addr.arpa.', 'RFC 6303'],
      ['1.0.64.100.in-addr.arpa. PTR', '64.100.in-addr.arpa.', 'RFC 6303'],
      ['b.a.d.f.ip6.arpa. PTR', 'd.f.ip6.arpa.', 'RFC 6303'],
      ['printer.local. A', 'local.', 'RFC 6761'],
      ['hidden.service.onion. A', 'onion.', 'RFC 6761'],
      ['router.home.arpa. AAAA', 'home.arpa.', 'RFC 6761'],
      // The search path from a node's resolv.conf, appended to a cluster name.
      [
        'backend.shop.svc.cluster.local.corp.example. A',
        'cluster.local.corp.example.',
        'cluster names',
      ],
      [
        '10-0-0-1.shop.pod.cluster.local.corp.example. A',
        'cluster.local.corp.example.',
        'cluster names',
      ],
    ] as const) {
      const reply = await world.ask(question, { edns: true });
      assert.equal(reply.rcode, RCODE.NXDOMAIN, question);
      assert.ok((reply.flags & FLAG.AA) !== 0);
      assert.equal(reply.authority[0]?.name, zone, question);
      assert.match(printMessage(reply), new RegExp(`EDE: 15 .*${reason}`), question);
    }
    assert.deepEqual(network.asked, []);
    await world.clock.advance(10_000);
    const metrics = world.metrics();
    for (const [reason, count] of [
      ['cluster', 3],
      ['single_label', 1],
      ['private_reverse', 4],
      ['special_name', 3],
    ])
      assert.ok(
        metrics.includes(
          `ndots_leakguard_stopped_total{reason="${reason}",server="dns://:53",view=""} ${count}\n`,
        ),
        String(reason),
      );
    assert.match(metrics, /ndots_leakguard_top_clients\{client="10\.244\.0\.9"\} 11\n/);
    await world.close();
  });

  test("a zone's apex has SOA and NS and no other data", async () => {
    const { world, network } = await serve();
    const shape = async (question: string): Promise<string> => {
      const { rcode, answer, authority } = await world.ask(question);
      return `${rcode} ${answer.map(({ type }) => type).join()} ${authority.map(({ type }) => type).join()}`;
    };
    assert.equal(await shape('10.in-addr.arpa. SOA'), '0 6 ');
    assert.equal(await shape('10.in-addr.arpa. NS'), '0 2 ');
    assert.equal(await shape('10.in-addr.arpa. A'), '0  6');
    assert.equal(await shape('cluster.local. DS'), '0  6');
    assert.deepEqual(network.asked, []);
    await world.close();
  });

  test('queries for public zones from validators and resolvers are passed on', async () => {
    const { world, network } = await serve();
    for (const question of [
      'example.org. A',
      'com. NS',
      'com. DS',
      'com. DNSKEY',
      '. NS',
      '10.in-addr.arpa. DS',
      'local. DS',
      '1.2.0.8.in-addr.arpa. PTR',
      '1.0.32.172.in-addr.arpa. PTR',
      '1.0.128.100.in-addr.arpa. PTR',
      'local.example. A',
      'notlocal. NS',
      'ec2.internal. A',
    ])
      await world.ask(question);
    assert.equal(network.asked.length, 13);
    await world.close();
  });

  test('names answered by other plugins are not checked', async () => {
    const { world } = await serve('leakguard', 'hosts {\n 10.0.0.1 router.local wpad\n }');
    assert.equal((await world.ask('router.local. A')).answer.length, 1);
    assert.equal((await world.ask('wpad. A')).answer.length, 1);
    assert.equal((await world.ask('1.0.0.10.in-addr.arpa. PTR')).answer.length, 2);
    await world.close();
  });

  test('exceptions, other zones, and allowed kinds', async () => {
    const { world, network } = await serve(
      'leakguard k8s.corp.example internal {\n except 1.10.in-addr.arpa printers.local\n allow single_labels\n ttl 60\n }',
    );
    for (const question of [
      '1.1.1.10.in-addr.arpa. PTR',
      'hp.printers.local. A',
      'wpad. A',
      'x.cluster.example. A',
    ])
      await world.ask(question);
    assert.equal(network.asked.length, 4);
    for (const question of [
      'a.k8s.corp.example. A',
      'ip-10-0-0-1.ec2.internal. A',
      '1.1.2.10.in-addr.arpa. PTR',
      'other.local. A',
    ]) {
      const reply = await world.ask(question);
      assert.deepEqual([reply.rcode, reply.authority[0]!.ttl], [RCODE.NXDOMAIN, 60]);
    }
    assert.equal(network.asked.length, 4);
    await world.close();
  });

  test('report_only blocks nothing and counts', async () => {
    const { world, network } = await serve('leakguard {\n report_only\n }');
    await world.ask('wpad. A');
    assert.equal(network.asked.length, 1);
    assert.match(
      world.metrics(),
      /ndots_leakguard_stopped_total\{reason="single_label"[^}]*\} 1\n/,
    );
    await world.close();
  });

  test('reverse names of all private IPv6 addresses and their neighbours', async () => {
    const { world, network } = await serve();
    const stays = async (address: string): Promise<boolean> => {
      const before = network.asked.length;
      const digits = Buffer.from(parseAddress(address)!).toString('hex');
      await world.ask(`${digits.split('').toReversed().join('.').toUpperCase()}.IP6.arpa. PTR`);
      return network.asked.length === before;
    };
    for (const address of [
      'fc00::1',
      'fcff::1',
      'fdff::1',
      'fe80::1',
      'febf::1',
      'fec0::1',
      'feff::1',
      '::',
      '::1',
      '::ffff:10.0.0.1',
      '64:ff9b:1::1',
      '64:ff9b::10.0.0.1',
      '64:ff9b::192.168.255.1',
      '64:ff9b::172.31.0.1',
      '2002:a00:1::1',
      '::10.0.0.1',
      '::ffff:0:10.0.0.1',
      // Teredo addresses contain the server's address and the client's, the latter with all bits inverted.
      '2001:0:a00:1::1',
      '2001:0:102:304:8000:63bf:f5ff:fffe',
      '2001:db8::1',
      '3fff::1',
    ])
      assert.ok(await stays(address), address);
    for (const address of [
      'fbff::1',
      'fe7f::1',
      'ff02::1',
      '64:ff9b::1',
      '64:ff9b::172.32.0.1',
      '2002:b00:1::1',
      '::ffff:0:11.0.0.1',
      '2001:0:b00:1:8000:63bf:f4ff:fffe',
      '2001:0:102:304:8000:63bf:f4ff:fffe',
      '2001:1:102:304:8000:63bf:f5ff:fffe',
      '::2',
      '2600::1',
    ])
      assert.ok(!(await stays(address)), address);
    await world.close();
  });

  test('truncated cluster names', async () => {
    const { world, network } = await serve();
    for (const question of [
      'backend.shop.svc. A',
      '10-0-0-1.shop.pod. AAAA',
      'SHOP.SVC. SRV',
      'backend.shop.svc.cluster. A',
      '10-0-0-1.shop.pod.Cluster. A',
    ])
      assert.equal((await world.ask(question)).rcode, RCODE.NXDOMAIN, question);
    assert.deepEqual(network.asked, []);
    await world.close();
    const excepted = await serve('leakguard {\n except svc\n }');
    await excepted.world.ask('backend.shop.svc. A');
    assert.equal(excepted.network.asked.length, 1);
    await excepted.world.close();
  });

  test("a cluster name is blocked, whatever follows the cluster's zone", async () => {
    const { world, network } = await serve('leakguard cluster.local k8s k8s.example.com');
    for (const question of [
      'backend.shop.cluster.local.corp.example. A',
      'CLUSTER.local.corp.example. TYPE65',
      'backend.shop.svc.cluster.local.shop.svc.corp.example. AAAA',
      'backend.shop.svc.k8s.corp.example. A',
      'backend.shop.svc.k8s.example.com.br. A',
    ])
      assert.equal((await world.ask(question)).rcode, RCODE.NXDOMAIN, question);
    assert.deepEqual(network.asked, []);
    // These may be public: the zone is public elsewhere, or only one label of the name matches.
    for (const question of [
      'www.k8s.example.com.br. A',
      'registry.k8s.io. A',
      'a.svc.corp.example. A',
    ])
      await world.ask(question);
    assert.equal(network.asked.length, 3);
    await world.close();
  });

  test("service names followed by the nodes' search domains are blocked", async () => {
    const { world, network } = await serve('leakguard {\n search corp.example eu.corp.example\n }');
    for (const [question, zone] of [
      ['backend.shop.svc.corp.example. A', 'svc.corp.example.'],
      ['_http._tcp.backend.shop.SVC.eu.Corp.Example. SRV', 'svc.eu.corp.example.'],
      ['10-0-0-1.shop.pod.corp.example. AAAA', 'pod.corp.example.'],
      ['backend.shop.svc.cluster.corp.example. A', 'svc.cluster.corp.example.'],
      ['backend.cluster.local.corp.example. A', 'cluster.local.corp.example.'],
    ] as const) {
      const reply = await world.ask(question);
      assert.deepEqual(
        [reply.rcode, reply.authority[0]?.name.toLowerCase()],
        [RCODE.NXDOMAIN, zone],
        question,
      );
    }
    assert.deepEqual(network.asked, []);
    for (const question of [
      'backend.corp.example. A',
      'svc.corp.example.org. A',
      'a.svc.de.corp.example. A',
    ])
      await world.ask(question);
    assert.equal(network.asked.length, 3);
    await world.close();
  });

  test('search domains of any length are accepted', async () => {
    const long = `${'a'.repeat(60)}.`.repeat(4);
    const { world } = await serve(`leakguard {\n search . ${long} ${long.slice(3)}\n }`);
    assert.equal((await world.ask('a.example. A')).rcode, RCODE.NOERROR);
    await world.close();
  });

  test('names whose last label cannot be a top-level domain: addresses, truncated and mistyped names', async () => {
    const { world, network } = await serve();
    for (const question of [
      '10.0.0.1. A',
      '2001:db8::1.example:. AAAA',
      '_http._tcp. SRV',
      String.raw`backend.shop.svc.cluster.local\032. A`,
      String.raw`backend.shop.svc.cluster.local\010. A`,
      String.raw`backend.shop.svc.cluster.local\000. TXT`,
      String.raw`backend.shop.svc.cluster\.local. A`,
      String.raw`backend.shop.svc.cluster.local\.. A`,
      String.raw`a.\255\254. A`,
      'a.-. A',
    ]) {
      const reply = await world.ask(question, { edns: true });
      assert.equal(reply.rcode, RCODE.NXDOMAIN, question);
      assert.match(printMessage(reply), /EDE: 15 .*no top-level domain/, question);
    }
    assert.deepEqual(network.asked, []);
    for (const question of ['a.xn--p1ai. A', 'a.X--1. A', '1.example. A', '_dmarc.example. TXT'])
      await world.ask(question);
    assert.equal(network.asked.length, 4);
    await world.clock.advance(10_000);
    assert.match(
      world.metrics(),
      /ndots_leakguard_stopped_total\{reason="impossible_name"[^}]*\} 10\n/,
    );
    await world.close();
    const allowed = await serve('leakguard {\n allow impossible_names\n }');
    await allowed.world.ask('10.0.0.1. A');
    assert.equal(allowed.network.asked.length, 1);
    await allowed.world.close();
  });

  test('names below private reverse zones are blocked, complete or not, in any type and spelling', async () => {
    const { world, network } = await serve();
    for (const question of [
      '0.0.10.In-Addr.ARPA. NS',
      '10.in-addr.arpa. TXT',
      'lb._dns-sd._udp.0.0.0.10.in-addr.arpa. PTR',
      String.raw`1\.2.168.192.in-addr.arpa. PTR`,
      '0/25.1.168.192.in-addr.arpa. CNAME',
      'd.f.ip6.arpa. PTR',
      '0.d.F.ip6.arpa. PTR',
      '0.8.e.f.ip6.arpa. PTR',
      'b.e.f.ip6.ARPA. A',
      'zz.c.f.ip6.arpa. ANY',
      '255.255.255.255.in-addr.arpa. PTR',
    ]) {
      await world.ask(question);
      assert.deepEqual(network.asked, [], question);
    }
    // The names above are public, and resolvers that query label by label (RFC 9156) need them.
    for (const question of [
      '172.in-addr.arpa. NS',
      'e.f.ip6.arpa. NS',
      'f.ip6.arpa. NS',
      'in-addr.arpa. NS',
    ])
      await world.ask(question);
    assert.equal(network.asked.length, 4);
    await world.close();
  });

  test('reverse names of private addresses are blocked with a search domain appended or with leading zeros', async () => {
    const { world, network } = await serve('leakguard {\n except 9.9.10.in-addr.arpa\n }');
    for (const [question, zone] of [
      ['7.0.0.10.in-addr.arpa.corp.example. PTR', '10.in-addr.arpa.corp.example.'],
      ['1.2.168.192.IN-ADDR.arpa.shop.svc.example. A', '168.192.in-addr.arpa.shop.svc.example.'],
      ['0.8.e.f.ip6.arpa.corp.example. PTR', '8.e.f.ip6.arpa.corp.example.'],
      ['7.0.0.010.in-addr.arpa. PTR', '010.in-addr.arpa.'],
      ['001.002.168.192.in-addr.arpa. PTR', '168.192.in-addr.arpa.'],
      ['7.000.016.172.in-addr.arpa. PTR', '016.172.in-addr.arpa.'],
      ['7.0.0.010.in-addr.arpa.corp.example. PTR', '010.in-addr.arpa.corp.example.'],
    ] as const) {
      const reply = await world.ask(question);
      const found = [reply.rcode, reply.authority[0]?.name.toLowerCase()];
      assert.deepEqual(found, [RCODE.NXDOMAIN, zone], question);
    }
    assert.deepEqual(network.asked, []);
    const outside = [
      '8.8.8.8.in-addr.arpa.corp.example. PTR',
      '008.008.008.008.in-addr.arpa. PTR',
      '1.9.09.10.in-addr.arpa.corp.example. PTR',
      '10.in-addr.example. A',
    ];
    for (const question of outside) await world.ask(question);
    assert.equal(network.asked.length, outside.length);
    await world.close();
    const allowed = await serve('leakguard {\n allow private_reverse\n }');
    await allowed.world.ask('7.0.0.010.in-addr.arpa. PTR');
    assert.equal(allowed.network.asked.length, 1);
    await allowed.world.close();
  });

  test('names with dots in their labels are treated as they look', async () => {
    const { world, network } = await serve('leakguard {\n except 9.9.10.in-addr.arpa\n }');
    for (const question of [
      String.raw`7\.0\.0\.10.in-addr.arpa. PTR`,
      String.raw`7.0.0.10.in-addr.arpa\.corp.example. PTR`,
      String.raw`backend\.shop\.svc\.cluster\.local.corp.example. A`,
      String.raw`backend.shop.svc\.cluster.local.corp.example. A`,
      String.raw`backend.shop\.svc.cluster. A`,
    ])
      assert.equal((await world.ask(question)).rcode, RCODE.NXDOMAIN, question);
    assert.deepEqual(network.asked, []);
    const outside = [
      String.raw`My\.Printer._ipp._tcp.example. SRV`,
      String.raw`john\.doe.example. A`,
      String.raw`1\.9\.9\.10.in-addr.arpa. PTR`,
      `${'a'.repeat(46)}.example. A`,
      String.raw`\..example. A`,
    ];
    for (const question of outside) await world.ask(question);
    assert.equal(network.asked.length, outside.length);
    await world.close();
  });

  test("property: an address's reverse name is blocked if and only if the address is private", async () => {
    const zones = localZones([], [], new Set(['special_name'])).map(({ origin }) =>
      printName(origin),
    );
    const isPrivate = ([a, b, c]: readonly number[]): boolean =>
      a === 10 ||
      a === 0 ||
      a === 127 ||
      (a === 172 && b! >= 16 && b! <= 31) ||
      (a === 192 && b === 168) ||
      (a === 100 && b! >= 64 && b! <= 127) ||
      (a === 169 && b === 254) ||
      (a === 192 && b === 0 && c === 2) ||
      (a === 198 && b === 51 && c === 100) ||
      (a === 203 && b === 0 && c === 113) ||
      (a === 198 && (b === 18 || b === 19)) ||
      a! >= 240;
    const byte = fc.oneof(
      fc.constantFrom(
        0,
        2,
        10,
        16,
        18,
        31,
        32,
        51,
        63,
        64,
        100,
        113,
        127,
        128,
        168,
        169,
        172,
        192,
        198,
        203,
        239,
        240,
        254,
        255,
      ),
      fc.nat(255),
    );
    const { world, network } = await serve();
    await fc.assert(
      fc.asyncProperty(fc.tuple(byte, byte, byte, byte), async (bytes) => {
        const name = `${bytes.toReversed().join('.')}.in-addr.arpa.`;
        const before = network.asked.length;
        await world.ask(`${name} PTR`);
        assert.equal(network.asked.length === before, isPrivate(bytes), name);
      }),
      { numRuns: 400 },
    );
    assert.equal(zones.length, new Set(zones).size);
    for (const zone of zones) assert.deepEqual(foldName(parseName(zone)), parseName(zone));
    await world.close();
  });
});
