import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { VirtualClock } from '../../base/virtual-clock.ts';
import { EDE, RCODE, rcodeName, typeName, typeNumber } from '../../wire/iana.ts';
import { readMessage } from '../../wire/message.ts';
import { parseName } from '../../wire/name.ts';
import { printData } from '../../wire/print.ts';
import { makeQuery } from '../../transport/query.ts';
import { failure, Reply } from '../../wire/reply.ts';
import { MessageWriter } from '../../wire/writer.ts';
import { EtcdAnswerer, type EtcdAnswererParts } from './etcd-answerer.ts';
import { EtcdReplica } from './replica.ts';
import { packService } from './skydns-service.ts';

const zone = 'shop.test.';
const counted = { amount: 0, add: (amount: number) => void (counted.amount += amount) };

/** A worker that has these keys under `/test/shop` with their values. */
function answerer(
  values: Readonly<Record<string, object>>,
  parts: Partial<EtcdAnswererParts> & { readonly listed?: boolean } = {},
): EtcdAnswerer {
  const { listed = true, maxSearch = 100 } = parts;
  const replica = new EtcdReplica();
  replica.begin();
  for (const [key, value] of Object.entries(values)) {
    const packed = packService(Buffer.from(JSON.stringify(value)), 0n);
    assert.equal(typeof packed, 'string');
    replica.apply([{ about: 'key', key: `/test/shop${key}`, packed: packed as string }]);
  }
  replica.apply([{ about: 'state', listed, serial: 7 }]);
  replica.complete();
  return new EtcdAnswerer({
    source: replica,
    zones: [zone],
    fallthrough: null,
    minLeaseTtl: 30,
    maxLeaseTtl: 86_400,
    maxSearch,
    clock: new VirtualClock(),
    writer: new MessageWriter(),
    ask: () => failure(RCODE.SERVFAIL, 'ask'),
    next: () => failure(RCODE.NOTIMP, 'next'),
    refused: counted,
    ...parts,
  });
}

function ask(from: EtcdAnswerer, name: string, type: string): Reply {
  const reply = from.link(makeQuery(parseName(name), typeNumber(type)!));
  assert.ok(reply instanceof Reply, 'the answer is there at once');
  return reply;
}

/** Formats the answer section as `RCODE: TYPE DATA, …`, in order. */
function say(from: EtcdAnswerer, name: string, type = 'A'): string {
  const reply = ask(from, name, type);
  if (reply.bare) return `${rcodeName(reply.rcode)} of ${reply.plugin}`;
  const { answer } = readMessage(reply.bytes, reply.start, reply.end);
  const records = answer.map((one) => `${typeName(one.type)} ${printData(one.type, one.data)}`);
  return [rcodeName(reply.rcode), ...records.toSorted()].join(', ');
}

const soa = 'NOERROR, SOA ns.dns.shop.test. hostmaster.shop.test. 7 7200 1800 86400 30';

