/**
 * Reads pcapng files (draft-ietf-opsawg-pcapng), with sections in either byte order, several interfaces, and times in
 * any resolution.
 */
import { clipped } from '../../../../server/base/shortened.ts';
import { PACKET_MAX, PacketFileReader } from './damage.ts';
import type { Frame } from './frame.ts';
import type { Remarks } from './remarks.ts';

const BLOCK = { SECTION: 0x0a0d0d0a, INTERFACE: 1, OLD: 2, SIMPLE: 3, STATISTICS: 5, PACKET: 6 };
const ORDER = 0x1a2b3c4d;
const OPTION = { NAME: 2, RESOLUTION: 9, OFFSET: 14, DROPPED: 5 };
/** A longer block indicates damage. Name lists and keys are long, but not that long. */
const BLOCK_MAX = 16 * 1024 * 1024;
/** Limit on interfaces per section, because old packet blocks cannot number more. */
const INTERFACES_MAX = 65_536;

interface Interface {
  readonly link: number;
  readonly snap: number;
  /** Milliseconds per unit of time. */
  readonly unit: number;
  readonly offsetMs: number;
  /** The index across all sections of the file. */
  readonly port: number;
}

export function isPcapng(first: Uint8Array): boolean {
  return first[0] === 0x0a && first[1] === 0x0d && first[2] === 0x0d && first[3] === 0x0a;
}

export class PcapngReader extends PacketFileReader {
  /** Receives the losses reported by a live stream. If null, they become a remark, as for a file. */
  dropped: ((packets: number) => void) | null = null;
  protected readonly unit = 'block';
  protected readonly least = 12;
  protected readonly alignment = 4;
  readonly #blockMax: number;
  #interfaces: Interface[] = [];
  #ports = 0;

  /** @param blockMax the maximum size of a block, in bytes. A longer one indicates damage */
  constructor(take: (frame: Frame) => void, remarks: Remarks, blockMax: number = BLOCK_MAX) {
    super(take, remarks);
    this.#blockMax = blockMax;
  }

  /** The number described so far, across all of the file's sections. */
  get interfaces(): number {
    return this.#ports;
  }

  protected read(): void {
    while (this.sound && this.#block());
  }

  protected ended(): void {
    const { left, offset } = this.queue;
    if (left > 0)
      this.remarks.add('the file ends inside a block, which is ignored', `byte ${offset}`);
  }

  /**
   * Reads one block.
   * @returns false if it is incomplete
   */
  #block(): boolean {
    const { queue } = this;
    if (queue.left < 12) return false;
    const { view, at } = queue;
    const type = view.getUint32(at, this.little);
    if (type === BLOCK.SECTION) this.little = view.getUint32(at + 8, true) === ORDER;
    const { little } = this;
    const length = view.getUint32(at + 4, little);
    const orderly = type !== BLOCK.SECTION || view.getUint32(at + 8, little) === ORDER;
    const fits = length >= 12 && length <= this.#blockMax && length % 4 === 0 && orderly;
    if (fits && queue.left < length) return false;
    const end = at + length - 4;
    if (!fits || view.getUint32(end, little) !== length) {
      this.damaged();
      return true;
    }
    queue.at = at + length;
    this.records++;
    if (type === BLOCK.SECTION) this.#interfaces = [];
    else if (type === BLOCK.INTERFACE && end >= at + 16) this.#interface(at + 8, end);
    else if (type === BLOCK.PACKET && end >= at + 28)
      this.#packet(at, end, this.#interfaces[view.getUint32(at + 8, little)]);
    else if (type === BLOCK.SIMPLE && end >= at + 12) this.#simple(at, end);
    else if (type === BLOCK.OLD && end >= at + 28)
      this.#packet(at, end, this.#interfaces[view.getUint16(at + 8, little)]);
    else if (type === BLOCK.STATISTICS && end >= at + 20) this.#statistics(at + 20, end);
    return true;
  }

