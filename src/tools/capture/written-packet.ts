/** Writes exchanges as packets, for captures that are made from dnstap or logs or that have pseudonyms. */
import { parseAddress } from '../../server/base/ip.ts';
import type { Peer } from '../../server/wire/exchange.ts';
import { addressOf, type SeenExchange } from './pair/seen-exchange.ts';
import { PROTOCOL } from './read/packets/ip-packet.ts';
import { emptyFrame, LINK, type Frame } from './read/packets/frame.ts';

const UDP_HEADER = 8;
const TCP_HEADER = 20;
/** Includes FIN, because sequence numbers are unknown and each message becomes a separate connection. */
const PUSH_ACK_FIN = 0x19;

/** An exchange's packets at their original times, with link type RAW. */
export function packetsOf(exchange: SeenExchange): readonly Frame[] {
  const { client, query, reply, protocol } = exchange;
  const server = { address: addressOf(exchange.server), port: exchange.server.port };
  const frames = [packet(client, server, query, protocol, exchange.sentMs)];
  if (reply !== null && exchange.repliedMs !== null)
    frames.push(packet(server, client, reply, protocol, exchange.repliedMs));
  return frames;
}

/** Builds an IP packet for one message. Over TCP, the message is a single segment that starts with its length. */
function packet(
  from: Peer,
  to: Peer,
  message: Uint8Array,
  protocol: 'udp' | 'tcp',
  timeMs: number,
): Frame {
  const [source, target] = [binary(from.address), binary(to.address)];
  const size = Math.max(source.length, target.length);
  const ipHeader = size === 4 ? 20 : 40;
  const tcp = protocol === 'tcp';
  const header = tcp ? TCP_HEADER + 2 : UDP_HEADER;
  const bytes = new Uint8Array(ipHeader + header + message.length);
  const view = new DataView(bytes.buffer);
  const next = tcp ? PROTOCOL.TCP : PROTOCOL.UDP;
  if (size === 4) {
    view.setUint16(0, 0x4500);
    view.setUint16(2, bytes.length);
    bytes[8] = 64;
    bytes[9] = next;
    bytes.set(source, 12);
    bytes.set(target, 16);
    view.setUint16(10, ~sum(view, 0, 20) & 0xffff);
  } else {
    bytes[0] = 0x60;
    view.setUint16(4, bytes.length - ipHeader);
    bytes[6] = next;
    bytes[7] = 64;
    bytes.set(source, 8 + 16 - source.length);
    bytes.set(target, 24 + 16 - target.length);
  }
  view.setUint16(ipHeader, from.port);
  view.setUint16(ipHeader + 2, to.port);
  if (tcp) {
    view.setUint32(ipHeader + 4, 1);
    view.setUint32(ipHeader + 8, 1);
    view.setUint16(ipHeader + 12, ((TCP_HEADER / 4) << 12) | PUSH_ACK_FIN);
    view.setUint16(ipHeader + 14, 0xffff);
    view.setUint16(ipHeader + TCP_HEADER, message.length);
  } else view.setUint16(ipHeader + 4, UDP_HEADER + message.length);
  bytes.set(message, ipHeader + header);
  const frame = emptyFrame();
  return { ...frame, timeMs, link: LINK.RAW, bytes, end: bytes.length, wireLength: bytes.length };
}

/** An unknown address becomes 0.0.0.0. */
function binary(address: string): Uint8Array {
  return parseAddress(address) ?? new Uint8Array(4);
}

/** The checksum from RFC 1071. */
function sum(view: DataView, at: number, end: number): number {
  let total = 0;
  for (; at < end; at += 2) total += view.getUint16(at);
  while (total > 0xffff) total = (total & 0xffff) + (total >>> 16);
  return total;
}
