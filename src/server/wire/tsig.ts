/**
 * Transaction signatures (TSIG, RFC 8945) as bytes: reading the record, collecting the data covered by its MAC, and
 * writing the record. There are no side effects.
 */
import { copyOf } from '../base/copy-bytes.ts';
import { HEADER, TYPE } from './iana.ts';
import { foldName, parseName, type WireName } from './name.ts';
import { Reader } from './reader.ts';

/** A MAC algorithm: its name on the wire and its hash. */
export interface TsigAlgorithm {
  /** As text, without the final dot: `hmac-sha256`. */
  readonly name: string;
  readonly wire: WireName;
  readonly hash: string;
  /** Size of a MAC, in bytes. */
  readonly size: number;
}

function algorithm(hash: string, size: number): TsigAlgorithm {
  const name = `hmac-${hash}`;
  return { name, wire: parseName(`${name}.`), hash, size };
}

/** The algorithms permitted by RFC 8945 section 6, which do not include HMAC-MD5. */
export const tsigAlgorithms: readonly TsigAlgorithm[] = [
  algorithm('sha256', 32),
  algorithm('sha512', 64),
  algorithm('sha384', 48),
  algorithm('sha224', 28),
  algorithm('sha1', 20),
];

/** A secret shared by two parties. */
export interface TsigKey {
  /** Lower case. */
  readonly name: WireName;
  readonly secret: Uint8Array;
}

export interface TsigFields {
  /** The key's and the algorithm's names, in lower case. */
  readonly key: WireName;
  readonly algorithm: WireName;
  /** Seconds since 1970. */
  readonly signedAt: number;
  /** Permitted clock difference in seconds. */
  readonly fudge: number;
  readonly mac: Uint8Array;
  readonly originalId: number;
  readonly error: number;
  readonly other: Uint8Array;
}

/**
 * Reads the record at `at`. All byte fields are copies.
 * @throws ReadError
 */
export function readTsig(message: Uint8Array, at: number): TsigFields {
  const from = new Reader(message);
  from.at = at;
  const key = foldName(from.wireName());
  from.bytes(10);
  const name = foldName(from.wireName());
  const signedAt = from.u48();
  const fudge = from.u16();
  const mac = from.bytes(from.u16());
  const originalId = from.u16();
  const error = from.u16();
  const other = from.bytes(from.u16());
  return { key, algorithm: name, signedAt, fudge, mac, originalId, error, other };
}

/**
 * Returns the position of a message's TSIG record, which must be the last record, or -1 if there is none.
 * @throws ReadError
 */
export function tsigAt(message: Uint8Array): number {
  const from = new Reader(message);
  from.at = HEADER.QDCOUNT;
  const questions = from.u16();
  let records = from.u16() + from.u16() + from.u16();
  for (let left = questions; left > 0; left--) {
    from.wireName();
    from.bytes(4);
  }
  for (; records > 0; records--) {
    const { at } = from;
    from.wireName();
    const type = from.u16();
    from.bytes(6);
    from.bytes(from.u16());
    if (type === TYPE.TSIG)
      return records === 1 && from.left === 0 ? at : from.fail('TSIG is not the last record');
  }
  return -1;
}

/** Returns the message as it was before signing, without its TSIG record and with its original id. */
export function unsignedMessage(message: Uint8Array, at: number, originalId: number): Uint8Array {
  const bytes = copyOf(message, 0, at);
  bytes[0] = originalId >> 8;
  bytes[1] = originalId & 0xff;
  const count = ((bytes[HEADER.ARCOUNT]! << 8) | bytes[HEADER.ARCOUNT + 1]!) - 1;
  bytes[HEADER.ARCOUNT] = count >> 8;
  bytes[HEADER.ARCOUNT + 1] = count & 0xff;
  return bytes;
}

/** Returns the previous message's MAC, preceded by its length, as input for the next MAC. */
export function priorMac(mac: Uint8Array): Uint8Array {
  return Uint8Array.of(mac.length >> 8, mac.length & 0xff, ...mac);
}

/** Returns the variables that a MAC covers (RFC 8945 section 4.3.3). */
export function tsigVariables(fields: Omit<TsigFields, 'mac' | 'originalId'>): Uint8Array {
  const { key, algorithm: name, error, other } = fields;
  return Uint8Array.of(
    ...key,
    ...[0, 0xff, 0, 0, 0, 0],
    ...name,
    ...tsigTimers(fields),
    ...word(error),
    ...word(other.length),
    ...other,
  );
}

/** Returns the MAC input that replaces the variables for the second and later messages on a stream. */
export function tsigTimers({
  signedAt,
  fudge,
}: Pick<TsigFields, 'signedAt' | 'fudge'>): Uint8Array {
  return Uint8Array.of(...tsigTime(signedAt), ...word(fudge));
}

/** Encodes a time in 48 bits. */
export function tsigTime(seconds: number): readonly number[] {
  const high = Math.floor(seconds / 0x1_0000_0000);
  const low = (seconds % 0x1_0000_0000) >>> 0;
  return [high >> 8, high & 0xff, low >>> 24, (low >> 16) & 0xff, (low >> 8) & 0xff, low & 0xff];
}

/** Returns the maximum size of a TSIG record with a MAC of `macSize` bytes. */
export function tsigRoom(key: WireName, name: WireName, macSize: number): number {
  return key.length + 10 + name.length + 16 + macSize + OTHER_MAX;
}

/** Size of the longest "other data", a time. */
const OTHER_MAX = 6;

/**
 * Appends a TSIG record to the message `out[at, at + length)`.
 * @returns the message's length with the record
 */
export function writeTsig(fields: TsigFields, out: Uint8Array, at: number, length: number): number {
  const { key, algorithm: name, mac, originalId, error, other } = fields;
  const data = [
    ...name,
    ...tsigTimers(fields),
    ...word(mac.length),
    ...mac,
    ...word(originalId),
    ...word(error),
    ...word(other.length),
    ...other,
  ];
  const record = [...key, 0, TYPE.TSIG, 0, 0xff, 0, 0, 0, 0, ...word(data.length), ...data];
  out.set(record, at + length);
  const count = ((out[at + HEADER.ARCOUNT]! << 8) | out[at + HEADER.ARCOUNT + 1]!) + 1;
  out[at + HEADER.ARCOUNT] = count >> 8;
  out[at + HEADER.ARCOUNT + 1] = count & 0xff;
  return length + record.length;
}

function word(value: number): readonly number[] {
  return [value >> 8, value & 0xff];
}

/** Signs a message whose content is complete. */
export interface Seal {
  /** Maximum number of bytes that it adds. */
  readonly room: number;
  /**
   * Signs `out[at, at + length)`.
   * @returns the length including the signature
   */
  write(out: Uint8Array, at: number, length: number): number;
}

/**
 * A query's signature, shared by the query and all queries that replace it. The plugin that verifies it sets `seal`,
 * which signs the reply to the client.
 */
export class QuerySignature {
  /** A copy of the whole message as received. */
  readonly message: Uint8Array;
  /** Position of its TSIG record. */
  readonly at: number;
  /** Null if replies are not signed. */
  seal: Seal | null = null;

  constructor(message: Uint8Array, at: number) {
    this.message = message;
    this.at = at;
  }
}