  /** True if there is a packet block there, with its length at both ends. */
  protected isPacketAt(at: number): boolean | null {
    const { view, left } = this.queue;
    const type = view.getUint32(at, this.little);
    const length = view.getUint32(at + 4, this.little);
    const fits = length >= 32 && length <= PACKET_MAX && length % 4 === 0;
    if (!fits || (type !== BLOCK.PACKET && type !== BLOCK.OLD)) return false;
    return left < length ? null : view.getUint32(at + length - 4, this.little) === length;
  }

  #interface(at: number, end: number): void {
    if (this.#interfaces.length >= INTERFACES_MAX) {
      this.remarks.add('the file has too many interfaces');
      return;
    }
    const { view, bytes } = this.queue;
    let unit = 1e-3;
    let offsetMs = 0;
    this.#options(at + 8, end, (code, from, length) => {
      if (code === OPTION.RESOLUTION && length >= 1) {
        const power = bytes[from]! & 0x7f;
        unit = 1000 * (bytes[from]! & 0x80 ? 2 : 10) ** -power;
      } else if (code === OPTION.OFFSET && length >= 8) {
        offsetMs = Number(view.getBigInt64(from, this.little)) * 1000;
      }
    });
    const link = view.getUint16(at, this.little);
    const snap = view.getUint32(at + 4, this.little);
    this.#interfaces.push({ link, snap, unit, offsetMs, port: this.#ports++ });
  }

  /** @param from the packet's interface */
  #packet(at: number, end: number, from: Interface | undefined): void {
    const { view } = this.queue;
    const { little } = this;
    this.frame.wireLength = view.getUint32(at + 24, little);
    if (from !== undefined) {
      const units =
        view.getUint32(at + 12, little) * 0x1_0000_0000 + view.getUint32(at + 16, little);
      this.frame.timeMs = units * from.unit + from.offsetMs;
    }
    this.#give(from, at + 28, view.getUint32(at + 20, little), end);
  }

  #simple(at: number, end: number): void {
    const from = this.#interfaces[0];
    const wire = this.queue.view.getUint32(at + 8, this.little);
    const snap = from === undefined || from.snap === 0 ? PACKET_MAX : from.snap;
    this.frame.wireLength = wire;
    this.remarks.add('a packet has no timestamp (simple packet block)', `frame ${this.#next}`);
    this.#give(from, at + 12, Math.min(wire, snap), end);
  }

  /** Reads the losses reported by the capturing program. */
  #statistics(at: number, end: number): void {
    this.#options(at, end, (code, from, length) => {
      if (code !== OPTION.DROPPED || length < 8) return;
      const dropped = Number(this.queue.view.getBigUint64(from, this.little));
      if (this.dropped !== null) this.dropped(dropped);
      else if (dropped > 0)
        this.remarks.add('packets were dropped during the capture', '', dropped);
    });
  }

  get #next(): number {
    return this.frame.number + 1;
  }

  #give(from: Interface | undefined, start: number, length: number, end: number): void {
    const frame = this.frame;
    frame.number++;
    if (from === undefined || start + length > end) {
      const what = from === undefined ? 'belongs to an interface that is not described' : 'is cut';
      this.remarks.add(`a packet ${what}`, `frame ${frame.number}`);
      return;
    }
    frame.link = from.link;
    frame.port = from.port;
    frame.bytes = this.queue.bytes;
    frame.start = start;
    frame.end = start + length;
    this.take(frame);
  }

  #options(
    at: number,
    end: number,
    option: (code: number, from: number, length: number) => void,
  ): void {
    const { view } = this.queue;
    while (at + 4 <= end) {
      const code = view.getUint16(at, this.little);
      const length = view.getUint16(at + 2, this.little);
      if (code === 0 || at + 4 + length > end) return;
      option(code, at + 4, length);
      at += 4 + ((length + 3) & ~3);
    }
  }
}

/**
 * Writes a pcapng file, with an interface for each interface and link type that packets have. Times are in
 * microseconds.
 */
export class PcapngWriter {
  readonly #write: (bytes: Uint8Array) => void;
  readonly #program: string;
  /** Interfaces in the current section, by link type and the packets' own interface. */
  readonly #ports = new Map<number, Map<number, number>>();
  /** The blocks that start the current section, which are its header followed by its interfaces in order. */
  #head: Uint8Array[] = [];
  #described = 0;

