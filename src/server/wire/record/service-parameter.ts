import { uint16Bytes, uint16sIn } from '../../base/big-endian.ts';
import { parseAddress, printAddress } from '../../base/ip.ts';
import { parseBase64, parseString, printBase64, printString } from '../encoding.ts';
import type { Words } from '../record-words.ts';
import type { Field } from './kind.ts';

/** One parameter of an SVCB or HTTPS record, with its value as bytes. */
export interface ServiceParameter {
  readonly key: number;
  readonly value: Uint8Array;
}

/** Keys by number (RFC 9460 section 14.3.2, RFC 9461, RFC 9540). */
const keyNames = [
  'mandatory',
  'alpn',
  'no-default-alpn',
  'port',
  'ipv4hint',
  'ech',
  'ipv6hint',
  'dohpath',
  'ohttp',
];
const MANDATORY = 0;
const ALPN = 1;
const NO_DEFAULT_ALPN = 2;
const PORT = 3;
const IPV4HINT = 4;
const ECH = 5;
const IPV6HINT = 6;
const OHTTP = 8;

/** Parameters up to the end of the data, in ascending order of their keys. */
export const serviceParameters: Field<readonly ServiceParameter[]> = {
  read(from) {
    const parameters: ServiceParameter[] = [];
    for (let before = -1; from.left > 0;) {
      const key = from.u16();
      if (key <= before) from.fail('service parameters are not in ascending order');
      before = key;
      parameters.push({ key, value: from.bytes(from.u16()) });
    }
    return parameters;
  },
  write(value, to) {
    for (const { key, value: bytes } of value) {
      to.u16(key);
      to.u16(bytes.length);
      to.bytes(bytes);
    }
  },
  print: (value) => value.map(printParameter).join(' '),
  parse(from, what) {
    const parameters: ServiceParameter[] = [];
    while (from.left > 0) {
      const parameter = parseParameter(from, what);
      if (parameters.some(({ key }) => key === parameter.key))
        from.fail(`${keyName(parameter.key)} occurs twice`);
      parameters.push(parameter);
    }
    return parameters.sort((a, b) => a.key - b.key);
  },
};

function keyName(key: number): string {
  return keyNames[key] ?? `key${key}`;
}

function keyNumber(name: string): number | null {
  const known = keyNames.indexOf(name);
  if (known >= 0) return known;
  const digits = /^key(0|[1-9]\d{0,4})$/.exec(name)?.[1];
  return digits === undefined || Number(digits) > 0xffff ? null : Number(digits);
}

function printParameter({ key, value }: ServiceParameter): string {
  const name = keyName(key);
  const text = printValue(key, value);
  if (text !== null) return text === '' ? name : `${name}=${text}`;
  // A value that is malformed for its key can still be written in the generic form (RFC 9460 section 2.1).
  return value.length === 0 ? `key${key}` : `key${key}="${printString(value)}"`;
}

/** Prints the value in the format for its key, or returns null if there is no such format. */
function printValue(key: number, value: Uint8Array): string | null {
  const { length } = value;
  switch (key) {
    case MANDATORY:
      return length === 0 || length % 2 !== 0 ? null : uint16sIn(value).map(keyName).join(',');
    case ALPN:
      return printAlpn(value);
    case NO_DEFAULT_ALPN:
    case OHTTP:
      return length === 0 ? '' : null;
    case PORT:
      return length === 2 ? String(uint16sIn(value)[0]) : null;
    case IPV4HINT:
      return printAddresses(value, 4);
    case IPV6HINT:
      return printAddresses(value, 16);
    case ECH:
      return length === 0 ? null : printBase64(value);
    default:
      return length === 0 ? '' : `"${printString(value)}"`;
  }
}

/** Prints protocol ids. Any commas and backslashes in them are escaped twice (RFC 9460, appendix A.1). */
function printAlpn(value: Uint8Array): string | null {
  const list: number[] = [];
  for (let at = 0; at < value.length;) {
    const length = value[at++]!;
    if (length === 0 || at + length > value.length) return null;
    if (list.length > 0) list.push(0x2c);
    for (const end = at + length; at < end; at++) {
      const byte = value[at]!;
      if (byte === 0x2c || byte === 0x5c) list.push(0x5c);
      list.push(byte);
    }
  }
  return list.length === 0 ? null : `"${printString(Uint8Array.from(list))}"`;
}

function printAddresses(value: Uint8Array, size: number): string | null {
  if (value.length === 0 || value.length % size !== 0) return null;
  return Array.from({ length: value.length / size }, (_, i) =>
    printAddress(value, i * size, size),
  ).join(',');
}

function parseParameter(from: Words, what: string): ServiceParameter {
  const word = from.next(what);
  const equals = word.indexOf('=');
  const name = equals < 0 ? word : word.slice(0, equals);
  const key = keyNumber(name);
  if (key === null) return from.fail(`${JSON.stringify(name)} is not a service parameter`);
  const text = equals < 0 ? '' : word.slice(equals + 1);
  const value = name.startsWith('key') ? parseString(text) : parseValue(key, text);
  if (value === null || value.length > 0xffff)
    return from.fail(`${JSON.stringify(text)} is not a value for ${name}`);
  return { key, value };
}

function parseValue(key: number, text: string): Uint8Array | null {
  switch (key) {
    case MANDATORY: {
      const keys = text.split(',').map(keyNumber);
      return keys.some((one) => one === null)
        ? null
        : uint16Bytes(keys.map((one) => one ?? 0).sort((a, b) => a - b));
    }
    case ALPN:
      return parseAlpn(text);
    case NO_DEFAULT_ALPN:
    case OHTTP:
      return text === '' ? new Uint8Array(0) : null;
    case PORT:
      return /^\d{1,5}$/.test(text) && Number(text) <= 0xffff ? uint16Bytes([Number(text)]) : null;
    case IPV4HINT:
      return parseAddresses(text, 4);
    case IPV6HINT:
      return parseAddresses(text, 16);
    case ECH:
      return text === '' ? null : parseBase64(text);
    default:
      return parseString(text);
  }
}

function parseAlpn(text: string): Uint8Array | null {
  const bytes = parseString(text);
  if (bytes === null || bytes.length === 0) return null;
  const out: number[] = [];
  let id: number[] = [];
  for (let at = 0; at <= bytes.length; at++) {
    const byte = bytes[at];
    if (byte === undefined || byte === 0x2c) {
      if (id.length === 0 || id.length > 255) return null;
      out.push(id.length, ...id);
      id = [];
    } else if (byte === 0x5c) {
      const escaped = bytes[++at];
      if (escaped === undefined) return null;
      id.push(escaped);
    } else {
      id.push(byte);
    }
  }
  return Uint8Array.from(out);
}

function parseAddresses(text: string, size: number): Uint8Array | null {
  const all: number[] = [];
  for (const word of text.split(',')) {
    const bytes = parseAddress(word);
    if (bytes === null || bytes.length !== size) return null;
    all.push(...bytes);
  }
  return Uint8Array.from(all);
}
