import { fullName, name, restBase64, restHex, strings, time, u16, u32, u8 } from './field.ts';
import type { Field } from './kind.ts';
import { typeField } from './type-field.ts';

/** Data that several types have in common; each type stands in its own file. */

/** One name that may be compressed: CNAME, NS, PTR … */
export const oneName: {
  target: Field<string>;
} = { target: name };

/** One name written in full: DNAME. */
export const oneFullName: {
  target: Field<string>;
} = { target: fullName };

/** Character strings: TXT, SPF. */
export const texts: {
  strings: Field<readonly string[]>;
} = { strings };

/** Digest of a key: DS, CDS. */
export const keyDigest: {
  keyTag: Field<number>;
  algorithm: Field<number>;
  digestType: Field<number>;
  digest: Field<Uint8Array>;
} = { keyTag: u16, algorithm: u8, digestType: u8, digest: restHex };

/** Public key: DNSKEY, CDNSKEY, KEY. */
export const publicKey: {
  flags: Field<number>;
  protocol: Field<number>;
  algorithm: Field<number>;
  publicKey: Field<Uint8Array>;
} = { flags: u16, protocol: u8, algorithm: u8, publicKey: restBase64 };

/** Signature: RRSIG, SIG. */
export const signature: {
  typeCovered: Field<number>;
  algorithm: Field<number>;
  labels: Field<number>;
  originalTtl: Field<number>;
  expiration: Field<number>;
  inception: Field<number>;
  keyTag: Field<number>;
  signer: Field<string>;
  signature: Field<Uint8Array>;
} = {
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
export const certificate: {
  usage: Field<number>;
  selector: Field<number>;
  matching: Field<number>;
  certificate: Field<Uint8Array>;
} = { usage: u8, selector: u8, matching: u8, certificate: restHex };
