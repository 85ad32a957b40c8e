import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { classify } from './classify.ts';
import { sameInMessage } from './compressed.ts';
import { TYPE } from './iana.ts';
import { messageNames, MessageNames } from './message-names.ts';
import { checkName, NamePlaces, ReadError } from './reader.ts';
import { Reply } from './reply.ts';
import { fromUpstream } from './upstream.ts';

const label = fc.constantFrom('a', 'A', 'b', 'ab', 'aB', 'c'.repeat(63));
/** Labels, and which of the labels and pointers before it the name ends in; none: the root. */
const name = fc.record({
  labels: fc.array(label, { maxLength: 4 }),
  rest: fc.option(fc.nat(), { nil: null }),
});

/** Names one after the other behind 12 bytes. @returns where they begin */
function write(names: readonly { labels: readonly string[]; rest: number | null }[]): {
  readonly bytes: Uint8Array;
  readonly at: readonly number[];
} {
  const bytes = Array.from({ length: 12 }, () => 0);
  const places: number[] = [];
  const at = names.map(({ labels, rest }) => {
    const begin = bytes.length;
    const targets = [...places];
    for (const text of labels) {
      places.push(bytes.length);
      bytes.push(text.length, ...Buffer.from(text));
    }
    if (rest === null || targets.length === 0) bytes.push(0);
    else {
      const target = targets[rest % targets.length]!;
      places.push(bytes.length);
      bytes.push(0xc0 | (target >> 8), target & 0xff);
    }
    return begin;
  });
  return { bytes: Uint8Array.from(bytes), at };
}

/** The longest message that fits, of records as given: owner, type, data. */
function full(
  make: (index: number, at: number) => readonly [Uint8Array, number, Uint8Array],
  question: Uint8Array,
): Uint8Array {
  const bytes = new Uint8Array(65_535);
  bytes[2] = 0x80;
  bytes[5] = 1;
  bytes.set(question, 12);
  let at = 12 + question.length;
  bytes[at + 1] = TYPE.A;
  bytes[at + 3] = 1;
  at += 4;
  let count = 0;
  for (;;) {
    const [owner, type, data] = make(count, at);
    if (at + owner.length + 10 + data.length > bytes.length) break;
    bytes.set(owner, at);
    at += owner.length;
    bytes.set([0, type, 0, 1, 0, 0, 0, 60, data.length >> 8, data.length & 0xff], at);
    bytes.set(data, at + 10);
    at += 10 + data.length;
    count++;
  }
  bytes[6] = count >> 8;
  bytes[7] = count & 0xff;
  return bytes.slice(0, at);
}

const pointer = (to: number): Uint8Array => Uint8Array.of(0xc0 | (to >> 8), to & 0xff);
const address = Uint8Array.of(192, 0, 2, 1);
const long = Uint8Array.from([...Array.from({ length: 126 }, () => [1, 97]).flat(), 0]);

describe('the names of a message', () => {
  test('have the same number exactly if they are the same but for case', () => {
    const names = new MessageNames();
    const places = new NamePlaces();
    fc.assert(
      fc.property(fc.array(name, { minLength: 2, maxLength: 12 }), (all) => {
        const { bytes, at } = write(all);
        places.begin();
        const good = at.filter((one) => {
          let alone = 0;
          let together = 0;
          try {
            alone = checkName(bytes, 0, one, bytes.length);
          } catch (error) {
            assert.ok(error instanceof ReadError);
          }
          try {
            together = checkName(bytes, 0, one, bytes.length, places);
          } catch (error) {
            assert.ok(error instanceof ReadError);
          }
          assert.equal(together, alone, 'what is known of other names changes no verdict');
          return alone > 0;
        });
        names.begin(bytes, 0);
        for (const one of good)
          for (const other of good)
            assert.equal(names.id(one) === names.id(other), sameInMessage(bytes, 0, one, other));
      }),
      { numRuns: 1000 },
    );
  });

  test('a message of 64 KiB whose names follow a hundred pointers each is refused', () => {
    let chain = 12;
    const crafted = full((index, at) => {
      const owner = pointer(chain);
      if (index < 110) chain = at;
      return [owner, TYPE.A, address];
    }, long);
    const reply = fromUpstream(crafted);
    assert.ok(reply instanceof ReadError);
    assert.match(reply.message, /too many pointers/);
  });

  test('names that are compressed as usual are not refused, however many there are', () => {
    const usual = full((index) => {
      const data = index % 2 === 0 ? pointer(12) : Uint8Array.of(1, 120, ...pointer(14));
      return [pointer(12), TYPE.NS, data];
    }, long);
    assert.ok(fromUpstream(usual) instanceof Reply);
  });

  test('to judge a reply, each label of it is read at most once for each place where it stands', () => {
    // Aliases in the order that is worst for a reader: the last one of the chain comes first.
    const aliases = full(
      (index) => {
        const name = (number: number): Uint8Array =>
          Uint8Array.of(2, 97 + (number >> 5), 97 + (number & 31), ...pointer(12));
        return index === 0
          ? [pointer(12), TYPE.CNAME, name(60)]
          : [name(index % 61), TYPE.CNAME, name((index % 61) - 1)];
      },
      Uint8Array.of(1, 120, ...Array.from({ length: 120 }, () => [1, 97]).flat(), 0),
    );
    const addresses = full(
      (index) =>
        index === 0
          ? [Uint8Array.of(1, 97, ...pointer(14)), TYPE.A, address]
          : [pointer(12 + long.length + 4), TYPE.A, address],
      long,
    );
    for (const message of [aliases, addresses]) {
      const reply = fromUpstream(message);
      assert.ok(reply instanceof Reply);
      classify(reply, TYPE.A);
      assert.ok(messageNames.labels > 0 && messageNames.labels <= message.length / 4);
    }
  });
});
