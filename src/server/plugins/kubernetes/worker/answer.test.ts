import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { parseAddress } from '../../../base/ip.ts';
import {
  CLASS,
  EDE,
  FLAG,
  OPCODE,
  RCODE,
  rcodeName,
  TYPE,
  typeName,
  typeNumber,
} from '../../../wire/iana.ts';
import { readMessage, type Message } from '../../../wire/message.ts';
import { parseName } from '../../../wire/name.ts';
import { printData } from '../../../wire/print.ts';
import { makeQuery } from '../../../transport/query.ts';
import { failure, Reply } from '../../../wire/reply.ts';
import {
  answererOf,
  replicatedCluster,
  manyObjects,
} from '../../../../../test/kit/replicated-cluster.ts';
import {
  endpoint,
  external,
  namespace,
  service,
  slice,
} from '../../../../../test/kit/kube-objects.ts';
import type { KubernetesAnswerer } from './answer.ts';

const next = failure(RCODE.NOTIMP, 'next');

function ask(answerer: KubernetesAnswerer, name: string, type = 'A'): Reply {
  const query = makeQuery(parseName(name), typeNumber(type)!);
  const reply = answerer.answer(query, () => next);
  assert.ok(reply instanceof Reply, 'the answer is there at once');
  return reply;
}

function read(reply: Reply): Message {
  return readMessage(reply.bytes, reply.start, reply.end);
}

/** Formats a reply as `RCODE: TYPE DATA, …`. */
function say(answerer: KubernetesAnswerer, name: string, type = 'A'): string {
  const { rcode, answer } = read(ask(answerer, name, type));
  return [
    rcodeName(rcode),
    ...answer.map((one) => `${typeName(one.type)} ${printData(one.type, one.data)}`),
  ].join(' ');
}

const shop = [namespace('shop'), service('web.shop', '10.0.0.1'), slice('web.shop', ['10.1.0.1'])];
const web = 'web.shop.svc.cluster.local.';

describe('before the first complete listing', () => {
  test('known names are answered', () => {
    const { cluster } = replicatedCluster(shop, { synced: false });
    assert.equal(say(answererOf(cluster), web), 'NOERROR A 10.0.0.1');
  });

  test('an unknown name gets SERVFAIL with SOA and the reason, for every type', () => {
    const { cluster } = replicatedCluster(shop, { synced: false });
    for (const type of ['A', 'AAAA', 'TXT', 'SOA']) {
      const reply = ask(answererOf(cluster), 'api.shop.svc.cluster.local.', type);
      assert.equal(reply.rcode, RCODE.SERVFAIL);
      assert.equal(reply.authoritative, true);
      assert.equal(reply.authority, 1);
      assert.equal(reply.errors?.[0]?.code, EDE.NOT_READY);
    }
  });

  test('fallthrough takes precedence', () => {
    const { cluster } = replicatedCluster(shop, { synced: false });
    const answerer = answererOf(cluster, { fallthrough: ['in-addr.arpa.'] });
    assert.equal(ask(answerer, '9.9.9.9.in-addr.arpa.', 'PTR'), next);
    assert.equal(ask(answerer, 'api.shop.svc.cluster.local.').rcode, RCODE.SERVFAIL);
  });

  test('the same name is NXDOMAIN afterwards', () => {
    const { cluster, source } = replicatedCluster(shop, { synced: false });
    const answerer = answererOf(cluster);
    ask(answerer, 'api.shop.svc.cluster.local.');
    ask(answerer, 'api.shop.svc.cluster.local.');
    source.complete();
    assert.equal(say(answerer, 'api.shop.svc.cluster.local.'), 'NXDOMAIN');
  });
});

describe('a repeated query', () => {
  test('gets the identical reply until something changes', () => {
    const { cluster, source } = replicatedCluster(shop);
    const answerer = answererOf(cluster);
    for (const [name, type] of [
      [web, 'A'],
      [web, 'AAAA'],
      ['no.shop.svc.cluster.local.', 'A'],
    ] as const) {
      ask(answerer, name, type);
      const remembered = ask(answerer, name, type);
      assert.equal(ask(answerer, name, type), remembered, `${name} ${type}`);
    }
    const before = ask(answerer, web);
    source.put(service('web.shop', '10.0.0.2'));
    assert.equal(say(answerer, web), 'NOERROR A 10.0.0.2');
    assert.notEqual(ask(answerer, web), before);
  });

  test('keeps its answer while other services change, but not its SOA serial', async () => {
    const { cluster, source, clock } = replicatedCluster(shop);
    const answerer = answererOf(cluster);
    ask(answerer, web);
    ask(answerer, web, 'AAAA');
    const positive = ask(answerer, web);
    const negative = ask(answerer, web, 'AAAA');
    await clock.advance(7000);
    source.put(service('api.shop', '10.0.0.9'));
    assert.equal(ask(answerer, web), positive);
    assert.notEqual(ask(answerer, web, 'AAAA'), negative);
  });

  test('in a deleted namespace gets NXDOMAIN at once, and is answered again when it returns', () => {
    const { cluster, source } = replicatedCluster(shop);
    const answerer = answererOf(cluster);
    for (let i = 0; i < 3; i++) assert.equal(say(answerer, web), 'NOERROR A 10.0.0.1');
    source.remove(namespace('shop'));
    assert.equal(say(answerer, web), 'NXDOMAIN');
    source.put(namespace('shop'));
    assert.equal(say(answerer, web), 'NOERROR A 10.0.0.1');
  });
});

