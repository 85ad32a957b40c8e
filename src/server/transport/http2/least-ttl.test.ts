import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { RCODE } from '../../wire/iana.ts';
import { writeMessage } from '../../wire/message.ts';
import { parseRecord } from '../../wire/zone-text.ts';
import { leastTtl } from './least-ttl.ts';

function leastOf(answer: readonly string[], authority: readonly string[] = [], rcode = 0): number {
  const bytes = writeMessage({
    id: 0,
    flags: 0x8000,
    rcode,
    question: [{ name: 'a.example.', type: 1, class: 1 }],
    answer: answer.map((text) => parseRecord(text)),
    authority: authority.map((text) => parseRecord(text)),
    additional: [],
    edns: { udpSize: 1232, version: 0, dnssecOk: false, options: [] },
  });
  return leastTtl(Buffer.concat([Buffer.of(1, 2, 3), bytes]), 3, 3 + bytes.length);
}

const soa = 'example. 300 SOA ns.example. mail.example. 1 7200 3600 1209600 20';

describe('how long an HTTP cache may store a reply', () => {
  test('is the lowest TTL of its records, at most an hour', () => {
    assert.equal(leastOf(['a.example. 30 A 192.0.2.1', 'a.example. 20 A 192.0.2.2']), 20);
    assert.equal(leastOf(['a.example. 30 A 192.0.2.1'], ['example. 10 NS ns.example.']), 10);
    assert.equal(leastOf(['a.example. 86400 A 192.0.2.1']), 3600);
  });

  test("is the SOA's minimum if there is no answer", () => {
    assert.equal(leastOf([], [soa]), 20);
    assert.equal(leastOf([], [soa], RCODE.NXDOMAIN), 20);
    assert.equal(leastOf(['a.example. 30 A 192.0.2.1'], [soa]), 30);
  });

  test('is five seconds for a failure and for a reply without records', () => {
    assert.equal(leastOf([]), 5);
    assert.equal(leastOf(['a.example. 30 A 192.0.2.1'], [], RCODE.SERVFAIL), 5);
  });

  test('is zero if a TTL has its top bit set', () => {
    const record = { ...parseRecord('a.example. 30 A 192.0.2.1'), ttl: 0x8000_0001 };
    const bytes = writeMessage({
      id: 0,
      flags: 0x8000,
      rcode: 0,
      question: [],
      answer: [record],
      authority: [],
      additional: [],
      edns: null,
    });
    assert.equal(leastTtl(bytes, 0, bytes.length), 0);
  });
});
