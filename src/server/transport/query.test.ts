import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { costsAtMost } from '../../../test/kit/growth.ts';
import { parseHex } from '../wire/encoding.ts';
import { FLAG, HEADER, TYPE } from '../wire/iana.ts';
import { writeMessage, type Message } from '../wire/message.ts';
import { optionsIn } from '../wire/edns.ts';
import { findOption } from '../wire/edns-options.ts';
import { makeQuery, Query } from './query.ts';
import type { Triage } from '../wire/query-message.ts';
import { parseName } from '../wire/name.ts';
import { recordKinds } from '../wire/record/table.ts';

const message: Message = {
  id: 0x1234,
  flags: 0x0100,
  rcode: 0,
  question: [{ name: 'Www.Example.org.', type: 1, class: 1 }],
  answer: [],
  authority: [],
  additional: [],
  edns: null,
};
const soa = { mname: '.', rname: '.', serial: 1, refresh: 1, retry: 1, expire: 1, minimum: 1 };
const record = { name: 'x.', type: 6, class: 1, ttl: 0, data: soa };

function triage(bytes: Uint8Array): Triage {
  return new Query().read(bytes, 0, bytes.length);
}

/** Returns the message with some of its 16-bit header words replaced. */
function patched(words: Readonly<Record<number, number>>, from: Message = message): Uint8Array {
  const bytes = writeMessage(from);
  for (const [at, value] of Object.entries(words)) {
    bytes[Number(at)] = value >> 8;
    bytes[Number(at) + 1] = value & 0xff;
  }
  return bytes;
}

