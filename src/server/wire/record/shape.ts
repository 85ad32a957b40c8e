/** Data formats shared by several types, both as an object and as fields. Each type has its own file. */
import { fullName, name, restBase64, restHex, strings, time, u16, u32, u8 } from './field.ts';
import type { Shape } from './kind.ts';
import { serviceParameters, type ServiceParameter } from './service-parameter.ts';
import { typeField } from './type-field.ts';

/** Another name: CNAME, NS, PTR … */
export interface Pointer {
  readonly target: string;
}

/** A name that may be compressed, as in CNAME, NS and PTR. */
export const oneName: Shape<Pointer> = { target: name };

/** An uncompressed name: DNAME. */
export const oneFullName: Shape<Pointer> = { target: fullName };

/** Character strings, as between quotes: TXT, SPF. */
export interface Texts {
  readonly strings: readonly string[];
}

export const texts: Shape<Texts> = { strings };

/** A key digest: DS, CDS. */
export interface KeyDigest {
  readonly keyTag: number;
  readonly algorithm: number;
  readonly digestType: number;
  readonly digest: Uint8Array;
}

export const keyDigest: Shape<KeyDigest> = {
  keyTag: u16,
  algorithm: u8,
  digestType: u8,
  digest: restHex,
};

/** A public key: DNSKEY, CDNSKEY, KEY. */
export interface PublicKey {
  readonly flags: number;
  readonly protocol: number;
  readonly algorithm: number;
  readonly publicKey: Uint8Array;
}

export const publicKey: Shape<PublicKey> = {
  flags: u16,
  protocol: u8,
  algorithm: u8,
  publicKey: restBase64,
};

/** A signature: RRSIG, SIG. */
export interface Signature {
  /** Type of the signed records. */
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

/** A service binding (SVCB or HTTPS). Priority 0 is an alias. */
export interface ServiceBinding {
  readonly priority: number;
  readonly target: string;
  /** In ascending key order. */
  readonly parameters: readonly ServiceParameter[];
}

export const serviceBinding: Shape<ServiceBinding> = {
  priority: u16,
  target: fullName,
  parameters: serviceParameters,
};

/** A certificate association: TLSA, SMIMEA. */
export interface Certificate {
  readonly usage: number;
  readonly selector: number;
  readonly matching: number;
  readonly certificate: Uint8Array;
}

export const certificate: Shape<Certificate> = {
  usage: u8,
  selector: u8,
  matching: u8,
  certificate: restHex,
};
