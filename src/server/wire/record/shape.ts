/** The common data of several types, as an object and as its fields; each type has its own file. */
import { fullName, name, restBase64, restHex, strings, time, u16, u32, u8 } from './field.ts';
import type { Shape } from './kind.ts';
import { serviceParameters, type ServiceParameter } from './service-parameter.ts';
import { typeField } from './type-field.ts';

/** Another name: CNAME, NS, PTR … */
export interface Pointer {
  readonly target: string;
}

/** A name that may be compressed: CNAME, NS, PTR … */
export const oneName: Shape<Pointer> = { target: name };

/** A name written in full: DNAME. */
export const oneFullName: Shape<Pointer> = { target: fullName };

/** Character strings, as between quotes: TXT, SPF. */
export interface Texts {
  readonly strings: readonly string[];
}

/** Its fields. */
export const texts: Shape<Texts> = { strings };

/** Digest of a key: DS, CDS. */
export interface KeyDigest {
  readonly keyTag: number;
  readonly algorithm: number;
  readonly digestType: number;
  readonly digest: Uint8Array;
}

/** Its fields. */
export const keyDigest: Shape<KeyDigest> = {
  keyTag: u16,
  algorithm: u8,
  digestType: u8,
  digest: restHex,
};

/** Public key: DNSKEY, CDNSKEY, KEY. */
export interface PublicKey {
  readonly flags: number;
  readonly protocol: number;
  readonly algorithm: number;
  readonly publicKey: Uint8Array;
}

/** Its fields. */
export const publicKey: Shape<PublicKey> = {
  flags: u16,
  protocol: u8,
  algorithm: u8,
  publicKey: restBase64,
};

/** Signature: RRSIG, SIG. */
export interface Signature {
  /** Type of the records that it signs. */
  readonly typeCovered: number;
  readonly algorithm: number;
  readonly labels: number;
  /** Seconds. */
  readonly originalTtl: number;
  /** Seconds since 1970, 32 bits. */
  readonly expiration: number;
  readonly inception: number;
  readonly keyTag: number;
  readonly signer: string;
  readonly signature: Uint8Array;
}

export const signature: Shape<Signature> = {
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

/** The address of a service: SVCB, HTTPS. Priority 0 is an alias. */
export interface ServiceBinding {
  readonly priority: number;
  readonly target: string;
  /** By ascending key. */
  readonly parameters: readonly ServiceParameter[];
}

/** Its fields. */
export const serviceBinding: Shape<ServiceBinding> = {
  priority: u16,
  target: fullName,
  parameters: serviceParameters,
};

/** Certificate association: TLSA, SMIMEA. */
export interface Certificate {
  readonly usage: number;
  readonly selector: number;
  readonly matching: number;
  readonly certificate: Uint8Array;
}

/** Its fields. */
export const certificate: Shape<Certificate> = {
  usage: u8,
  selector: u8,
  matching: u8,
  certificate: restHex,
};
