import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { JsonLineReader, ListReader, MalformedStream } from './json-stream.ts';

/** Feeds `text` in pieces, cut at the given positions. */
function feed(
  splitter: { push(chunk: Buffer): void },
  text: string,
  cuts: readonly number[],
): void {
  const bytes = Buffer.from(text);
  const places = [...new Set(cuts.map((cut) => cut % (bytes.length + 1)))].sort((a, b) => a - b);
  // All pieces share one buffer, as on a connection, so any parts that are stored must have been copied.
  const lent = Buffer.alloc(bytes.length);
  let from = 0;
  for (const to of [...places, bytes.length]) {
    const length = bytes.copy(lent, 0, from, to);
    splitter.push(lent.subarray(0, length));
    lent.fill(0x7b);
    from = to;
  }
}

const item = fc.dictionary(fc.string({ unit: 'grapheme' }), fc.jsonValue());
const cuts = fc.array(fc.nat(5000), { maxLength: 20 });

describe('a list split anywhere', () => {
  test('yields its items and its head, wherever the metadata is', () => {
    fc.assert(
      fc.property(
        fc.array(item),
        cuts,
        fc.boolean(),
        fc.nat(2),
        (items, places, before, indent) => {
          const metadata = { resourceVersion: '42', continue: 'next', odd: '"items":[{}]' };
          const list = before
            ? { kind: 'items', metadata, other: { items: [{ no: 1 }] }, items }
            : { items, apiVersion: 'v1', other: [[{ items: [1] }]], metadata };
          const found: unknown[] = [];
          const splitter = new ListReader((value) => found.push(value));
          feed(splitter, JSON.stringify(list, null, indent), places);
          assert.deepEqual(splitter.end(), { version: '42', next: 'next' });
          assert.deepEqual(found, JSON.parse(JSON.stringify(items)));
          assert.equal(splitter.items, items.length);
        },
      ),
    );
  });

  test('that stops early is an error', () => {
    fc.assert(
      fc.property(fc.array(item, { minLength: 1 }), fc.nat(), (items, place) => {
        const text = JSON.stringify({ metadata: { resourceVersion: '1' }, items });
        const splitter = new ListReader(() => {});
        const short = Buffer.from(text).subarray(0, place % Buffer.byteLength(text));
        assert.throws(() => {
          splitter.push(short);
          splitter.end();
        }, MalformedStream);
      }),
    );
  });

  test('may have no items, which Go prints as null', () => {
    const splitter = new ListReader(() => assert.fail());
    splitter.push(Buffer.from('{"metadata":{"resourceVersion":"7"},"items":null}\n'));
    assert.deepEqual(splitter.end(), { version: '7', next: '' });
  });

  test('ends in an error for malformed JSON and for an extra bracket', () => {
    for (const text of ['<html></html>', '}', '{"items":[{]}', '{"items":[{}]}}', '']) {
      const splitter = new ListReader(() => {});
      assert.throws(() => {
        splitter.push(Buffer.from(text));
        splitter.end();
      }, MalformedStream);
    }
  });
});

test('lines split anywhere come out whole, and a last partial line does not', () => {
  fc.assert(
    fc.property(fc.array(item), cuts, (items, places) => {
      const text = items.map((value) => `${JSON.stringify(value)}\n`).join('\n');
      const found: unknown[] = [];
      const splitter = new JsonLineReader((value) => found.push(value));
      feed(splitter, `${text}{"half":`, places);
      assert.deepEqual(found, JSON.parse(JSON.stringify(items)));
    }),
  );
});
