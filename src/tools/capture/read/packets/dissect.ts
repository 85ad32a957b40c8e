/**
 * Finds everything related to DNS in frames: messages over UDP and TCP, connections, ICMP errors and encrypted traffic.
 */
import { readUint16, readUint32 } from '../../../../server/base/big-endian.ts';
import { isLoopback } from '../../../../server/base/ip.ts';
import { HEADER } from '../../../../server/wire/iana.ts';
import { NAME_MAX, printName } from '../../../../server/wire/name.ts';
import { Fragments } from './fragments.ts';
import type { Frame } from './frame.ts';
import { emptyPacket, PROTOCOL, readIpv4, readIpv6, type IpPacket } from './ip-packet.ts';
import {
  behindType,
  byVersion,
  ETHER,
  isKnownLink,
  networkPlace,
  portOf,
  type NetworkPlace,
} from './link-layer.ts';
import { payloadCode } from './payload-code.ts';
import { certificateValidity, type CertificateValidity } from './tls-certificate.ts';
import type { Remarks } from './remarks.ts';
import { TcpStreams } from './tcp-streams.ts';
import { hasWrongChecksum } from './udp-checksum.ts';

/** A message on the wire. Since the object and its bytes are reused, copy anything to be retained. */
export interface PassingMessage {
  timeMs: number;
  /** The frame that contains its last byte. */
  frame: number;
  protocol: 'udp' | 'tcp';
  /** The message is `bytes[start, end)`. */
  bytes: Uint8Array;
  start: number;
  end: number;
  /** Bytes on the wire, although the capture may have fewer. */
  size: number;
  /** The addresses of the sender and receiver, 4 or 16 bytes each, at `head[addressesAt]`. */
  family: 4 | 6;
  head: Uint8Array;
  addressesAt: number;
  sourcePort: number;
  targetPort: number;
  /** The IP packet's TTL, which distinguishes copies of a packet from other packets. */
  ttl: number;
  ipId: number;
  /**
   * The interface, if the capture shows it. Packets with the same number may have come through several interfaces, but
   * two numbers always mean two interfaces.
   */
  port: number;
  /** True if the capture has only its beginning. */
  cut: boolean;
  /** True if it goes to or comes from a name server and has a wrong UDP checksum. Omitted if it has no checksum. */
  damaged?: boolean;
}

/** An event on a TCP connection, or one about a packet in transit. */
export interface PathEvent {
  timeMs: number;
  frame: number;
  /**
   * `unreachable`: an ICMP error that quotes a packet from `source` to `target`. `unquoted`: an ICMP error
   * whose quotation is cut off, from its sender to its receiver. `incomplete`: an ICMP error that quotes the
   * first fragment of a packet whose others did not arrive. `gap`: a segment arrived before an earlier
   * one. `gap-filled`: that segment has arrived. `segment-again`: all of it was seen before. `datagram`: UDP that is not DNS. `payload`: a TCP segment
   * with data that is not DNS. `fin`: one side of a DNS connection closes it. `rejected`: an ICMP error that quotes a TCP packet that is not DNS.
   * `multicast`: a query or reply of Multicast DNS (RFC 6762) or LLMNR (RFC 4795).
   */
  kind:
    | 'syn'
    | 'syn-ack'
    | 'reset'
    | 'fin'
    | 'datagram'
    | 'payload'
    | 'rejected'
    | 'gap'
    | 'gap-filled'
    | 'segment-again'
    | 'unreachable'
    | 'unquoted'
    | 'incomplete'
    | 'too-big'
    | 'multicast';
  family: 4 | 6;
  head: Uint8Array;
  addressesAt: number;
  sourcePort: number;
  targetPort: number;
  /**
   * ICMP type and code as `type * 256 + code`. A payload has its `payloadCode`, a SYN its sequence number, and a DNS
   * segment its size in bytes. A multicast message has the type of its question or first record. Otherwise 0.
   */
  code: number;
  /** The sequence number of a payload's first byte, and its bytes on the wire. Otherwise 0. */
  sequence: number;
  size: number;
  /** The validity of the server's certificate in a payload; null if there is none. */
  certificate: CertificateValidity | null;
  /** The first name in a multicast message, absolute and in lower case. Otherwise empty. */
  name: string;
  isReply: boolean;
  /**
   * The header with the packet's source address. For an ICMP error, this is the error's own header, not that of the
   * packet it quotes.
   */
  sender: Uint8Array;
  senderAt: number;
}