describe('etcd, from memory', () => {
  test('records of one name and type share the lowest TTL, while others keep their own', () => {
    const from = answerer({
      '/web/a': { host: '10.0.0.1', ttl: 300 },
      '/web/b': { host: '10.0.0.2', ttl: 5 },
      '/web/c': { host: 'other.shop.test' },
      '/other': { host: '10.0.0.3', ttl: 60, text: 'x' },
      '/alias': { host: 'web.shop.test', ttl: 700 },
    });
    const ttls = (name: string, type: string): readonly string[] => {
      const reply = ask(from, name, type);
      const { answer, additional } = readMessage(reply.bytes, reply.start, reply.end);
      return [...answer, ...additional].map(
        (one) => `${one.name} ${typeName(one.type)} ${one.ttl}`,
      );
    };
    const web = ['web.shop.test. A 5', 'other.shop.test. A 60', 'web.shop.test. CNAME 300'];
    assert.deepEqual(new Set(ttls('web.shop.test.', 'A')), new Set(web));
    assert.deepEqual(
      new Set(ttls('alias.shop.test.', 'A')),
      new Set(['alias.shop.test. CNAME 700', ...web]),
    );
    const srv = ttls('web.shop.test.', 'SRV').filter((one) => one.includes(' SRV '));
    assert.deepEqual(
      srv,
      Array.from({ length: 3 }, () => 'web.shop.test. SRV 5'),
    );
  });

  const web = {
    '/web/a': { host: '10.0.0.1', port: 80 },
    '/web/b': { host: '10.0.0.2', port: 80 },
    '/web-2': { host: '10.0.0.3' },
    '/www': { host: 'web.shop.test' },
  };

  test('a name includes all keys below it, and no others', () => {
    const from = answerer(web);
    assert.equal(say(from, 'web.shop.test.'), 'NOERROR, A 10.0.0.1, A 10.0.0.2');
    assert.equal(say(from, 'a.web.shop.test.'), 'NOERROR, A 10.0.0.1');
    assert.equal(say(from, '*.web.shop.test.'), 'NOERROR, A 10.0.0.1, A 10.0.0.2');
    assert.equal(
      say(from, 'www.shop.test.'),
      'NOERROR, A 10.0.0.1, A 10.0.0.2, CNAME web.shop.test.',
    );
    assert.equal(say(from, 'we.shop.test.'), 'NXDOMAIN');
    assert.equal(say(from, 'web.shop.test.', 'TXT'), 'NOERROR');
  });

  test('names in other zones go to the next plugin', () => {
    assert.equal(say(answerer(web), 'web.other.test.'), 'NOTIMP of next');
  });

  test("missing names fall through, but never the zone's SOA", () => {
    const from = answerer({}, { fallthrough: ['.'] });
    assert.equal(say(from, 'web.shop.test.'), 'NOTIMP of next');
    assert.equal(say(from, 'shop.test.', 'A'), 'NOTIMP of next');
    assert.equal(say(from, 'shop.test.', 'SOA'), soa);
    assert.equal(say(answerer(web), 'shop.test.', 'SOA'), soa);
  });

  test('before the first listing, nothing is denied and nothing falls through', () => {
    for (const fallthrough of [null, ['.']]) {
      const from = answerer(web, { listed: false, fallthrough });
      assert.equal(say(from, 'web.shop.test.'), 'NOERROR, A 10.0.0.1, A 10.0.0.2');
      for (const [name, type] of [
        ['gone.shop.test.', 'A'],
        ['web.shop.test.', 'TXT'],
        ['shop.test.', 'SOA'],
      ] as const) {
        const { rcode, errors } = ask(from, name, type);
        assert.equal(rcode, RCODE.SERVFAIL);
        assert.equal(errors![0]!.code, EDE.NOT_READY);
      }
    }
  });

  test('a name that covers more than max_search keys gets SERVFAIL and is counted', () => {
    const many = Object.fromEntries(
      Array.from({ length: 5000 }, (_, i) => [`/many/${i}`, { host: '10.0.0.1' }]),
    );
    assert.equal(
      say(answerer(many, { maxSearch: 5000 }), 'many.shop.test.'),
      'NOERROR, A 10.0.0.1',
    );
    const before = counted.amount;
    assert.equal(say(answerer(many, { maxSearch: 4999 }), 'many.shop.test.'), 'SERVFAIL');
    assert.equal(counted.amount, before + 1);
  });

  // The two keys that external-dns writes for a CNAME when it uses the TXT registry.
  const owned = {
    '/app/149a1668': { host: 'target.shop.test', text: '"heritage=external-dns"', targetstrip: 1 },
    '/cname-app/3ee06812': { text: '"heritage=external-dns"', targetstrip: 1 },
    '/target': { host: '10.0.0.1' },
    '/target6': { host: '2001:db8::1' },
  };

  test('a record with a host name and a text is an alias, and TXT queries get its text', () => {
    const from = answerer(owned);
    assert.equal(say(from, 'app.shop.test.'), 'NOERROR, A 10.0.0.1, CNAME target.shop.test.');
    assert.equal(say(from, 'app.shop.test.', 'AAAA'), 'NOERROR');
    const text = String.raw`NOERROR, TXT "\"heritage=external-dns\""`;
    assert.equal(say(from, 'app.shop.test.', 'TXT'), text);
    assert.equal(say(from, 'cname-app.shop.test.', 'TXT'), text);
    assert.equal(say(from, 'cname-app.shop.test.'), 'NOERROR');
  });

  test("a text next to a record's host name does not hide its other types", () => {
    const record = { host: 'target6.shop.test', port: 80, mail: true };
    const types = ['A', 'AAAA', 'CNAME', 'PTR', 'SRV', 'MX', 'NS'];
    const answers = (extra: object): readonly string[] => {
      const keys = {
        ...owned,
        '/both': { ...record, ...extra },
        '/dns/ns': { ...record, ...extra },
      };
      const from = answerer(keys);
      return types.map((type) => say(from, type === 'NS' ? zone : 'both.shop.test.', type));
    };
    assert.deepEqual(answers({ text: 'x' }), answers({}));
    assert.match(answers({ text: 'x' }).join('; '), /AAAA 2001.*CNAME.*PTR.*SRV.*MX.*NS/);
  });

  test('a text next to an address is not answered, as in CoreDNS', () => {
    const from = answerer({ '/web': { host: '10.0.0.3', text: 'x' } });
    assert.equal(say(from, 'web.shop.test.', 'TXT'), 'NOERROR');
    assert.equal(say(from, 'web.shop.test.'), 'NOERROR, A 10.0.0.3');
  });
});
