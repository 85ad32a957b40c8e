import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import * as any from '../../../test/fuzz/arbitraries.ts';
import { Problem } from '../base/problem.ts';
import type { DnsRecord } from './message.ts';
import { printName } from './name.ts';
import { printRecord } from './print.ts';
import { Opaque } from './record/kind.ts';
import { parseTtl } from './ttl.ts';
import { parseRecord, parseZone } from './zone-text.ts';

/** Records that can occur in zone files, with TTLs below 2^31, real classes and non-empty data. */
const zoneRecord: fc.Arbitrary<DnsRecord> = fc
  .tuple(any.record, fc.integer({ min: 0, max: 0x7fff_ffff }), fc.constantFrom(1, 3, 4, 42))
  .map(([record, ttl, rclass]) => ({ ...record, ttl, class: rclass }))
  .filter(({ data }) => !(data instanceof Opaque && data.bytes.length === 0));

function withoutPlace(record: DnsRecord): DnsRecord {
  const { name, type, class: rclass, ttl, data } = record;
  return { name, type, class: rclass, ttl, data };
}

describe('laws of zone text', () => {
  test('a printed record parses back, whatever it contains and however long words are split', () => {
    fc.assert(
      fc.property(zoneRecord, fc.constantFrom(0, 1, 56), (record, split) => {
        assert.deepEqual(parseRecord(printRecord(record, split)), record);
      }),
      { numRuns: 1000 },
    );
  });

  test('printed records parse back, whatever the origin', () => {
    fc.assert(
      fc.property(
        fc.array(zoneRecord, { maxLength: 8 }),
        any.wireName,
        fc.nat({ max: 4 }),
        (records, other, which) => {
          const origin = records[which]?.name ?? printName(other);
          const lines = records.map((record) => printRecord(record));
          const text = [`$ORIGIN ${origin}`, ...lines].join('\n');
          const parsed = [...parseZone(text, { file: 'zone' })];
          assert.deepEqual(parsed.map(withoutPlace), records);
        },
      ),
      { numRuns: 400 },
    );
  });

  test('any text gives records that print and parse back, or a Problem that points into it', () => {
    const word = fc.oneof(
      fc.constantFrom(
        '$TTL',
        '$ORIGIN',
        '$INCLUDE',
        '@',
        'IN',
        'A',
        'TXT',
        'SOA',
        'HTTPS',
        '1h',
        '300',
        '(',
        ')',
        ';',
        '"',
        '\\',
        '\n',
        '\n ',
        '\\# 1',
        'a.',
        '10.0.0.1',
        '=',
      ),
      fc.string({ maxLength: 6 }),
    );
    fc.assert(
      fc.property(fc.array(word, { maxLength: 30 }), (words) => {
        const text = words.join(' ');
        try {
          for (const record of parseZone(text, { file: 'zone', ttl: 1 })) {
            assert.deepEqual(parseRecord(printRecord(record)), withoutPlace(record));
          }
        } catch (error) {
          if (!(error instanceof Problem)) throw error;
          const { line, column } = error.place!;
          const at = text.split('\n')[line - 1];
          assert.ok(
            at !== undefined && column >= 1 && column <= at.length + 1,
            `${line}:${column}`,
          );
        }
      }),
      { numRuns: 2000 },
    );
  });

  test('TTLs with units are the sum of their parts', () => {
    const part = fc.tuple(fc.nat({ max: 500 }), fc.constantFrom('w', 'd', 'h', 'm', 's', 'H'));
    const seconds: Readonly<Record<string, number>> = {
      w: 604_800,
      d: 86_400,
      h: 3600,
      H: 3600,
      m: 60,
      s: 1,
    };
    fc.assert(
      fc.property(fc.array(part, { minLength: 1, maxLength: 4 }), (parts) => {
        const sum = parts.reduce((total, [count, unit]) => total + count * seconds[unit]!, 0);
        assert.equal(parseTtl(parts.map(([count, unit]) => `${count}${unit}`).join('')), sum);
      }),
    );
  });
});
