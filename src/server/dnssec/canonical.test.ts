import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { parseName, printName, type WireName } from '../wire/name.ts';
import { labelCount, nameBehind, nameBeside } from './canonical.ts';

/** RFC 4034 section 6.1 compares labels from the right, as bytes. */
function compareNames(a: WireName, b: WireName): number {
  const labels = (name: WireName): Buffer[] => {
    const all: Buffer[] = [];
    for (let at = 0; name[at] !== 0; at += name[at]! + 1)
      all.unshift(Buffer.from(name.subarray(at + 1, at + 1 + name[at]!)));
    return all;
  };
  const [left, right] = [labels(a), labels(b)];
  for (let i = 0; i < Math.min(left.length, right.length); i++) {
    const order = Buffer.compare(left[i]!, right[i]!);
    if (order !== 0) return order;
  }
  return left.length - right.length;
}

const label = fc
  .uint8Array({ minLength: 1, maxLength: 63 })
  .map((bytes) => bytes.map((byte) => (byte >= 0x41 && byte <= 0x5a ? byte + 32 : byte)));
const names = fc
  .array(fc.oneof(label, fc.constant(new Uint8Array(63).fill(0xff))), { maxLength: 6 })
  .map((labels) => {
    let name: WireName = Uint8Array.of(0);
    for (const one of labels)
      if (name.length + one.length < 255) name = Uint8Array.of(one.length, ...one, ...name);
    return name;
  });

describe('names that follow a name', () => {
  test('the following name is greater and is a valid name', () => {
    fc.assert(
      fc.property(names, (name) => {
        for (const next of [nameBehind(name), nameBeside(name)]) {
          assert.ok(next.length <= 255);
          // The very last name is followed by the first one, which is the root.
          if (next.length > 1 || name.length + 2 <= 255) {
            if (next.length > 1)
              assert.ok(compareNames(next, name) > 0, `${printName(name)} ${printName(next)}`);
          }
        }
      }),
    );
  });

  test('the name right after another one begins with a zero byte under it', () => {
    assert.equal(printName(nameBehind(parseName('a.example.'))), '\\000.a.example.');
  });

  test('the next name outside a subtree is not in it', () => {
    assert.equal(printName(nameBeside(parseName('a.example.'))), 'a\\000.example.');
    assert.equal(
      printName(nameBeside(parseName(`${'a'.repeat(63)}.example.`))),
      `${'a'.repeat(62)}b.example.`,
    );
    assert.equal(
      printName(nameBeside(parseName(`${'a'.repeat(62)}\\@.example.`))),
      `${'a'.repeat(62)}[.example.`,
    );
  });

  test("a wildcard's asterisk does not count as a label in a signature", () => {
    assert.deepEqual(
      ['.', 'a.', 'a.b.', '*.b.', 'x.*.b.'].map((name) => labelCount(parseName(name))),
      [0, 1, 2, 1, 3],
    );
  });
});
