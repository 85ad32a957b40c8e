import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { test } from 'node:test';
import {
  back,
  dnsMessage,
  framed,
  linked,
  pcapFile,
  pcapngFile,
  TCP,
  tcpPacket,
  udpPacket,
} from '../../../../test/kit/packets.ts';
import { MessageBuilder } from '../../../server/base/protobuf.ts';
import { CONTROL, writeControl } from '../../../server/wire/frame-stream.ts';
import { NameError } from '../../../server/wire/name.ts';
import type { SeenExchange } from '../pair/seen-exchange.ts';
import { openStream } from './input.ts';
import type { PassingMessage } from './packets/dissect.ts';
import { LINK } from './packets/frame.ts';
import { Remarks } from './packets/remarks.ts';
import { madeExchange } from './records/made-exchange.ts';
import { packetsOf } from '../written-packet.ts';
import { Reading } from './reading.ts';

async function read(file: Uint8Array): Promise<Reading> {
  const reading = new Reading({});
  await reading.readWhole(await openStream('it', Readable.from([file]), new Remarks()));
  return reading;
}

const remarksOf = ({ remarks }: Reading): readonly string[] => remarks.list.map(({ text }) => text);

test('one packet with the time of another year does not make a capture of a second last for years', async () => {
  const packets = [0, 500, 56 * 365 * 24 * 3600_000, 1000].map((ms, at) => {
    const ends = { from: '10.0.0.1', fromPort: 4000 + at, to: '10.0.0.10', toPort: 53 };
    const message = dnsMessage('www.example.', 'A', { id: at });
    return { timeMs: 1.7e12 + ms, bytes: linked(udpPacket(ends, message), LINK.ETHERNET) };
  });
  const reading = await read(pcapFile(LINK.ETHERNET, packets));
  const { firstMs, lastMs, queries } = reading.totals;
  assert.deepEqual([lastMs - firstMs, queries], [1000, 3]);
  assert.deepEqual(remarksOf(reading), [
    'the time of a packet is far from those around it, so it was ignored',
  ]);
});

test('the name that a stream gives itself is escaped before it reaches a terminal', async () => {
  const reading = await read(writeControl(CONTROL.START, ['protobuf:\u001b]0;mine\u0007']));
  assert.deepEqual(remarksOf(reading), [
    'a stream of protobuf:\\u001b]0;mine\\u0007, not of dnstap',
  ]);
});

test('a damaged dnstap message is skipped, and later ones are read', async () => {
  const start = writeControl(CONTROL.START, ['protobuf:dnstap.Dnstap']);
  const query = dnsMessage('www.example.', 'A', { id: 5 });
  const message = new MessageBuilder()
    .number(1, 5)
    .number(2, 1)
    .number(8, 1_700_000_000)
    .bytes(10, query)
    .build();
  const whole = new MessageBuilder().message(14, message).number(15, 1).build();
  const cut = whole.subarray(0, -20);
  const frames = [cut, whole].flatMap((bytes) => {
    const length = Buffer.alloc(4);
    length.writeUInt32BE(bytes.length);
    return [length, bytes];
  });
  const reading = await read(Buffer.concat([start, ...frames]));
  assert.deepEqual(remarksOf(reading).slice(0, 1), ['a dnstap message is damaged']);
  assert.equal(reading.totals.queries, 1);
});

/**
 * A query every 50 ms, seen at a pod and, translated, at the server. Each interface is written in blocks, as dumpcap
 * does.
 */
function inTurns(): Uint8Array {
  const at = (port: number) =>
    Array.from({ length: 60 }, (_, nth) => {
      const timeMs = 1.7e12 + nth * 50 + port * 0.1;
      const to = port === 0 ? '10.96.0.10' : '10.244.3.7';
      const ends = { from: '10.244.1.5', fromPort: 4000 + nth, to, toPort: 53 };
      const message = { id: nth + 1 };
      const ttl = 64 - port;
      const query = udpPacket(ends, dnsMessage('www.example.', 'A', message), 700 + nth, ttl);
      const reply = dnsMessage('www.example.', 'A', { ...message, reply: true });
      return [
        { timeMs, port, bytes: linked(query, LINK.ETHERNET) },
        {
          timeMs: timeMs + 1 - 0.2 * port,
          port,
          bytes: linked(udpPacket(back(ends), reply, 900 + nth, 63 + port), LINK.ETHERNET),
        },
      ];
    }).flat();
  const [pod, server] = [at(0), at(1)];
  // Eight packets are 0.2 s.
  const turns = Array.from({ length: 15 }, (_, turn) =>
    [server, pod].flatMap((list) => list.slice(turn * 8, turn * 8 + 8)),
  );
  return pcapngFile(LINK.ETHERNET, 2, turns.flat());
}

test('packets of two interfaces that were written alternately are read in the order of their times', async () => {
  const exchanges: SeenExchange[] = [];
  const times: number[] = [];
  const reading = new Reading({
    ended: (each) => exchanges.push(each),
    frame: ({ timeMs }) => times.push(timeMs),
  });
  await reading.readWhole(await openStream('it', Readable.from([inTurns()]), new Remarks()));
  assert.deepEqual(
    times,
    times.toSorted((one, other) => one - other),
  );
  assert.equal(times.length, 240);
  assert.deepEqual(
    exchanges.map(({ server, hops, ending }) => [
      server.address,
      hops.map((hop) => hop.server.address).join(),
      ending,
    ]),
    Array.from({ length: 60 }, () => ['10.96.0.10', '10.244.3.7', 'answered']),
  );
});