export interface CaptureEvents {
  message(message: PassingMessage): void;
  /** A message that looks like a UDP reply, between two ports that do not belong to a name server. */
  elsewhere?(message: PassingMessage): void;
  path?(event: PathEvent): void;
  /** A fragment or TCP segment whose message is still unknown. */
  part?(): void;
  /**
   * An address (4 or 16 bytes) at `at` that is requested or announced on the local network by ARP (RFC 826) or
   * neighbour discovery (RFC 4861). The sender's address is at `fromAt`. The hardware address claimed for the announced
   * or own address is at `hardwareAt`, which is 0 if there is none.
   */
  neighbour?(
    timeMs: number,
    isReply: boolean,
    bytes: Uint8Array,
    at: number,
    size: 4 | 16,
    fromAt: number,
    hardwareAt: number,
  ): void;
}

export interface DissectCounts {
  frames: number;
  messages: number;
  /** DNS over TLS or QUIC packets (port 853), whose addresses are visible while their contents are not. */
  encrypted: number;
  other: number;
}

/** Tunnels whose inner packets are read: VXLAN (RFC 7348, and flannel's port) and Geneve (RFC 8926). */
const VXLAN: ReadonlySet<number> = new Set([4789, 8472]);
const GENEVE = 6081;
const DEPTH_MAX = 2;
const DNS_OVER_TLS = 853;
const MDNS = 5353;
const LLMNR = 5355;
/** Client ports start here (net.ipv4.ip_local_port_range). */
const EPHEMERAL = 32_768;
/** The `code` for a packet whose TTL ran out, used for both families. It stands for ICMP type 11, code 0 (RFC 792). */
export const TIME_EXCEEDED = 0xb00;
/** Types of ICMPv6 (RFC 4861). */
const SOLICITATION = 135;
const ADVERTISEMENT = 136;
/** The option that contains the announced address's hardware address. */
const LINK_LAYER_OPTION = 2;

export class Dissector {
  readonly counts: DissectCounts = { frames: 0, messages: 0, encrypted: 0, other: 0 };
  /** IP packets by family. ICMPv6 is excluded, because it occurs even where IPv6 is not used. */
  readonly families: { 4: number; 6: number } = { 4: 0, 6: 0 };
  readonly #events: CaptureEvents;
  readonly #remarks: Remarks;
  /** The ports of name servers, and of resolvers found on loopback. */
  readonly #ports: Set<number>;
  readonly #fragments: Fragments;
  readonly #streams: TcpStreams;
  readonly #place: NetworkPlace = { at: 0, type: 0 };
  readonly #packet = emptyPacket();
  readonly #quoted = emptyPacket();
  readonly #message: PassingMessage;
  readonly #event: PathEvent;
  #frame = 0;
  #timeMs = 0;
  #port = 0;

