import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { FLAG, RCODE, typeNumber } from '../../wire/iana.ts';
import { readMessage } from '../../wire/message.ts';
import { parseName, type WireName } from '../../wire/name.ts';
import { makeQuery, type Query } from '../../transport/query.ts';
import { failure, Reply } from '../../wire/reply.ts';
import { MessageWriter, type Section } from '../../wire/writer.ts';
import { answererOf, replicatedCluster } from '../../../../test/kit/replicated-cluster.ts';
import { namespace, service, slice } from '../../../../test/kit/kube-objects.ts';
import type { KubernetesAnswerer } from './worker/answer.ts';

const next = failure(RCODE.NOTIMP, 'next');

class CountingWriter extends MessageWriter {
  records = 0;
  override open(
    section: Section,
    owner: WireName | null,
    type: number,
    ttl: number,
    rclass = 1,
  ): void {
    this.records++;
    super.open(section, owner, type, ttl, rclass);
  }
}

function clusterOf(endpoints: number): ReturnType<typeof replicatedCluster> {
  const slices = Array.from({ length: endpoints / 10 }, (_, i) => ({
    ...slice(
      'web.shop',
      Array.from({ length: 10 }, (__, k) => `10.${i >> 8}.${i & 255}.${k + 1}`),
    ),
    name: `web-${i}`,
  }));
  return replicatedCluster([namespace('shop'), service('web.shop', 'None'), ...slices]);
}

function query(name: string, type: string, size: number | null = null): Query {
  const made = makeQuery(parseName(name), typeNumber(type)!);
  if (size === null) made.proto = 'tcp';
  else made.proto = 'udp';
  made.udpLimit = size ?? 0;
  return made;
}

function ask(answerer: KubernetesAnswerer, asked: Query): Reply {
  const reply = answerer.answer(asked, () => next);
  assert.ok(reply instanceof Reply, 'the answer is there at once');
  return reply;
}

const names = {
  A: 'web.shop.svc.cluster.local.',
  AAAA: 'web.shop.svc.cluster.local.',
  SRV: '_http._tcp.web.shop.svc.cluster.local.',
  TXT: 'web.shop.svc.cluster.local.',
  ANY: 'web.shop.svc.cluster.local.',
  PTR: '7.3.0.10.in-addr.arpa.',
};

describe('services with thousands of endpoints', () => {
  const sizes = [10, 1000, 10_000].map((endpoints) => ({ endpoints, ...clusterOf(endpoints) }));

  test('a client gets as much as it can receive, and nothing beyond that is written', () => {
    for (const { cluster } of sizes) {
      for (const [type, name] of Object.entries(names)) {
        for (const size of [0, 512, 1232, 4096, 65_535]) {
          const writer = new CountingWriter();
          const asked = query(name, type, size);
          const reply = ask(answererOf(cluster, { writer }), asked);
          assert.ok(reply.size < asked.limit + 300);
          assert.ok(writer.records <= 1 + asked.limit / 16, `${type} ${size} ${writer.records}`);
          assert.equal(reply.truncated, reply.size >= asked.limit, type);
        }
      }
    }
  });

  test('a repeated reply is built in full once and cached until it changes', () => {
    for (const { cluster, source, endpoints } of sizes) {
      for (const type of ['A', 'SRV'] as const) {
        const writer = new CountingWriter();
        const answerer = answererOf(cluster, { writer });
        for (let i = 0; i < 3; i++) ask(answerer, query(names[type], type, 512));
        const written = writer.records;
        const kept = ask(answerer, query(names[type], type, 512));
        for (let i = 0; i < 10; i++)
          assert.equal(ask(answerer, query(names[type], type, 512)), kept);
        assert.equal(writer.records, written);
        assert.equal(kept.answers >= Math.min(endpoints, type === 'A' ? 3500 : 600), true);
        source.put({ ...slice('web.shop', ['10.9.9.9']), name: 'one-more' });
        const fresh = ask(answerer, query(names[type], type));
        assert.notEqual(fresh, kept);
        assert.equal((fresh.flags & FLAG.TC) === 0, endpoints < 1000 || fresh.size < 64_000);
        source.remove({ ...slice('web.shop', ['10.9.9.9']), name: 'one-more' });
      }
    }
  });

  test('names of single endpoints are found without reading the others', () => {
    for (const { cluster, endpoints } of sizes) {
      for (const number of [0, endpoints / 20, endpoints / 10 - 1].map(Math.floor)) {
        const dashed = `10-${number >> 8}-${number & 255}-7`;
        const reply = ask(answererOf(cluster), query(`${dashed}.${names.A}`, 'A'));
        const { answer } = readMessage(reply.bytes, reply.start, reply.end);
        assert.deepEqual(
          answer.map(({ data }) => data),
          [{ address: dashed.replaceAll('-', '.') }],
        );
      }
      assert.equal(
        ask(answererOf(cluster), query(`10-77-0-1.${names.A}`, 'A')).rcode,
        RCODE.NXDOMAIN,
      );
    }
  });

  test("large names beyond the cache's capacity are truncated rather than written in full every time", () => {
    const services = Array.from({ length: 200 }, (_, i) => `web-${i}`);
    const { cluster } = replicatedCluster([
      namespace('shop'),
      ...services.flatMap((name) => [
        service(`${name}.shop`, 'None'),
        slice(
          `${name}.shop`,
          Array.from({ length: 1000 }, (_, i) => `10.1.${i >> 8}.${i & 255}`),
        ),
      ]),
    ]);
    const writer = new CountingWriter();
    const answerer = answererOf(cluster, { writer });
    const queries = 20 * services.length;
    for (let i = 0; i < queries; i++) {
      const asked = query(`${services[i % services.length]!}.shop.svc.cluster.local.`, 'A', 512);
      asked.arrived = 5000 + i / 100;
      ask(answerer, asked);
    }
    // Each second, there are 64 large replies, and the others get as much as fits into 512 bytes.
    assert.ok(writer.records < 64 * 1000 + queries * 32, String(writer.records));
  });

  test('one address shared by a thousand services is answered with the names that fit', () => {
    const { cluster } = replicatedCluster([
      namespace('shop'),
      ...Array.from({ length: 3000 }, (_, i) => [
        service(`host-${i}.shop`, 'None'),
        slice(`host-${i}.shop`, ['10.0.0.7']),
      ]).flat(),
    ]);
    const writer = new CountingWriter();
    const reply = ask(answererOf(cluster, { writer }), query('7.0.0.10.in-addr.arpa.', 'PTR', 0));
    assert.ok(reply.truncated && writer.records < 30);
  });
});
