import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ttlOffsets } from '../../../test/kit/ttl-offsets.ts';
import { parseHex } from './encoding.ts';
import { FLAG, OPTION, RCODE, TYPE } from './iana.ts';
import { readMessage, writeMessage, type Message } from './message.ts';
import { parseName } from './name.ts';
import { ReadError } from './reader.ts';
import { Reply } from './reply.ts';
import { answersQuery, fromUpstream } from './upstream.ts';
import { makeQueryMessage, QueryMessage } from './query-message.ts';

const message: Message = {
  id: 1,
  flags: FLAG.QR | FLAG.RD | FLAG.RA,
  rcode: 0,
  question: [{ name: 'www.example.org.', type: TYPE.A, class: 1 }],
  answer: [
    { name: 'www.example.org.', type: TYPE.A, class: 1, ttl: 30, data: { address: '10.0.0.1' } },
  ],
  authority: [],
  additional: [],
  edns: null,
};

function take(bytes: Uint8Array): Reply {
  const reply = fromUpstream(bytes);
  assert.ok(reply instanceof Reply, reply instanceof ReadError ? reply.message : '');
  return reply;
}

function refusal(bytes: Uint8Array): string {
  const error = fromUpstream(bytes);
  assert.ok(error instanceof ReadError);
  return error.message;
}

