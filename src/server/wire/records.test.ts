import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ttlOffsets } from '../../../test/kit/ttl-offsets.ts';
import { TYPE } from './iana.ts';
import { writeMessage, type DnsRecord, type Message } from './message.ts';
import { printName } from './name.ts';
import { Records } from './records.ts';
import { Reply } from './reply.ts';
import { SECTION } from './writer.ts';

function a(name: string, ttl: number, address = '10.0.0.1'): DnsRecord {
  return { name, type: TYPE.A, class: 1, ttl, data: { address } };
}

const message: Message = {
  id: 1,
  flags: 0x8400,
  rcode: 0,
  question: [{ name: 'www.example.org.', type: 1, class: 1 }],
  answer: [a('www.example.org.', 30), a('WWW.example.org.', 20, '10.0.0.2')],
  authority: [],
  additional: [a('ns.example.org.', 0x9000_0000)],
  edns: { udpSize: 1232, version: 0, dnssecOk: false, options: [] },
};

/** The message's bytes, at offset 3 in a larger buffer. */
function shifted(): Uint8Array {
  return Uint8Array.of(9, 9, 9, ...writeMessage(message), 9, 9, 9);
}

describe('record iteration', () => {
  test('every record in every section is visited once, and empty sections are skipped', () => {
    const bytes = shifted();
    const records = new Records();
    const seen: unknown[] = [];
    for (records.over(bytes, 3, bytes.length - 3); records.next();) {
      seen.push([
        records.section,
        printName(records.owner).toLowerCase(),
        records.type,
        records.writtenTtl,
        records.dataLength,
      ]);
    }
    assert.deepEqual(seen, [
      [SECTION.answer, 'www.example.org.', 1, 30, 4],
      [SECTION.answer, 'www.example.org.', 1, 20, 4],
      [SECTION.additional, 'ns.example.org.', 1, 0, 4],
      [SECTION.additional, '.', 41, 0, 0],
    ]);
  });

  test('data is a view of the record’s data', () => {
    const records = new Records().over(writeMessage(message));
    records.next();
    records.next();
    assert.deepEqual(records.data, Uint8Array.of(10, 0, 0, 2));
  });

  test("a reply's TTL replaces those at the offsets in ttlAt", () => {
    const bytes = shifted();
    const [, second] = ttlOffsets(bytes, 3, bytes.length - 3);
    const reply = new Reply(bytes, 3, bytes.length - 3, 0, 'test', {
      ttlAt: Uint16Array.of(second!),
      ttl: 5,
    });
    const records = new Records();
    const ttls: number[] = [];
    for (records.of(reply); records.next();) ttls.push(records.ttl);
    assert.deepEqual(ttls.slice(0, 3), [30, 5, 0]);
  });

  test('TTL offsets count from the start of the message, without OPT', () => {
    const bytes = shifted();
    const offsets = ttlOffsets(bytes, 3, bytes.length - 3);
    assert.equal(offsets.length, 3);
    assert.deepEqual(
      [...offsets.subarray(0, 2)].map((at) => bytes[3 + at + 3]),
      [30, 20],
    );
  });

  test('counts that exceed the message end the iteration', () => {
    const bytes = writeMessage({ ...message, additional: [], edns: null });
    bytes[6] = 0xff;
    bytes[11] = 0xff;
    const records = new Records().over(bytes);
    assert.deepEqual(
      [records.next(), records.next(), records.next(), records.next()],
      [true, true, false, false],
    );
    assert.equal(new Records().over(new Uint8Array(5)).next(), false);
    assert.equal(new Records().of(new Reply(new Uint8Array(0), 0, 0, 2, 'test')).next(), false);
  });
});
