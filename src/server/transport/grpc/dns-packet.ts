/**
 * DNS messages over gRPC as in CoreDNS. The method `coredns.dns.DnsService/Query` accepts and returns a `DnsPacket`,
 * whose field 1 is the DNS message.
 */
import { MessageError, MessageReader } from '../../base/protobuf.ts';

/** The method's path in requests. */
export const QUERY_PATH = '/coredns.dns.DnsService/Query';

/** Maximum number of bytes that precede the DNS message in a `DnsPacket`: its tag and length. */
export const PACKET_PREFIX_MAX = 4;

const TAG = 0x0a;
const MSG = 1;

/**
 * Writes the bytes that precede a DNS message of `length` bytes: the gRPC prefix, tag and length.
 * @returns the position after them
 */
export function writePacketPrefix(out: Uint8Array, at: number, length: number): number {
  const size = length < 0x80 ? 1 : length < 0x4000 ? 2 : 3;
  const whole = 1 + size + length;
  out[at] = 0;
  out[at + 1] = 0;
  out[at + 2] = whole >> 16;
  out[at + 3] = whole >> 8;
  out[at + 4] = whole;
  out[at + 5] = TAG;
  at += 6;
  for (; length >= 0x80; length >>= 7) out[at++] = (length & 0x7f) | 0x80;
  out[at++] = length;
  return at;
}

/** Finds the DNS message in a `DnsPacket`. Reusable. */
export class DnsPacketReader {
  /** Bounds of the message, `[start, end)`, within the bytes that were read. */
  start = 0;
  end = 0;
  readonly #reader = new MessageReader();

  /**
   * Parses `bytes[start, end)`. If a field occurs several times, the last value wins.
   * @returns the error, or null
   */
  read(bytes: Buffer, start: number, end: number): string | null {
    const reader = this.#reader;
    this.start = start;
    this.end = start;
    try {
      for (reader.over(bytes, start, end); reader.next();) {
        if (reader.field === MSG) ({ start: this.start, end: this.end } = reader);
      }
      return null;
    } catch (error) {
      if (error instanceof MessageError) return error.message;
      throw error;
    }
  }
}