test('packets from a pipe are read although it is silent afterwards', async () => {
  const file = inTurns();
  const frames: number[] = [];
  const pipe = new Readable({ read: () => undefined });
  const reading = new Reading({ frame: ({ number }) => frames.push(number) });
  pipe.push(file);
  const read = reading.readWhole(await openStream('it', pipe, new Remarks()));
  while (frames.length < 240) await new Promise((done) => setTimeout(done, 50));
  pipe.push(null);
  await read;
  assert.equal(frames.length, 240);
});

test('an error while a pipe is silent fails the reading', async () => {
  const pipe = new Readable({ read: () => undefined });
  const reading = new Reading({
    frame() {
      throw new Error('no space left');
    },
  });
  pipe.push(inTurns().subarray(0, 2000));
  const input = await openStream('it', pipe, new Remarks());
  await assert.rejects(reading.readWhole(input), /no space left/);
});

test('packets with an impossible date are skipped, even if all of a capture are', async () => {
  const file = Buffer.from(inTurns());
  for (let at = 0; at < file.length; at += file.readUInt32LE(at + 4))
    if (file.readUInt32LE(at) === 6) file.writeUInt32LE(0xffff_0000, at + 12);
  const frames: number[] = [];
  const reading = new Reading({ frame: ({ number }) => frames.push(number) });
  await reading.readWhole(await openStream('it', Readable.from([file]), new Remarks()));
  assert.deepEqual(frames, []);
  assert.match(remarksOf(reading).join(), /ignored/);
});

test('a dnstap message with an impossible date is skipped', () => {
  const message = { timeMs: 1e19, frame: 1 } as PassingMessage;
  const reading = new Reading({ message: () => assert.fail('it was read') });
  reading.takeMessage(message);
  assert.match(remarksOf(reading).join(), /ignored/);
});

/** A TCP query with its connection, and an unanswered UDP query, both within a second. */
function shortCapture(): Uint8Array {
  const ends = { from: '10.244.1.5', fromPort: 4000, to: '10.96.0.10', toPort: 53 };
  const query = dnsMessage('www.example.', 'A', { id: 5 });
  const reply = dnsMessage('www.example.', 'A', { id: 5, reply: true });
  return pcapFile(
    LINK.RAW,
    [
      udpPacket({ ...ends, fromPort: 4001 }, query, 77),
      tcpPacket(ends, 7000, TCP.PSH, framed(query)),
      tcpPacket(back(ends), 9000, TCP.PSH, framed(reply)),
    ].map((bytes, nth) => ({ timeMs: 1.7e12 + nth * 1200, bytes })),
  );
}

test('a short capture that is read twice counts twice, over TCP as well', async () => {
  const endings: string[] = [];
  const reading = new Reading({
    ended: ({ protocol, ending }) => endings.push(`${protocol} ${ending}`),
  });
  for (const name of ['one', 'two'])
    await reading.read(await openStream(name, Readable.from([shortCapture()]), new Remarks()));
  reading.end();
  assert.deepEqual(endings.toSorted(), ['tcp answered', 'tcp answered', 'udp open', 'udp open']);
});

test('all queries of one TCP connection are read again from the packets written', () => {
  const endings: string[] = [];
  const reading = new Reading({ ended: ({ name, ending }) => endings.push(`${name} ${ending}`) });
  for (const id of [1, 2, 3]) {
    const written = packetsOf(
      madeExchange({
        client: { address: '10.244.1.5', port: 4000 },
        server: { address: '10.96.0.10', port: 53 },
        ...{ protocol: 'tcp', id, name: `www${id}.example.`, type: 1, class: 1, udpSize: 0 },
        ...{ sentMs: 1.7e12 + id, repliedMs: 1.7e12 + id, rcode: 0, flags: 0, line: 1 },
      }),
    );
    for (const { bytes, start, end, timeMs } of written)
      reading.takeNetwork(bytes, start, end, timeMs, 0);
  }
  reading.end();
  assert.deepEqual(
    endings,
    [1, 2, 3].map((id) => `www${id}.example. answered`),
  );
});

test('a capture appended to one of the same time is read after it, not interleaved', async () => {
  const numbers: number[] = [];
  const file = inTurns();
  const reading = new Reading({ frame: ({ number }) => numbers.push(number) });
  await reading.read(await openStream('one', Readable.from([file]), new Remarks()));
  const first = numbers.length;
  await reading.read(await openStream('two', Readable.from([file]), new Remarks()));
  assert.equal(first, 240);
  assert.deepEqual(numbers.slice(0, 240), numbers.slice(240));
});

test('an exception in the receiver of an exchange is not reported as a fault of the log', async () => {
  const line = '[INFO] 10.0.0.1:4000 - 1 "A IN a. udp 30 false 512" NOERROR qr 40 0.001s\n';
  const reading = new Reading({
    ended: () => {
      throw new NameError('of somebody else');
    },
  });
  const input = await openStream('it', Readable.from([Buffer.from(line)]), new Remarks());
  await assert.rejects(reading.readWhole(input), /of somebody else/);
});
