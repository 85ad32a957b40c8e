import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import * as any from '../../../test/fuzz/arbitraries.ts';
import { TYPE } from '../wire/iana.ts';
import { readMessage, writeMessage } from '../wire/message.ts';
import { printName } from '../wire/name.ts';
import { Query } from './query.ts';
import { ReadError } from '../wire/reader.ts';
import { Records } from '../wire/records.ts';

describe('laws of queries', () => {
  test('Query.read accepts exactly the messages with one question that are complete and readable', () => {
    const damage = fc.array(fc.tuple(fc.nat(), any.byte), { maxLength: 3 });
    const small = fc.record({
      base: any.message,
      asked: any.question,
      extra: fc.array(any.record, { maxLength: 1 }),
    });
    fc.assert(
      fc.property(small, damage, ({ base, asked, extra }, changes) => {
        const bytes = writeMessage({
          ...base,
          flags: 0x0100,
          question: [asked],
          answer: [],
          authority: extra,
          additional: [],
        });
        for (const [at, value] of changes) bytes[12 + (at % (bytes.length - 12))] = value;
        const triage = new Query().read(bytes, 0, bytes.length);
        if (triage === 'serve') assert.ok(isWhole(bytes));
        // RFC 8945 specifies where a TSIG record must be. Anywhere else, it makes the message malformed.
        else assert.ok(!readable(bytes) || hasTsig(bytes));
      }),
      { numRuns: 500 },
    );
  });

  test('a stored query is the same in its own memory, whatever happens to the buffer', () => {
    fc.assert(
      fc.property(any.question, fc.option(any.edns), any.bytes(0, 9), (asked, edns, before) => {
        const bytes = writeMessage({ ...empty, question: [asked], edns });
        const buffer = Uint8Array.of(...before, ...bytes);
        const query = new Query();
        if (query.read(buffer, before.length, buffer.length) !== 'serve') return;
        const kept = query.keep();
        buffer.fill(0xee);
        assert.equal(printName(kept.wireName), asked.name);
        assert.equal(kept.name, asked.name.toLowerCase());
        assert.deepEqual(
          [kept.type, kept.class, kept.id, kept.edns],
          [asked.type, asked.class, 0, edns !== null],
        );
        assert.deepEqual(readMessage(kept.bytes, kept.start, kept.end).edns, edns);
        assert.equal(kept.keep(), kept);
      }),
    );
  });

  test('names that differ only in case have the same hash and the same folded name', () => {
    fc.assert(
      fc.property(any.question, (asked) => {
        const [one, other] = [asked.name.toLowerCase(), asked.name.toUpperCase()].map((name) => {
          const query = new Query();
          const bytes = writeMessage({ ...empty, question: [{ ...asked, name }] });
          assert.equal(query.read(bytes, 0, bytes.length), 'serve');
          return { hash: query.hash, name: query.name };
        });
        assert.deepEqual(one, other);
        assert.ok(one!.hash >= 0 && one!.hash < 2 ** 30);
      }),
    );
  });

  test('a changed question preserves the client, its flags and its EDNS', () => {
    fc.assert(
      fc.property(any.question, any.wireName, fc.option(any.edns), (asked, name, edns) => {
        const bytes = writeMessage({ ...empty, id: 7, flags: 0x0110, question: [asked], edns });
        const query = new Query();
        query.read(bytes, 0, bytes.length);
        query.peerPort = 4242;
        const other = query.asking(name, 28);
        assert.equal(printName(other.wireName), printName(name));
        assert.deepEqual(
          [other.type, other.class, other.flags, other.id, other.peerPort, other.owned],
          [28, asked.class, 0x0110, 7, 4242, true],
        );
        assert.equal(other.edns, edns !== null);
        if (edns !== null) {
          const { udpSize, dnssecOk, options } = readMessage(
            other.bytes,
            other.start,
            other.end,
          ).edns!;
          assert.deepEqual(
            { udpSize, dnssecOk, options },
            { udpSize: edns.udpSize, dnssecOk: edns.dnssecOk, options: edns.options },
          );
        }
      }),
    );
  });
});

const empty = {
  id: 0,
  flags: 0,
  rcode: 0,
  question: [],
  answer: [],
  authority: [],
  additional: [],
  edns: null,
};

/** Returns true if the message contains as many records as its header claims. */
function isWhole(bytes: Uint8Array): boolean {
  const records = new Records();
  let left = bytes[7]! + bytes[9]! + bytes[11]!;
  for (records.over(bytes); records.next();) left--;
  return left === 0;
}

function hasTsig(bytes: Uint8Array): boolean {
  const { answer, authority, additional } = readMessage(bytes);
  return [...answer, ...authority, ...additional].some(({ type }) => type === TYPE.TSIG);
}

function readable(bytes: Uint8Array): boolean {
  try {
    readMessage(bytes);
    return true;
  } catch (error) {
    if (error instanceof ReadError) return false;
    throw error;
  }
}