describe('classification of a message before any plugin sees it', () => {
  test('messages shorter than a header, and replies, are ignored', () => {
    assert.equal(triage(new Uint8Array(11)), 'ignore');
    assert.equal(triage(patched({ 2: 0x8100 })), 'ignore');
  });

  test('opcodes other than QUERY and NOTIFY are not implemented', () => {
    for (const opcode of [1, 2, 3, 5, 6, 15])
      assert.equal(triage(patched({ 2: opcode << 11 })), 'notimp');
    assert.equal(triage(patched({ 2: 4 << 11 })), 'serve');
  });

  test('anything but one question is a format error', () => {
    assert.equal(triage(patched({ 4: 0 })), 'formerr');
    assert.equal(triage(patched({ 4: 2 })), 'formerr');
    assert.equal(triage(patched({ 4: 0xffff })), 'formerr');
  });

  test('one answer, one authority and two additional records are accepted; more is a format error', () => {
    assert.equal(
      triage(
        writeMessage({
          ...message,
          answer: [record],
          authority: [record],
          additional: [record, record],
        }),
      ),
      'serve',
    );
    assert.equal(triage(writeMessage({ ...message, answer: [record, record] })), 'formerr');
    assert.equal(triage(writeMessage({ ...message, authority: [record, record] })), 'formerr');
    assert.equal(
      triage(writeMessage({ ...message, additional: [record, record, record] })),
      'formerr',
    );
  });

  test('a question that is cut off, compressed or has a label of an unknown kind is a format error', () => {
    const whole = writeMessage(message);
    for (let end = 12; end < whole.length; end++)
      assert.equal(triage(whole.subarray(0, end)), 'formerr');
    assert.equal(triage(parseHex('000001000001000000000000c00c00010001')!), 'formerr');
    assert.equal(triage(parseHex('000001000001000000000000410000010001')!), 'formerr');
  });

  test('a name of 255 bytes is served and one of 256 is not', () => {
    const label = [63, ...Array<number>(63).fill(97)];
    const header = [...writeMessage({ ...message, question: [] }).subarray(0, 12)];
    header[5] = 1;
    const longest = [
      ...header,
      ...label,
      ...label,
      ...label,
      61,
      ...Array<number>(61).fill(97),
      0,
      0,
      1,
      0,
      1,
    ];
    assert.equal(triage(Uint8Array.from(longest)), 'serve');
    const longer = [
      ...header,
      ...label,
      ...label,
      ...label,
      62,
      ...Array<number>(62).fill(97),
      0,
      0,
      1,
      0,
      1,
    ];
    assert.equal(triage(Uint8Array.from(longer)), 'formerr');
  });

  test('a second OPT, one not at the root, or one in another section is a format error', () => {
    const bare = writeMessage({
      ...message,
      edns: { udpSize: 1232, version: 0, dnssecOk: false, options: [] },
    });
    assert.equal(triage(bare), 'serve');
    const opt = bare.subarray(bare.length - 11);
    const two = Uint8Array.of(...bare, ...opt);
    two[11] = 2;
    assert.equal(triage(two), 'formerr');
    const inAnswer = bare.slice();
    inAnswer[7] = 1;
    inAnswer[11] = 0;
    assert.equal(triage(inAnswer), 'formerr');
    const named = Uint8Array.of(...bare.subarray(0, bare.length - 11), 1, 97, ...opt);
    assert.equal(triage(named), 'formerr');
  });

  test('an option that runs past the end of OPT is a format error', () => {
    const bytes = writeMessage({
      ...message,
      edns: {
        udpSize: 1232,
        version: 0,
        dnssecOk: false,
        options: [{ code: 10, data: new Uint8Array(8) }],
      },
    });
    bytes[bytes.length - 9] = 9;
    assert.equal(triage(bytes), 'formerr');
  });

  test('a record in a query takes time linear in its length, whatever it contains', async () => {
    const fills = [
      [0],
      [1, 0],
      [0, 1, 32, 0],
      [0, 2, 128, 0],
      [0, 1, 0, 0],
      [0xc0, HEADER.SIZE],
      [0xff],
    ];
    const reading = (type: number, fill: readonly number[], length: number): (() => void) => {
      const head = [0, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 1, 1, 97, 0, 0, 1, 0, 1, 0];
      const fixed = [type >> 8, type & 0xff, 0, 1, 0, 0, 0, 0, length >> 8, length & 0xff];
      const data = Buffer.alloc(length, Buffer.from(fill));
      const bytes = Uint8Array.of(...head, ...fixed, ...data);
      const query = new Query();
      return () => {
        for (let times = 0; times < 50; times++) query.read(bytes, 0, bytes.length);
      };
    };
    for (const { type, name } of recordKinds) {
      for (const fill of fills) {
        // Four times the length takes four times as long. It would take 16 times as long if every byte were compared
        // with every other.
        await costsAtMost(10, reading(type, fill, 4000), reading(type, fill, 1000)).catch(
          (error: Error) => assert.fail(`${name} of ${fill.join(' ')}: ${error.message}`),
        );
      }
    }
  });

  test('OPT is found next to a signature', () => {
    const tsig = {
      name: 'key.',
      type: 250,
      class: 255,
      ttl: 0,
      data: {
        algorithm: 'hmac-sha256.',
        timeSigned: 1,
        fudge: 300,
        mac: new Uint8Array(32),
        originalId: 1,
        error: 0,
        other: new Uint8Array(0),
      },
    };
    const edns = {
      udpSize: 1400,
      version: 0,
      dnssecOk: true,
      options: [
        { code: 3, data: new Uint8Array(0) },
        { code: 12, data: Uint8Array.of(5, 6, 7) },
      ],
    };
    const bytes = writeMessage({ ...message, additional: [tsig], edns });
    const query = new Query();
    assert.equal(query.read(bytes, 0, bytes.length), 'serve');
    assert.deepEqual([query.edns, query.udpSize, query.dnssecOk], [true, 1400, true]);
    assert.deepEqual(
      findOption(query.bytes, query.optionsStart, query.optionsEnd, 3),
      new Uint8Array(0),
    );
    assert.equal(findOption(query.bytes, query.optionsStart, query.optionsEnd, 10), null);
    // A stream overwrites its memory while the query is waiting for its reply.
    const held = Buffer.from(bytes);
    assert.equal(query.read(held, 0, held.length), 'serve');
    const options = optionsIn(query.bytes, query.optionsStart, query.optionsEnd);
    const signed = query.signature!.message;
    held.fill(9);
    assert.deepEqual(options, edns.options);
    assert.deepEqual(Buffer.from(signed), Buffer.from(bytes));
  });
});

