import { parseNet, printAddress } from '../../base/ip.ts';
import { TYPE } from '../iana.ts';
import type { Reader } from '../reader.ts';
import { recordKind, type Field, type RecordKind } from './kind.ts';

/** One prefix of an address list. */
export interface AddressPrefix {
  readonly negated: boolean;
  /** An address whose bits beyond the prefix are zero. */
  readonly address: string;
  readonly bits: number;
}

const prefixes: Field<readonly AddressPrefix[]> = {
  read(from) {
    const all: AddressPrefix[] = [];
    while (from.left > 0) all.push(readPrefix(from));
    return all;
  },
  write(value, to) {
    for (const { negated, address, bits } of value) {
      const net = parseNet(`${address}/${bits}`);
      if (net === null) throw new RangeError(`${address}/${bits} is not a prefix`);
      const length = net.bytes.findLastIndex((byte) => byte !== 0) + 1;
      to.u16(net.bytes.length === 4 ? 1 : 2);
      to.u8(bits);
      to.u8((negated ? 0x80 : 0) | length);
      to.bytes(net.bytes, 0, length);
    }
  },
  print: (value) => value.map(printPrefix).join(' '),
  parse(from, what) {
    const all: AddressPrefix[] = [];
    while (from.left > 0) {
      const word = from.next(what);
      const [, not, family, text] = /^(!?)([12]):(.+)$/.exec(word) ?? [];
      const net = text === undefined ? null : parseNet(text);
      if (net === null || (net.bytes.length === 4) !== (family === '1') || !text!.includes('/')) {
        return from.fail(
          `${what} must be like 1:192.0.2.0/24 or !2:2001:db8::/32, not ${JSON.stringify(word)}`,
        );
      }
      all.push({ negated: not === '!', address: printAddress(net.bytes), bits: net.bits });
    }
    return all;
  },
};

function readPrefix(from: Reader): AddressPrefix {
  const family = from.u16();
  const bits = from.u8();
  const length = from.u8();
  if (family !== 1 && family !== 2) from.fail(`an address prefix has the unknown family ${family}`);
  const bytes = new Uint8Array(family === 1 ? 4 : 16);
  if (bits > bytes.length * 8 || (length & 0x7f) > bytes.length)
    from.fail('an address prefix is too long');
  bytes.set(from.bytes(length & 0x7f));
  return { negated: length >= 0x80, address: printAddress(bytes), bits };
}

function printPrefix({ negated, address, bits }: AddressPrefix): string {
  return `${negated ? '!' : ''}${address.includes(':') ? 2 : 1}:${address}/${bits}`;
}

/** Lists of address prefixes (RFC 3123 section 4). */
export const apl: RecordKind<{
  prefixes: readonly AddressPrefix[];
}> = recordKind('APL', TYPE.APL, { prefixes });
