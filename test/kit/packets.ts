/** Packets and capture files for tests, with any link type, VLAN tags, fragments, TCP segments and ICMP errors. */
import { parseAddress } from '../../src/server/base/ip.ts';
import { LINK } from '../../src/tools/capture/read/packets/frame.ts';
import { writeMessage, type DnsRecord, type Message } from '../../src/server/wire/message.ts';
import { FLAG, typeNumber } from '../../src/server/wire/iana.ts';

export interface Captured {
  /** Milliseconds since 1970. */
  readonly timeMs: number;
  readonly bytes: Uint8Array;
  /** The capture interface, 0 by default. */
  readonly port?: number;
}

export interface Ends {
  readonly from: string;
  readonly fromPort: number;
  readonly to: string;
  readonly toPort: number;
}

const u16 = (value: number): number[] => [(value >> 8) & 255, value & 255];
const u32 = (value: number): number[] => [...u16(value >>> 16), ...u16(value & 0xffff)];
const bytesOf = (address: string): Uint8Array => {
  const bytes = parseAddress(address);
  if (bytes === null) throw new Error(`no address: ${address}`);
  return bytes;
};

/** A message's question, with optional parts. */
export function dnsMessage(
  name: string,
  type: string,
  more: Partial<Message> & { readonly reply?: boolean } = {},
): Uint8Array {
  const { reply = false, ...rest } = more;
  return writeMessage({
    id: 1,
    rcode: 0,
    flags: FLAG.RD | (reply ? FLAG.QR | FLAG.RA : 0),
    question: [{ name, type: typeNumber(type)!, class: 1 }],
    answer: [],
    authority: [],
    additional: [],
    edns: null,
    ...rest,
  });
}

export function addressRecord(name: string, address: string, ttl = 30): DnsRecord {
  return { name, type: address.includes(':') ? 28 : 1, class: 1, ttl, data: { address } };
}

export function ip(
  { from, to }: Pick<Ends, 'from' | 'to'>,
  protocol: number,
  payload: Uint8Array,
  more: { readonly id?: number; readonly ttl?: number; readonly fragment?: number } = {},
): Uint8Array {
  const { id = 0, ttl = 64, fragment = 0 } = more;
  if (from.includes(':')) {
    const extra =
      fragment === 0
        ? []
        : [
            protocol,
            0,
            ...u16(((fragment & 0x1fff) * 8) | (fragment & 0x2000 ? 1 : 0)),
            ...u32(id),
          ];
    const next = fragment === 0 ? protocol : 44;
    return Uint8Array.from([
      ...[0x60, 0, 0, 0, ...u16(extra.length + payload.length), next, ttl],
      ...bytesOf(from),
      ...bytesOf(to),
      ...extra,
      ...payload,
    ]);
  }
  const head = [
    ...[0x45, 0, ...u16(20 + payload.length), ...u16(id), ...u16(fragment), ttl, protocol, 0, 0],
    ...bytesOf(from),
    ...bytesOf(to),
  ];
  let sum = 0;
  for (let at = 0; at < 20; at += 2) sum += (head[at]! << 8) | head[at + 1]!;
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >>> 16);
  [head[10], head[11]] = u16(~sum & 0xffff) as [number, number];
  return Uint8Array.from([...head, ...payload]);
}

/** For packets without an IP header. */
export function udp({ fromPort, toPort }: Ends, payload: Uint8Array): Uint8Array {
  return Uint8Array.from([
    ...[...u16(fromPort), ...u16(toPort), ...u16(8 + payload.length), 0, 0],
    ...payload,
  ]);
}

/** For packets with an IP header. */
export function udpPacket(ends: Ends, payload: Uint8Array, id = 0, ttl = 64): Uint8Array {
  return ip(ends, 17, udp(ends, payload), { id, ttl });
}

/**
 * A UDP packet with its checksum. With `partial`, the checksum is the partial sum that a kernel leaves for the network
 * card to complete.
 */
export function checksummed(packet: Uint8Array, how: 'whole' | 'partial' = 'whole'): Uint8Array {
  const own = Uint8Array.from(packet);
  const isSix = own[0]! >> 4 === 6;
  const at = isSix ? 40 : 20;
  const addresses = own.subarray(isSix ? 8 : 12, at);
  const length = own.length - at;
  const pseudo = [...addresses, 0, 17, ...u16(length)];
  own[at + 6] = own[at + 7] = 0;
  const all = how === 'partial' ? pseudo : [...pseudo, ...own.subarray(at)];
  let sum = 0;
  for (let i = 0; i < all.length; i += 2) sum += (all[i]! << 8) | (all[i + 1] ?? 0);
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >>> 16);
  own.set(u16(how === 'partial' ? sum : ~sum & 0xffff), at + 6);
  return own;
}

/** @param size bytes per fragment, a multiple of eight */
export function fragments(ends: Ends, payload: Uint8Array, size: number, id: number): Uint8Array[] {
  const whole = udp(ends, payload);
  const found: Uint8Array[] = [];
  for (let at = 0; at < whole.length; at += size) {
    const more = at + size < whole.length ? 0x2000 : 0;
    const part = whole.subarray(at, at + size);
    found.push(ip(ends, 17, part, { id, fragment: (at >> 3) | more }));
  }
  return found;
}

