/** Captures packets on a machine's link in the kernel. Each packet becomes a row. */
import { printAddress } from '../../server/base/ip.ts';
import { Dissector, type PassingMessage } from '../capture/read/packets/dissect.ts';
import { emptyFrame, LINK, type Frame } from '../capture/read/packets/frame.ts';
import {
  emptyPacket,
  PROTOCOL,
  readIpv4,
  readIpv6,
  type IpPacket,
} from '../capture/read/packets/ip-packet.ts';
import { Remarks } from '../capture/read/packets/remarks.ts';
import { inNetworkNamespace } from '../../server/runtime/network-namespace.ts';
import { PacketSocket } from '../../server/runtime/packet-socket.ts';
import { FLAG, rcodeName, typeName } from '../../server/wire/iana.ts';
import { readMessage, type Message } from '../../server/wire/message.ts';
import { printData } from '../../server/wire/print.ts';
import { pause } from './pause.ts';

export interface PacketRow {
  /** Milliseconds since the first packet. */
  readonly atMs: number;
  /** `10.244.1.7.41873`: address and port. */
  readonly from: string;
  readonly to: string;
  /** `A? www.google.com.`, `NXDOMAIN`, `SYN`. */
  readonly text: string;
  readonly isQuery: boolean;
  /** True if it has the same sender as the first packet. */
  readonly isOut: boolean;
  /** `syn` for a packet that opens a connection, `tcp` for other TCP packets that carry no message. */
  readonly kind: 'query' | 'reply' | 'syn' | 'reset' | 'tcp' | 'other';
  readonly protocol: 'udp' | 'tcp';
  /** The name in the first question, or `''` if there is none. */
  readonly name: string;
  readonly type: string;
}

export interface CaptureFilter {
  /** Source or destination ports; 53 by default. */
  readonly ports?: readonly number[];
  readonly protocol?: 'udp' | 'tcp';
  /** Only packets to this address. */
  readonly to?: string;
}

/** Milliseconds until packets in the kernel reach this process. */
const SETTLE_MS = 60;
const PACKETS_MAX = 200_000;
export const RECORDS_SHOWN = 3;

export class Capture {
  /** Starting at the IP header. */
  readonly frames: Frame[] = [];
  readonly #socket: PacketSocket;
  readonly #filter: CaptureFilter;

  private constructor(socket: PacketSocket, filter: CaptureFilter) {
    this.#socket = socket;
    this.#filter = filter;
  }

  /** @param namespace the file for the machine's network namespace */
  static start(namespace: string, filter: CaptureFilter): Capture {
    const socket = inNetworkNamespace(
      namespace,
      () => new PacketSocket('eth0', filter.ports ?? [53]),
    );
    const capture = new Capture(socket, filter);
    socket.start((bytes, start, end, timeMs) => capture.#take(bytes.slice(start, end), timeMs));
    return capture;
  }

  /** Stops the capture and returns its packets as rows. */
  async stop(): Promise<readonly PacketRow[]> {
    await pause(SETTLE_MS);
    this.#socket.close();
    return rowsOf(this.frames);
  }

  #take(bytes: Uint8Array, timeMs: number): void {
    if (this.frames.length >= PACKETS_MAX) return;
    const frame = { ...emptyFrame(), timeMs, link: LINK.RAW, bytes, end: bytes.length };
    const packet = emptyPacket();
    if (!readIpv4(bytes, 0, bytes.length, packet) && !readIpv6(bytes, 0, bytes.length, packet))
      return;
    if (isIcmp(packet) && !isIcmpError(packet)) return;
    const { protocol, to } = this.#filter;
    if (protocol !== undefined && packet.protocol !== PROTOCOL[protocol === 'udp' ? 'UDP' : 'TCP'])
      return;
    if (to !== undefined && addressesIn(packet).to !== to) return;
    this.frames.push({ ...frame, number: this.frames.length + 1, wireLength: bytes.length });
  }
}

