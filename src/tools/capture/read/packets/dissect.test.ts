import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { costsAtMost } from '../../../../../test/kit/growth.ts';
import fc from 'fast-check';
import {
  back,
  dnsMessage,
  fragments,
  framed,
  icmpError,
  ip,
  linked,
  TCP,
  tcpPacket,
  udp,
  udpPacket,
  type Ends,
} from '../../../../../test/kit/packets.ts';
import { parseAddress, printAddress } from '../../../../server/base/ip.ts';
import { Dissector, type DissectCounts } from './dissect.ts';
import { emptyFrame, LINK } from './frame.ts';
import { ALERT, CLIENT_HELLO, REQUEST } from './payload-code.ts';
import { Remarks } from './remarks.ts';

const ends: Ends = { from: '10.244.1.5', fromPort: 40_000, to: '10.96.0.10', toPort: 53 };
const ends6: Ends = { from: 'fd00::5', fromPort: 40_000, to: 'fd00::a', toPort: 53 };
const query = dnsMessage('www.example.com.', 'A');
const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');

interface Dissected {
  /** `from>to protocol message`. */
  readonly messages: readonly string[];
  /** Bytes on the wire, although the capture may have fewer. */
  readonly sizes: readonly number[];
  readonly path: readonly string[];
  readonly remarks: readonly string[];
  readonly counts: DissectCounts;
}

function dissect(
  packets: readonly Uint8Array[],
  link: number = LINK.RAW,
  snap = 1 << 20,
): Dissected {
  const remarks = new Remarks();
  const messages: string[] = [];
  const sizes: number[] = [];
  const path: string[] = [];
  const peer = (head: Uint8Array, at: number, family: 4 | 6, port: number): string =>
    `${printAddress(head, at, family === 4 ? 4 : 16)}#${port}`;
  const dissector = new Dissector(
    {
      message({ head, addressesAt: at, family, sourcePort, targetPort, ...of }) {
        const size = family === 4 ? 4 : 16;
        const text = hex(of.bytes.subarray(of.start, of.end));
        sizes.push(of.size);
        messages.push(
          `${peer(head, at, family, sourcePort)}>${peer(head, at + size, family, targetPort)} ${of.protocol} ${text}`,
        );
      },
      path: ({ kind, head, addressesAt, family, sourcePort, code }) =>
        void path.push(`${kind} ${peer(head, addressesAt, family, sourcePort)} ${code}`),
    },
    remarks,
    new Set([53, 5353]),
  );
  packets.forEach((packet, index) => {
    const end = Math.min(snap, packet.length);
    const frame = { ...emptyFrame(), number: index + 1, link, bytes: packet, end };
    dissector.take({ ...frame, timeMs: index, wireLength: packet.length });
  });
  dissector.end();
  return {
    messages,
    sizes,
    path,
    remarks: remarks.list.map(({ text, count }) => `${count} ${text}`),
    counts: dissector.counts,
  };
}

const seen = `10.244.1.5#40000>10.96.0.10#53 udp ${hex(query)}`;
const seen6 = `fd00::5#40000>fd00::a#53 udp ${hex(query)}`;

