import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { classify } from './classify.ts';
import { TYPE } from './iana.ts';
import { messageNames, MessageNames } from './message-names.ts';
import { foldName, printName } from './name.ts';
import { checkName, NamePlaces, ReadError } from './reader.ts';
import { expandName } from './records.ts';
import { Reply } from './reply.ts';
import { fromUpstream } from './upstream.ts';
import {
  aliasChain,
  copiedName,
  fullMessage,
  manyPointers,
  pointer,
} from '../../../test/kit/costly-messages.ts';

const label = fc.constantFrom('a', 'A', 'b', 'ab', 'aB', 'c'.repeat(63));
/**
 * A name, given as its labels and an index into the earlier labels and pointers where it continues. If there is no
 * index, it ends in the root.
 */
const name = fc.record({
  labels: fc.array(label, { maxLength: 4 }),
  rest: fc.option(fc.nat(), { nil: null }),
});

/**
 * Writes names consecutively after 12 bytes.
 * @returns their positions
 */
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

describe('names in a message', () => {
  test('have the same number exactly if they are equal except for case', () => {
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
        const text = (at: number): string => printName(foldName(expandName(bytes, 0, at)));
        for (const one of good)
          for (const other of good)
            assert.equal(names.id(one) === names.id(other), text(one) === text(other));
      }),
      { numRuns: 1000 },
    );
  });

  test('a 64 KiB message whose names each follow a hundred pointers is rejected', () => {
    const reply = fromUpstream(manyPointers());
    assert.ok(reply instanceof ReadError);
    assert.match(reply.message, /too many pointers/);
  });

  test('any number of names with ordinary compression is accepted', () => {
    const usual = fullMessage((index) => {
      const data = index % 2 === 0 ? pointer(12) : Uint8Array.of(1, 120, ...pointer(14));
      return [pointer(12), TYPE.NS, data];
    });
    assert.ok(fromUpstream(usual) instanceof Reply);
  });

  test('classifying a reply reads each label at most once per position', () => {
    for (const message of [aliasChain(), copiedName()]) {
      const reply = fromUpstream(message);
      assert.ok(reply instanceof Reply);
      classify(reply, TYPE.A);
      assert.ok(messageNames.labels > 0 && messageNames.labels <= message.length / 4);
    }
  });
});