export const TCP = { FIN: 1, SYN: 2, RST: 4, PSH: 8, ACK: 16 } as const;

export function tcpPacket(
  ends: Ends,
  sequence: number,
  flags: number,
  payload: Uint8Array = new Uint8Array(0),
): Uint8Array {
  const segment = Uint8Array.from([
    ...u16(ends.fromPort),
    ...u16(ends.toPort),
    ...u32(sequence >>> 0),
    ...u32(0),
    ...[0x50, flags, 0xff, 0xff, 0, 0, 0, 0],
    ...payload,
  ]);
  return ip(ends, 6, segment);
}

/** Prepends the message's two length bytes. */
export function framed(message: Uint8Array): Uint8Array {
  return Uint8Array.from([...u16(message.length), ...message]);
}

/** An ICMP error that quotes a packet. */
export function icmpError(
  from: string,
  quoted: Uint8Array,
  type: number,
  code: number,
  to: string,
): Uint8Array {
  const body = Uint8Array.from([type, code, 0, 0, 0, 0, 0, 0, ...quoted.subarray(0, 60)]);
  return ip({ from, to }, from.includes(':') ? 58 : 1, body);
}

export function back({ from, fromPort, to, toPort }: Ends): Ends {
  return { from: to, fromPort: toPort, to: from, toPort: fromPort };
}

/**
 * Prepends a link header to the packet.
 * @param vlans Ethernet tags, outermost first
 */
export function linked(
  packet: Uint8Array,
  link: number,
  vlans: readonly number[] = [],
): Uint8Array {
  const type = packet[0]! >> 4 === 6 ? 0x86dd : 0x0800;
  const mac = [2, 0, 0, 0, 0, 1];
  switch (link) {
    case LINK.ETHERNET: {
      const tags = vlans.flatMap((vlan) => [0x81, 0, ...u16(vlan)]);
      return Uint8Array.from([...mac, ...mac, ...tags, ...u16(type), ...packet]);
    }
    case LINK.SLL:
      return Uint8Array.from([0, 0, 0, 1, 0, 6, ...mac, 0, 0, ...u16(type), ...packet]);
    case LINK.SLL2:
      return Uint8Array.from([
        ...[...u16(type), 0, 0, ...u32(3), 0, 1, 0, 6, ...mac, 0, 0],
        ...packet,
      ]);
    case LINK.NULL:
      return Uint8Array.from([type === 0x0800 ? 2 : 30, 0, 0, 0, ...packet]);
    case LINK.LOOP:
      return Uint8Array.from([0, 0, 0, type === 0x0800 ? 2 : 30, ...packet]);
    default:
      return packet;
  }
}

export function pcapFile(
  link: number,
  packets: readonly Captured[],
  more: { readonly big?: boolean; readonly nano?: boolean; readonly snap?: number } = {},
): Uint8Array {
  const { big = false, nano = false, snap = 262_144 } = more;
  const parts: Buffer[] = [];
  const words = (...list: number[]): void => {
    const bytes = Buffer.alloc(list.length * 4);
    list.forEach((word, i) =>
      big ? bytes.writeUInt32BE(word >>> 0, i * 4) : bytes.writeUInt32LE(word >>> 0, i * 4),
    );
    parts.push(bytes);
  };
  words(nano ? 0xa1b23c4d : 0xa1b2c3d4, big ? 0x00020004 : 0x00040002, 0, 0, snap, link);
  for (const { timeMs, bytes } of packets) {
    const micros = Math.round(timeMs * 1000);
    const fraction = micros % 1e6;
    const kept = Math.min(snap, bytes.length);
    words(Math.floor(micros / 1e6), nano ? fraction * 1000 : fraction, kept, bytes.length);
    parts.push(Buffer.from(bytes.subarray(0, kept)));
  }
  return Buffer.concat(parts);
}

/** A pcapng file with packets captured on several interfaces at once (`port`), in the order of the list. */
export function pcapngFile(
  link: number,
  interfaces: number,
  packets: readonly Captured[],
): Uint8Array {
  const parts: Buffer[] = [];
  const block = (type: number, body: readonly number[], bytes: Uint8Array = new Uint8Array(0)) => {
    const padded = (bytes.length + 3) & ~3;
    const out = Buffer.alloc(12 + body.length * 4 + padded);
    [type, out.length, ...body].forEach((word, at) => out.writeUInt32LE(word >>> 0, at * 4));
    out.set(bytes, 8 + body.length * 4);
    out.writeUInt32LE(out.length, out.length - 4);
    parts.push(out);
  };
  block(0x0a0d0d0a, [0x1a2b3c4d, 1, 0xffff_ffff, 0xffff_ffff]);
  for (let at = 0; at < interfaces; at++) block(1, [link, 262_144]);
  for (const { timeMs, bytes, port = 0 } of packets) {
    const micros = Math.round(timeMs * 1000);
    const time = [Math.floor(micros / 0x1_0000_0000), micros % 0x1_0000_0000];
    block(6, [port, ...time, bytes.length, bytes.length], bytes);
  }
  return Buffer.concat(parts);
}
