import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { addressRecord, dnsMessage } from '../../../../test/kit/packets.ts';
import { until } from '../../../../test/kit/dnstap-collector.ts';
import { freePorts } from '../../../../test/kit/free-ports.ts';
import { Reading } from '../../../tools/capture/read/reading.ts';
import type { SeenExchange } from '../../../tools/capture/pair/seen-exchange.ts';
import {
  DNSTAP_CONTENT_TYPE,
  dnstapPrefix,
  DnstapWriter,
  TAP,
} from '../../../server/wire/dnstap.ts';
import { CONTROL, FrameReader, writeControl } from '../../../server/wire/frame-stream.ts';
import { captureDnstap, type LiveCapture } from './capture-live.ts';

const directory = mkdtempSync(join(tmpdir(), 'capture-live-'));
after(() => rmSync(directory, { recursive: true }));

const peer = { family: 4, peer: Uint8Array.of(192, 0, 2, 7), peerAt: 0, peerPort: 40_000 } as const;
const writer = new DnstapWriter(dnstapPrefix('ns1', 'v1'), 0);

/** A frame with a query or its reply. */
function frame(
  id: number,
  reply: boolean,
  type: number = reply ? TAP.CLIENT_RESPONSE : TAP.CLIENT_QUERY,
): Buffer {
  const name = 'www.example.com.';
  const answer = reply ? [addressRecord(name, '192.0.2.1')] : [];
  const message = dnsMessage(name, 'A', { id, reply, answer });
  writer.begin(type, '');
  writer.socket(4, 'udp', peer, null);
  writer.queryTime(1.7e12 + id);
  if (reply) {
    writer.responseTime(1.7e12 + id + 2);
    writer.responseMessage(message, 0, message.length);
  } else writer.queryMessage(message, 0, message.length);
  writer.endFrame();
  return Buffer.from(writer.bytes.subarray(writer.start, writer.at));
}

const ready = writeControl(CONTROL.READY, [DNSTAP_CONTENT_TYPE]);
const begin = writeControl(CONTROL.START, [DNSTAP_CONTENT_TYPE]);

interface Listening {
  readonly capture: LiveCapture;
  readonly reading: Reading;
  readonly ended: SeenExchange[];
  sender(): Promise<Sender>;
}

interface Sender {
  readonly socket: Socket;
  readonly controls: number[];
  readonly closed: () => boolean;
}

async function listening(at: string): Promise<Listening> {
  const ended: SeenExchange[] = [];
  const reading = new Reading({ ended: (exchange) => void ended.push(exchange) });
  const capture = await captureDnstap(at, reading);
  after(() => capture.stop());
  const [, host, port] = /^tcp:(.+):(\d+)$/.exec(at) ?? [];
  const where =
    host === undefined ? { path: at.slice('unix:'.length) } : { host, port: Number(port) };
  const sender = async (): Promise<Sender> => {
    const socket = connect(where);
    let closed = false;
    const controls: number[] = [];
    const frames = new FrameReader(1 << 16);
    socket.on('error', () => undefined);
    socket.on('close', () => (closed = true));
    socket.on('data', (bytes: Buffer) => {
      frames.push(bytes);
      for (let each = frames.next(); each !== null; each = frames.next())
        if (!(each instanceof Uint8Array)) controls.push(each.type);
    });
    await new Promise((resolve) => socket.once('connect', resolve));
    return { socket, controls, closed: () => closed };
  };
  return { capture, reading, ended, sender };
}

const remarks = ({ reading }: Listening): string =>
  reading.remarks.list.map(({ text }) => text).join('; ');

const [port] = await freePorts(1);
for (const at of [`unix:${join(directory, 'tap.sock')}`, `tcp:127.0.0.1:${port}`])
  describe(`dnstap at ${at.slice(0, 5)}…`, () => {
    test('a query and its reply, in separate messages, are one exchange', async () => {
      const there = await listening(at);
      const { socket, controls } = await there.sender();
      socket.write(ready);
      await until(() => controls.includes(CONTROL.ACCEPT), 'ACCEPT');
      socket.write(
        Buffer.concat([
          begin,
          frame(1, false),
          frame(1, true),
          frame(2, false),
          frame(2, true, TAP.AUTH_RESPONSE),
        ]),
      );
      await until(() => there.ended.length === 2, 'both exchanges');
      socket.write(writeControl(CONTROL.STOP));
      await until(() => controls.includes(CONTROL.FINISH), 'FINISH');
      there.capture.stop();
      there.reading.end();
      assert.deepEqual(
        there.ended.map(({ id, ending }) => [id, ending]),
        [
          [1, 'answered'],
          [2, 'answered'],
        ],
      );
      assert.equal(remarks(there), '');
    });

    test('senders that hang within a frame, disconnect or send garbage do not block the others', async () => {
      const there = await listening(at);
      const [hangs, breaks, rubbish, foreign, good] = await Promise.all(
        Array.from({ length: 5 }, there.sender),
      );
      hangs!.socket.write(Buffer.concat([begin, frame(9, false).subarray(0, 20)]));
      breaks!.socket.end(Buffer.concat([begin, frame(3, true), frame(4, true).subarray(0, 30)]));
      rubbish!.socket.write(Buffer.from('GET / HTTP/1.1\r\n\r\n'));
      foreign!.socket.write(writeControl(CONTROL.READY, ['protobuf:else']));
      good!.socket.write(Buffer.concat([begin, frame(5, true)]));
      await until(() => there.ended.length === 2, 'what came whole');
      await until(() => rubbish!.closed() && foreign!.closed(), 'an end of what is no dnstap');
      await until(() => remarks(there).includes('has no stop frame'), 'the remark');
      assert.deepEqual(new Set(there.ended.map(({ id }) => id)), new Set([3, 5]));
      assert.deepEqual(foreign!.controls, []);
      assert.equal(hangs!.closed(), false);
      assert.match(remarks(there), /is not dnstap, so the rest of the stream was not read/);
      assert.match(remarks(there), /a stream of protobuf:else, not of dnstap/);
      there.capture.stop();
      await until(() => hangs!.closed() && good!.closed(), 'an end at the end of the capture');
      if (at.startsWith('unix:')) assert.equal(existsSync(at.slice('unix:'.length)), false);
    });
  });

test('a socket in a missing directory: names the directory, not a permission', async () => {
  await assert.rejects(captureDnstap('unix:/nowhere/tap.sock', new Reading({})), {
    message: 'cannot listen at unix:/nowhere/tap.sock: there is no directory /nowhere',
  });
});