  /** @param program name of the writing program, for the file */
  constructor(write: (bytes: Uint8Array) => void, program: string) {
    this.#write = write;
    this.#program = program;
    this.#section();
  }

  /** The number of blocks in the current section other than packets. */
  get heads(): number {
    return this.#head.length;
  }

  /** Returns the first of these. A reader that has received them can read packets from the interfaces they describe. */
  head(blocks: number): Uint8Array {
    return Buffer.concat(this.#head.slice(0, blocks));
  }

  packet(frame: Frame): void {
    const port = this.#ports.get(frame.link)?.get(frame.port) ?? this.describe(frame);
    const length = frame.end - frame.start;
    const padded = (length + 3) & ~3;
    const options =
      frame.comment === undefined
        ? NOTHING
        : Buffer.concat([text(COMMENT, clipped(frame.comment, COMMENT_MAX)), u32(0)]);
    const out = new Uint8Array(32 + padded + options.length);
    const view = new DataView(out.buffer);
    const micros = Math.round(frame.timeMs * 1000);
    view.setUint32(0, BLOCK.PACKET, true);
    view.setUint32(4, out.length, true);
    view.setUint32(8, port, true);
    view.setUint32(12, Math.floor(micros / 0x1_0000_0000), true);
    view.setUint32(16, micros % 0x1_0000_0000, true);
    view.setUint32(20, length, true);
    view.setUint32(24, frame.wireLength, true);
    out.set(frame.bytes.subarray(frame.start, frame.end), 28);
    out.set(options, 28 + padded);
    view.setUint32(out.length - 4, out.length, true);
    this.#write(out);
  }

  /**
   * Describes the packet's interface.
   * @returns its number
   */
  describe({ link, port }: Frame): number {
    if (this.#described === INTERFACES_MAX) this.#section();
    this.#begin(block(BLOCK.INTERFACE, [u16(link), u16(0), u32(PACKET_MAX)]));
    const ofLink = this.#ports.get(link) ?? new Map<number, number>();
    this.#ports.set(link, ofLink.set(port, this.#described));
    return this.#described++;
  }

  #section(): void {
    const parts = [u32(ORDER), u16(1), u16(0), ff(8), text(4, this.#program), u32(0)];
    this.#head = [];
    this.#begin(block(BLOCK.SECTION, parts));
    this.#ports.clear();
    this.#described = 0;
  }

  #begin(head: Uint8Array): void {
    this.#head.push(head);
    this.#write(head);
  }
}

/** Builds a block with the number of packets that a reader missed. It follows an interface's block. */
export function lossBlock(packets: number, timeMs: number): Uint8Array {
  const micros = Math.round(timeMs * 1000);
  const time = [u32(Math.floor(micros / 0x1_0000_0000)), u32(micros % 0x1_0000_0000)];
  const lost = Buffer.alloc(8);
  lost.writeBigUInt64LE(BigInt(packets));
  return block(BLOCK.STATISTICS, [u32(0), ...time, u16(OPTION.DROPPED), u16(8), lost, u32(0)]);
}

const NOTHING = new Uint8Array(0);
/** opt_comment. */
const COMMENT = 1;
/** The maximum number of characters in a comment, because its length field has 16 bits. */
const COMMENT_MAX = 8000;

function block(type: number, parts: readonly Uint8Array[]): Uint8Array {
  const body = Buffer.concat(parts);
  return Buffer.concat([u32(type), u32(12 + body.length), body, u32(12 + body.length)]);
}

function text(code: number, value: string): Uint8Array {
  const bytes = Buffer.from(value);
  const padding = Buffer.alloc(-bytes.length & 3);
  return Buffer.concat([u16(code), u16(bytes.length), bytes, padding]);
}

function u16(value: number): Uint8Array {
  return Uint8Array.of(value & 0xff, value >> 8);
}

function u32(value: number): Uint8Array {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
}

function ff(size: number): Uint8Array {
  return new Uint8Array(size).fill(0xff);
}
