import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import {
  dnsMessage,
  linked,
  pcapFile,
  udpPacket,
  type Captured,
} from '../../../../../test/kit/packets.ts';
import { LINK, emptyFrame, type Frame } from './frame.ts';
import { PcapReader } from './pcap.ts';
import { PcapngReader, PcapngWriter } from './pcapng.ts';
import { Remarks } from './remarks.ts';

interface Read {
  readonly frames: readonly {
    readonly timeMs: number;
    readonly text: string;
    readonly link: number;
    readonly wireLength: number;
  }[];
  readonly remarks: readonly string[];
}

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');

/** Reads in chunks of these sizes, repeatedly. */
function read(
  file: Uint8Array,
  kind: 'pcap' | 'pcapng',
  sizes: readonly number[] = [1 << 20],
): Read {
  const remarks = new Remarks();
  const frames: Read['frames'][number][] = [];
  const take = ({ bytes, start, end, timeMs, link, wireLength }: Frame): void => {
    frames.push({ timeMs, text: hex(bytes.subarray(start, end)), link, wireLength });
  };
  const reader = kind === 'pcap' ? new PcapReader(take, remarks) : new PcapngReader(take, remarks);
  for (let at = 0, turn = 0; at < file.length; turn++) {
    const size = sizes[turn % sizes.length]!;
    // The caller may overwrite its buffer afterwards.
    const piece = Uint8Array.from(file.subarray(at, at + size));
    reader.push(piece);
    piece.fill(0xee);
    at += size;
  }
  reader.end();
  return { frames, remarks: remarks.list.map(({ text, first }) => `${text} (${first})`) };
}

function pcapng(packets: readonly (Captured & { readonly link: number })[]): Uint8Array {
  const parts: Uint8Array[] = [];
  const writer = new PcapngWriter((bytes) => parts.push(bytes), 'test');
  for (const { timeMs, bytes, link } of packets)
    writer.packet({
      ...emptyFrame(),
      timeMs,
      link,
      bytes,
      end: bytes.length,
      wireLength: bytes.length,
    });
  return Buffer.concat(parts);
}

const captured = fc.record({
  // Until 2038, milliseconds with fractions can represent microseconds.
  timeMs: fc.integer({ min: 0, max: 2_147_483_647 * 1e6 }).map((micros) => micros / 1000),
  bytes: fc.uint8Array({ maxLength: 90 }),
});
const pieces = fc.array(fc.integer({ min: 1, max: 70 }), { minLength: 1, maxLength: 5 });
const micros = (ms: number): number => Math.round(ms * 1000);