  constructor(events: CaptureEvents, remarks: Remarks, ports: ReadonlySet<number>) {
    this.#events = events;
    this.#remarks = remarks;
    this.#ports = new Set(ports);
    this.#fragments = new Fragments(remarks);
    this.#streams = new TcpStreams(remarks);
    const bytes = new Uint8Array(0);
    const ends = { family: 4, head: bytes, addressesAt: 0, sourcePort: 0, targetPort: 0 } as const;
    this.#message = {
      ...{ timeMs: 0, frame: 0, protocol: 'udp', bytes, start: 0, end: 0, size: 0 },
      ...ends,
      ...{ ttl: 0, ipId: 0, port: 0, cut: false, damaged: false },
    };
    this.#event = {
      timeMs: 0,
      frame: 0,
      kind: 'syn',
      ...ends,
      ...{ code: 0, sequence: 0, size: 0, certificate: null, name: '', isReply: false },
      sender: bytes,
      senderAt: 0,
    };
  }

  take(frame: Frame): void {
    this.counts.frames++;
    this.#frame = frame.number;
    this.#timeMs = frame.timeMs;
    this.#port = portOf(frame);
    if (!isKnownLink(frame.link)) {
      this.#remarks.add(
        `packets with link type ${frame.link}, which ndots does not support`,
        this.#where,
      );
      return;
    }
    if (networkPlace(frame, this.#place)) this.#network(frame.bytes, frame.end, 0);
    else this.#remarks.add('a packet is too short', this.#where);
  }

  /** Reads a network packet from a live capture, which has no link header. */
  takeNetwork(bytes: Uint8Array, start: number, end: number, timeMs: number, port: number): void {
    this.#frame = ++this.counts.frames;
    this.#timeMs = timeMs;
    this.#port = port;
    if (byVersion(bytes, start, end, this.#place)) this.#network(bytes, end, 0);
  }

  /** Called when the input has ended or another capture follows. */
  end(): void {
    this.#fragments.end();
    this.#streams.end();
  }

  get #where(): string {
    return `frame ${this.#frame}`;
  }

  #network(bytes: Uint8Array, end: number, depth: number): void {
    const { at, type } = this.#place;
    const packet = this.#packet;
    if (type === ETHER.ARP) {
      const isReply = bytes[at + 7] === 2;
      if (at + 28 <= end && bytes[at + 4] === 6 && bytes[at + 5] === 4)
        this.#events.neighbour?.(
          this.#timeMs,
          isReply,
          bytes,
          at + (isReply ? 14 : 24),
          4,
          at + 14,
          at + 8,
        );
      return;
    }
    if (type !== ETHER.IPV4 && type !== ETHER.IPV6) {
      this.counts.other++;
      return;
    }
    const read = type === ETHER.IPV4 ? readIpv4 : readIpv6;
    if (!read(bytes, at, end, packet)) {
      this.#remarks.add('an IP header is damaged', this.#where);
      return;
    }
    if (packet.protocol !== PROTOCOL.ICMP6) this.families[packet.family]++;
    if (packet.offset > 0 || packet.more) {
      // Only packets that may carry a message are reassembled.
      if (packet.protocol !== PROTOCOL.UDP) return;
      this.#events.part?.();
      if (!this.#fragments.add(packet, this.#timeMs, this.#frame, this.#port)) return;
    }
    if (packet.protocol === PROTOCOL.UDP) this.#udp(packet, depth);
    else if (packet.protocol === PROTOCOL.TCP) this.#tcp(packet);
    else if (packet.protocol === PROTOCOL.ICMP) this.#icmp(packet, 3, 8);
    else if (packet.protocol === PROTOCOL.ICMP6) this.#icmp(packet, 1, 8);
    else if (packet.protocol === PROTOCOL.IPIP || packet.protocol === PROTOCOL.IPV6) {
      if (depth < DEPTH_MAX && byVersion(packet.bytes, packet.at, packet.end, this.#place))
        this.#network(packet.bytes, packet.end, depth + 1);
    } else this.counts.other++;
  }

  #udp(packet: IpPacket, depth: number): void {
    const { bytes, at } = packet;
    if (at + 8 > packet.end) {
      this.#remarks.add('a UDP header is truncated', this.#where);
      return;
    }
    const source = (bytes[at]! << 8) | bytes[at + 1]!;
    const target = (bytes[at + 2]! << 8) | bytes[at + 3]!;
    // A proxy in the pod may use any port, because rules redirect queries to it.
    if (target < EPHEMERAL && isToLoopback(packet) && isQuery(bytes, at + 8, packet.end))
      this.#ports.add(target);
    if (this.#isDns(packet, source, target)) {
      this.#datagram(packet, source, target);
      this.#give();
      return;
    }
    const inner = VXLAN.has(target) || target === GENEVE;
    if (inner && depth < DEPTH_MAX) this.#tunnel(packet, target, depth);
    else if (source === DNS_OVER_TLS || target === DNS_OVER_TLS) this.counts.encrypted++;
    else {
      this.counts.other++;
      this.#path(packet, 'datagram', source, target);
      if ((target === MDNS || target === LLMNR) && isToMany(packet))
        this.#multicast(packet, source, target);
      if (!isReply(bytes, at + 8, packet.end)) return;
      this.#datagram(packet, source, target);
      this.#events.elsewhere?.(this.#message);
    }
  }

  /** Multicast DNS (RFC 6762) has a port of its own, which some clusters also use for name servers. */
  #isDns({ family, head, addressesAt }: IpPacket, source: number, target: number): boolean {
    const ports = this.#ports;
    if (!ports.has(source) && !ports.has(target)) return false;
    if (source !== MDNS && target !== MDNS) return true;
    return !isToMany({ family, head, addressesAt });
  }

  /** The header is followed by the first name, either in a question or in a record. */
  #multicast(packet: IpPacket, source: number, target: number): void {
    const { bytes, at, end } = packet;
    const start = at + 8;
    const name = wholeName(bytes, start + HEADER.SIZE, end);
    if (name === null) return;
    const event = this.#event;
    event.name = name.text;
    event.code = readUint16(bytes, name.end);
    event.isReply = (bytes[start + 2]! & 0x80) !== 0;
    this.#path(packet, 'multicast', source, target);
    event.name = '';
    event.code = 0;
    event.isReply = false;
  }

  #tunnel(packet: IpPacket, target: number, depth: number): void {
    const { bytes, end } = packet;
    const at = packet.at + 8;
    if (at + 8 > end) return;
    const header = target === GENEVE ? 8 + (bytes[at]! & 0x3f) * 4 : 8;
    const inner = at + header;
    if (behindType(bytes, inner + 12, end, this.#place)) this.#network(bytes, end, depth + 1);
  }

  #tcp(packet: IpPacket): void {
    const { bytes, at, end } = packet;
    if (at + 20 > end) {
      this.#remarks.add('a TCP header is truncated', this.#where);
      return;
    }
    const source = (bytes[at]! << 8) | bytes[at + 1]!;
    const target = (bytes[at + 2]! << 8) | bytes[at + 3]!;
    const flags = bytes[at + 13]!;
    const isDns = this.#isDns(packet, source, target);
    if ((flags & 0x02) !== 0) {
      this.#event.code = readUint32(bytes, at + 4);
      this.#path(packet, flags & 0x10 ? 'syn-ack' : 'syn', source, target);
      this.#event.code = 0;
    } else if ((flags & 0x04) !== 0) this.#path(packet, 'reset', source, target);
    if (!isDns) {
      if (source === DNS_OVER_TLS || target === DNS_OVER_TLS) this.counts.encrypted++;
      else this.counts.other++;
      if (this.#events.path !== undefined) this.#payload(packet, source, target);
      return;
    }
    this.#events.part?.();
    const opens = (flags & 0x02) !== 0;
    const sequence = readUint32(bytes, at + 4);
    const data = at + (bytes[at + 12]! >> 4) * 4;
    const key = keyOf(packet, source, target);
    const give = (message: Uint8Array, size: number): void => {
      this.#streamed(packet, source, target, message, size);
      this.#give();
    };
    if (opens) this.#streams.open(key, sequence);
    if (data >= at + 20 && data < end) {
      // A SYN uses up one sequence number (RFC 9293, section 3.4) and may carry data (RFC 7413).
      const first = opens ? (sequence + 1) >>> 0 : sequence;
      const payload = bytes.subarray(data, end);
      const segment = { sequence: first, bytes: payload, missing: packet.missing };
      const event = this.#streams.push(key, segment, this.#frame, give);
      this.#event.code = payload.length + packet.missing;
      if (event !== null) this.#path(packet, event, source, target);
      this.#event.code = 0;
    }
    if ((flags & 0x01) !== 0) this.#path(packet, 'fin', source, target);
    if ((flags & 0x05) !== 0) this.#streams.close(key, this.#frame, give);
  }

  #payload(packet: IpPacket, source: number, target: number): void {
    const { bytes, at, end, missing } = packet;
    const data = at + (bytes[at + 12]! >> 4) * 4;
    if (data >= end + missing) return;
    this.#event.code = payloadCode(bytes, data, end);
    this.#event.certificate = certificateValidity(bytes, data, end);
    this.#event.sequence = readUint32(bytes, at + 4);
    this.#event.size = end + missing - data;
    this.#path(packet, 'payload', source, target);
    this.#event.code = 0;
    this.#event.sequence = 0;
    this.#event.size = 0;
    this.#event.certificate = null;
  }

  /**
   * Errors about DNS packets and TCP, each of which quotes the beginning of the packet.
   * @param unreachable the type; "time exceeded" is 11 (RFC 792), or 3 in ICMPv6 (RFC 4443)
   */
  #icmp(packet: IpPacket, unreachable: number, header: number): void {
    const { bytes, at, end, family } = packet;
    if (at + header > end) return;
    const [type, code] = [bytes[at]!, bytes[at + 1]!];
    if (family === 6 && (type === SOLICITATION || type === ADVERTISEMENT)) {
      if (at + 24 <= end)
        this.#events.neighbour?.(
          this.#timeMs,
          type === ADVERTISEMENT,
          bytes,
          at + 8,
          16,
          packet.addressesAt,
          type === ADVERTISEMENT && at + 32 <= end && bytes[at + 24] === LINK_LAYER_OPTION
            ? at + 26
            : 0,
        );
      return;
    }
    const tooBig = family === 4 ? type === 3 && code === 4 : type === 2;
    const isLate = type === (family === 4 ? 11 : 3);
    if (type !== unreachable && !tooBig && !isLate) return;
    const quoted = this.#quoted;
    const read = family === 4 ? readIpv4 : readIpv6;
    if (!read(bytes, at + header, end, quoted) || quoted.at + 4 > quoted.end) {
      // The protocol field in the quoted IPv6 header (RFC 8200, section 3).
      const isUdp = family === 6 && bytes[at + header + 6] === PROTOCOL.UDP;
      if (packet.missing === 0 || !isUdp || tooBig || at + header + 6 >= end) return;
      this.#event.code = type * 256 + code;
      this.#path(packet, 'unquoted', 0, 0);
      this.#event.code = 0;
      return;
    }
    const source = (quoted.bytes[quoted.at]! << 8) | quoted.bytes[quoted.at + 1]!;
    const target = (quoted.bytes[quoted.at + 2]! << 8) | quoted.bytes[quoted.at + 3]!;
    const isDns = this.#ports.has(source) || this.#ports.has(target);
    if (!isDns && (tooBig || isLate || quoted.protocol !== PROTOCOL.TCP)) return;
    this.#event.code = isLate ? TIME_EXCEEDED : type * 256 + code;
    const ofDns = tooBig ? 'too-big' : isLate && code === 1 ? 'incomplete' : 'unreachable';
    this.#path(quoted, isDns ? ofDns : 'rejected', source, target, packet);
    this.#event.code = 0;
  }

  #path(
    packet: IpPacket,
    kind: PathEvent['kind'],
    source: number,
    target: number,
    from: IpPacket = packet,
  ): void {
    const event = this.#event;
    event.timeMs = this.#timeMs;
    event.frame = this.#frame;
    event.kind = kind;
    event.family = packet.family;
    event.head = packet.head;
    event.addressesAt = packet.addressesAt;
    event.sender = from.head;
    event.senderAt = from.addressesAt;
    event.sourcePort = source;
    event.targetPort = target;
    this.#events.path?.(event);
  }

  #give(): void {
    const message = this.#message;
    if (message.end - message.start < 12) {
      this.#remarks.add('a message is shorter than a DNS header', this.#where);
      return;
    }
    this.counts.messages++;
    this.#events.message(message);
  }

  #datagram(packet: IpPacket, source: number, target: number): void {
    const { bytes, at, end, missing } = packet;
    const length = (bytes[at + 4]! << 8) | bytes[at + 5]!;
    const isSized = length >= 8;
    const message = this.#ofPacket(packet, source, target);
    message.protocol = 'udp';
    message.bytes = bytes;
    message.start = at + 8;
    message.end = isSized ? Math.min(end, at + length) : end;
    message.size = isSized ? length - 8 : end + missing - at - 8;
    message.cut = missing > 0 || at + length > end;
    message.damaged =
      isSized &&
      !message.cut &&
      (this.#ports.has(source) || this.#ports.has(target)) &&
      hasWrongChecksum(packet, length);
  }

  /** Fills `#message` with a TCP message whose last byte is in this packet. */
  #streamed(
    packet: IpPacket,
    source: number,
    target: number,
    bytes: Uint8Array,
    size: number,
  ): void {
    const message = this.#ofPacket(packet, source, target);
    message.protocol = 'tcp';
    message.bytes = bytes;
    message.start = 0;
    message.end = bytes.length;
    message.size = size;
    message.cut = size > bytes.length;
  }

  /** Fills `#message` from the packet, except for the bytes, which the caller sets. */
  #ofPacket(packet: IpPacket, source: number, target: number): PassingMessage {
    const message = this.#message;
    message.timeMs = this.#timeMs;
    message.frame = this.#frame;
    message.family = packet.family;
    message.head = packet.head;
    message.addressesAt = packet.addressesAt;
    message.sourcePort = source;
    message.targetPort = target;
    message.ttl = packet.ttl;
    message.ipId = packet.id;
    message.port = this.#port;
    message.damaged = false;
    return message;
  }
}

