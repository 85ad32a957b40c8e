import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { KnownTexts } from './known-texts.ts';

const latin1 = (bytes: Uint8Array, start: number, end: number): string =>
  Buffer.from(bytes.subarray(start, end)).toString('latin1');

describe('interned texts', () => {
  it('are printed once', () => {
    let printed = 0;
    const texts = new KnownTexts((...of) => {
      printed++;
      return latin1(...of);
    });
    const bytes = Buffer.from('..www.example..');
    for (let turn = 0; turn < 3; turn++) assert.equal(texts.of(bytes, 2, 13), 'www.example');
    assert.equal(printed, 1);
  });

  it('are distinct when there are many', () => {
    let printed = 0;
    const texts = new KnownTexts((...of) => {
      printed++;
      return latin1(...of);
    });
    const names = Array.from({ length: 15_000 }, (_, at) => Buffer.from(`x${at}.example`));
    for (let turn = 0; turn < 2; turn++)
      for (const name of names)
        assert.equal(texts.of(name, 0, name.length), name.toString('latin1'));
    // A few collide in full buckets.
    assert.ok(printed < 1.03 * names.length, `${printed} were printed`);
  });

  it('are found again after their table has grown to its limit', () => {
    let printed = 0;
    const texts = new KnownTexts((...of) => {
      printed++;
      return latin1(...of);
    });
    const names = Array.from({ length: 19_500 }, (_, at) => Buffer.from(`x${at}.example`));
    for (const name of names) texts.of(name, 0, name.length);
    const before = printed;
    for (const name of names) assert.equal(texts.of(name, 0, name.length), name.toString('latin1'));
    assert.ok(printed - before < 0.03 * names.length, `${printed - before} were printed again`);
  });

  it('stay correct for any number of new texts of any length, in bounded memory', () => {
    const texts = new KnownTexts(latin1);
    const long = Buffer.alloc(250, 'a');
    for (let turn = 0; turn < 100_000; turn++) {
      long.writeUInt32BE(turn, 100);
      if (turn % 1000 === 0) assert.equal(texts.of(long, 0, long.length), long.toString('latin1'));
      else texts.of(long, 0, long.length);
    }
    assert.ok(texts.size < 10_000, `${texts.size} texts are known`);
  });
});
