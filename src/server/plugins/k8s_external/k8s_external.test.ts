import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test, type TestContext } from 'node:test';
import { makeWorld, type World } from '../../../../test/kit/world.ts';
import { RCODE, rcodeName } from '../../wire/iana.ts';
import type { DnsRecord } from '../../wire/message.ts';
import { printRecord } from '../../wire/print.ts';

const directory = mkdtempSync(join(tmpdir(), 'ndots-external-'));
after(() => rmSync(directory, { recursive: true }));

const service = (name: string, spec: object, ingress: object[] = []): object => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name, namespace: 'shop' },
  spec: { clusterIP: '10.96.0.20', ports: [{ name: 'http', port: 80 }], ...spec },
  status: { loadBalancer: { ingress } },
});
const endpoint = (address: string, hostname?: string): object => ({
  addresses: [address],
  hostname,
});
const objects = [
  { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } },
  { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'hidden' } },
  service('web', { externalIPs: ['1.2.3.4'] }),
  service('both', {
    externalIPs: ['1.2.3.5', 'fd00::5'],
    ports: [
      { name: 'http', port: 80 },
      { name: 'dns', port: 53, protocol: 'UDP' },
    ],
  }),
  service('balanced', { type: 'LoadBalancer', externalIPs: [] }, [{ ip: '2.3.4.5' }]),
  service('named', { type: 'LoadBalancer' }, [{ hostname: 'lb.cloud.example' }]),
  service('inside', {}),
  service('open', { externalIPs: ['1.2.3.9'], ports: [] }),
  service('head', { clusterIP: 'None' }),
  {
    ...service('web', { externalIPs: ['9.9.9.9'] }),
    metadata: { name: 'web', namespace: 'hidden' },
  },
  {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: {
      name: 'head-1',
      namespace: 'shop',
      labels: { 'kubernetes.io/service-name': 'head' },
    },
    addressType: 'IPv4',
    ports: [{ name: 'http', port: 80, protocol: 'TCP' }],
    endpoints: [endpoint('10.0.0.1', 'one'), endpoint('10.0.0.2')],
  },
];
writeFileSync(
  join(directory, 'a.json'),
  JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects }),
);

async function served(t: TestContext, block = 'headless', more = ''): Promise<World> {
  const world = await makeWorld(
    `. {\n bind 192.0.2.53\n transfer {\n to *\n }\n hosts {\n 198.51.100.7 lb.cloud.example\n fallthrough\n }\n k8s_external example.com 3.2.1.in-addr.arpa {\n${block}\n }\n kubernetes cluster.local {\n manifests .\n namespaces shop\n }\n ${more}\n}`,
    { directory },
  );
  t.after(() => world.close());
  return world;
}

const lines = (records: readonly DnsRecord[]): string[] =>
  records.map((record) => printRecord(record).replace(/\s+/g, ' ')).toSorted();

async function asked(world: World, question: string): Promise<string[]> {
  const { rcode, answer, authority, flags } = await world.ask(question, { proto: 'tcp' });
  assert.ok((flags & 0x0400) !== 0, `${question} is answered with authority`);
  const denied = authority.length > 0 ? ['SOA'] : [];
  return rcode === 0 ? [...lines(answer), ...denied] : [rcodeName(rcode), ...denied];
}

const soa =
  /^example\.com\. 5 IN SOA ns1\.dns\.example\.com\. hostmaster\.dns\.example\.com\. \d+ 7200 1800 86400 5$/;

