import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { SeenExchange, SeenLookup } from '../capture/pair/seen-exchange.ts';
import { ByteReader, ByteWriter } from './byte-writer.ts';
import { LookupRing } from './lookup-ring.ts';
import { readLookup, writeLookup } from './packed-lookup.ts';

const text = fc.string({ unit: 'grapheme', maxLength: 30 });
const peer = fc.record({ address: text, port: fc.integer({ min: 0, max: 65_535 }) });
const exchange = fc
  .record({
    name: text,
    type: fc.integer({ min: 1, max: 65_535 }),
    server: peer,
    hops: fc.array(fc.record({ server: peer }), { maxLength: 3 }),
    afterMs: fc.integer({ min: 0, max: 30_000 }),
    tookMs: fc.option(fc.integer({ min: 0, max: 20_000 })),
    rcode: fc.integer({ min: -1, max: 15 }),
    answers: fc.integer({ min: 0, max: 300 }),
    attempt: fc.integer({ min: 1, max: 40 }),
    protocol: fc.constantFrom('udp' as const, 'tcp' as const),
    ending: fc.constantFrom(
      'answered' as const,
      'lost' as const,
      'retried' as const,
      'open' as const,
    ),
    isCut: fc.boolean(),
  })
  .map(({ afterMs, tookMs, isCut, ...rest }) => ({
    ...rest,
    sentMs: 5000 + afterMs,
    repliedMs: tookMs === null ? null : 5000 + afterMs + tookMs,
    replyFlags: isCut ? 0x200 : 0,
  }));
const lookup = fc
  .record({
    client: text,
    name: text,
    exchanges: fc.array(exchange, { minLength: 1, maxLength: 80 }),
  })
  .map(
    (made) => ({ ...made, startMs: 5000, endMs: 9000, candidates: [] }) as unknown as SeenLookup,
  );

test('a lookup is read back as written, except for queries beyond the 64th', () => {
  fc.assert(
    fc.property(lookup, fc.integer({ min: 0, max: 9000 }), (given, baseMs) => {
      const texts: string[] = [];
      const writer = new ByteWriter();
      writeLookup(given, baseMs, { of: (each) => texts.push(each) - 1 }, writer);
      const reader = new ByteReader(writer.written);
      const read = readLookup(reader, baseMs, (number) => texts[number]!);
      assert.equal(reader.at, writer.length);
      assert.deepEqual([read.client, read.name], [given.client, given.name]);
      assert.ok(Math.abs(read.startMs - 5000) < 0.01 && Math.abs(read.endMs - 9000) < 0.02);
      assert.equal(read.queries.length + read.more, given.exchanges.length);
      for (const [at, query] of read.queries.entries()) {
        const was = given.exchanges[at]!;
        assert.ok(Math.abs(query.sentMs - was.sentMs) < 0.02);
        assert.deepEqual(
          [
            query.name,
            query.type,
            query.server.address,
            query.server.port,
            query.rcode,
            query.answers,
            query.attempt,
          ],
          [
            was.name,
            was.type,
            was.server.address,
            was.server.port,
            was.rcode,
            was.answers,
            was.attempt,
          ],
        );
        assert.deepEqual([query.protocol, query.ending], [was.protocol, was.ending]);
        assert.equal(query.truncated, was.rcode >= 0 && was.replyFlags !== 0);
        assert.deepEqual(
          query.hops.map(({ server }) => server.address),
          was.hops.map(({ server }) => server.address),
        );
        assert.equal(query.repliedMs === null, was.repliedMs === null);
      }
    }),
  );
});

test('a ring stays within its limit, drops the oldest lookups, and counts them', () => {
  const ring = new LookupRing(64 * 1024, 600_000);
  for (let at = 0; at < 5000; at++) {
    const query = { ...(made(at) as SeenExchange) };
    const { sentMs, name } = query;
    ring.add({
      client: '10.0.0.1',
      name,
      startMs: sentMs,
      endMs: sentMs + 1,
      exchanges: [query],
      candidates: [name],
    });
    assert.ok(ring.bytes <= 64 * 1024 + 8 * 1024, `${ring.bytes} bytes`);
  }
  assert.equal(ring.size + ring.droppedEarly, 5000);
  assert.ok(ring.droppedEarly > 0);
  const newest = [...ring.newest(-Infinity)];
  assert.equal(newest.length, ring.size);
  assert.equal(newest[0]!.id, 5000);
  assert.equal(newest.at(-1)!.id, ring.droppedEarly + 1);
  assert.equal(newest.at(-1)!.startMs, ring.oldestMs);
  assert.equal(ring.get(4901)?.name, 'n4900.example.');
  assert.equal(ring.get(ring.droppedEarly), null);
  assert.equal(ring.get(5001), null);
  ring.advance(5000 + 700_000);
  assert.equal(ring.size, 0);
  assert.equal(ring.bytes, 0);
});

function made(at: number): unknown {
  const sentMs = 1000 + at;
  return {
    name: `n${at}.example.`,
    type: 1,
    server: { address: '10.96.0.10', port: 53 },
    hops: [],
    sentMs,
    repliedMs: sentMs + 1,
    rcode: 0,
    answers: 1,
    attempt: 1,
    protocol: 'udp',
    ending: 'answered',
    replyFlags: 0,
  };
}
