/** A key pair for signing, which consists of a DNSKEY record and its private key. */
import { createHash } from 'node:crypto';
import type { WireName } from '../wire/name.ts';
import type { PublicKey } from '../wire/record/table.ts';

/** A key pair as plain data, which can be sent to other threads. */
export interface KeyPair {
  /** The owner name in its file, lower case. */
  readonly owner: WireName;
  /** Seconds, from its file. */
  readonly ttl: number;
  /** DNSKEY data, wire form. */
  readonly data: Uint8Array;
  readonly flags: number;
  readonly algorithm: number;
  readonly tag: number;
  /** PKCS #8, DER. */
  readonly secret: Uint8Array;
  /** Path of the pair's files, without an extension. */
  readonly file: string;
}

/** Flag for a key that DS records refer to, i.e. a key signing key (RFC 4034 section 2.1.1). */
const SEP = 0x0001;

export function isKeySigning({ flags }: KeyPair): boolean {
  return (flags & SEP) !== 0;
}

/** Encodes DNSKEY data in wire form. */
export function dnskeyData({ flags, protocol, algorithm, publicKey }: PublicKey): Uint8Array {
  return Uint8Array.of(flags >> 8, flags & 0xff, protocol, algorithm, ...publicKey);
}

/**
 * Computes the key tag, which is a checksum of the DNSKEY data. Signatures and DS records use it to identify a key (RFC
 * 4034 appendix B).
 */
export function keyTag(data: Uint8Array): number {
  let sum = 0;
  for (let i = 0; i < data.length; i++) sum += (i & 1) === 0 ? data[i]! << 8 : data[i]!;
  return (sum + (sum >>> 16)) & 0xffff;
}

/** Digest type for DS and CDS records (RFC 4509). SHA-1 must no longer be used for them (RFC 9904). */
const SHA256 = 2;

/**
 * Returns a key's DS data for the zone `owner` (lower case): tag, algorithm, digest type and digest (RFC 4034 section
 * 5.1).
 */
export function dsData({ data, tag, algorithm }: KeyPair, owner: WireName): Uint8Array {
  const digest = createHash('sha256').update(owner).update(data).digest();
  return Uint8Array.of(tag >> 8, tag & 0xff, algorithm, SHA256, ...digest);
}
