/**
 * A reply as a client sees it, without its bytes. Resolver models only need the flags, the answer records and the size.
 * Names are absolute, in presentation form, and spelled as on the wire.
 */

/** RFC 1035 section 4.1.1; other values are printed as numbers. */
export type Rcode =
  | 'NOERROR'
  | 'FORMERR'
  | 'SERVFAIL'
  | 'NXDOMAIN'
  | 'NOTIMP'
  | 'REFUSED'
  | `RCODE${number}`;

export interface ReplyRecord {
  readonly name: string;
  /** Mnemonic: `A`, `AAAA`, `CNAME`, … */
  readonly type: string;
  /** In seconds. */
  readonly ttl: number;
  /** An address or CNAME target. Other types are as in a zone file. */
  readonly data: string;
}

/** A reply, reduced to the parts that clients read. */
export interface ClientReply {
  readonly id: number;
  readonly name: string;
  readonly type: string;
  readonly rcode: Rcode;
  readonly authoritative: boolean;
  readonly recursionAvailable: boolean;
  readonly truncated: boolean;
  readonly answer: readonly ReplyRecord[];
  /** The number of seconds that a client may cache a negative reply (RFC 2308), or null if there is no SOA. */
  readonly negativeTtl: number | null;
  /** True if the additional section has an OPT record. */
  readonly opt: boolean;
  /** The size of the whole message in bytes. */
  readonly size: number;
  /** Absent if the reply was not made from a message. */
  readonly bytes?: Uint8Array;
  /** The label in a trace, if it differs from the one derived from the fields (`TC(size)`). */
  readonly label?: string;
}

/** Returns addresses in message order. */
export function addressesIn(reply: ClientReply): string[] {
  return reply.answer.filter((record) => record.type === reply.type).map((record) => record.data);
}

export function hasCname(reply: ClientReply): boolean {
  return reply.answer.some((record) => record.type === 'CNAME');
}

/** True if the code means that this server cannot answer. Most clients then try the next server. */
export function isServerError({ rcode }: ClientReply): boolean {
  return rcode === 'SERVFAIL' || rcode === 'NOTIMP' || rcode === 'REFUSED';
}

/** Describes the answer in a word or two: `NXDOMAIN`, `NODATA`, `2 rr`, `1 rr cname` or `TC`. */
export function labelOf(reply: ClientReply): string {
  if (reply.label !== undefined) return reply.label;
  if (reply.truncated && reply.answer.length === 0) return 'TC';
  if (reply.rcode !== 'NOERROR') return hasCname(reply) ? `${reply.rcode} cname` : reply.rcode;
  const count = addressesIn(reply).length;
  const text = count === 0 ? 'NODATA' : `${count} rr`;
  const alias = hasCname(reply) ? `${text} cname` : text;
  return reply.truncated ? `TC ${alias}` : alias;
}

/** True if two names are equal in DNS, ignoring ASCII case and a missing trailing dot. */
export function sameName(one: string, other: string): boolean {
  return fold(one) === fold(other);
}

function fold(name: string): string {
  const lower = name.toLowerCase();
  return lower.endsWith('.') ? lower : `${lower}.`;
}

/** The size in bytes of an uncompressed name on the wire (RFC 1035, section 3.1). */
export function nameBytes(name: string): number {
  if (name === '.' || name === '') return 1;
  const { length } = name.replace(/\\(\d{3}|.)/g, 'x');
  return (name.endsWith('.') ? length : length + 1) + 1;
}

const dataBytes: Readonly<Record<string, number>> = { A: 4, AAAA: 16 };

/** @param pointer true if the owner is a two-byte pointer */
export function recordBytes(record: ReplyRecord, pointer: boolean): number {
  const owner = pointer ? 2 : nameBytes(record.name);
  return owner + 10 + (dataBytes[record.type] ?? nameBytes(record.data));
}

/** The size in bytes of the header and question. */
export function questionBytes(name: string): number {
  return 12 + nameBytes(name) + 4;
}

/** The size in bytes of an empty OPT record (RFC 6891). */
export const optBytes = 11;