describe('captures', () => {
  test('pcap of both byte orders and resolutions is read as written, in pieces of any size', () => {
    fc.assert(
      fc.property(
        fc.array(captured, { maxLength: 8 }),
        pieces,
        fc.boolean(),
        fc.boolean(),
        (packets, sizes, big, nano) => {
          const { frames, remarks } = read(
            pcapFile(LINK.RAW, packets, { big, nano }),
            'pcap',
            sizes,
          );
          assert.deepEqual(
            frames.map(({ timeMs, text }) => [micros(timeMs), text]),
            packets.map(({ timeMs, bytes }) => [micros(timeMs), hex(bytes)]),
          );
          assert.deepEqual(remarks, []);
        },
      ),
    );
  });

  test('pcapng is read as written, with the link type of each packet', () => {
    const packet = fc.tuple(captured, fc.constantFrom(1, 101, 113, 276));
    fc.assert(
      fc.property(fc.array(packet, { maxLength: 8 }), pieces, (list, sizes) => {
        const packets = list.map(([one, link]) => ({ ...one, link }));
        const { frames, remarks } = read(pcapng(packets), 'pcapng', sizes);
        assert.deepEqual(
          frames.map(({ timeMs, text, link }) => [micros(timeMs), text, link]),
          packets.map(({ timeMs, bytes, link }) => [micros(timeMs), hex(bytes), link]),
        );
        assert.deepEqual(remarks, []);
      }),
    );
  });

  test('a file that is truncated anywhere yields the packets before that, and reports where it ends', () => {
    const query = linked(
      udpPacket(
        { from: '10.0.0.1', fromPort: 4000, to: '10.0.0.2', toPort: 53 },
        dnsMessage('a.example.', 'A'),
      ),
      LINK.ETHERNET,
    );
    const packets = [1, 2, 3].map((each) => ({ timeMs: each, bytes: query, link: LINK.ETHERNET }));
    for (const kind of ['pcap', 'pcapng'] as const) {
      const file = kind === 'pcap' ? pcapFile(LINK.ETHERNET, packets) : pcapng(packets);
      for (let cut = 1; cut < file.length; cut++) {
        const { frames, remarks } = read(file.subarray(0, cut), kind);
        assert.ok(frames.length < 3);
        for (const { text } of frames) assert.equal(text, hex(query));
        assert.ok(remarks.length <= 1);
      }
      const { remarks } = read(file.subarray(0, file.length - 5), kind);
      assert.match(
        remarks[0]!,
        /the file ends inside a (packet|block), which is ignored \(byte \d+\)/,
      );
    }
  });

  test('damage anywhere never throws, and never yields a packet longer than the file', () => {
    const packets = [{ timeMs: 1, bytes: new Uint8Array(40), link: 1 }];
    for (const kind of ['pcap', 'pcapng'] as const) {
      const whole = kind === 'pcap' ? pcapFile(1, packets) : pcapng(packets);
      fc.assert(
        fc.property(
          fc.array(fc.tuple(fc.nat(whole.length - 1), fc.nat(255)), { minLength: 1, maxLength: 6 }),
          (edits) => {
            const file = Uint8Array.from(whole);
            for (const [at, byte] of edits) file[at] = byte;
            for (const { text } of read(file, kind).frames)
              assert.ok(text.length <= 2 * file.length);
          },
        ),
      );
    }
  });

  test('packets are written with any number of interfaces', () => {
    const parts: Uint8Array[] = [];
    const writer = new PcapngWriter((bytes) => parts.push(bytes), 'test');
    const ports = [3, 65_536, 3, 0, ...Array.from({ length: 70_000 }, (_, at) => 100_000 + at)];
    for (const port of ports)
      writer.packet({ ...emptyFrame(), link: 1, port, bytes: new Uint8Array(4), end: 4 });
    const found: number[] = [];
    const reader = new PcapngReader(({ port }) => found.push(port), new Remarks());
    reader.push(Buffer.concat(parts));
    assert.deepEqual(found.slice(0, 5), [0, 1, 0, 2, 3]);
    assert.equal(found.length, ports.length);
    assert.equal(new Set(found).size, ports.length - 1);
  });

  test('a section describes a limited number of interfaces, and more than a hundred link types are reported together', () => {
    const parts: Uint8Array[] = [];
    const writer = new PcapngWriter((bytes) => parts.push(bytes), 'test');
    for (let link = 0; link < 300; link++)
      writer.packet({ ...emptyFrame(), link, bytes: new Uint8Array(4), end: 4 });
    const [section, ...blocks] = parts;
    const all = Array.from({ length: 70_000 }, () => blocks[0]!);
    assert.deepEqual(read(Buffer.concat([section!, ...all]), 'pcapng').remarks, [
      'the file has too many interfaces ()',
    ]);
    const remarks = new Remarks();
    for (let link = 0; link < 300; link++) remarks.add(`packets with link type ${link}`, 'frame 1');
    assert.equal(remarks.list.length, 101);
    assert.equal(remarks.list.at(-1)!.count, 200);
  });

  test('after an impossible record, reading continues with the next one and reports the damage', () => {
    const packets = Array.from({ length: 9 }, (_, at) => ({
      timeMs: 1_700_000_000_000 + at,
      bytes: new Uint8Array(40).fill(at),
      link: 1,
    }));
    const damaged = Buffer.from(pcapFile(1, packets));
    damaged.writeUInt32LE(0x7fffffff, 24 + 3 * 56 + 8);
    const blocks = Buffer.from(pcapng(packets));
    const third = blocks.length - 6 * 72;
    assert.equal(blocks.readUInt32LE(third + 4), 72);
    blocks.writeUInt32LE(0x7ffffff0, third + 4);
    for (const sizes of [[1 << 20], [7], [1, 100]]) {
      for (const [file, kind] of [
        [damaged, 'pcap'],
        [blocks, 'pcapng'],
      ] as const) {
        const { frames, remarks } = read(file, kind, sizes);
        assert.deepEqual(
          frames.map(({ text }) => Number.parseInt(text.slice(0, 2), 16)),
          [0, 1, 2, 4, 5, 6, 7, 8],
          kind,
        );
        assert.match(remarks.join(), /bytes were skipped/);
      }
    }
  });

  test('an impossible record without a later one ends the reading', () => {
    const file = Buffer.from(pcapFile(1, [{ timeMs: 1, bytes: new Uint8Array(4) }]));
    file.writeUInt32LE(0x7fffffff, 24 + 8);
    assert.deepEqual(read(file, 'pcap').remarks, [
      'a packet is malformed: the file is damaged, so the rest was not read (byte 24)',
    ]);
  });
});
