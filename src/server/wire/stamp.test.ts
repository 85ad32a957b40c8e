import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { EDE, FLAG, OPTION, RCODE, TYPE } from './iana.ts';
import { readMessage, writeMessage, type Message } from './message.ts';
import { parseName } from './name.ts';
import type { Edns } from './edns.ts';
import { failure, type Reply } from './reply.ts';
import { stamp, STAMP_ROOM, stampRejection, stampRoom } from './stamp.ts';
import { MessageWriter, SECTION } from './writer.ts';
import { QueryMessage, UDP_MOST } from './query-message.ts';

const writer = new MessageWriter();

interface Asked {
  readonly name?: string;
  readonly flags?: number;
  readonly edns?: Partial<Edns>;
}

function ask({ name = 'www.Example.org.', flags = FLAG.RD, edns }: Asked = {}): QueryMessage {
  const bytes = writeMessage({
    id: 0xbeef,
    flags,
    rcode: 0,
    question: [{ name, type: TYPE.A, class: 1 }],
    answer: [],
    authority: [],
    additional: [],
    edns:
      edns === undefined
        ? null
        : { udpSize: 1232, version: 0, dnssecOk: false, options: [], ...edns },
  });
  const query = new QueryMessage();
  query.read(bytes, 0, bytes.length);
  return query;
}

/** Creates a reply to `www.example.org. A` with addresses, followed by this number of other records. */
function answer(
  count: number,
  { flags = FLAG.AA as number, additional = 0, rcode = 0 } = {},
): Reply {
  writer.reply(ask({ name: 'www.example.org.' }), flags);
  for (let i = 0; i < count; i++)
    writer.record(SECTION.answer, null, TYPE.A, 30, Uint8Array.of(10, 0, 0, i));
  for (let i = 0; i < additional; i++) {
    writer.record(
      SECTION.additional,
      parseName('ns.example.org'),
      TYPE.A,
      30,
      Uint8Array.of(10, 0, 1, i),
    );
  }
  return writer.finish(rcode, 'test');
}

function stamped(reply: Reply, query: QueryMessage): Message {
  const out = new Uint8Array(reply.size + STAMP_ROOM + 5);
  const length = stamp(reply, query, out, 5);
  return readMessage(out, 5, 5 + length);
}