describe('k8s_external', () => {
  test("answers with services' external addresses", async (t) => {
    const world = await served(t);
    for (const [question, ...expected] of [
      ['web.shop.example.com. A', 'web.shop.example.com. 5 IN A 1.2.3.4'],
      ['web.shop.example.com. AAAA', 'SOA'],
      ['web.shop.example.com. TXT', 'SOA'],
      ['both.shop.example.com. AAAA', 'both.shop.example.com. 5 IN AAAA fd00::5'],
      ['balanced.shop.example.com. A', 'balanced.shop.example.com. 5 IN A 2.3.4.5'],
      ['open.shop.example.com. A', 'open.shop.example.com. 5 IN A 1.2.3.9'],
      ['open.shop.example.com. SRV', 'SOA'],
      ['inside.shop.example.com. A', 'NXDOMAIN', 'SOA'],
      ['none.shop.example.com. A', 'NXDOMAIN', 'SOA'],
      ['shop.example.com. A', 'SOA'],
      ['web.hidden.example.com. A', 'NXDOMAIN', 'SOA'],
      ['web.none.example.com. A', 'NXDOMAIN', 'SOA'],
      ['a._http._tcp.web.shop.example.com. A', 'NXDOMAIN', 'SOA'],
    ] as const)
      assert.deepEqual(await asked(world, question), expected, question);
  });

  test('service ports have SRV records, with the addresses in the additional section', async (t) => {
    const world = await served(t);
    assert.deepEqual(await asked(world, '_http._tcp.web.shop.example.com. SRV'), [
      '_http._tcp.web.shop.example.com. 5 IN SRV 0 100 80 web.shop.example.com.',
    ]);
    assert.deepEqual(await asked(world, '_http._udp.web.shop.example.com. SRV'), [
      'NXDOMAIN',
      'SOA',
    ]);
    const both = await world.ask('both.shop.example.com. SRV', { proto: 'tcp' });
    assert.deepEqual(lines(both.answer), [
      'both.shop.example.com. 5 IN SRV 0 25 53 both.shop.example.com.',
      'both.shop.example.com. 5 IN SRV 0 25 80 both.shop.example.com.',
    ]);
    assert.deepEqual(lines(both.additional), [
      'both.shop.example.com. 5 IN A 1.2.3.5',
      'both.shop.example.com. 5 IN AAAA fd00::5',
    ]);
    assert.deepEqual(await asked(world, 'named.shop.example.com. SRV'), [
      'named.shop.example.com. 5 IN SRV 0 100 80 lb.cloud.example.',
    ]);
  });

  test('a load balancer with a host name is an alias, followed through the whole server', async (t) => {
    const world = await served(t);
    const alias = 'named.shop.example.com. 5 IN CNAME lb.cloud.example.';
    assert.deepEqual(await asked(world, 'named.shop.example.com. A'), [
      'lb.cloud.example. 3600 IN A 198.51.100.7',
      alias,
    ]);
    assert.deepEqual(await asked(world, 'named.shop.example.com. CNAME'), [alias]);
    assert.ok((await asked(world, 'named.shop.example.com. AAAA')).includes(alias));
  });

  test('headless services are answered with their endpoints if configured', async (t) => {
    const world = await served(t);
    assert.deepEqual(await asked(world, 'head.shop.example.com. A'), [
      'head.shop.example.com. 5 IN A 10.0.0.1',
      'head.shop.example.com. 5 IN A 10.0.0.2',
    ]);
    assert.deepEqual(await asked(world, 'one.head.shop.example.com. A'), [
      'one.head.shop.example.com. 5 IN A 10.0.0.1',
    ]);
    assert.deepEqual(await asked(world, '_http._tcp.head.shop.example.com. SRV'), [
      '_http._tcp.head.shop.example.com. 5 IN SRV 0 50 80 10-0-0-2.head.shop.example.com.',
      '_http._tcp.head.shop.example.com. 5 IN SRV 0 50 80 one.head.shop.example.com.',
    ]);
    assert.deepEqual(await asked(world, 'two.head.shop.example.com. A'), ['NXDOMAIN', 'SOA']);
    const plain = await served(t, '');
    assert.deepEqual(await asked(plain, 'head.shop.example.com. A'), ['NXDOMAIN', 'SOA']);
  });

  test('the zone has an SOA record and a name server below its apex label', async (t) => {
    const world = await served(t);
    assert.match((await asked(world, 'example.com. SOA'))[0]!, soa);
    const ns = await world.ask('example.com. NS', { proto: 'tcp' });
    assert.deepEqual(lines(ns.answer), ['example.com. 5 IN NS ns1.dns.example.com.']);
    assert.deepEqual(lines(ns.additional), ['ns1.dns.example.com. 5 IN A 192.0.2.53']);
    for (const [question, ...expected] of [
      ['example.com. A', 'SOA'],
      ['dns.example.com. A', 'SOA'],
      ['ns1.dns.example.com. A', 'ns1.dns.example.com. 5 IN A 192.0.2.53'],
      ['ns1.dns.example.com. AAAA', 'SOA'],
      ['ns2.dns.example.com. A', 'NXDOMAIN', 'SOA'],
      ['a.ns1.dns.example.com. A', 'NXDOMAIN', 'SOA'],
    ] as const)
      assert.deepEqual(await asked(world, question), expected, question);
    const other = await served(t, 'apex in\nttl 60');
    assert.deepEqual(await asked(other, 'ns1.in.example.com. A'), [
      'ns1.in.example.com. 60 IN A 192.0.2.53',
    ]);
  });

  test('addresses map back to services', async (t) => {
    const world = await served(t);
    assert.deepEqual(await asked(world, '4.3.2.1.in-addr.arpa. PTR'), [
      '4.3.2.1.in-addr.arpa. 5 IN PTR web.shop.example.com.',
    ]);
    assert.deepEqual(await asked(world, '4.3.2.1.in-addr.arpa. A'), ['SOA']);
    assert.deepEqual(await asked(world, '8.3.2.1.in-addr.arpa. PTR'), ['NXDOMAIN', 'SOA']);
    assert.deepEqual(await asked(world, 'web.shop.example.com. PTR'), ['SOA']);
  });

  test('missing names fall through', async (t) => {
    const world = await served(t, 'fallthrough', 'whoami');
    assert.equal((await world.ask('none.shop.example.com. A')).additional.length, 2);
    assert.equal((await world.ask('web.shop.example.com. TXT')).additional.length, 0);
  });

  test('a transfer contains what queries return', async (t) => {
    const world = await served(t);
    const { answer } = await world.ask('example.com. AXFR', { proto: 'tcp' });
    assert.match(printRecord(answer[0]!).replace(/\s+/g, ' '), soa);
    const records = lines(answer.slice(1, -1));
    for (const one of records) {
      const [owner, , , type] = one.split(' ') as [string, string, string, string];
      assert.ok((await asked(world, `${owner} ${type}`)).includes(one), one);
    }
    assert.deepEqual(
      [...new Set(records.map((one) => one.split(' ')[0]!))].toSorted(),
      [
        '10-0-0-2.head',
        '_dns._udp.both',
        '_http._tcp.balanced',
        '_http._tcp.both',
        '_http._tcp.head',
        '_http._tcp.named',
        '_http._tcp.web',
        'balanced',
        'both',
        'head',
        'named',
        'one.head',
        'open',
        'web',
      ]
        .map((name) => `${name}.shop.example.com.`)
        .concat('example.com.', 'ns1.dns.example.com.')
        .toSorted(),
    );
  });

  test('transfers of a reverse zone, or before the first listing, are refused', async (t) => {
    const world = await served(t);
    for (const name of ['3.2.1.in-addr.arpa.', 'shop.example.com.']) {
      const { rcode, answer } = await world.ask(`${name} AXFR`, { proto: 'tcp' });
      assert.deepEqual([rcode, answer.length], [RCODE.REFUSED, 0], name);
    }
  });

  test('a change of addresses takes effect, and so does the removal of the service', async (t) => {
    const world = await served(t);
    const write = (items: object[]): void =>
      writeFileSync(
        join(directory, 'z.json'),
        JSON.stringify({ apiVersion: 'v1', kind: 'List', items }),
      );
    const after = async (items: object[]): Promise<string[]> => {
      write(items);
      for (let tries = 0; tries < 100; tries++) {
        await world.clock.advance(1000);
        await new Promise((resolve) => setTimeout(resolve, 10));
        const found = await asked(world, 'new.shop.example.com. A');
        if (found[0] !== last) return [(last = found[0]!)];
      }
      return [last];
    };
    let last = (await asked(world, 'new.shop.example.com. A'))[0]!;
    t.after(() => rmSync(join(directory, 'z.json'), { force: true }));
    assert.equal(last, 'NXDOMAIN');
    assert.deepEqual(await after([service('new', { externalIPs: ['1.2.3.30'] })]), [
      'new.shop.example.com. 5 IN A 1.2.3.30',
    ]);
    assert.deepEqual(await after([service('new', { externalIPs: ['1.2.3.31'] })]), [
      'new.shop.example.com. 5 IN A 1.2.3.31',
    ]);
    assert.deepEqual(await asked(world, '30.3.2.1.in-addr.arpa. PTR'), ['NXDOMAIN', 'SOA']);
    assert.deepEqual(await after([]), ['NXDOMAIN']);
  });

  test('without kubernetes in the same block it is rejected', async () => {
    await assert.rejects(
      makeWorld('. {\n k8s_external example.com\n}'),
      /kubernetes plugin not loaded/,
    );
    for (const line of ['ttl 3601', 'ttl x', 'apex', 'what'])
      await assert.rejects(
        makeWorld(`. {\n k8s_external {\n${line}\n }\n kubernetes {\n manifests .\n }\n}`, {
          directory,
        }),
      );
  });
});

