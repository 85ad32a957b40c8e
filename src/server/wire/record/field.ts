import { parseAddress, printAddress } from '../../base/ip.ts';
import {
  parseBase32Hex,
  parseBase64,
  parseHex,
  parseString,
  printBase32Hex,
  printBase64,
  printHex,
  printString,
} from '../encoding.ts';
import { parseName } from '../name.ts';
import { parseTtl } from '../ttl.ts';
import type { Field } from './kind.ts';

/** A one-byte number. */
export const u8: Field<number> = {
  read: (from) => from.u8(),
  write: (value, to) => to.u8(value),
  print: String,
  parse: (from, what) => from.number(what, 0xff),
};

/** A two-byte number. */
export const u16: Field<number> = {
  read: (from) => from.u16(),
  write: (value, to) => to.u16(value),
  print: String,
  parse: (from, what) => from.number(what, 0xffff),
};

/** A four-byte number. */
export const u32: Field<number> = {
  read: (from) => from.u32(),
  write: (value, to) => to.u32(value),
  print: String,
  parse: (from, what) => from.number(what, 0xffff_ffff),
};

/** A number of seconds. The text may use units (`1h30m`). */
export const seconds: Field<number> = {
  ...u32,
  parse(from, what) {
    const word = from.next(what);
    const value = parseTtl(word);
    return (
      value ??
      from.fail(
        `${what} must be seconds, optionally with units (1h30m), not ${JSON.stringify(word)}`,
      )
    );
  },
};

function domain(compress: boolean): Field<string> {
  return {
    read: (from) => from.name(),
    write: (value, to) => to.name(parseName(value), compress),
    print: (value) => value,
    parse: (from, what) => from.domain(what),
  };
}

/** A name that may be compressed, which only the types in RFC 1035 allow (RFC 3597 section 4). */
export const name: Field<string> = domain(true);

/** A name that is never compressed. */
export const fullName: Field<string> = domain(false);

/** An IPv4 address. */
export const ipv4: Field<string> = address(4, 'an IPv4 address');
/** An IPv6 address, in RFC 5952 text form. */
export const ipv6: Field<string> = address(16, 'an IPv6 address');

function address(length: number, kind: string): Field<string> {
  return {
    read: (from) => printAddress(from.bytes(length)),
    write: (value, to) => to.bytes(addressBytes(value, length)),
    print: (value) => value,
    parse(from, what) {
      const word = from.next(what);
      const bytes = parseAddress(word);
      if (bytes === null || bytes.length !== length) {
        return from.fail(`${what} must be ${kind}, not ${JSON.stringify(word)}`);
      }
      return printAddress(bytes);
    },
  };
}

/** Neither an address nor a name: `.` in text. */
const none: Field<string> = {
  read: () => '.',
  write: () => undefined,
  print: () => '.',
  parse(from, what) {
    return from.next(what) === '.' ? '.' : from.fail(`${what} must be "." for type 0`);
  },
};

/**
 * A host, in the form that a preceding number indicates: none, IPv4, IPv6 or name (RFC 4025 section 2.3, RFC 8777
 * section 4.2.3).
 */
export const typedHosts: readonly Field<string>[] = [none, ipv4, ipv6, fullName];

function addressBytes(text: string, length: number): Uint8Array {
  const bytes = parseAddress(text);
  if (bytes === null || bytes.length !== length)
    throw new RangeError(`${JSON.stringify(text)} is not an address of ${length} bytes`);
  return bytes;
}

/** Parses the text of a character string. */
function stringBytes(text: string): Uint8Array {
  const bytes = parseString(text);
  if (bytes === null) throw new RangeError(`${JSON.stringify(text)} has a bad escape`);
  return bytes;
}

/** A character string of at most 255 bytes. */
export const string: Field<string> = {
  read: (from) => printString(from.string()),
  write(value, to) {
    const bytes = stringBytes(value);
    if (bytes.length > 255)
      throw new RangeError(`a character string has at most 255 bytes, not ${bytes.length}`);
    to.u8(bytes.length);
    to.bytes(bytes);
  },
  print: (value) => `"${value}"`,
  parse: (from, what) => from.string(what),
};

/** A character string, or nothing at the end of the data. */
export const optionalString: Field<string | null> = {
  read: (from) => (from.left === 0 ? null : string.read(from)),
  write(value, to) {
    if (value !== null) string.write(value, to);
  },
  print: (value, split) => (value === null ? '' : string.print(value, split)),
  parse: (from, what) => (from.left === 0 ? null : string.parse(from, what)),
};

/** One or more character strings, up to the end of the data. */
export const strings: Field<readonly string[]> = {
  read(from) {
    const all = [];
    do all.push(string.read(from));
    while (from.left > 0);
    return all;
  },
  write(value, to) {
    for (const one of value) string.write(one, to);
  },
  print: (value) => value.map((one) => `"${one}"`).join(' '),
  parse(from, what) {
    const all = [];
    do all.push(from.string(what));
    while (from.left > 0);
    return all;
  },
};