function rowsOf(frames: readonly Frame[]): readonly PacketRow[] {
  const messages: Message[] = [];
  const take = ({ bytes, start, end }: PassingMessage): void => {
    try {
      messages.push(readMessage(bytes, start, end));
    } catch {
      // The payload is not a DNS message, so the row shows everything else.
    }
  };
  const dissector = new Dissector({ message: take }, new Remarks(), new Set([53]));
  const packet = emptyPacket();
  const rows: PacketRow[] = [];
  let firstHost = '';
  for (const { bytes, end, timeMs } of frames) {
    messages.length = 0;
    dissector.takeNetwork(bytes, 0, end, timeMs, 0);
    if (!readIpv4(bytes, 0, end, packet)) readIpv6(bytes, 0, end, packet);
    const { from, to } = addressesIn(packet);
    const ends = isIcmp(packet)
      ? { from, to }
      : {
          from: `${from}.${portAt(packet.bytes, packet.at)}`,
          to: `${to}.${portAt(packet.bytes, packet.at + 2)}`,
        };
    firstHost ||= from;
    const isTcp = packet.protocol === PROTOCOL.TCP;
    const [message] = messages;
    const [question] = message?.question ?? [];
    const kind = message === undefined ? bareKind(isTcp, packet.bytes, packet.at) : kindOf(message);
    const texts = messages.map((each) => `${textOf(each)}${isTcp ? ' (TCP)' : ''}`);
    rows.push({
      atMs: timeMs - (frames[0]?.timeMs ?? 0),
      ...ends,
      text: texts.join('; ') || (isTcp ? flagsOf(packet.bytes, packet.at) : bareText(packet)),
      isQuery: kind === 'query',
      isOut: from === firstHost,
      kind,
      protocol: isTcp ? 'tcp' : 'udp',
      name: question?.name ?? '',
      type: question === undefined ? '' : typeName(question.type),
    });
  }
  return rows;
}

function addressesIn({ family, head, addressesAt }: ReturnType<typeof emptyPacket>): {
  readonly from: string;
  readonly to: string;
} {
  const size = family === 4 ? 4 : 16;
  const at = (start: number): string => printAddress(head.subarray(start, start + size));
  return { from: at(addressesAt), to: at(addressesAt + size) };
}

function portAt(bytes: Uint8Array, at: number): number {
  return ((bytes[at] ?? 0) << 8) | (bytes[at + 1] ?? 0);
}

function kindOf({ flags }: Message): 'query' | 'reply' {
  return (flags & FLAG.QR) === 0 ? 'query' : 'reply';
}

/** Flag bits in a TCP header (RFC 9293 section 3.1). */
const TCP = { FIN: 1, SYN: 2, RST: 4, PSH: 8, ACK: 16 } as const;

function bareKind(isTcp: boolean, bytes: Uint8Array, at: number): PacketRow['kind'] {
  if (!isTcp) return 'other';
  const flags = bytes[at + 13] ?? 0;
  if ((flags & TCP.SYN) !== 0) return (flags & TCP.ACK) === 0 ? 'syn' : 'tcp';
  return (flags & TCP.RST) === 0 ? 'tcp' : 'reset';
}

/** `SYN`, `FIN ACK`. */
function flagsOf(bytes: Uint8Array, at: number): string {
  const flags = bytes[at + 13] ?? 0;
  return Object.entries(TCP)
    .filter(([, bit]) => (flags & bit) !== 0)
    .map(([name]) => name)
    .join(' ');
}

function bareText({ family, protocol, bytes, at }: IpPacket): string {
  const [name = `protocol ${protocol}`] =
    Object.entries(PROTOCOL).find(([, number]) => number === protocol) ?? [];
  if (protocol !== PROTOCOL.ICMP && protocol !== PROTOCOL.ICMP6) return name;
  const [type = 0, code = 0] = bytes.subarray(at, at + 2);
  return ICMP_ERRORS[`${family}.${type}.${code}`] ?? `${name} ${type}.${code}`;
}

/** By family, type and code (RFC 792, RFC 1122, RFC 4443). */
const ICMP_ERRORS: Readonly<Record<string, string>> = {
  '4.3.0': 'network unreachable',
  '4.3.1': 'host unreachable',
  '4.3.3': 'port unreachable',
  '4.3.4': 'packet too big',
  '4.3.13': 'administratively prohibited',
  '6.1.0': 'no route',
  '6.1.1': 'administratively prohibited',
  '6.1.3': 'address unreachable',
  '6.1.4': 'port unreachable',
  '6.2.0': 'packet too big',
};

function isIcmp({ protocol }: IpPacket): boolean {
  return protocol === PROTOCOL.ICMP || protocol === PROTOCOL.ICMP6;
}

/** True for ICMP errors, but not for other ICMP packets, which are pings and neighbour discovery. */
function isIcmpError({ family, bytes, at }: IpPacket): boolean {
  const type = bytes[at] ?? 0;
  return family === 6 ? type < 128 : [3, 4, 5, 11, 12].includes(type);
}

/** `A? api.example.com.` for a query. For a reply, `NOERROR 203.0.113.80`, `NXDOMAIN` or `NOERROR TC`. */
function textOf(message: Message): string {
  const { question, rcode, flags, answer } = message;
  const [first] = question;
  if (kindOf(message) === 'query')
    return first === undefined ? 'a query' : `${typeName(first.type)}? ${first.name}`;
  const shown = answer.slice(0, RECORDS_SHOWN).map(({ type, data }) => printData(type, data));
  const more = answer.length > shown.length ? [`… ${answer.length} records`] : [];
  const truncated = (flags & FLAG.TC) === 0 ? [] : ['TC'];
  return [rcodeName(rcode), ...truncated, ...shown, ...more].join(' ');
}