describe('a query of another class or opcode', () => {
  const { CH, ANY } = CLASS;
  const others: readonly [title: string, qclass: number, opcode: number][] = [
    ['class CH', CH, OPCODE.QUERY],
    ['class ANY', ANY, OPCODE.QUERY],
    ['class 0', 0, OPCODE.QUERY],
    ['NOTIFY', CLASS.IN, OPCODE.NOTIFY],
  ];
  for (const [title, qclass, opcode] of others) {
    test(`(${title}) does not affect the IN answer for the same name`, () => {
      const answerer = answererOf(replicatedCluster(shop).cluster);
      const query = makeQuery(parseName(web), TYPE.A, qclass);
      query.flags |= opcode << 11;
      for (let i = 0; i < 3; i++) void answerer.answer(query, () => next);
      const { bytes, start, flags } = ask(answerer, web);
      const classAt = start + 12 + web.length + 1 + 2;
      assert.deepEqual([bytes[classAt], bytes[classAt + 1]], [0, CLASS.IN]);
      assert.equal(flags & FLAG.OPCODE, 0);
      assert.equal(say(answerer, web), 'NOERROR A 10.0.0.1');
    });
  }
});

describe('the SOA serial', () => {
  const serial = (answerer: KubernetesAnswerer): string =>
    say(answerer, 'cluster.local.', 'SOA').split(' ')[4]!;

  test('is 0 before anything is known, and then the time of the last visible change', async () => {
    const { cluster, source, clock } = replicatedCluster([]);
    const answerer = answererOf(cluster);
    assert.equal(serial(answerer), '0');
    await clock.advance(5000);
    source.put(...shop);
    const first = serial(answerer);
    assert.equal(first, String(Math.floor(clock.wall() / 1000)));
    await clock.advance(60_000);
    source.put(slice('web.shop', [endpoint('10.1.0.1', { nodeName: 'elsewhere' })]));
    assert.equal(serial(answerer), first, 'a node does not show in DNS');
    source.put(slice('web.shop', [endpoint('10.1.0.1'), endpoint('10.1.0.2', { ready: false })]));
    assert.equal(serial(answerer), first, 'nor does an endpoint that is not ready');
    source.put(slice('web.shop', ['10.1.0.1', '10.1.0.2']));
    assert.equal(Number(serial(answerer)), Number(first) + 60);
  });
});

describe("a zone's name servers", () => {
  const own = [parseAddress('10.1.0.53')!, parseAddress('fd00::53')!];

  test("are ns.dns with the server's own addresses if no service leads here", () => {
    const answerer = answererOf(replicatedCluster(shop).cluster, { own });
    assert.equal(say(answerer, 'cluster.local.', 'NS'), 'NOERROR NS ns.dns.cluster.local.');
    assert.equal(say(answerer, 'ns.dns.cluster.local.'), 'NOERROR A 10.1.0.53');
    assert.equal(say(answerer, 'ns.dns.cluster.local.', 'AAAA'), 'NOERROR AAAA fd00::53');
    const { additional } = read(ask(answerer, 'CLUSTER.local.', 'NS'));
    assert.deepEqual(
      additional.map(({ name }) => name),
      ['ns.dns.CLUSTER.local.', 'ns.dns.CLUSTER.local.'],
    );
  });

  test("are the services with an endpoint at one of the server's addresses, listed by endpoint if headless", () => {
    const { cluster } = replicatedCluster([
      namespace('kube-system'),
      service('kube-dns.kube-system', ['10.96.0.10', 'fd00:96::10']),
      slice('kube-dns.kube-system', ['10.1.0.53', '10.1.0.54']),
      slice('kube-dns.kube-system', ['fd00::53'], { name: 'kube-dns-2' }),
      service('peers.kube-system', 'None'),
      slice('peers.kube-system', ['10.1.0.53', '10.1.0.54']),
    ]);
    const answerer = answererOf(cluster, { own });
    const names = ['kube-dns', '10-1-0-53.peers', '10-1-0-54.peers'];
    const wanted = names.map((name) => `NS ${name}.kube-system.svc.cluster.local.`);
    const { answer } = read(ask(answerer, 'cluster.local.', 'NS'));
    const found = answer.map((one) => `${typeName(one.type)} ${printData(one.type, one.data)}`);
    assert.deepEqual(found.sort(), wanted.sort());
    const addresses = say(answerer, 'ns.dns.cluster.local.')
      .split(' ')
      .filter((word) => word.includes('.'));
    assert.deepEqual(addresses.sort(), ['10.1.0.53', '10.1.0.54', '10.96.0.10']);
    assert.equal(say(answerer, 'ns.dns.cluster.local.', 'AAAA'), 'NOERROR AAAA fd00:96::10');
  });
});

