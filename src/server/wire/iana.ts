/** DNS parameters, from IANA's "Domain Name System (DNS) Parameters" registries. */

/** Result codes, with four bits in the header and eight more in OPT. */
export const RCODE = {
  NOERROR: 0,
  FORMERR: 1,
  SERVFAIL: 2,
  NXDOMAIN: 3,
  NOTIMP: 4,
  REFUSED: 5,
  YXDOMAIN: 6,
  YXRRSET: 7,
  NXRRSET: 8,
  NOTAUTH: 9,
  NOTZONE: 10,
  DSOTYPENI: 11,
  BADVERS: 16,
  BADKEY: 17,
  BADTIME: 18,
  BADMODE: 19,
  BADNAME: 20,
  BADALG: 21,
  BADTRUNC: 22,
  BADCOOKIE: 23,
} as const;

/**
 * Types of records and questions. They include obsolete types from the first RFCs, because tools and logs still show
 * their names.
 */
export const TYPE = {
  A: 1,
  NS: 2,
  MD: 3,
  MF: 4,
  CNAME: 5,
  SOA: 6,
  MB: 7,
  MG: 8,
  MR: 9,
  NULL: 10,
  WKS: 11,
  PTR: 12,
  HINFO: 13,
  MINFO: 14,
  MX: 15,
  TXT: 16,
  RP: 17,
  AFSDB: 18,
  X25: 19,
  ISDN: 20,
  RT: 21,
  'NSAP-PTR': 23,
  SIG: 24,
  KEY: 25,
  PX: 26,
  GPOS: 27,
  AAAA: 28,
  LOC: 29,
  NXT: 30,
  EID: 31,
  NIMLOC: 32,
  SRV: 33,
  ATMA: 34,
  NAPTR: 35,
  KX: 36,
  CERT: 37,
  DNAME: 39,
  OPT: 41,
  APL: 42,
  DS: 43,
  SSHFP: 44,
  IPSECKEY: 45,
  RRSIG: 46,
  NSEC: 47,
  DNSKEY: 48,
  DHCID: 49,
  NSEC3: 50,
  NSEC3PARAM: 51,
  TLSA: 52,
  SMIMEA: 53,
  HIP: 55,
  NINFO: 56,
  RKEY: 57,
  TALINK: 58,
  CDS: 59,
  CDNSKEY: 60,
  OPENPGPKEY: 61,
  CSYNC: 62,
  ZONEMD: 63,
  SVCB: 64,
  HTTPS: 65,
  SPF: 99,
  UINFO: 100,
  UID: 101,
  GID: 102,
  UNSPEC: 103,
  NID: 104,
  L32: 105,
  L64: 106,
  LP: 107,
  EUI48: 108,
  EUI64: 109,
  NXNAME: 128,
  TKEY: 249,
  TSIG: 250,
  IXFR: 251,
  AXFR: 252,
  MAILB: 253,
  MAILA: 254,
  ANY: 255,
  URI: 256,
  CAA: 257,
  AVC: 258,
  AMTRELAY: 260,
  RESINFO: 261,
  TA: 32768,
  DLV: 32769,
} as const;

/** The record types that contain a name's addresses. */
export const addressTypes: readonly number[] = [TYPE.A, TYPE.AAAA];

export function isAddressType(type: number): boolean {
  return type === TYPE.A || type === TYPE.AAAA;
}

/** Classes of records and questions. */
export const CLASS = { IN: 1, CH: 3, HS: 4, NONE: 254, ANY: 255 } as const;

/** Opcodes: four bits in the header. */
export const OPCODE = { QUERY: 0, IQUERY: 1, STATUS: 2, NOTIFY: 4, UPDATE: 5, DSO: 6 } as const;

/** EDNS option codes. */
export const OPTION = {
  LLQ: 1,
  UL: 2,
  NSID: 3,
  DAU: 5,
  DHU: 6,
  N3U: 7,
  ECS: 8,
  EXPIRE: 9,
  COOKIE: 10,
  KEEPALIVE: 11,
  PADDING: 12,
  CHAIN: 13,
  KEYTAG: 14,
  EDE: 15,
} as const;

/** Extended DNS Error info codes (RFC 8914, and the IANA registry from 25 on). */
export const EDE = {
  OTHER: 0,
  UNSUPPORTED_DNSKEY_ALGORITHM: 1,
  UNSUPPORTED_DS_DIGEST: 2,
  STALE_ANSWER: 3,
  FORGED_ANSWER: 4,
  DNSSEC_INDETERMINATE: 5,
  DNSSEC_BOGUS: 6,
  SIGNATURE_EXPIRED: 7,
  SIGNATURE_NOT_YET_VALID: 8,
  DNSKEY_MISSING: 9,
  RRSIGS_MISSING: 10,
  NO_ZONE_KEY_BIT: 11,
  NSEC_MISSING: 12,
  CACHED_ERROR: 13,
  NOT_READY: 14,
  BLOCKED: 15,
  CENSORED: 16,
  FILTERED: 17,
  PROHIBITED: 18,
  STALE_NXDOMAIN: 19,
  NOT_AUTHORITATIVE: 20,
  NOT_SUPPORTED: 21,
  NO_REACHABLE_AUTHORITY: 22,
  NETWORK_ERROR: 23,
  INVALID_DATA: 24,
  SIGNATURE_EXPIRED_BEFORE_VALID: 25,
  TOO_EARLY: 26,
  UNSUPPORTED_NSEC3_ITERATIONS: 27,
  SYNTHESIZED: 29,
} as const;

