import { fullName, name, restBase64, restHex, strings, time, u16, u32, u8 } from './field.ts';
import { typeField } from './type-field.ts';

/** Data that several types have in common; each type stands in its own file. */

/** One name that may be compressed: CNAME, NS, PTR … */
export const oneName = { target: name };

/** One name written in full: DNAME. */
export const oneFullName = { target: fullName };

/** Character strings: TXT, SPF. */
export const texts = { strings };

/** Digest of a key: DS, CDS. */
export const keyDigest = { keyTag: u16, algorithm: u8, digestType: u8, digest: restHex };

/** Public key: DNSKEY, CDNSKEY, KEY. */
export const publicKey = { flags: u16, protocol: u8, algorithm: u8, publicKey: restBase64 };

/** Signature: RRSIG, SIG. */
export const signature = {
  typeCovered: typeField,
  algorithm: u8,
  labels: u8,
  originalTtl: u32,
  expiration: time,
  inception: time,
  keyTag: u16,
  signer: fullName,
  signature: restBase64,
};

/** Certificate association: TLSA, SMIMEA. */
export const certificate = { usage: u8, selector: u8, matching: u8, certificate: restHex };