test('for a service with thousands of endpoints each client gets what it can receive', async (t) => {
  const addresses = Array.from({ length: 5000 }, (_, i) => `10.0.${i >> 8}.${i & 255}`);
  const slices = Array.from({ length: 50 }, (_, number) => ({
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: {
      name: `many-${number}`,
      namespace: 'shop',
      labels: { 'kubernetes.io/service-name': 'many' },
    },
    addressType: 'IPv4',
    ports: [{ name: 'http', port: 80, protocol: 'TCP' }],
    endpoints: addresses.slice(100 * number, 100 * number + 100).map((one) => endpoint(one)),
  }));
  const own = mkdtempSync(join(tmpdir(), 'ndots-external-'));
  t.after(() => rmSync(own, { recursive: true }));
  const items = [
    { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } },
    service('many', { clusterIP: 'None' }),
    ...slices,
  ];
  writeFileSync(join(own, 'all.json'), JSON.stringify({ apiVersion: 'v1', kind: 'List', items }));
  const world = await makeWorld(
    `. {\n kubernetes cluster.local {\n manifests ${own}\n }\n k8s_external example.com {\n headless\n }\n}`,
    { directory: own },
  );
  t.after(() => world.close());
  // The files are read in real time.
  while ((await world.ask('none.shop.example.com. A')).rcode === RCODE.SERVFAIL)
    await new Promise((resolve) => setImmediate(resolve));
  for (const type of ['A', 'SRV']) {
    for (let i = 0; i < 3; i++) {
      const { answer, flags } = await world.ask(`many.shop.example.com. ${type}`, {
        udpSize: 4096,
      });
      assert.ok((flags & 0x200) !== 0, 'TC');
      assert.ok(answer.length >= 15 && answer.length <= 75, String(answer.length));
    }
    const whole = await world.ask(`many.shop.example.com. ${type}`, { proto: 'tcp' });
    assert.ok(whole.answer.length > 800, String(whole.answer.length));
  }
  for (const type of ['AAAA', 'TXT']) {
    const { answer, flags, rcode } = await world.ask(`many.shop.example.com. ${type}`);
    assert.deepEqual([answer.length, flags & 0x200, rcode], [0, 0, RCODE.NOERROR]);
  }
  const one = await world.ask('10-0-19-135.many.shop.example.com. A');
  assert.equal(
    one.answer.map((record) => printRecord(record).split('\t').at(-1)).join(),
    '10.0.19.135',
  );
  const none = await world.ask('10-0-99-1.many.shop.example.com. A');
  assert.equal(none.rcode, RCODE.NXDOMAIN);
});
