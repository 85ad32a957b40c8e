import { TYPE } from '../iana.ts';
import { amtrelay } from './amtrelay.ts';
import { apl } from './apl.ts';
import { cert } from './cert.ts';
import {
  dashedHex,
  fullName,
  hexGroups,
  ipv4,
  ipv6,
  name,
  optionalString,
  restBase64,
  restHex,
  restString,
  seconds,
  sizedBase32,
  sizedHex,
  string,
  strings,
  time,
  u16,
  u32,
  u8,
} from './field.ts';
import { hip } from './hip.ts';
import { ipseckey } from './ipseckey.ts';
import { recordKind, type Field, type RecordKind, type Shape } from './kind.ts';
import { loc } from './loc.ts';
import { nullKind } from './null.ts';
import { serviceParameters } from './service-parameter.ts';
import { errorCode, lengthAndBase64, tsig } from './tsig.ts';
import { typeField, typeSet } from './type-field.ts';

/** A public key: DNSKEY, CDNSKEY, KEY. */
export interface PublicKey {
  readonly flags: number;
  readonly protocol: number;
  readonly algorithm: number;
  readonly publicKey: Uint8Array;
}

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

// Data formats shared by several types.

const oneName = { target: name };
const oneFullName = { target: fullName };
const texts = { strings };
const keyDigest = { keyTag: u16, algorithm: u8, digestType: u8, digest: restHex };
const publicKey: Shape<PublicKey> = {
  flags: u16,
  protocol: u8,
  algorithm: u8,
  publicKey: restBase64,
};
const signature: Shape<Signature> = {
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
/** Priority 0 is an alias. */
const serviceBinding = { priority: u16, target: fullName, parameters: serviceParameters };
const certificate = { usage: u8, selector: u8, matching: u8, certificate: restHex };

/** Written without unneeded quotes, because the names of CAA's properties consist of letters and digits. */
const propertyName: Field<string> = {
  ...string,
  print: (value) => (/^[\w-]+$/.test(value) ? value : `"${value}"`),
};

// The types whose data is also used by field elsewhere.

/** IPv4 address (RFC 1035 section 3.4.1). */
export const a: RecordKind<{ address: string }> = recordKind('A', TYPE.A, { address: ipv4 });

/** IPv6 address (RFC 3596 section 2.1). */
export const aaaa: RecordKind<{ address: string }> = recordKind('AAAA', TYPE.AAAA, {
  address: ipv6,
});

/** Child's copy of DS (RFC 7344 section 3.1). */
export const cds: RecordKind<{
  keyTag: number;
  algorithm: number;
  digestType: number;
  digest: Uint8Array;
}> = recordKind('CDS', TYPE.CDS, keyDigest);

/** The canonical name of an alias (RFC 1035 section 3.3.1). */
export const cname: RecordKind<{ target: string }> = recordKind('CNAME', TYPE.CNAME, oneName);

/** A zone's public key (RFC 4034 section 2.1). */
export const dnskey: RecordKind<PublicKey> = recordKind('DNSKEY', TYPE.DNSKEY, publicKey);

/** Host information (RFC 1035 section 3.3.2), which is also the minimal answer to ANY (RFC 8482). */
export const hinfo: RecordKind<{ cpu: string; os: string }> = recordKind('HINFO', TYPE.HINFO, {
  cpu: string,
  os: string,
});

/** Proof of non-existence (RFC 4034, section 4.1). */
export const nsec: RecordKind<{ next: string; types: readonly number[] }> = recordKind(
  'NSEC',
  TYPE.NSEC,
  { next: fullName, types: typeSet },
);

/** Signature over a record set (RFC 4034 section 3.1). */
export const rrsig: RecordKind<Signature> = recordKind('RRSIG', TYPE.RRSIG, signature);

/** Start of a zone of authority (RFC 1035 section 3.3.13). Times are in seconds. */
export const soa: RecordKind<{
  mname: string;
  rname: string;
  serial: number;
  refresh: number;
  retry: number;
  expire: number;
  minimum: number;
}> = recordKind('SOA', TYPE.SOA, {
  mname: name,
  rname: name,
  serial: u32,
  refresh: seconds,
  retry: seconds,
  expire: seconds,
  minimum: seconds,
});

/** Location of a service (RFC 2782). */
export const srv: RecordKind<{
  priority: number;
  weight: number;
  port: number;
  target: string;
}> = recordKind('SRV', TYPE.SRV, { priority: u16, weight: u16, port: u16, target: fullName });

/** Text (RFC 1035 section 3.3.14). */
export const txt: RecordKind<{ strings: readonly string[] }> = recordKind('TXT', TYPE.TXT, texts);

/**
 * Every record type whose data is decoded. For all others, the data is plain bytes (RFC 3597). OPT is not included; see
 * `edns.ts`.
 */
export const recordKinds: readonly RecordKind<object>[] = [
  a,
  aaaa,
  // AFS cell database (RFC 1183 section 1).
  recordKind('AFSDB', TYPE.AFSDB, { subtype: u16, target: fullName }),
  amtrelay,
  apl,
  // Application visibility and control (Cisco's DNS-AVC), in the format of TXT.
  recordKind('AVC', TYPE.AVC, texts),
  // The authorities that may issue certificates (RFC 8659 section 4.1).
  recordKind('CAA', TYPE.CAA, { flags: u8, tag: propertyName, value: restString }),
  // Child's copy of DNSKEY (RFC 7344 section 3.2).
  recordKind('CDNSKEY', TYPE.CDNSKEY, publicKey),
  cds,
  cert,
  cname,
  // Child-to-parent synchronisation (RFC 7477 section 2.1).
  recordKind('CSYNC', TYPE.CSYNC, { serial: u32, flags: u16, types: typeSet }),
  // The DHCP client that owns a name (RFC 4701 section 3.1).
  recordKind('DHCID', TYPE.DHCID, { digest: restBase64 }),
  // Trust anchor outside the parent zone (RFC 4431); obsolete.
  recordKind('DLV', TYPE.DLV, keyDigest),
  // Redirection of the subtree under a name (RFC 6672 section 2.1).
  recordKind('DNAME', TYPE.DNAME, oneFullName),
  dnskey,
  // Delegation signer (RFC 4034 section 5.1).
  recordKind('DS', TYPE.DS, keyDigest),
  // 48-bit and 64-bit layer-2 addresses (RFC 7043 sections 3.1 and 4.1).
  recordKind('EUI48', TYPE.EUI48, { address: dashedHex(6) }),
  recordKind('EUI64', TYPE.EUI64, { address: dashedHex(8) }),
  // Geographical position, as three numbers in text form (RFC 1712 section 3). Superseded by LOC.
  recordKind('GPOS', TYPE.GPOS, { longitude: string, latitude: string, altitude: string }),
  hinfo,
  hip,
  // Service binding for a web origin (RFC 9460, section 9).
  recordKind('HTTPS', TYPE.HTTPS, serviceBinding),
  ipseckey,
  // A telephone number, optionally with a subaddress (RFC 1183 section 3.2).
  recordKind('ISDN', TYPE.ISDN, { address: string, subaddress: optionalString }),
  // Public key (RFC 2535 section 3.1), now used only for SIG(0).
  recordKind('KEY', TYPE.KEY, publicKey),
  // Key exchanger (RFC 2230).
  recordKind('KX', TYPE.KX, { preference: u16, exchange: fullName }),
  // Locators of 32 and 64 bits (ILNP, RFC 6742 sections 2.2 and 2.3).
  recordKind('L32', TYPE.L32, { preference: u16, locator: ipv4 }),
  recordKind('L64', TYPE.L64, { preference: u16, locator: hexGroups }),
  loc,
  // Locator pointer (ILNP, RFC 6742 section 2.4).
  recordKind('LP', TYPE.LP, { preference: u16, target: fullName }),
  // Mailbox, mail destination, mail forwarder and mail group member (RFC 1035 sections 3.3.3 to 3.3.6); obsolete.
  recordKind('MB', TYPE.MB, oneName),
  recordKind('MD', TYPE.MD, oneName),
  recordKind('MF', TYPE.MF, oneName),
  recordKind('MG', TYPE.MG, oneName),
  // Mailbox information and mail rename (RFC 1035 sections 3.3.7 and 3.3.8); obsolete.
  recordKind('MINFO', TYPE.MINFO, { responsible: name, errors: name }),
  recordKind('MR', TYPE.MR, oneName),
  // Mail exchange (RFC 1035 section 3.3.9).
  recordKind('MX', TYPE.MX, { preference: u16, exchange: name }),
  // Naming authority pointer (RFC 3403 section 4.1).
  recordKind('NAPTR', TYPE.NAPTR, {
    order: u16,
    preference: u16,
    flags: string,
    services: string,
    regexp: string,
    replacement: fullName,
  }),
  // Node identifier (ILNP, RFC 6742 section 2.1).
  recordKind('NID', TYPE.NID, { preference: u16, node: hexGroups }),
  // Zone status (draft-reid-dnsext-zs), in the format of TXT.
  recordKind('NINFO', TYPE.NINFO, texts),
  // Name server of a zone (RFC 1035 section 3.3.11).
  recordKind('NS', TYPE.NS, oneName),
  // Name of an NSAP address (RFC 1348); obsolete.
  recordKind('NSAP-PTR', TYPE['NSAP-PTR'], oneFullName),
  nsec,
  // Hashed proof of non-existence (RFC 5155, section 3.2).
  recordKind('NSEC3', TYPE.NSEC3, {
    algorithm: u8,
    flags: u8,
    iterations: u16,
    salt: sizedHex,
    next: sizedBase32,
    types: typeSet,
  }),
  // Hash parameters of a zone (RFC 5155 section 4.2).
  recordKind('NSEC3PARAM', TYPE.NSEC3PARAM, {
    algorithm: u8,
    flags: u8,
    iterations: u16,
    salt: sizedHex,
  }),
  nullKind,
  // OpenPGP public key (RFC 7929 section 2.1).
  recordKind('OPENPGPKEY', TYPE.OPENPGPKEY, { publicKey: restBase64 }),
  // A pointer to another name, as in reverse zones (RFC 1035 section 3.3.12).
  recordKind('PTR', TYPE.PTR, oneName),
  // Mapping between X.400 and RFC 822 addresses (RFC 2163 section 4). Obsolete.
  recordKind('PX', TYPE.PX, { preference: u16, map822: fullName, mapX400: fullName }),
  // A resolver's self-description (RFC 9606, section 4), in the format of TXT.
  recordKind('RESINFO', TYPE.RESINFO, texts),
  // Key for encrypting records (draft-reid-dnsext-rkey).
  recordKind('RKEY', TYPE.RKEY, publicKey),
  // Responsible person (RFC 1183 section 2.2).
  recordKind('RP', TYPE.RP, { mailbox: fullName, text: fullName }),
  rrsig,
  // Route through (RFC 1183 section 3.3); obsolete.
  recordKind('RT', TYPE.RT, { preference: u16, host: fullName }),
  // Signature (RFC 2535 section 4.1); now used only for SIG(0).
  recordKind('SIG', TYPE.SIG, signature),
  // Certificate for an email address (RFC 8162 section 2).
  recordKind('SMIMEA', TYPE.SMIMEA, certificate),
  soa,
  // Sender policy (RFC 4408 section 3.1.1); obsolete, superseded by TXT.
  recordKind('SPF', TYPE.SPF, texts),
  srv,
  // Fingerprint of an SSH host key (RFC 4255 section 3.1).
  recordKind('SSHFP', TYPE.SSHFP, { algorithm: u8, fingerprintType: u8, fingerprint: restHex }),
  // Service binding (RFC 9460, section 2).
  recordKind('SVCB', TYPE.SVCB, serviceBinding),
  // Trust authority (Weiler's "Deploying DNSSEC without a signed root"), in the format of DS.
  recordKind('TA', TYPE.TA, keyDigest),
  // The previous and next trust anchors (draft-wijngaards-dnsop-trust-history).
  recordKind('TALINK', TYPE.TALINK, { before: fullName, behind: fullName }),
  // Key agreement (RFC 2930 section 2).
  recordKind('TKEY', TYPE.TKEY, {
    algorithm: fullName,
    inception: time,
    expiration: time,
    mode: u16,
    error: errorCode,
    key: lengthAndBase64,
    other: lengthAndBase64,
  }),
  // Certificate association for a TLS service (RFC 6698 section 2.1).
  recordKind('TLSA', TYPE.TLSA, certificate),
  tsig,
  txt,
  // Mapping to a URI (RFC 7553 section 4).
  recordKind('URI', TYPE.URI, { priority: u16, weight: u16, target: restString }),
  // Address in an X.25 network (RFC 1183 section 3.1).
  recordKind('X25', TYPE.X25, { address: string }),
  // Digest of a zone (RFC 8976 section 2.2).
  recordKind('ZONEMD', TYPE.ZONEMD, { serial: u32, scheme: u8, algorithm: u8, digest: restHex }),
];

const byType: ReadonlyMap<number, RecordKind<object>> = new Map(
  recordKinds.map((kind) => [kind.type, kind]),
);

/** Returns a type's codec, or undefined if its data is plain bytes. */
export function kindOf(type: number): RecordKind<object> | undefined {
  return byType.get(type);
}
