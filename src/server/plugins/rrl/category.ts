/** A reply's category and account. */
import { hashBytes } from '../../base/hash.ts';
import type { ReplyKind } from '../../wire/classify.ts';
import { RCODE, TYPE } from '../../wire/iana.ts';
import { LOWER } from '../../wire/name.ts';
import type { Query } from '../../transport/query.ts';
import { Records } from '../../wire/records.ts';
import type { Reply } from '../../wire/reply.ts';
import { SECTION } from '../../wire/writer.ts';

export const categories = ['response', 'nodata', 'nxdomain', 'referral', 'error'] as const;
export type Category = (typeof categories)[number];

/**
 * Returns an outgoing reply's category.
 * @param kind as returned by `classify`
 */
export function categoryOf(reply: Reply, kind: ReplyKind): Category {
  if (reply.rcode === RCODE.NXDOMAIN) return 'nxdomain';
  if (reply.rcode !== RCODE.NOERROR) return 'error';
  if (kind === 'referral') return 'referral';
  return kind === 'nodata' || kind === 'empty' ? 'nodata' : 'response';
}

const records = new Records();
const STAR = 0x2a;

/**
 * The account for a reply, as two hashes. Depending on the category, an account is for a name and type, a name, a zone,
 * or a whole category. NXDOMAIN and referrals count for the zone. Answers from a wildcard or a DNAME count for that
 * record's name, so random names below it share one account, as in BIND. Denials signed online deny a name's records
 * rather than the name itself, so they count for the zone too. An alias without other records counts for its name,
 * whatever the type.
 */
export class AccountKey {
  high = 0;
  low = 0;
  readonly #bytes = new Uint8Array(512);
  #length = 0;
  #client = 0;

  /**
   * @param client a hash of the client
   * @param kind as returned by `classify`
   * @param wildcard offset, in the query's name, of the name whose wildcard answers; -1 if there is none
   */
  read(
    client: number,
    category: number,
    reply: Reply,
    query: Query,
    kind: ReplyKind,
    wildcard: number,
  ): void {
    this.#begin(client, category);
    const name = categories[category]!;
    if (name === 'error') return this.#end();
    const isOfZone = name === 'nxdomain' || (name === 'nodata' && isDeniedAlone(reply));
    if (isOfZone || name === 'referral') {
      const owner = zoneOf(reply, isOfZone ? TYPE.SOA : TYPE.NS);
      if (owner >= 0) this.#nameAt(reply.bytes, reply.start, owner);
      else this.#question(query);
      return this.#end();
    }
    if (wildcard < 0) this.#question(query);
    else this.#wildcardAt(query, wildcard);
    if (name === 'response') {
      const type = kind === 'unfinished' ? TYPE.CNAME : query.type;
      this.#add(type >> 8);
      this.#add(type & 0xff);
    }
    this.#end();
  }

  readAll(client: number, category: number): void {
    this.#begin(client, category);
    this.#end();
  }

  #begin(client: number, category: number): void {
    this.#client = client;
    this.#length = 0;
    this.#add(category);
  }

  #question({ folded, nameLength }: Query): void {
    for (let i = 0; i < nameLength; i++) this.#add(folded[i]!);
  }

  /** Hashes the same as a query for `*` itself. */
  #wildcardAt({ folded, nameLength }: Query, at: number): void {
    this.#add(1);
    this.#add(STAR);
    for (let i = at; i < nameLength; i++) this.#add(folded[i]!);
  }

  /** Reads a name in a message that has been validated, so pointers lead backwards. */
  #nameAt(bytes: Uint8Array, start: number, at: number): void {
    for (;;) {
      const size = bytes[at]!;
      if (size >= 0xc0) at = start + (((size & 0x3f) << 8) | bytes[at + 1]!);
      else {
        this.#add(size);
        if (size === 0) return;
        for (let i = 1; i <= size; i++) this.#add(LOWER[bytes[at + i]!]!);
        at += size + 1;
      }
    }
  }

  #add(next: number): void {
    this.#bytes[this.#length++] = next;
  }

  /** Finishes with 64 bits in the form of two hashes of the same bytes. */
  #end(): void {
    this.low = hashBytes(this.#bytes, 0, this.#length, this.#client);
    this.high = hashBytes(this.#bytes, 0, this.#length, ~this.#client);
  }
}

/** Returns the offset of the owner of the first record of `type` in the authority section, or -1. */
function zoneOf(reply: Reply, type: number): number {
  if (reply.authority === 0) return -1;
  for (records.of(reply); records.next();) {
    if (records.section === SECTION.additional) return -1;
    if (records.section === SECTION.authority && records.type === type) return records.ownerAt;
  }
  return -1;
}

/**
 * True if an NSEC record denies nothing but its owner, because its next name is the first one below it. Such a record
 * was generated for this query (by `dnssec` or another online signer), and any name has one.
 */
function isDeniedAlone(reply: Reply): boolean {
  if (reply.authority === 0) return false;
  for (records.of(reply); records.next();) {
    if (records.section === SECTION.additional) return false;
    const { bytes, dataAt } = records;
    if (records.section !== SECTION.authority || records.type !== TYPE.NSEC) continue;
    // The next name starts with a label that consists of a single zero byte.
    if (bytes[dataAt] === 1 && bytes[dataAt + 1] === 0) return true;
  }
  return false;
}