describe('stamping', () => {
  test('id, RD, CD and opcode come from the client', () => {
    const { id, flags } = stamped(answer(1, { flags: FLAG.AA | FLAG.CD }), ask({ flags: FLAG.RD }));
    assert.equal(id, 0xbeef);
    assert.equal(flags, FLAG.QR | FLAG.AA | FLAG.RD);
    assert.equal(stamped(answer(1), ask({ flags: FLAG.CD })).flags, FLAG.QR | FLAG.AA | FLAG.CD);
    assert.equal(stamped(answer(1), ask({ flags: 4 << 11 })).flags, FLAG.QR | FLAG.AA | (4 << 11));
  });

  test("question and owners have the client's spelling", () => {
    const { question, answer: records } = stamped(answer(2), ask({ name: 'wWw.eXample.ORG.' }));
    assert.equal(question[0]!.name, 'wWw.eXample.ORG.');
    assert.deepEqual(
      records.map(({ name }) => name),
      ['wWw.eXample.ORG.', 'wWw.eXample.ORG.'],
    );
  });

  test('AD is set only for clients that sent AD or DO', () => {
    const reply = answer(1, { flags: FLAG.AD });
    assert.equal(stamped(reply, ask()).flags & FLAG.AD, 0);
    assert.equal(stamped(reply, ask({ flags: FLAG.AD })).flags & FLAG.AD, FLAG.AD);
    assert.equal(stamped(reply, ask({ edns: { dnssecOk: true } })).flags & FLAG.AD, FLAG.AD);
  });

  test('a common TTL replaces those at the offsets in ttlAt', () => {
    const reply = answer(2).with({ ttlAt: Uint16Array.of(12 + 21 + 6, 12 + 21 + 16 + 6) });
    assert.deepEqual(
      stamped(reply, ask()).answer.map(({ ttl }) => ttl),
      [30, 30],
    );
    assert.deepEqual(
      stamped(reply.with({ ttl: 0x01020304 }), ask()).answer.map(({ ttl }) => ttl),
      [0x01020304, 0x01020304],
    );
    assert.deepEqual(
      stamped(reply.with({ ttl: 0 }), ask()).answer.map(({ ttl }) => ttl),
      [0, 0],
    );
  });

  test('OPT is sent to clients that sent one, with their size and DO, version 0', () => {
    assert.equal(stamped(answer(1), ask()).edns, null);
    assert.deepEqual(stamped(answer(1), ask({ edns: { udpSize: 4095, dnssecOk: true } })).edns, {
      udpSize: 4095,
      version: 0,
      dnssecOk: true,
      options: [],
    });
  });

  test('a client’s padding is echoed, its subnet and cookie are not', () => {
    const cookie = { code: OPTION.COOKIE, data: Uint8Array.of(1, 2, 3, 4, 5, 6, 7, 8) };
    const padding = { code: OPTION.PADDING, data: new Uint8Array(8) };
    const subnet = { code: OPTION.ECS, data: Uint8Array.of(0, 1, 0, 0) };
    const query = ask({ edns: { options: [subnet, cookie, padding] } });
    assert.deepEqual(stamped(answer(1), query).edns!.options, [padding]);
    const decided = answer(1).with({ options: new Uint8Array(0) });
    assert.deepEqual(stamped(decided, query).edns!.options, [], 'none of its own is none at all');
    const reply = answer(1).with({ options: Uint8Array.of(0, 3, 0, 1, 65) });
    assert.deepEqual(stamped(reply, query).edns!.options, [
      { code: OPTION.NSID, data: Uint8Array.of(65) },
    ]);
  });

  test('extended errors are sent to clients that support EDNS', () => {
    const errors = [{ code: EDE.NETWORK_ERROR, text: 'zeitüberschreitung' }];
    const reply = failure(RCODE.SERVFAIL, 'forward', null, errors);
    const text = new TextEncoder().encode('zeitüberschreitung');
    assert.deepEqual(stamped(reply, ask({ edns: {} })).edns!.options, [
      { code: OPTION.EDE, data: Uint8Array.of(0, 23, ...text) },
    ]);
    assert.equal(stamped(reply, ask()).edns, null);
  });

  test('an oversized reply is cut from the end at a record boundary, with TC', () => {
    const reply = answer(40);
    const { flags, answer: records } = stamped(reply, ask());
    assert.equal(flags & FLAG.TC, FLAG.TC);
    assert.equal(records.length, Math.floor((512 - 12 - 21) / 16));
    assert.equal(stamped(reply, ask({ edns: { udpSize: 1232 } })).flags & FLAG.TC, 0);
    const stream = ask();
    stream.proto = 'tcp';
    assert.equal(stamped(reply, stream).answer.length, 40);
  });

  test('additional records are dropped first, and TC is set even if only they are lost', () => {
    const { flags, answer: records, additional } = stamped(answer(20, { additional: 20 }), ask());
    assert.equal(records.length, 20);
    assert.ok(additional.length > 0 && additional.length < 20);
    assert.equal(flags & FLAG.TC, FLAG.TC);
  });

  test('OPT always fits: records make room for it', () => {
    const reply = answer(29);
    assert.equal(reply.size, 12 + 21 + 29 * 16);
    assert.equal(stamped(reply, ask()).answer.length, 29);
    const { answer: records, edns } = stamped(reply, ask({ edns: { udpSize: 512 } }));
    assert.deepEqual([records.length, edns?.udpSize], [29, 512]);
    const padding = { code: OPTION.PADDING, data: new Uint8Array(8) };
    assert.equal(
      stamped(reply, ask({ edns: { udpSize: 512, options: [padding] } })).answer.length,
      28,
    );
  });

  test('an echo that would exceed the limit or the buffer is left out', () => {
    for (const size of [500, 65_000]) {
      const query = ask({
        edns: { udpSize: 512, options: [{ code: OPTION.PADDING, data: new Uint8Array(size) }] },
      });
      assert.deepEqual(stamped(failure(RCODE.NOTIMP, ''), query).edns!.options, []);
      query.proto = 'tcp';
      assert.ok(stamped(failure(RCODE.NOTIMP, ''), query).edns!.options.length <= 1);
    }
  });

  test('an option of invalid length is not echoed, because the reply would be malformed too', () => {
    const echoed = (code: number, length: number): boolean => {
      const query = ask({ edns: { options: [{ code, data: new Uint8Array(length) }] } });
      return stamped(answer(1), query).edns!.options.length === 1;
    };
    const lengths = (code: number): readonly number[] =>
      Array.from({ length: 48 }, (_, length) => length).filter((length) => echoed(code, length));
    assert.deepEqual(lengths(OPTION.COOKIE), [], 'this server has no cookies');
    assert.deepEqual(lengths(OPTION.EXPIRE), [0, 4]);
    assert.deepEqual(lengths(OPTION.KEEPALIVE), [0, 2]);
    assert.equal(lengths(OPTION.NSID).length, 48);
    assert.equal(lengths(OPTION.PADDING).length, 48);
    assert.deepEqual(lengths(OPTION.ECS), []);
  });

  test('a bare result code becomes header and question', () => {
    const { flags, rcode, question, edns } = stamped(
      failure(RCODE.REFUSED, 'acl'),
      ask({ edns: { udpSize: 4096 } }),
    );
    assert.deepEqual([flags, rcode, edns!.udpSize], [FLAG.QR | FLAG.RD, RCODE.REFUSED, 4096]);
    assert.deepEqual(question, [{ name: 'www.Example.org.', type: 1, class: 1 }]);
  });

  test('an unknown EDNS version is answered with an empty OPT', () => {
    const cookie = { code: OPTION.COOKIE, data: new Uint8Array(8) };
    const query = ask({ edns: { version: 1, udpSize: 4096, dnssecOk: true, options: [cookie] } });
    const { rcode, edns } = stamped(failure(RCODE.BADVERS, ''), query);
    assert.equal(rcode, RCODE.BADVERS);
    assert.deepEqual(edns, { udpSize: 0, version: 0, dnssecOk: false, options: [] });
  });

  test('a result code above 15 is SERVFAIL for clients without EDNS', () => {
    const reply = answer(0, { rcode: RCODE.BADCOOKIE });
    assert.equal(stamped(reply, ask()).rcode, RCODE.SERVFAIL);
    assert.equal(stamped(reply, ask({ edns: {} })).rcode, RCODE.BADCOOKIE);
  });

  test('for a 64 KiB reply, only the bytes sent are copied', () => {
    writer.reply(ask(), FLAG.AA);
    for (let i = 0; i < 4000; i++)
      writer.record(SECTION.answer, null, TYPE.A, 30, Uint8Array.of(10, 0, i >> 8, i & 0xff));
    const ttlAt = Uint16Array.from({ length: 4000 }, (_, i) => 33 + 16 * i + 6);
    const reply = writer.finish(0, 'test').with({ ttlAt, ttl: 7 });
    for (const edns of [undefined, {}, { udpSize: 65_535 }]) {
      const query = ask(edns === undefined ? {} : { edns });
      const out = new Uint8Array(stampRoom(reply, query));
      assert.ok(out.length <= UDP_MOST + STAMP_ROOM);
      const { answer: records, flags } = readMessage(out, 0, stamp(reply, query, out, 0));
      assert.ok((flags & FLAG.TC) !== 0);
      assert.ok(records.length >= (edns === undefined ? 29 : 73));
      assert.ok(records.every(({ ttl }) => ttl === 7));
    }
  });

  test('a reply can be stamped many times for different clients', () => {
    const reply = answer(3);
    const first = stamped(reply, ask());
    stamped(reply, ask({ name: 'WWW.EXAMPLE.ORG.', edns: {} }));
    assert.deepEqual(stamped(reply, ask()), first);
  });
});

describe('rejections', () => {
  test('are a header, or a header with the question', () => {
    const out = new Uint8Array(600);
    const query = ask({ flags: FLAG.RD | FLAG.AD | FLAG.CD });
    assert.equal(stampRejection(query, RCODE.NOTIMP, false, out, 0), 12);
    const bare = readMessage(out, 0, 12);
    assert.deepEqual(
      [bare.id, bare.flags, bare.rcode],
      [0xbeef, FLAG.QR | FLAG.RD | FLAG.AD | FLAG.CD, RCODE.NOTIMP],
    );
    const length = stampRejection(query, RCODE.FORMERR, true, out, 3);
    assert.equal(readMessage(out, 3, 3 + length).question[0]!.name, 'www.Example.org.');
  });
});