describe('a service with many endpoints', () => {
  const many = Array.from({ length: 5000 }, (_, i) => `10.2.${i >> 8}.${i & 255}`);
  const objects = [namespace('shop'), service('all.shop', 'None'), slice('all.shop', many)];

  test('is answered with as many as fit into a message, and with TC', () => {
    const answerer = answererOf(replicatedCluster(objects).cluster);
    const reply = ask(answerer, 'all.shop.svc.cluster.local.');
    assert.equal(reply.truncated, true);
    assert.ok(reply.answers > 3900 && reply.answers < 5000);
    const srv = ask(answerer, 'all.shop.svc.cluster.local.', 'SRV');
    assert.equal(srv.truncated, true);
    assert.ok(read(srv).answer.length > 500);
  });

  test('is answered in full if it has 1 000', () => {
    const { cluster } = replicatedCluster([
      namespace('shop'),
      service('all.shop', 'None'),
      slice('all.shop', many.slice(0, 500)),
      slice('all.shop', many.slice(400, 1000), { name: 'all-2' }),
    ]);
    assert.equal(ask(answererOf(cluster), 'all.shop.svc.cluster.local.').answers, 1000);
  });
});

describe("an ExternalName's target", () => {
  test('is awaited, and the query is retained until then', async () => {
    const { cluster } = replicatedCluster([namespace('shop'), external('ext.shop', 'example.org')]);
    const answerer = answererOf(cluster, {
      ask: async (asked) => {
        await Promise.resolve();
        return failure(RCODE.SERVFAIL, asked.name);
      },
    });
    const query = makeQuery(parseName('ext.shop.svc.cluster.local.'), 1);
    const waiting = answerer.answer(query, () => next);
    assert.ok(waiting instanceof Promise);
    const reply = await waiting;
    assert.equal(reply.rcode, RCODE.NOERROR);
    assert.equal(reply.answers, 1);
    assert.equal(reply.errors?.[0]?.code, EDE.NO_REACHABLE_AUTHORITY);
  });

  test('causes NODATA if it is not a domain name', () => {
    const { cluster } = replicatedCluster([
      namespace('shop'),
      external('ext.shop', `${'x'.repeat(64)}.org`),
    ]);
    assert.equal(say(answererOf(cluster), 'ext.shop.svc.cluster.local.'), 'NOERROR');
    assert.equal(say(answererOf(cluster), 'ext.shop.svc.cluster.local.', 'CNAME'), 'NOERROR');
  });
});

test('names outside the zones are passed on', () => {
  const answerer = answererOf(replicatedCluster(shop).cluster);
  for (const name of ['example.org.', 'local.', 'notcluster.local.', 'xcluster.local.']) {
    assert.equal(ask(answerer, name), next, name);
  }
});

test('the first service found at an address answers PTR once for all its endpoints', () => {
  const { cluster } = replicatedCluster([
    namespace('shop'),
    service('a.shop', '10.0.0.1'),
    service('b.shop', '10.0.0.2'),
    slice('a.shop', [endpoint('10.1.0.1', { hostname: 'one' })]),
    slice('a.shop', [endpoint('10.1.0.1', { hostname: 'one' })], { name: 'a-2' }),
    slice('b.shop', ['10.1.0.1']),
    slice('orphan.shop', ['10.1.0.1']),
  ]);
  const { answer } = read(ask(answererOf(cluster), '1.0.1.10.in-addr.arpa.', 'PTR'));
  assert.deepEqual(answer.map((one) => printData(one.type, one.data)).sort(), [
    '10-1-0-1.b.shop.svc.cluster.local.',
    '10-1-0-1.orphan.shop.svc.cluster.local.',
    'one.a.shop.svc.cluster.local.',
  ]);
});

test('thousands of services are all found', () => {
  const answerer = answererOf(replicatedCluster(manyObjects(3000, 2, false)).cluster);
  for (let i = 0; i < 3000; i += 7) {
    const name = `service-${i}.team-${i % 50}.svc.cluster.local.`;
    assert.equal(say(answerer, name), `NOERROR A 172.20.${i >> 8}.${i & 255}`);
  }
});
