import { readUint16, uint16Bytes, uint16sIn } from '../base/big-endian.ts';
import { parseAddress, printAddress } from '../base/ip.ts';
import type { EdnsOption } from './edns.ts';
import { OPTION } from './iana.ts';

/** The decoded content of an EDNS option. Unknown and malformed options are `other`. */
export type OptionContent =
  /** Name server identifier (RFC 5001); empty in queries. */
  | { readonly kind: 'nsid'; readonly id: Uint8Array }
  /** Client subnet (RFC 7871); prefix lengths in bits. */
  | {
      readonly kind: 'ecs';
      readonly address: string;
      readonly source: number;
      readonly scope: number;
    }
  /** DNS cookie (RFC 7873) with 8 bytes from the client, and either none or 8 to 32 from the server. */
  | { readonly kind: 'cookie'; readonly client: Uint8Array; readonly server: Uint8Array }
  /** The time that a stream may stay open (RFC 7828), in units of 100 ms. Null in queries. */
  | { readonly kind: 'keepalive'; readonly timeout: number | null }
  /** Padding: this many zero bytes (RFC 7830). */
  | { readonly kind: 'padding'; readonly length: number }
  /** Extended DNS Error (RFC 8914). */
  | { readonly kind: 'ede'; readonly code: number; readonly text: string }
  /** Seconds until a zone expires (RFC 7314). Null in queries. */
  | { readonly kind: 'expire'; readonly seconds: number | null }
  /** Algorithms understood by a resolver (RFC 6975). */
  | { readonly kind: 'dau' | 'dhu' | 'n3u'; readonly algorithms: readonly number[] }
  /** Trust anchors of a resolver (RFC 8145). */
  | { readonly kind: 'key-tag'; readonly tags: readonly number[] }
  | { readonly kind: 'other'; readonly code: number; readonly data: Uint8Array };

export function readOption(option: EdnsOption): OptionContent {
  const { code, data } = option;
  return readKnown(code, data) ?? { kind: 'other', code, data };
}

export function writeOption(content: OptionContent): EdnsOption {
  switch (content.kind) {
    case 'nsid':
      return { code: OPTION.NSID, data: content.id };
    case 'ecs':
      return {
        code: OPTION.ECS,
        data: subnetBytes(content.address, content.source, content.scope),
      };
    case 'cookie':
      return { code: OPTION.COOKIE, data: Uint8Array.of(...content.client, ...content.server) };
    case 'keepalive':
      return {
        code: OPTION.KEEPALIVE,
        data: content.timeout === null ? nothing : uint16Bytes([content.timeout]),
      };
    case 'padding':
      return { code: OPTION.PADDING, data: new Uint8Array(content.length) };
    case 'ede':
      return {
        code: OPTION.EDE,
        data: Uint8Array.of(...uint16Bytes([content.code]), ...utf8.encode(content.text)),
      };
    case 'expire':
      return {
        code: OPTION.EXPIRE,
        data: content.seconds === null ? nothing : longBytes(content.seconds),
      };
    case 'dau':
      return { code: OPTION.DAU, data: Uint8Array.from(content.algorithms) };
    case 'dhu':
      return { code: OPTION.DHU, data: Uint8Array.from(content.algorithms) };
    case 'n3u':
      return { code: OPTION.N3U, data: Uint8Array.from(content.algorithms) };
    case 'key-tag':
      return { code: OPTION.KEYTAG, data: uint16Bytes(content.tags) };
    case 'other':
      return { code: content.code, data: content.data };
  }
}

function readKnown(code: number, data: Uint8Array): OptionContent | null {
  const { length } = data;
  switch (code) {
    case OPTION.NSID:
      return { kind: 'nsid', id: data };
    case OPTION.ECS:
      return readSubnet(data);
    case OPTION.COOKIE:
      if (length !== 8 && (length < 16 || length > 40)) return null;
      return { kind: 'cookie', client: data.slice(0, 8), server: data.slice(8) };
    case OPTION.KEEPALIVE:
      if (length !== 0 && length !== 2) return null;
      return { kind: 'keepalive', timeout: length === 0 ? null : readUint16(data, 0) };
    case OPTION.PADDING:
      return data.every((byte) => byte === 0) ? { kind: 'padding', length } : null;
    case OPTION.EDE:
      return readError(data);
    case OPTION.EXPIRE:
      if (length !== 0 && length !== 4) return null;
      return {
        kind: 'expire',
        seconds: length === 0 ? null : readUint16(data, 0) * 0x10000 + readUint16(data, 2),
      };
    case OPTION.DAU:
      return { kind: 'dau', algorithms: [...data] };
    case OPTION.DHU:
      return { kind: 'dhu', algorithms: [...data] };
    case OPTION.N3U:
      return { kind: 'n3u', algorithms: [...data] };
    case OPTION.KEYTAG:
      if (length % 2 !== 0) return null;
      return { kind: 'key-tag', tags: uint16sIn(data) };
    default:
      return null;
  }
}

function readSubnet(data: Uint8Array): OptionContent | null {
  if (data.length < 4) return null;
  const family = readUint16(data, 0);
  if (family !== 1 && family !== 2) return null;
  const size = family === 1 ? 4 : 16;
  const source = data[2]!;
  const scope = data[3]!;
  if (source > size * 8 || scope > size * 8 || data.length - 4 !== Math.ceil(source / 8))
    return null;
  // Bits beyond the prefix must be zero (RFC 7871 section 6).
  if (source % 8 !== 0 && (data.at(-1)! & (0xff >> (source % 8))) !== 0) return null;
  const bytes = new Uint8Array(size);
  bytes.set(data.subarray(4));
  return { kind: 'ecs', address: printAddress(bytes), source, scope };
}

function subnetBytes(address: string, source: number, scope: number): Uint8Array {
  const bytes = parseAddress(address);
  if (bytes === null || source > bytes.length * 8)
    throw new RangeError(`${address}/${source} is not a subnet`);
  const prefix = bytes.slice(0, Math.ceil(source / 8));
  if (source % 8 !== 0) prefix[prefix.length - 1]! &= 0xff00 >> (source % 8);
  return Uint8Array.of(0, bytes.length === 4 ? 1 : 2, source, scope, ...prefix);
}

function readError(data: Uint8Array): OptionContent | null {
  if (data.length < 2) return null;
  try {
    return { kind: 'ede', code: readUint16(data, 0), text: strictUtf8.decode(data.subarray(2)) };
  } catch {
    return null;
  }
}

function longBytes(value: number): Uint8Array {
  return uint16Bytes([value >>> 16, value & 0xffff]);
}

const nothing = new Uint8Array(0);
const utf8 = new TextEncoder();
const strictUtf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