/** The rest of the data as one quoted text, without a length. */
export const restString: Field<string> = {
  read: (from) => printString(from.rest()),
  write: (value, to) => to.bytes(stringBytes(value)),
  print: (value) => `"${value}"`,
  parse: (from, what) => from.string(what, 0xffff),
};

function splitWord(text: string, split: number): string {
  if (split === 0) return text;
  const words: string[] = [];
  for (let at = 0; at < text.length; at += split) words.push(text.slice(at, at + split));
  return words.join(' ');
}

/** The rest of the data, as hex in any number of words. */
export const restHex: Field<Uint8Array> = {
  read: (from) => from.rest(),
  write: (value, to) => to.bytes(value),
  print: (value, split) => splitWord(printHex(value).toUpperCase(), split),
  parse: (from, what) => parseHex(from.joined()) ?? from.fail(`${what} must be hex`),
};

/** The rest of the data, as base64 in any number of words. */
export const restBase64: Field<Uint8Array> = {
  read: (from) => from.rest(),
  write: (value, to) => to.bytes(value),
  print: (value, split) => splitWord(printBase64(value), split),
  parse: (from, what) => parseBase64(from.joined()) ?? from.fail(`${what} must be base64`),
};

function sized(
  what: string,
  print: (bytes: Uint8Array) => string,
  parse: (text: string) => Uint8Array | null,
): Field<Uint8Array> {
  return {
    read: (from) => from.string(),
    write(value, to) {
      to.u8(value.length);
      to.bytes(value);
    },
    print: (value) => (value.length === 0 ? '-' : print(value)),
    parse(from, field) {
      const word = from.next(field);
      const bytes = word === '-' ? new Uint8Array(0) : parse(word);
      if (bytes === null || bytes.length > 255)
        return from.fail(`${field} must be at most 255 bytes of ${what}, or "-"`);
      return bytes;
    },
  };
}

/** A length byte followed by that many bytes. In text, hex, or `-` if there are none (NSEC3's salt). */
export const sizedHex: Field<Uint8Array> = sized(
  'hex',
  (bytes) => printHex(bytes).toUpperCase(),
  parseHex,
);

/** A length byte followed by that many bytes. In text, base32 with the extended hex alphabet (NSEC3's next hash). */
export const sizedBase32: Field<Uint8Array> = sized('base32hex', printBase32Hex, parseBase32Hex);

/** A fixed number of bytes (`count`), written as pairs of hex digits with dashes in between. */
export function dashedHex(count: number): Field<Uint8Array> {
  return {
    read: (from) => from.bytes(count),
    write: (value, to) => to.bytes(value, 0, count),
    print: (value) => Array.from(value, (byte) => printHex(Uint8Array.of(byte))).join('-'),
    parse(from, what) {
      const word = from.next(what);
      const isWhole = word.length === 3 * count - 1 && /^(?:[\da-f]{2}-)*[\da-f]{2}$/i.test(word);
      const bytes = isWhole ? parseHex(word.replaceAll('-', '')) : null;
      return bytes ?? from.fail(`${what} must be ${count} bytes of hex with dashes between them`);
    },
  };
}

/**
 * Eight bytes as four groups of four hex digits (RFC 6742): `0014:4fff:ff20:ee64`. The text may omit leading zeros,
 * although not every program accepts that.
 */
export const hexGroups: Field<Uint8Array> = {
  read: (from) => from.bytes(8),
  write: (value, to) => to.bytes(value, 0, 8),
  print: (value) => printHex(value).match(/.{4}/g)!.join(':'),
  parse(from, what) {
    const word = from.next(what);
    const groups = /^[\da-f]{1,4}(?::[\da-f]{1,4}){3}$/i.test(word) ? word.split(':') : null;
    const bytes = groups && parseHex(groups.map((group) => group.padStart(4, '0')).join(''));
    return (
      bytes ?? from.fail(`${what} must be four groups of hex digits, not ${JSON.stringify(word)}`)
    );
  },
};

/** Seconds since 1970 as YYYYMMDDHHmmSS, UTC (RFC 4034 section 3.2). */
export const time: Field<number> = {
  read: (from) => from.u32(),
  write: (value, to) => to.u32(value),
  print: (value) => new Date(value * 1000).toISOString().replace(/[-:T]|\.\d+Z/g, ''),
  parse(from, what) {
    const word = from.next(what);
    const parts = /^(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)$/.exec(word)?.slice(1);
    const [year, month, day, hour, minute, second] = parts ?? [];
    const seconds =
      parts === undefined
        ? Number(word)
        : Date.parse(`${year}-${month}-${day}T${hour}:${minute}:${second}Z`) / 1000;
    if (!/^\d+$/.test(word) || !(seconds >= 0 && seconds <= 0xffff_ffff)) {
      from.fail(`${what} must be a time as YYYYMMDDHHmmSS, not ${JSON.stringify(word)}`);
    }
    return seconds;
  },
};