/** Names from the registry, by code. */
const errorNames = [
  'Other',
  'Unsupported DNSKEY Algorithm',
  'Unsupported DS Digest Type',
  'Stale Answer',
  'Forged Answer',
  'DNSSEC Indeterminate',
  'DNSSEC Bogus',
  'Signature Expired',
  'Signature Not Yet Valid',
  'DNSKEY Missing',
  'RRSIGs Missing',
  'No Zone Key Bit Set',
  'NSEC Missing',
  'Cached Error',
  'Not Ready',
  'Blocked',
  'Censored',
  'Filtered',
  'Prohibited',
  'Stale NXDOMAIN Answer',
  'Not Authoritative',
  'Not Supported',
  'No Reachable Authority',
  'Network Error',
  'Invalid Data',
  'Signature Expired before Valid',
  'Too Early',
  'Unsupported NSEC3 Iterations Value',
  'Unable to conform to policy',
  'Synthesized',
  'Invalid Query Type',
] as const;

/** Returns the name of an Extended DNS Error (`Blocked` for 15), or null if the code is unknown. */
export function errorName(code: number): string | null {
  return errorNames[code] ?? null;
}

/** EDNS option names as printed by dig. */
const optionNames: Readonly<Record<number, string>> = {
  1: 'LLQ',
  2: 'UPDATE-LEASE',
  3: 'NSID',
  5: 'DAU',
  6: 'DHU',
  7: 'N3U',
  8: 'CLIENT-SUBNET',
  9: 'EXPIRE',
  10: 'COOKIE',
  11: 'TCP KEEPALIVE',
  12: 'PAD',
  13: 'CHAIN',
  14: 'KEY-TAG',
  15: 'EDE',
  16: 'CLIENT-TAG',
  17: 'SERVER-TAG',
};

/** Returns the name of an EDNS option (`COOKIE`), or `OPT=65001` if the code has no name. */
export function optionName(code: number): string {
  return optionNames[code] ?? `OPT=${code}`;
}

/** Flag bits in the second 16-bit header word. */
export const FLAG = {
  QR: 0x8000,
  OPCODE: 0x7800,
  AA: 0x0400,
  TC: 0x0200,
  RD: 0x0100,
  RA: 0x0080,
  Z: 0x0040,
  AD: 0x0020,
  CD: 0x0010,
  RCODE: 0x000f,
} as const;

/** Maximum message size on any transport. Streams have a 16-bit length (RFC 1035 section 4.2.2). */
export const MESSAGE_MAX = 65_535;

/** Offsets in the fixed header. */
export const HEADER = {
  ID: 0,
  FLAGS: 2,
  QDCOUNT: 4,
  ANCOUNT: 6,
  NSCOUNT: 8,
  ARCOUNT: 10,
  SIZE: 12,
} as const;

function reversed(table: Readonly<Record<string, number>>): ReadonlyMap<number, string> {
  return new Map(Object.entries(table).map(([name, value]) => [value, name]));
}

const typeNames = reversed(TYPE);
const classNames = reversed(CLASS);
const rcodeNames = reversed(RCODE);
const opcodeNames = reversed(OPCODE);

/** @param generic the form of numbers that have no name */
function parseNumber(
  table: Readonly<Record<string, number>>,
  name: string,
  generic: RegExp,
  max: number,
): number | null {
  const upper = name.toUpperCase();
  const number = table[upper] ?? Number(generic.exec(upper)?.[1] ?? NaN);
  return number <= max ? number : null;
}

/** Returns the name of a type (`A`, `HTTPS` …), or `TYPE65280` if the number has no name (RFC 3597). */
export function typeName(type: number): string {
  return typeNames.get(type) ?? `TYPE${type}`;
}

/** Parses `AAAA`, `aaaa` or `TYPE28`. Returns null if the text is not a type. */
export function typeNumber(name: string): number | null {
  return parseNumber(TYPE, name, /^TYPE(\d{1,5})$/, 0xffff);
}

/** Returns the name of a class (`IN`, `CH` …), or `CLASS42` for others (RFC 3597). */
export function className(number: number): string {
  return classNames.get(number) ?? `CLASS${number}`;
}

/** Parses `IN`, `in` or `CLASS1`. Returns null if the text is not a class. */
export function classNumber(name: string): number | null {
  return parseNumber(CLASS, name, /^CLASS(\d{1,5})$/, 0xffff);
}

/** Returns the name of a result code (`NXDOMAIN` …), or `RCODE3841` if the number has no name. */
export function rcodeName(rcode: number): string {
  return rcodeNames.get(rcode) ?? `RCODE${rcode}`;
}

/** Parses `NXDOMAIN`, `RCODE3` or `3`. Returns null if the text is not a result code. */
export function rcodeNumber(name: string): number | null {
  return parseNumber(RCODE, name, /^(?:RCODE)?(\d{1,4})$/, 0xfff);
}

/** Returns the name of an opcode (`QUERY` …), or `OPCODE7` if the number has no name. */
export function opcodeName(opcode: number): string {
  return opcodeNames.get(opcode) ?? `OPCODE${opcode}`;
}
