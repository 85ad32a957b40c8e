/** A pair of keys that signs: its DNSKEY record, its secret. */
import { createHash } from 'node:crypto';
import type { WireName } from '../wire/name.ts';
import type { PublicKey } from '../wire/record/shape.ts';

/** A pair as plain data: crosses threads. */
export interface KeyPair {
  /** The name in its file, lower case. */
  readonly owner: WireName;
  /** Seconds, as in its file. */
  readonly ttl: number;
  /** Of the DNSKEY record, wire form. */
  readonly data: Uint8Array;
  readonly flags: number;
  readonly algorithm: number;
  readonly tag: number;
  /** PKCS #8, DER. */
  readonly secret: Uint8Array;
  /** Its files without their endings. */
  readonly file: string;
}

/** The flag of a key that others point at (RFC 4034 section 2.1.1): a key signing key. */
const SEP = 0x0001;

/** True if it is a key signing key. */
export function isKeySigning({ flags }: KeyPair): boolean {
  return (flags & SEP) !== 0;
}

/** DNSKEY data in wire form. */
export function dnskeyData({ flags, protocol, algorithm, publicKey }: PublicKey): Uint8Array {
  return Uint8Array.of(flags >> 8, flags & 0xff, protocol, algorithm, ...publicKey);
}

/**
 * The number that signatures and DS records call a key by: a sum over its DNSKEY data (RFC 4034
 * appendix B).
 */
export function keyTag(data: Uint8Array): number {
  let sum = 0;
  for (let i = 0; i < data.length; i++) sum += (i & 1) === 0 ? data[i]! << 8 : data[i]!;
  return (sum + (sum >>> 16)) & 0xffff;
}

/**
 * The digest type of DS and CDS records (RFC 4509). Those with SHA-1 must not be made any more (RFC
 * 9904).
 */
const SHA256 = 2;

/**
 * DS data of a key for the zone `owner` (lower case): tag, algorithm, digest type, digest (RFC 4034
 * section 5.1).
 */
export function dsData({ data, tag, algorithm }: KeyPair, owner: WireName): Uint8Array {
  const digest = createHash('sha256').update(owner).update(data).digest();
  return Uint8Array.of(tag >> 8, tag & 0xff, algorithm, SHA256, ...digest);
}
