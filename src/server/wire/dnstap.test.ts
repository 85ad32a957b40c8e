import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { MessageError } from '../base/protobuf.ts';
import { DNSTAP_CONTENT_TYPE, dnstapPrefix, DnstapWriter, readDnstap, TAP } from './dnstap.ts';
import { accepts, CONTROL, FrameReader, writeControl } from './frame-stream.ts';
import { ReadError } from './reader.ts';

const client = {
  family: 4,
  peer: Uint8Array.of(9, 192, 0, 2, 7),
  peerAt: 1,
  peerPort: 40_000,
} as const;
const upstream = {
  family: 6,
  peer: Uint8Array.from({ length: 16 }, (_, at) => at),
  peerAt: 0,
  peerPort: 853,
} as const;

describe('dnstap messages', () => {
  test("a client query matches golang-dnstap's output byte for byte", () => {
    const writer = new DnstapWriter(dnstapPrefix('ns1', 'v1'), 0);
    writer.begin(TAP.CLIENT_QUERY, 'x');
    writer.socket(4, 'udp', client, null);
    writer.queryTime(1_700_000_000_123.5);
    writer.queryMessage(Uint8Array.of(0, 1, 2, 3), 1, 4);
    writer.endFrame();
    assert.equal(
      Buffer.from(writer.bytes.subarray(writer.start + 4, writer.at)).toString('hex'),
      // The output of proto.Marshal in golang-dnstap 0.4.0, for the identity, version and extra, then the message, then
      // the type.
      '0a036e7331120276311a0178' +
        '7220' +
        '0805100118012204c000020730c0b8024080e2cfaa064de0755c075203010203' +
        '7801',
    );
  });

  test('a written message reads back', () => {
    const writer = new DnstapWriter(dnstapPrefix('ns1', ''), 600);
    for (const size of [0, 1, 127, 128, 16_383, 16_384, 65_535]) {
      const message = new Uint8Array(size).fill(7);
      writer.begin(TAP.FORWARDER_RESPONSE, '');
      writer.socket(6, 'tls', null, upstream);
      writer.queryTime(5000.25);
      writer.responseTime(6001);
      writer.responseBy((out, at) => {
        out.set(message, at);
        return size;
      });
      writer.endFrame();
      const read = readDnstap(writer.bytes.subarray(writer.start + 4, writer.at));
      assert.deepEqual(
        { ...read, responseMessage: null },
        {
          identity: 'ns1',
          version: null,
          extra: null,
          type: TAP.FORWARDER_RESPONSE,
          family: 6,
          protocol: 'tls',
          queryAddress: null,
          responseAddress: upstream.peer,
          queryPort: null,
          responsePort: 853,
          queryMs: 5000.25,
          responseMs: 6001,
          queryMessage: null,
          responseMessage: null,
          queryZone: null,
        },
      );
      assert.deepEqual(Buffer.from(read.responseMessage!), Buffer.from(message));
    }
  });

  test('overlong text is cut, and unknown fields are skipped', () => {
    const writer = new DnstapWriter(dnstapPrefix('', ''), 0);
    writer.begin(TAP.CLIENT_QUERY, 'x'.repeat(5000));
    writer.endFrame();
    const bytes = Buffer.from(writer.bytes.subarray(writer.start + 4, writer.at));
    assert.equal(readDnstap(bytes).extra!.length, 4096);
    const odd = Buffer.concat([
      Buffer.of(0xf8, 0x07, 1, 0xf9, 0x07, 1, 2, 3, 4, 5, 6, 7, 8),
      bytes,
    ]);
    assert.equal(readDnstap(odd).type, TAP.CLIENT_QUERY);
  });

  test('a message cut anywhere is rejected or read as a shorter one', () => {
    const writer = new DnstapWriter(dnstapPrefix('ns1', 'v1'), 0);
    writer.begin(TAP.CLIENT_QUERY, '');
    writer.socket(4, 'udp', client, null);
    writer.endFrame();
    const whole = writer.bytes.slice(writer.start + 4, writer.at);
    for (let size = 0; size < whole.length; size++) {
      try {
        readDnstap(whole.subarray(0, size));
      } catch (error) {
        assert.ok(error instanceof MessageError);
      }
    }
  });
});

describe('Frame Streams', () => {
  test('control and data frames are distinguished however they are split', () => {
    const stream = Buffer.concat([
      writeControl(CONTROL.START, [DNSTAP_CONTENT_TYPE]),
      Buffer.of(0, 0, 0, 2, 8, 9),
      writeControl(CONTROL.STOP),
    ]);
    for (const step of [1, 3, 1000]) {
      const reader = new FrameReader(100);
      const found: unknown[] = [];
      for (let at = 0; at < stream.length; at += step) {
        reader.push(stream.subarray(at, at + step));
        for (let frame = reader.next(); frame !== null; frame = reader.next())
          found.push(frame instanceof Uint8Array ? [...frame] : frame);
      }
      assert.deepEqual(found, [
        { type: CONTROL.START, contentTypes: [DNSTAP_CONTENT_TYPE] },
        [8, 9],
        { type: CONTROL.STOP, contentTypes: [] },
      ]);
    }
  });

  test('overlong frames and unreadable control frames are rejected', () => {
    for (const bytes of [
      [0, 0, 0, 101],
      [0, 0, 0, 0, 0, 0, 2, 1],
      [0, 0, 0, 0, 0, 0, 0, 3],
      [0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 2, 9],
    ]) {
      const reader = new FrameReader(100);
      reader.push(Uint8Array.from(bytes));
      assert.throws(() => reader.next(), ReadError);
    }
  });

  test('a peer without content types accepts all of them', () => {
    assert.ok(accepts({ type: CONTROL.ACCEPT, contentTypes: [] }, 'x'));
    assert.ok(!accepts({ type: CONTROL.ACCEPT, contentTypes: ['y'] }, 'x'));
  });
});
