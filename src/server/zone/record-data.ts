import { TYPE } from '../wire/iana.ts';
import type { MessageWriter } from '../wire/writer.ts';

/**
 * Writes record data that is not compressed, and compresses it where that is allowed (the types in RFC 1035; RFC 3597
 * section 4).
 */
export function writeData(
  writer: MessageWriter,
  type: number,
  data: Uint8Array,
  at: number,
  length: number,
): void {
  switch (type) {
    case TYPE.NS:
    case TYPE.CNAME:
    case TYPE.PTR:
      writer.name(data, true, at);
      return;
    case TYPE.MX:
      writer.bytes(data, at, 2);
      writer.name(data, true, at + 2);
      return;
    case TYPE.SOA: {
      let second = at;
      while (data[second]! > 0) second += data[second]! + 1;
      writer.name(data, true, at);
      writer.name(data, true, second + 1);
      writer.bytes(data, at + length - 20, 20);
      return;
    }
    default:
      writer.bytes(data, at, length);
  }
}
