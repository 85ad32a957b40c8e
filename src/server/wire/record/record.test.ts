import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { recordSamples } from '../../../../test/fuzz/record-samples.ts';
import { parseHex, printHex } from '../encoding.ts';
import { TYPE, typeName, typeNumber } from '../iana.ts';
import { layoutOf } from '../layout.ts';
import { dataOf, readData, writeData, type DnsRecord } from '../message.ts';
import { printData } from '../print.ts';
import { Reader, ReadError } from '../reader.ts';
import { MessageWriter } from '../writer.ts';
import { parseRecord } from '../zone-text.ts';
import { Opaque } from './kind.ts';
import { a, aaaa, kindOf, recordKinds, txt } from './table.ts';

function written(type: number, data: object): string {
  const to = new MessageWriter();
  to.begin(0, 0);
  const begin = to.length;
  writeData(to, type, data);
  return printHex(to.take().subarray(begin));
}

function read(type: string, hex: string): object {
  const bytes = parseHex(hex)!;
  return readData(new Reader(bytes), typeNumber(type)!, bytes.length);
}

function parse(type: string, text: string): object {
  return parseRecord(`x.example. ${type} ${text}`).data;
}

describe('record data', () => {
  for (const [type, text, hex] of recordSamples) {
    test(`${type} ${text.slice(0, 60)} is the same as text, object and bytes`, () => {
      const data = parse(type, text);
      assert.deepEqual(read(type, hex), data);
      assert.equal(printData(typeNumber(type)!, data), text);
      // Compression within the data itself (SOA) makes it shorter, so read it back in that case.
      const own = written(typeNumber(type)!, data);
      if (type === 'SOA' || type === 'MINFO') assert.ok(own.length <= hex.length);
      else assert.equal(own, hex);
    });

    test(`${type} ${text.slice(0, 60)} cut or extended gives different data or a ReadError`, () => {
      for (let end = 0; end <= hex.length + 2; end += 2) {
        try {
          const data = read(type, `${hex}00`.slice(0, end));
          assert.equal(typeof printData(typeNumber(type)!, data), 'string');
        } catch (error) {
          assert.ok(error instanceof ReadError);
        }
      }
    });

    test(`${type} ${text.slice(0, 60)} can be written in the generic form`, () => {
      assert.deepEqual(parse(type, `\\# ${hex.length / 2} ${hex}`), parse(type, text));
    });
  }

  test('every kind has samples, and is found by its type', () => {
    const sampled = new Set(recordSamples.map(([type]) => type));
    for (const kind of recordKinds) {
      assert.equal(kindOf(kind.type), kind);
      assert.equal(typeName(kind.type), kind.name);
      if (kind.type !== TYPE.NULL) assert.ok(sampled.has(kind.name), kind.name);
    }
  });

  test('every type whose data contains names is decoded', () => {
    for (let type = 0; type < 256; type++)
      if (layoutOf(type) !== undefined) assert.ok(kindOf(type), typeName(type));
  });

  test('data read from a message is not many times its size, whatever the type', () => {
    const label = `3f${'61'.repeat(63)}`;
    const name = `${label.repeat(3)}3d${'61'.repeat(61)}00`;
    for (const { type, name: kind } of recordKinds) {
      for (const data of ['c00c'.repeat(1000), `010100010909${'c00c'.repeat(1000)}`]) {
        const bytes = parseHex(`${'00'.repeat(12)}${name}${data}`)!;
        const from = new Reader(bytes);
        from.at = 12 + 255;
        let read: object;
        try {
          read = readData(from, type, from.left);
        } catch (error) {
          assert.ok(error instanceof ReadError);
          continue;
        }
        assert.ok(printData(type, read).length < 4 * bytes.length + 2000, kind);
      }
    }
  });

  test('NID and L64: leading zeros in a group may be omitted, but are printed', () => {
    assert.deepEqual(parse('NID', '10 14:4fff:0:1'), parse('NID', '10 0014:4fff:0000:0001'));
    assert.equal(printData(TYPE.NID, parse('NID', '10 14:4FFF:0:1')), '10 0014:4fff:0000:0001');
    for (const text of ['10 1:2:3', '10 1:2:3:4:5', '10 12345:1:1:1', '10 1::1:1', '10 x:1:1:1'])
      assert.throws(() => parse('L64', text), /four groups of hex digits/);
  });

  test('an unknown type is bytes, in the format of RFC 3597', () => {
    const data = parse('TYPE65280', '\\# 4 0a00 0001');
    assert.deepEqual(data, new Opaque(Uint8Array.of(10, 0, 0, 1)));
    assert.equal(printData(65280, data), '\\# 4 0A000001');
    assert.equal(printData(65280, new Opaque(new Uint8Array(0))), '\\# 0');
  });

  test('empty data is accepted for any type, as in updates', () => {
    const data = readData(new Reader(new Uint8Array(0)), TYPE.A, 0);
    assert.equal(printData(TYPE.A, data), '\\# 0');
    assert.equal(written(TYPE.A, data), '');
  });

  test('names are compressed only in the types of RFC 1035', () => {
    const compressed = new Set<number>([2, 3, 4, 5, 6, 7, 8, 9, 12, 14, 15]);
    for (const [type, text] of recordSamples) {
      const number = typeNumber(type)!;
      const data = parse(type, text);
      const to = new MessageWriter();
      to.begin(0, 0);
      writeData(to, number, data);
      const first = to.length - 12;
      writeData(to, number, data);
      assert.equal(to.length - 12 < 2 * first, compressed.has(number), type);
    }
  });

  test('dataOf returns data of the requested kind, otherwise null', () => {
    const record: DnsRecord = parseRecord('x.example. A 192.0.2.7');
    assert.equal(dataOf(record, a)?.address, '192.0.2.7');
    assert.equal(dataOf(record, aaaa), null);
    assert.equal(dataOf({ ...record, data: new Opaque(new Uint8Array(0)) }, a), null);
    const text = parseRecord('x.example. TXT one "two three"');
    assert.deepEqual(dataOf(text, txt)?.strings, ['one', 'two three']);
  });
});