function isToLoopback({ family, head, addressesAt }: IpPacket): boolean {
  const size = family === 4 ? 4 : 16;
  return isLoopback(head.subarray(addressesAt + size, addressesAt + 2 * size));
}

/** True if it is an ordinary query, with one question of class IN and nothing else except perhaps an OPT record. */
function isQuery(bytes: Uint8Array, start: number, end: number): boolean {
  if (end - start < 17 || (bytes[start + 2]! & 0xf8) !== 0 || (bytes[start + 3]! & 0xf) !== 0)
    return false;
  const counts = [1, 0, 0].every((count, at) => readUint16(bytes, start + 4 + 2 * at) === count);
  if (!counts || readUint16(bytes, start + 10) > 1) return false;
  let at = start + 12;
  while (at < end && bytes[at]! > 0 && bytes[at]! < 64) at += bytes[at]! + 1;
  const stop = at + 5;
  return bytes[at] === 0 && stop <= end && readUint16(bytes, at + 3) === 1;
}

function isToMany({
  family,
  head,
  addressesAt,
}: Pick<IpPacket, 'family' | 'head' | 'addressesAt'>): boolean {
  return head[addressesAt + (family === 4 ? 4 : 16)]! >= 0xe0;
}

/** A name followed by a type, or null if it is cut or continues elsewhere. */
function wholeName(
  bytes: Uint8Array,
  from: number,
  end: number,
): { readonly text: string; readonly end: number } | null {
  let at = from;
  while (at < end && bytes[at]! > 0 && bytes[at]! < 64) at += bytes[at]! + 1;
  if (bytes[at] !== 0 || at + 3 > end || at - from > NAME_MAX) return null;
  return { text: printName(bytes, from).toLowerCase(), end: at + 1 };
}

/**
 * True if it could be a reply to an ordinary query, with QR set, opcode 0, one question, and no more sections than fit.
 */
function isReply(bytes: Uint8Array, start: number, end: number): boolean {
  if (end - start < 17) return false;
  return (bytes[start + 2]! & 0xf8) === 0x80 && bytes[start + 4] === 0 && bytes[start + 5] === 1;
}

function keyOf({ head, addressesAt, family }: IpPacket, source: number, target: number): string {
  const length = family === 4 ? 8 : 32;
  let text = `${source}>${target} `;
  for (let at = addressesAt; at < addressesAt + length; at++)
    text += String.fromCharCode(head[at]!);
  return text;
}