describe('packets', () => {
  for (const [name, link] of Object.entries(LINK)) {
    if (link === LINK.IPV6) continue;
    test(`a query after the link header ${name} is found`, () => {
      assert.deepEqual(dissect([linked(udpPacket(ends, query), link)], link).messages, [seen]);
      if (link === LINK.IPV4) return;
      assert.deepEqual(dissect([linked(udpPacket(ends6, query), link)], link).messages, [seen6]);
    });
  }

  test('one or two VLAN tags are skipped', () => {
    for (const vlans of [[7], [7, 8]])
      assert.deepEqual(
        dissect([linked(udpPacket(ends, query), LINK.ETHERNET, vlans)], LINK.ETHERNET).messages,
        [seen],
      );
  });

  test('fragments are reassembled in any order, even if repeated, in both families', () => {
    const long = dnsMessage('www.example.com.', 'TXT', {
      reply: true,
      answer: [
        { name: 'www.example.com.', type: 1, class: 1, ttl: 1, data: { address: '10.0.0.1' } },
      ],
    });
    const whole = Buffer.concat([long, Buffer.alloc(3000, 7)]);
    for (const [each, from] of [
      [ends, '10.244.1.5#40000>10.96.0.10#53'],
      [ends6, 'fd00::5#40000>fd00::a#53'],
    ] as const)
      fc.assert(
        fc.property(fc.shuffledSubarray([0, 1, 2, 3, 3, 0], { minLength: 6 }), (order) => {
          const parts = fragments(each, whole, 800, 77);
          const { messages, remarks } = dissect(order.map((part) => parts[part]!));
          assert.equal(messages[0], `${from} udp ${hex(whole)}`);
          assert.equal(messages.length, 1);
          // Repeats after the packet is complete start another one, which never ends.
          assert.ok(remarks.length <= 1);
        }),
      );
  });

  test('a missing fragment is reported, and leaves no message', () => {
    const parts = fragments(ends, Buffer.alloc(2000, 1), 800, 77);
    const { messages, remarks } = dissect([parts[0]!, parts[2]!]);
    assert.deepEqual(messages, []);
    assert.deepEqual(remarks, ['1 fragments of a packet are missing']);
  });

  test('fragments with only their beginnings in the capture make one message of the original length, or report the one that never came', () => {
    const whole = Buffer.concat([query, Buffer.alloc(2000, 1)]);
    for (const each of [ends, ends6]) {
      const parts = fragments(each, whole, 800, 77);
      const all = dissect(parts, LINK.RAW, 256);
      assert.equal(all.messages.length, 1);
      assert.deepEqual(all.sizes, [whole.length]);
      const [text = ''] = all.messages;
      assert.ok(text.includes(hex(query)), 'its beginning');
      assert.ok(text.length < 2 * 256 + 64, 'and nothing behind the first piece that was left out');
      const part = dissect(parts.slice(0, -1), LINK.RAW, 256);
      assert.deepEqual(part.messages, []);
      assert.deepEqual(part.remarks, ['1 fragments of a packet are missing']);
    }
  });

  test('messages of one TCP connection are read once each, with any segmentation and order', () => {
    const one = framed(query);
    const two = framed(dnsMessage('b.example.', 'AAAA'));
    const stream = Buffer.concat([one, two, one]);
    fc.assert(
      fc.property(
        fc.uniqueArray(fc.integer({ min: 1, max: stream.length - 1 }), { maxLength: 6 }),
        fc.infiniteStream(fc.nat(100)),
        (cuts, chance) => {
          const at = [0, ...cuts.toSorted((a, b) => a - b), stream.length];
          const segments = at.slice(0, -1).map((from, index) => ({
            packet: tcpPacket(
              ends,
              1001 + from,
              TCP.PSH | TCP.ACK,
              stream.subarray(from, at[index + 1]),
            ),
            order: chance.next().value as number,
          }));
          const packets = segments
            .toSorted((a, b) => a.order - b.order)
            .map(({ packet }) => packet);
          const { messages, remarks } = dissect([
            tcpPacket(ends, 1000, TCP.SYN),
            ...packets,
            packets[0]!,
          ]);
          assert.deepEqual(
            messages.map((message) => message.split(' ')[2]),
            [query, dnsMessage('b.example.', 'AAAA'), query].map(hex),
          );
          assert.deepEqual(remarks, []);
        },
      ),
    );
  });

  test('messages of a TCP connection are read as far as the capture has them if the ends of packets are cut off', () => {
    const long = Buffer.concat([query, Buffer.alloc(3000, 7)]);
    const sent = [query, long, query, long, long, query];
    fc.assert(
      fc.property(
        fc.integer({ min: 50, max: 1600 }),
        fc.integer({ min: 100, max: 1500 }),
        fc.boolean(),
        (kept, size, inTurn) => {
          const packets = [tcpPacket(ends, 1000, TCP.SYN)];
          let sequence = 1001;
          for (const message of sent.map(framed)) {
            const parts: Uint8Array[] = [];
            for (let at = 0; at < message.length; at += size) {
              const part = message.subarray(at, at + size);
              parts.push(tcpPacket(ends, sequence, TCP.PSH | TCP.ACK, part));
              sequence += part.length;
            }
            // Repeats are skipped.
            packets.push(...(inTurn ? parts : parts.toReversed()), parts[0]!);
          }
          const { messages } = dissect(packets, LINK.RAW, 40 + kept);
          assert.deepEqual(
            messages.map((message) => message.split(' ')[2]),
            sent.map((message) => {
              const isCut = kept < Math.min(size, message.length + 2);
              return hex(message.subarray(0, isCut ? kept - 2 : message.length));
            }),
          );
        },
      ),
    );
  });

  test('a TCP connection whose beginning was not captured is read from the next message on', () => {
    const stream = Buffer.concat([framed(query), framed(query)]);
    const { messages, remarks } = dissect([
      tcpPacket(ends, 500, TCP.PSH, stream.subarray(5, query.length + 2)),
      tcpPacket(ends, 500 + query.length - 3, TCP.PSH, framed(query)),
    ]);
    assert.equal(messages.length, 1);
    assert.deepEqual(remarks, ['1 the start of a TCP message is missing']);
  });

  test('a query in the segment that opens its connection (RFC 7413) is read, and so is the following one', () => {
    const stream = framed(query);
    const { messages, remarks } = dissect([
      tcpPacket(ends, 900, TCP.SYN, stream),
      tcpPacket(ends, 901 + stream.length, TCP.PSH, stream),
    ]);
    assert.equal(messages.length, 2);
    assert.deepEqual(remarks, []);
  });

  test('TCP sequence numbers wrap around', () => {
    const stream = framed(query);
    const { messages } = dissect([
      tcpPacket(ends, 0xfffffff0, TCP.SYN),
      tcpPacket(ends, 0xfffffff1, TCP.PSH, stream.subarray(0, 20)),
      tcpPacket(ends, 0xfffffff1 + 20, TCP.PSH, stream.subarray(20)),
    ]);
    assert.equal(messages.length, 1);
  });

  test('a loss beyond all limits in a connection is reported, and the next message is read', () => {
    const packets = [tcpPacket(ends, 0, TCP.SYN)];
    // Byte 1 never arrives.
    for (let at = 2; at < 200_000; at += 1400)
      packets.push(tcpPacket(ends, at, TCP.ACK, Buffer.alloc(1400, 0xff)));
    packets.push(tcpPacket(ends, 2 + 143 * 1400, TCP.PSH, framed(query)));
    const { messages, remarks } = dissect(packets);
    assert.equal(messages.length, 1);
    assert.ok(remarks.some((text) => text.endsWith('segments of a TCP connection are missing')));
  });

  test('incomplete streams and fragments hold a bounded amount of memory, and no buffer of the file', () => {
    const from = (index: number): Ends => ({
      ...ends,
      from: `10.1.${index >> 8}.${index & 255}`,
    });
    const chunk = (packet: Uint8Array): Uint8Array => {
      // Uses a buffer like the one for a single file read.
      const read = Buffer.alloc(256 * 1024);
      read.set(packet);
      return read.subarray(0, packet.length);
    };
    const grown = (packets: () => Iterable<Uint8Array>): number => {
      const before = process.memoryUsage().arrayBuffers;
      let most = 0;
      const dissector = new Dissector({ message: () => undefined }, new Remarks(), new Set([53]));
      const frame = { ...emptyFrame(), link: LINK.RAW };
      for (const packet of packets()) {
        frame.number++;
        frame.bytes = chunk(packet);
        frame.end = packet.length;
        dissector.take(frame);
        if (frame.number % 100 !== 0) continue;
        gc();
        most = Math.max(most, process.memoryUsage().arrayBuffers - before);
      }
      return most / 2 ** 20;
    };
    setFlagsFromString('--expose-gc');
    const gc = runInNewContext('gc') as () => void;
    const incomplete = Buffer.alloc(60_000, 0xff);
    for (const packets of [
      function* () {
        for (let index = 0; index < 600; index++) {
          yield tcpPacket(from(index), 0, TCP.SYN);
          yield tcpPacket(from(index), 100, TCP.ACK, Buffer.alloc(1));
        }
      },
      function* () {
        for (let index = 0; index < 1200; index++) {
          yield tcpPacket(from(index), 0, TCP.SYN);
          yield tcpPacket(from(index), 1, TCP.ACK, incomplete);
        }
      },
      function* () {
        for (let index = 0; index < 1000; index++)
          yield fragments(from(index), incomplete, 59_992, index)[0]!;
      },
    ]) {
      const mebibytes = grown(packets);
      assert.ok(mebibytes < 64, `${mebibytes} MiB`);
    }
  });

  test('single bytes after a gap, in any order, take no more memory than their size', async () => {
    const bytes = (count: number): Uint8Array[] => {
      const packets = [tcpPacket(ends, 0, TCP.SYN)];
      const add = (at: number): unknown =>
        packets.push(tcpPacket(ends, at, TCP.ACK, Buffer.alloc(1)));
      for (let at = count; at > 2; at--) add(at);
      for (let at = 1; at < count; at++) add(at);
      return packets;
    };
    const [many, few] = [bytes(20_000), bytes(2500)];
    await costsAtMost(
      24,
      () => dissect(many),
      () => dissect(few),
    );
  });

  test('SYN, SYN+ACK, RST and ICMP errors about DNS are reported', () => {
    const { path } = dissect([
      tcpPacket(ends, 1, TCP.SYN),
      tcpPacket(back(ends), 1, TCP.SYN | TCP.ACK),
      tcpPacket(back(ends), 1, TCP.RST | TCP.ACK),
      icmpError('10.96.0.10', udpPacket(ends, query), 3, 3, '10.244.1.5'),
      icmpError('fd00::a', udpPacket(ends6, query), 1, 4, 'fd00::5'),
      icmpError('10.0.0.1', udpPacket(ends, query), 3, 4, '10.244.1.5'),
    ]);
    assert.deepEqual(path, [
      'syn 10.244.1.5#40000 1',
      'syn-ack 10.96.0.10#53 1',
      'reset 10.96.0.10#53 0',
      `unreachable 10.244.1.5#40000 ${3 * 256 + 3}`,
      `unreachable fd00::5#40000 ${256 + 4}`,
      `too-big 10.244.1.5#40000 ${3 * 256 + 4}`,
    ]);
  });

  test('of other TCP, requests, statuses, alerts and ICMP errors are reported', () => {
    const other = { ...ends, toPort: 443 };
    const says = (way: Ends, bytes: string): Uint8Array =>
      tcpPacket(way, 1, TCP.PSH, Buffer.from(bytes, 'latin1'));
    const { path } = dissect([
      says(other, 'GET / HTTP/1.1\r\n'),
      says(other, '\x16\x03\x01\x00\x05\x01\x00\x00'),
      says(back(other), 'HTTP/1.1 503 Service Unavailable\r\n'),
      says(back(other), '\x15\x03\x03\x00\x02\x02\x28'),
      // A warning (close_notify), an encrypted alert, and data.
      says(back(other), '\x15\x03\x03\x00\x02\x01\x00'),
      says(back(other), '\x15\x03\x03\x00\x1a\x02\x28'),
      says(back(other), 'GETTING'),
      tcpPacket(other, 1, TCP.ACK),
      icmpError('10.0.0.1', tcpPacket(other, 1, TCP.SYN), 3, 13, '10.244.1.5'),
    ]);
    assert.deepEqual(path, [
      `payload 10.244.1.5#40000 ${REQUEST}`,
      `payload 10.244.1.5#40000 ${CLIENT_HELLO}`,
      'payload 10.96.0.10#443 503',
      `payload 10.96.0.10#443 ${ALERT + 40}`,
      'payload 10.96.0.10#443 0',
      'payload 10.96.0.10#443 0',
      'payload 10.96.0.10#443 0',
      `rejected 10.244.1.5#40000 ${3 * 256 + 13}`,
    ]);
  });

  test('DNS over TLS is counted as encrypted; Multicast DNS is not counted as DNS, and other traffic is neither', () => {
    const { counts, messages } = dissect([
      tcpPacket({ ...ends, toPort: 853 }, 1, TCP.PSH, query),
      udpPacket({ ...ends, toPort: 853 }, query),
      udpPacket({ ...ends, to: '224.0.0.251', toPort: 5353 }, query),
      udpPacket({ ...ends, to: '10.244.0.9', toPort: 5353 }, query),
      udpPacket({ ...ends, toPort: 123 }, query),
    ]);
    assert.equal(messages.length, 1);
    assert.deepEqual(counts, { frames: 5, messages: 1, encrypted: 2, other: 2 });
  });

  test('packets inside VXLAN and IP in IP are read', () => {
    const inner = linked(udpPacket(ends, query), LINK.ETHERNET);
    const tunnel: Ends = { from: '192.0.2.1', fromPort: 5000, to: '192.0.2.2', toPort: 8472 };
    const header = Uint8Array.of(8, 0, 0, 0, 0, 0, 1, 0);
    const vxlan = ip(tunnel, 17, udp(tunnel, Buffer.concat([header, inner])));
    assert.deepEqual(dissect([vxlan]).messages, [seen]);
    assert.deepEqual(dissect([ip(tunnel, 4, udpPacket(ends, query))]).messages, [seen]);
  });

  test('neighbour requests and replies on the local network are reported', () => {
    const told: string[] = [];
    const dissector = new Dissector(
      {
        message: () => assert.fail(),
        neighbour: (timeMs, isReply, bytes, at, size, fromAt, hardwareAt) =>
          void told.push(
            `${timeMs} ${isReply} ${printAddress(bytes, at, size)} ${printAddress(bytes, fromAt, size)} ${hardwareAt === 0 ? '' : bytes[hardwareAt + 5]}`.trim(),
          ),
      },
      new Remarks(),
      new Set([53]),
    );
    const arp = (operation: number, from: number, to: number): Uint8Array =>
      Uint8Array.from([
        ...[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x08, 0x06, 0, 1, 0x08, 0, 6, 4, 0, operation],
        ...[2, 0, 0, 0, 0, 2, 10, 244, 1, from, 0, 0, 0, 0, 0, 0, 10, 244, 1, to],
      ]);
    const solicited = Uint8Array.from([135, 0, 0, 0, 0, 0, 0, 0, ...parseAddress('fd00::99')!]);
    const packets = [
      arp(1, 5, 250),
      arp(2, 250, 5),
      linked(ip({ from: 'fd00::5', to: 'ff02::1' }, 58, solicited), LINK.ETHERNET),
    ];
    packets.forEach((bytes, index) => {
      const frame = { ...emptyFrame(), number: index + 1, link: LINK.ETHERNET, bytes };
      dissector.take({
        ...frame,
        end: bytes.length,
        timeMs: index,
        wireLength: bytes.length,
      });
    });
    assert.deepEqual(told, [
      '0 false 10.244.1.250 10.244.1.5 2',
      '1 true 10.244.1.250 10.244.1.250 2',
      '2 false fd00::99 fd00::5',
    ]);
  });

  test('an unknown link type is reported once, with a count', () => {
    assert.deepEqual(dissect([query, query], 147).remarks, [
      '2 packets with link type 147, which ndots does not support',
    ]);
  });

  test('no bytes on any link cause an error', () => {
    const links = fc.constantFrom(...Object.values(LINK));
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 120 }), links, (bytes, link) => {
        dissect([bytes], link);
      }),
    );
    const packets = [
      udpPacket(ends, query),
      udpPacket(ends6, query),
      tcpPacket(ends, 1, 8, framed(query)),
    ];
    fc.assert(
      fc.property(
        fc.constantFrom(...packets),
        fc.array(fc.tuple(fc.nat(80), fc.nat(255)), { maxLength: 4 }),
        fc.nat(90),
        (packet, edits, snap) => {
          const bytes = Uint8Array.from(packet);
          for (const [at, byte] of edits) if (at < bytes.length) bytes[at] = byte;
          dissect([bytes, bytes], LINK.RAW, snap);
        },
      ),
    );
  });
});