describe('queries', () => {
  test("fields contain the question, in lower case and in the client's spelling", () => {
    const bytes = writeMessage({
      ...message,
      edns: { udpSize: 300, version: 1, dnssecOk: true, options: [] },
    });
    const query = new Query();
    assert.equal(query.read(bytes, 0, bytes.length), 'serve');
    assert.equal(query.name, 'www.example.org.');
    assert.deepEqual(query.wireName, parseName('Www.Example.org.'));
    assert.deepEqual([query.id, query.type, query.class, query.opcode], [0x1234, 1, 1, 0]);
    assert.deepEqual([query.recursionDesired, query.checkingDisabled], [true, false]);
    assert.deepEqual(
      [query.edns, query.ednsVersion, query.udpSize, query.dnssecOk],
      [true, 1, 300, true],
    );
  });

  test('the limit is at least 512 over UDP and 65535 over streams', () => {
    const bytes = writeMessage({
      ...message,
      edns: { udpSize: 300, version: 0, dnssecOk: false, options: [] },
    });
    const query = new Query();
    query.read(bytes, 0, bytes.length);
    assert.equal(query.limit, 512);
    query.udpLimit = 1232;
    assert.equal(query.limit, 1232);
    query.proto = 'tcp';
    assert.equal(query.limit, 65_535);
  });

  test('nothing from the previous query is left when the object is reused', () => {
    const first = writeMessage({
      ...message,
      edns: {
        udpSize: 4000,
        version: 0,
        dnssecOk: true,
        options: [{ code: 3, data: Uint8Array.of(1) }],
      },
    });
    const second = writeMessage({ ...message, question: [{ name: 'b.', type: 28, class: 3 }] });
    const query = new Query();
    query.read(first, 0, first.length);
    assert.equal(query.name, 'www.example.org.');
    query.notes = new Map();
    query.depth = 3;
    query.read(second, 0, second.length);
    assert.deepEqual(
      [query.name, query.type, query.class, query.edns, query.limit],
      ['b.', 28, 3, false, 512],
    );
    assert.deepEqual(
      [query.optionsStart, query.optionsEnd, query.notes, query.depth],
      [0, 0, null, 0],
    );
  });

  test('a query created here requests recursion and owns its bytes', () => {
    const query = makeQuery(parseName('a.example'), 28, 1, 77);
    assert.deepEqual(
      [query.name, query.type, query.id, query.recursionDesired],
      ['a.example.', 28, 77, true],
    );
    assert.deepEqual([query.owned, query.proto, query.keep() === query], [true, 'internal', true]);
  });
});

describe('a stored query', () => {
  const message = (name: string): Uint8Array => {
    const made = makeQuery(parseName(name), TYPE.A);
    return made.bytes.slice(made.start, made.end);
  };

  test('a short one that waits does not keep the memory of answered long ones alive', () => {
    const short = message('a.example.');
    const long = new Uint8Array([...short, 0, 0, 41, 4, 208, 0, 0, 0, 0, 15, 64, 0, 12, 15, 60]);
    const padded = new Uint8Array(long.length + 3900);
    padded.set(long);
    padded[11] = 1;
    const view = new Query();
    let alive = 0;
    const slabs = new Set<ArrayBufferLike>();
    for (let i = 0; i < 1000; i++) {
      const bytes = i % 15 === 0 ? short : padded;
      assert.equal(view.read(bytes, 0, bytes.length), 'serve');
      const kept = view.keep();
      if (bytes !== short) continue;
      alive++;
      slabs.add(kept.bytes.buffer);
    }
    const held = [...slabs].reduce((sum, { byteLength }) => sum + byteLength, 0);
    assert.ok(held / alive < 1000, `${held} bytes for ${alive} queries of ${short.length}`);
  });

  test('is one copy for all holders, and stays when the view moves to the next query', () => {
    const view = new Query();
    const first = message('a.example.');
    view.read(first, 0, first.length);
    const kept = view.keep();
    assert.equal(view.keep(), kept);
    assert.equal(kept.keep(), kept);
    const second = message('b.example.');
    view.read(second, 0, second.length);
    assert.equal(view.keep().name, 'b.example.');
    assert.equal(kept.name, 'a.example.');
  });

  test('with a changed question, it still reports the original route', () => {
    const query = makeQuery(parseName('a.example.'), TYPE.A);
    const via = { index: 3, server: 'dns://:53', zone: 'example.', view: '' };
    query.via = via;
    query.depth = 1;
    assert.equal(query.asking(parseName('b.example.')).via, via);
    assert.equal(query.copy().via, via);
  });

  test('is a new copy after a plugin has changed the query', () => {
    const view = new Query();
    const bytes = message('a.example.');
    const changes: readonly ((query: Query) => void)[] = [
      (query) => (query.flags ^= FLAG.RD),
      (query) => (query.upstreamFlags |= FLAG.AD),
      (query) => (query.udpLimit = 1232),
      (query) => (query.notes = new Map()),
      (query) => (query.mayWait = false),
    ];
    view.read(bytes, 0, bytes.length);
    for (const change of changes) {
      const before = view.keep();
      change(view);
      const after = view.keep();
      assert.notEqual(after, before);
      assert.deepEqual(
        [after.flags, after.upstreamFlags, after.udpLimit, after.notes, after.mayWait],
        [view.flags, view.upstreamFlags, view.udpLimit, view.notes, view.mayWait],
      );
    }
  });

  test('can be copied for a caller that changes it', () => {
    const kept = makeQuery(parseName('a.example.'), TYPE.A);
    const copy = kept.copy();
    copy.proto = 'tcp';
    assert.deepEqual([kept.proto, copy.name, copy.owned], ['internal', 'a.example.', true]);
  });
});
