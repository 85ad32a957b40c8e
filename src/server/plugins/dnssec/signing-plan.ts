/** Decides what to sign in a reply, and what to prove. */
import { nameBehind, nameBeside } from '../../dnssec/canonical.ts';
import { nsecData } from '../../dnssec/nsec-data.ts';
import { HEADER, RCODE, TYPE } from '../../wire/iana.ts';
import { suffixAt, type WireName } from '../../wire/name.ts';
import type { Query } from '../../transport/query.ts';
import type { Reply } from '../../wire/reply.ts';
import { SECTION } from '../../wire/writer.ts';
import { claimedTypes, type NameStanding } from './denial-types.ts';
import { FoundSets, type FoundSet } from './found-sets.ts';
import type { SignedZones } from './zones.ts';

export interface Plan {
  readonly sets: readonly FoundSet[];
  /** The NSEC record to add, or null. */
  readonly proof: FoundSet | null;
  /** A missing name becomes a name without data. */
  readonly rcode: number;
  /** True if the authority section should be omitted, because the denial itself is the answer. */
  readonly alone: boolean;
}

/** The name whose denial needs a proof. */
export interface Denied {
  readonly name: WireName;
  readonly nameAt: number;
  /** TTL in seconds. */
  readonly ttl: number;
  readonly standing: NameStanding;
}

/** TTL in seconds of a denial that has no SOA record. */
const TTL_WITHOUT_SOA = 5;
/** Longer alias chains are not followed. */
const CHAIN_MAX = 64;

/** The parsed reply: its RRsets, and its denials. */
export class Judgement {
  readonly sets: FoundSets;
  /** The name or type that the reply has to prove absent, or null. */
  readonly denied: Denied | null;
  readonly #reply: Reply;
  readonly #query: Query;
  readonly #zones: SignedZones;
  readonly #isReferral: boolean;

  constructor(reply: Reply, query: Query, zones: SignedZones) {
    this.#reply = reply;
    this.#query = query;
    this.#zones = zones;
    this.sets = new FoundSets(reply);
    const { name, nameAt, found } = this.#follow();
    const cut = found ? null : this.#cutAbove(name);
    this.#isReferral = cut !== null;
    this.denied = found ? null : cut === null ? this.#denial(name, nameAt) : this.#noKeyBelow(cut);
  }

  /**
   * True if the reply denies the DS records of a name that may be a zone. This has to be determined first, because the
   * proof differs. In all other cases, the reply's bytes are sufficient.
   */
  get asksForCut(): boolean {
    return this.denied?.standing === 'name' && this.#query.type === TYPE.DS;
  }

  /** @param isCut true if the name in a DS denial is a zone */
  plan(isCut: boolean): Plan {
    const { denied } = this;
    const { rcode } = this.#reply;
    const alone = denied !== null && denied.standing !== 'cut' && this.#query.type === TYPE.NSEC;
    const sets: FoundSet[] = [];
    for (const set of this.sets.all) if (this.#isOurs(set, alone)) sets.push(set);
    if (denied === null) return { sets, proof: null, rcode, alone: false };
    const proof = this.#proof(denied, isCut ? 'cut' : denied.standing, alone);
    sets.push(proof);
    return { sets, proof, rcode: RCODE.NOERROR, alone };
  }

  #follow(): { readonly name: WireName; readonly nameAt: number; readonly found: boolean } {
    const { sets } = this;
    const { type, folded, nameLength } = this.#query;
    let name: WireName = folded.slice(0, nameLength);
    let nameAt = this.#reply.start + HEADER.SIZE;
    if (this.#reply.answers === 0) return { name, nameAt, found: false };
    for (let links = 0; links <= CHAIN_MAX; links++) {
      if (type === TYPE.ANY && this.#reply.answers > 0) return { name, nameAt, found: true };
      if (sets.find(SECTION.answer, name, type) !== null) return { name, nameAt, found: true };
      const alias = sets.find(SECTION.answer, name, TYPE.CNAME);
      if (alias === null) return { name, nameAt, found: false };
      name = alias.data[0]!;
      nameAt = alias.dataAt;
    }
    // An alias loop denies nothing.
    return { name, nameAt, found: true };
  }

  #cutAbove(name: WireName): FoundSet | null {
    if (this.sets.first(SECTION.authority, TYPE.SOA) !== null) return null;
    const servers = this.sets.first(SECTION.authority, TYPE.NS);
    if (servers === null || this.#zones.find(servers.owner) === null) return null;
    const isBelow = !this.#zones.isApex(servers.owner);
    return isBelow && suffixAt(name, servers.owner) >= 0 ? servers : null;
  }

  #denial(name: WireName, nameAt: number): Denied | null {
    const { rcode, answers, authority } = this.#reply;
    if (rcode !== RCODE.NOERROR && rcode !== RCODE.NXDOMAIN) return null;
    const zone = this.#zones.find(name);
    if (zone === null || this.#isProven) return null;
    const soa = this.sets.first(SECTION.authority, TYPE.SOA);
    if (soa === null && (answers > 0 || authority > 0)) return null;
    const standing = zone.length === name.length ? 'apex' : 'name';
    return { name, nameAt, ttl: soa?.ttl ?? TTL_WITHOUT_SOA, standing };
  }

  /** The delegated zone has no DS records and is therefore unsigned, which has to be proven too. */
  #noKeyBelow({ owner, ownerAt, ttl }: FoundSet): Denied | null {
    if (this.#isProven || this.sets.find(SECTION.authority, owner, TYPE.DS) !== null) return null;
    return { name: owner, nameAt: ownerAt, ttl, standing: 'cut' };
  }

  get #isProven(): boolean {
    const { sets } = this;
    return (
      sets.first(SECTION.authority, TYPE.NSEC) !== null ||
      sets.first(SECTION.authority, TYPE.NSEC3) !== null
    );
  }

  #isOurs(set: FoundSet, alone: boolean): boolean {
    const { section, owner, type } = set;
    if (this.#zones.find(owner) === null || this.sets.isSigned(set)) return false;
    if (section === SECTION.authority) {
      if (alone) return false;
      // A delegated zone signs its own NS records (RFC 4035 section 2.2).
      return type !== TYPE.NS || this.#zones.isApex(owner);
    }
    // The same applies to their addresses.
    return section === SECTION.answer || !this.#isReferral;
  }

  #proof({ name, nameAt, ttl }: Denied, standing: NameStanding, alone: boolean): FoundSet {
    const next = standing === 'cut' ? nameBeside(name) : nameBehind(name);
    return {
      section: alone ? SECTION.answer : SECTION.authority,
      owner: name,
      ownerAt: nameAt,
      dataAt: -1,
      type: TYPE.NSEC,
      ttl,
      originalTtl: 3600,
      data: [nsecData(next, claimedTypes(standing, this.#query.type))],
    };
  }
}

/** True if a reply to an NS query shows that `name` (lower case) is a zone. */
export function tellsOfCut(reply: Reply, name: WireName): boolean {
  if (reply.bare || reply.rcode !== RCODE.NOERROR) return false;
  const sets = new FoundSets(reply);
  return (
    sets.find(SECTION.authority, name, TYPE.NS) !== null ||
    sets.find(SECTION.answer, name, TYPE.NS) !== null
  );
}