describe('replies from upstreams', () => {
  test('OPT is removed; its result code and options stay, except hop-by-hop options', () => {
    const options = [
      { code: OPTION.COOKIE, data: new Uint8Array(16) },
      { code: OPTION.EDE, data: Uint8Array.of(0, 15) },
      { code: OPTION.PADDING, data: new Uint8Array(3) },
      { code: OPTION.NSID, data: Uint8Array.of(65) },
    ];
    const edns = { udpSize: 4096, version: 0, dnssecOk: true, options };
    const reply = take(writeMessage({ ...message, rcode: RCODE.BADCOOKIE, edns }));
    assert.equal(reply.rcode, RCODE.BADCOOKIE);
    assert.equal(reply.additional, 0);
    assert.deepEqual(reply.options, Uint8Array.of(0, 15, 0, 2, 0, 15, 0, 3, 0, 1, 65));
    assert.equal(readMessage(reply.bytes, reply.start, reply.end).edns, null);
  });

  test('if the upstream does not support EDNS, stamp echoes the client’s options', () => {
    assert.equal(take(writeMessage(message)).options, null);
  });

  test('if the upstream supports EDNS, options that it left out are not echoed', () => {
    const cookie = { code: OPTION.COOKIE, data: new Uint8Array(16) };
    for (const options of [[], [cookie]]) {
      const edns = { udpSize: 4096, version: 0, dnssecOk: true, options };
      assert.deepEqual(take(writeMessage({ ...message, edns })).options, new Uint8Array(0));
    }
  });

  test('the upstream’s buffer may be reused at once', () => {
    const bytes = writeMessage(message);
    const reply = take(bytes);
    bytes.fill(0xff);
    assert.equal(readMessage(reply.bytes, reply.start, reply.end).answer[0]!.ttl, 30);
  });

  test('bytes after the last record are cut off', () => {
    const bytes = writeMessage(message);
    assert.equal(take(Uint8Array.of(...bytes, 1, 2, 3)).size, bytes.length);
  });

  test('a bare header becomes a bare reply', () => {
    const reply = take(parseHex('000181850000000000000000')!);
    assert.deepEqual([reply.bare, reply.rcode], [true, RCODE.REFUSED]);
    assert.equal(
      answersQuery(reply, makeQueryMessage(new QueryMessage(), parseName('.'), 1)),
      false,
    );
  });

  test('queries, other question counts and short messages are errors', () => {
    assert.match(refusal(new Uint8Array(11)), /shorter than a header/);
    assert.match(refusal(writeMessage({ ...message, flags: FLAG.RD })), /is a query, not a reply/);
    assert.match(refusal(writeMessage({ ...message, question: [] })), /has 0 questions/);
    assert.match(
      refusal(writeMessage({ ...message, question: [...message.question, ...message.question] })),
      /has 2 questions/,
    );
  });

  test('every truncation of a reply is an error, never a shorter reply', () => {
    const bytes = writeMessage({
      ...message,
      edns: { udpSize: 512, version: 0, dnssecOk: false, options: [] },
    });
    for (let end = 0; end < bytes.length; end++)
      assert.ok(fromUpstream(bytes.subarray(0, end)) instanceof ReadError, `${end}`);
  });

  test('an address of invalid length is an error', () => {
    const bytes = writeMessage(message);
    bytes[bytes.length - 5] = 3;
    assert.match(refusal(bytes.subarray(0, bytes.length - 1)), /wrong length|too short/);
  });

  // RFC 1035 section 3.4.1 defines A only for class IN. dnspython reads Chaosnet addresses in class CH (a name and 16
  // bits), and so considers such replies malformed. CoreDNS reads four bytes in every class, and forwards them.
  test('four bytes in a class CH A record pass through unchanged', () => {
    const question = '03777777076578616d706c65036f726700 0001 0003';
    const bytes = parseHex(
      `0001 8180 0001 0001 0000 0000 ${question} c00c 0001 0003 0000001e 0004 03616263`.replaceAll(
        ' ',
        '',
      ),
    )!;
    const reply = take(bytes);
    assert.deepEqual(
      Buffer.from(reply.bytes.subarray(reply.start + 12, reply.end)).toString('hex'),
      Buffer.from(bytes.subarray(12)).toString('hex'),
    );
  });

  // A zero in the middle of a record ends a name just as the root does, until a TTL is written over it.
  test("a name that points into a record's TTL stays the same when that TTL changes", () => {
    const bytes = parseHex(
      `1234 8580 0001 0003 0000 0000 0161 076578616d706c65 00 0001 0001
       c00c 0005 0001 00000000 0004 0162c01e c027 0005 0001 0000001e 0004 0163c00e
       c037 0001 0001 0000001e 0004 c0000201`.replaceAll(/\s/g, ''),
    )!;
    const [alias] = readMessage(bytes).answer;
    const reply = take(bytes);
    const patched = reply.bytes.slice(reply.start, reply.end);
    for (const at of ttlOffsets(reply.bytes, reply.start, reply.end))
      new DataView(patched.buffer).setUint32(at, 0x05050505);
    assert.deepEqual(readMessage(patched).answer[0]!.data, alias!.data);
  });

  test('records without data are accepted, as in updates', () => {
    const bytes = writeMessage(message);
    bytes[bytes.length - 5] = 0;
    assert.equal(take(bytes.subarray(0, bytes.length - 4)).answers, 1);
  });

  test('pointers to a replaced spelling of the question lead to the question', () => {
    // www.example.org A; the answer has an uncompressed owner and a CNAME whose target points into that owner.
    const question = '03777777076578616d706c65036f7267000001 0001';
    const owner = '03777777076578616d706c65036f726700';
    const bytes = parseHex(
      `0001 8180 0001 0002 0000 0000 ${question} ${owner} 0005 0001 0000001e 0006 0366747 0c025 c03c 0001 0001 0000001e 0004 0a000001`.replaceAll(
        ' ',
        '',
      ),
    )!;
    const reply = take(bytes);
    const read = readMessage(reply.bytes, reply.start, reply.end);
    assert.deepEqual(read.answer, readMessage(bytes).answer);
    assert.equal(reply.size, bytes.length - 15);
  });

  test('a 64 KiB reply full of small records is converted', () => {
    const answer = Array.from({ length: 4000 }, (_, i) => ({ ...message.answer[0]!, ttl: i }));
    const reply = take(writeMessage({ ...message, answer }));
    assert.equal(reply.answers, 4000);
  });

  test('a reply answers a query for the same name, type and class', () => {
    const reply = take(writeMessage(message));
    assert.equal(
      answersQuery(
        reply,
        makeQueryMessage(new QueryMessage(), parseName('WWW.example.ORG'), TYPE.A),
      ),
      true,
    );
    assert.equal(
      answersQuery(
        reply,
        makeQueryMessage(new QueryMessage(), parseName('www.example.org'), TYPE.AAAA),
      ),
      false,
    );
    assert.equal(
      answersQuery(
        reply,
        makeQueryMessage(new QueryMessage(), parseName('www.example.org'), TYPE.A, 3),
      ),
      false,
    );
    assert.equal(
      answersQuery(
        reply,
        makeQueryMessage(new QueryMessage(), parseName('www.example.com'), TYPE.A),
      ),
      false,
    );
    assert.equal(
      answersQuery(reply, makeQueryMessage(new QueryMessage(), parseName('example.org'), TYPE.A)),
      false,
    );
    assert.equal(
      answersQuery(
        reply,
        makeQueryMessage(new QueryMessage(), parseName('a.www.example.org'), TYPE.A),
      ),
      false,
    );
  });
});

describe('owning replies', () => {
  test('an own copy has the whole reply in its own memory', () => {
    const options = Uint8Array.of(0, 3, 0, 0);
    const reply = take(writeMessage(message)).with({ ttl: 7, ttlAt: Uint16Array.of(45), options });
    const copy = reply.own();
    assert.deepEqual(readMessage(copy.bytes), readMessage(reply.bytes, reply.start, reply.end));
    assert.equal(copy.bytes.buffer.byteLength, reply.size);
    assert.deepEqual(
      [copy.ttl, copy.ttlAt, copy.options, copy.rcode, copy.plugin],
      [7, reply.ttlAt, reply.options, 0, 'forward'],
    );
  });
});
