import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { parseNet } from '../../base/ip.ts';
import { seededRandom } from '../../base/random.ts';
import { readMessage, type DnsRecord } from '../../wire/message.ts';
import { parseName } from '../../wire/name.ts';
import { printRecord } from '../../wire/print.ts';
import { makeQuery } from '../../transport/query.ts';
import { fromUpstream } from '../../wire/upstream.ts';
import { ttlOffsets } from '../../../../test/kit/ttl-offsets.ts';
import { replyBytes } from '../../../../test/kit/upstream.ts';
import { Arranger } from './arranger.ts';

const name = fc.constantFrom(
  '@',
  'a.example.org.',
  'b.a.example.org.',
  'example.org.',
  'other.test.',
);
const record = fc
  .tuple(
    name,
    fc.integer({ min: 1, max: 9 }),
    fc.constantFrom('A', 'AAAA', 'CNAME', 'MX', 'SRV', 'TXT', 'NS'),
    name,
    fc.integer({ min: 1, max: 250 }),
  )
  .map(([owner, ttl, type, target, number]) => {
    const data = {
      A: `10.0.${number % 3}.${number}`,
      AAAA: `2001:db8::${number}`,
      CNAME: target,
      MX: `${number} ${target}`,
      SRV: `0 1 ${number} ${target}`,
      TXT: `t${number}`,
      NS: target,
    }[type];
    return `${owner} ${ttl} ${type} ${data}`;
  });
const section = fc.array(record, { maxLength: 6 });

const texts = (records: readonly DnsRecord[]): string[] =>
  records.map((one) => printRecord(one)).toSorted();
const rank = ({ type }: DnsRecord): number =>
  type === 5 ? 0 : type === 15 ? 3 : type === 1 || type === 28 ? 2 : 1;

test('for any message, every section keeps its records in groups, and the input bytes are unchanged', () => {
  fc.assert(
    fc.property(
      section,
      section,
      section,
      fc.nat(),
      fc.boolean(),
      fc.boolean(),
      (answer, authority, additional, seed, levelled, prefer) => {
        const query = makeQuery(parseName('www.example.org.'), 1);
        const bytes = replyBytes(query, { answer, authority, additional });
        const taken = fromUpstream(bytes, 0, bytes.length);
        if (taken instanceof Error) throw taken;
        const ttlAt = ttlOffsets(taken.bytes, taken.start, taken.end);
        const reply = levelled ? taken.with({ ttlAt, ttl: 77 }) : taken;
        const before = reply.bytes.slice(reply.start, reply.end);
        const arranger = new Arranger({
          random: seededRandom(seed),
          prefer: prefer ? [parseNet('10.0.1.0/24')!] : [],
          weights: null,
        });
        for (let round = 0; round < 4; round++) {
          const arranged = arranger.arrange(reply, 1, round % 2 === 0);
          const is = readMessage(arranged.bytes, arranged.start, arranged.end);
          const was = readMessage(before);
          for (const part of ['answer', 'authority', 'additional'] as const) {
            assert.deepEqual(
              texts(is[part].map((one) => (levelled ? { ...one, ttl: 77 } : one))),
              texts(was[part].map((one) => (levelled ? { ...one, ttl: 77 } : one))),
            );
            const ranks = is[part].map(rank);
            assert.deepEqual(
              ranks,
              ranks.toSorted((a, b) => a - b),
              'groups in order',
            );
          }
          // All TTL fields are set to this level, wherever they are now.
          if (levelled && arranged.ttlAt === null)
            assert.ok(
              [...is.answer, ...is.authority, ...is.additional].every(({ ttl }) => ttl === 77),
            );
          if (levelled && arranged.ttlAt !== null) {
            assert.deepEqual(
              [...arranged.ttlAt],
              [...ttlOffsets(arranged.bytes, arranged.start, arranged.end)],
            );
          }
          assert.deepEqual(reply.bytes.slice(reply.start, reply.end), before);
        }
      },
    ),
    { numRuns: 400 },
  );
});

test('a reply that will be truncated contains only original records that fit, with TC', () => {
  const arranger = new Arranger({ random: seededRandom(4), prefer: [], weights: null });
  fc.assert(
    fc.property(
      fc.array(record, { minLength: 20, maxLength: 60 }),
      fc.constantFrom('A', 'AAAA', null),
      fc.integer({ min: 200, max: 700 }),
      fc.boolean(),
      (some, alike, limit, passing) => {
        const query = makeQuery(parseName('www.example.org.'), alike === 'AAAA' ? 28 : 1);
        const answer =
          alike === null
            ? some
            : some.map(
                (_, i) => `@ 60 ${alike} ${alike === 'A' ? `10.0.0.${i}` : `2001:db8::${i}`}`,
              );
        const bytes = replyBytes(query, { answer });
        const reply = fromUpstream(bytes, 0, bytes.length);
        if (reply instanceof Error) throw reply;
        fc.pre(reply.size > limit);
        const arranged = arranger.arrange(reply, query.type, passing, limit);
        if (arranged === reply) return;
        const is = readMessage(arranged.bytes, arranged.start, arranged.end);
        assert.ok(arranged.size <= limit && arranged.truncated);
        const left = texts(readMessage(reply.bytes, reply.start, reply.end).answer);
        for (const one of texts(is.answer)) {
          assert.ok(left.includes(one));
          left.splice(left.indexOf(one), 1);
        }
        if (alike !== null) assert.ok(arranged.size > limit - 28);
      },
    ),
    { numRuns: 300 },
  );
});

test('each address in a truncated reply has the same chance', () => {
  const query = makeQuery(parseName('www.example.org.'), 1);
  const answer = Array.from({ length: 100 }, (_, i) => `@ 60 A 10.0.0.${i}`);
  const bytes = replyBytes(query, { answer });
  const reply = fromUpstream(bytes, 0, bytes.length);
  if (reply instanceof Error) throw reply;
  const arranger = new Arranger({ random: seededRandom(9), prefer: [], weights: null });
  const drawn = new Map<string, number>();
  for (let round = 0; round < 2000; round++) {
    const { bytes: out, start, end } = arranger.arrange(reply, 1, true, 200);
    for (const one of texts(readMessage(out, start, end).answer))
      drawn.set(one, (drawn.get(one) ?? 0) + 1);
  }
  // Drawing 10 of 100 in 2000 rounds gives each one 200, within five standard deviations.
  assert.equal(drawn.size, 100);
  for (const count of drawn.values()) assert.ok(Math.abs(count - 200) < 67, String(count));
});
