import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { KnownTexts } from './known-texts.ts';

describe('texts of bytes that come again and again', () => {
  it('are printed once', () => {
    let printed = 0;
    const texts = new KnownTexts((bytes) => {
      printed++;
      return bytes.toString('latin1');
    });
    const bytes = Buffer.from('..www.example..');
    for (let turn = 0; turn < 3; turn++) assert.equal(texts.of(bytes, 2, 13), 'www.example');
    assert.equal(printed, 1);
  });

  it('are right for ever new bytes, however long, and in memory that has an end', () => {
    const texts = new KnownTexts((bytes) => bytes.toString('latin1'));
    const long = Buffer.alloc(250, 'a');
    for (let turn = 0; turn < 100_000; turn++) {
      long.writeUInt32BE(turn, 100);
      if (turn % 1000 === 0) assert.equal(texts.of(long, 0, long.length), long.toString('latin1'));
      else texts.of(long, 0, long.length);
    }
    assert.ok(texts.size < 10_000, `${texts.size} texts are known`);
  });
});
