/** Answers from a zone. */
import { readUint32 } from '../base/big-endian.ts';
import { FLAG, HEADER, RCODE, TYPE } from '../wire/iana.ts';
import { foldNameInto, NAME_MAX, nameLength, suffixAt, type WireName } from '../wire/name.ts';
import type { Query } from '../wire/query.ts';
import { failure, type Reply } from '../wire/reply.ts';
import { MessageFull, SECTION, type MessageWriter, type Section } from '../wire/writer.ts';
import { Denial } from './denial.ts';
import { NODE } from './packed-zone.ts';
import { writeData } from './record-data.ts';
import type { ZoneData } from './zone-data.ts';

/** Aliases of one zone that are followed one after the other. */
const CHAIN_MAX = 10;
/** Nothing is added to a reply of so many bytes that it could do without. */
const ROOMY = 60_000;
/** Names whose addresses are added. */
const TARGETS_MAX = 64;
const POINTER_MAX = 0x3fff;
const STAR = Uint8Array.of(1, 0x2a);

/**
 * Answers from a zone as RFC 1034 section 4.3.2 says, with RFC 2308 (negative answers), 4592 (wildcards), 6672 (DNAME), 6604 (result
 * codes of chains), 8020 (empty non-terminals), and what DNSSEC adds where the query wants it (RFC 4035 section 3.1, RFC 5155
 * section 7.2).
 *
 * As CoreDNS, an answer has the zone's name servers in its authority section, and addresses of the zone for what it names.
 */
export class ZoneAnswers {
  /** The last reply is only a beginning: it ends in an alias of this name, which this zone does not have. */
  onward: WireName | null = null;
  readonly #writer: MessageWriter;
  readonly #plugin: string;
  readonly #denial = new Denial();
  readonly #targets = new Uint32Array(TARGETS_MAX);
  #targetCount = 0;
  /** The name that is looked for: the question's, then what aliases lead to. Lower case. */
  #name: Uint8Array = new Uint8Array(0);
  #length = 0;
  /** Where in the message it stands; -1: nowhere that a pointer reaches. */
  #nameAt = 0;
  #chained: Uint8Array = new Uint8Array(NAME_MAX + 1);
  #spare: Uint8Array = new Uint8Array(NAME_MAX + 1);
  readonly #owner = new Uint8Array(NAME_MAX + 1);
  /** What the question's last RRset was: its node and type, for additional records. */
  #answered = -1;
  #zone!: ZoneData;
  #dnssec = false;

  constructor(writer: MessageWriter, plugin: string) {
    this.#writer = writer;
    this.#plugin = plugin;
  }

  /**
   * The reply to a query whose name lies in the zone.
   * @param through a name that owns nothing is for somebody else to answer
   * @returns null: this is such a name
   */
  answer(query: Query, zone: ZoneData, through: boolean): Reply | null {
    this.#zone = zone;
    this.#dnssec = query.dnssecOk;
    this.onward = null;
    this.#denial.begin(zone);
    this.#targetCount = 0;
    this.#answered = -1;
    this.#name = query.folded;
    this.#length = query.nameLength;
    this.#nameAt = HEADER.SIZE;
    this.#writer.reply(query, FLAG.AA);
    try {
      return this.#follow(query, through);
    } catch (error) {
      if (!(error instanceof MessageFull)) throw error;
      return failure(
        RCODE.SERVFAIL,
        this.#plugin,
        new Error(`the records of ${query.name} take more than a message`),
      );
    }
  }

  #follow(query: Query, through: boolean): Reply | null {
    const zone = this.#zone;
    const { type } = query;
    for (let links = 0; links <= CHAIN_MAX; links++) {
      const how = zone.walk(this.#name, this.#length);
      const { node, nodeAt, nextAt } = zone;
      if (how === 'cut' && (type !== TYPE.DS || nodeAt > 0)) {
        return this.#referral(query, node, links > 0);
      }
      if (how === 'dname') {
        if (!this.#rename(node, nodeAt)) return this.#writer.finish(RCODE.YXDOMAIN, this.#plugin);
        if (this.#spareIsName || links === CHAIN_MAX) return this.#endless(query);
        if (type === TYPE.CNAME || type === TYPE.ANY) return this.#positive();
        this.#swap();
        if (!this.#inZone()) return this.#leave();
        continue;
      }
      const wild = how === 'nothing';
      let source = node;
      if (wild) {
        source = (zone.flags(node) & NODE.WILD) !== 0 ? zone.child(node, STAR, 0) : -1;
        if (source < 0) {
          if (through && links === 0) return this.#pass();
          // It may lie in a zone below that is served here, too.
          if (links > 0) return this.#leave();
          if (this.#dnssec) this.#denial.noName(node, this.#name, this.#length, nodeAt, nextAt);
          return this.#negative(RCODE.NXDOMAIN);
        }
      } else if (through && links === 0 && zone.at(node + 1) === this.#endOfLabel(node)) {
        return this.#pass();
      }
      if ((zone.flags(source) & NODE.ALIAS) !== 0 && follows(type)) {
        // A circle is an error, and told as one (RFC 1034 section 3.6.2).
        if (!wild && this.#followed(source)) return this.#endless(query);
        this.#alias(source);
        if (wild && this.#dnssec)
          this.#denial.noExactName(node, this.#name, this.#length, nodeAt, nextAt);
        if (wild && this.#spareIsName) return this.#endless(query);
        this.#swap();
        if (!this.#inZone()) return this.#leave();
        continue;
      }
      if (!this.#records(source, type)) {
        if (this.#dnssec) {
          if (wild) this.#denial.noTypeOfWildcard(source, this.#name, this.#length, nodeAt, nextAt);
          else this.#denial.noType(source, this.#name, this.#length, nodeAt);
        }
        return this.#negative(RCODE.NOERROR);
      }
      if (wild && this.#dnssec)
        this.#denial.noExactName(node, this.#name, this.#length, nodeAt, nextAt);
      return this.#positive(source === 0 && (type === TYPE.NS || type === TYPE.ANY));
    }
    // A long chain: what was followed of it is the answer, and who asked goes on from its end.
    return this.#positive();
  }

  /** Whether this alias has been followed already; from now on it has. */
  #followed(node: number): boolean {
    const before = this.#targetCount;
    this.#addTarget(node);
    return this.#targetCount === before;
  }

  #endOfLabel(node: number): number {
    const at = this.#zone.at(node);
    return at + 2 + this.#zone.data[at + 1]!;
  }

  /** Aliases lead in a circle, or ever deeper. */
  #endless(query: Query): Reply {
    this.#writer.abandon();
    const error = new Error(`the aliases of ${query.name} lead to no end`);
    return failure(RCODE.SERVFAIL, this.#plugin, error);
  }

  /** Nothing was answered. */
  #pass(): null {
    this.#writer.abandon();
    return null;
  }

  /** Writes what the node has of a type as the answer. @returns false: nothing */
  #records(node: number, type: number): boolean {
    const zone = this.#zone;
    if (type !== TYPE.ANY && type !== TYPE.RRSIG) {
      if (!zone.find(node, type)) return false;
      this.#set(SECTION.answer, this.#nameAt);
      this.#answered = node;
      return true;
    }
    let any = false;
    zone.sets(node);
    while (zone.next()) {
      if (type === TYPE.RRSIG) any = this.#signatures(SECTION.answer, this.#nameAt) || any;
      else if (zone.count > 0) {
        this.#set(SECTION.answer, this.#nameAt);
        any = true;
      }
    }
    return any;
  }

  /** Writes the CNAME record of a node, and makes its target the spare name. */
  #alias(node: number): void {
    const zone = this.#zone;
    const writer = this.#writer;
    zone.find(node, TYPE.CNAME);
    const { ttl } = zone;
    const at = zone.varint(zone.recordsAt);
    this.#open(SECTION.answer, this.#nameAt, TYPE.CNAME, ttl);
    const stands = writer.length;
    writer.name(zone.data, true, at);
    writer.close();
    if (this.#dnssec) this.#signatures(SECTION.answer, this.#nameAt);
    const length = foldNameInto(zone.data, at, this.#spare);
    this.#becomes(length, stands);
  }

  /** Writes a DNAME record and the CNAME that comes of it, and makes its target the spare name. @returns false: the new name were too long */
  #rename(node: number, nodeAt: number): boolean {
    const zone = this.#zone;
    const writer = this.#writer;
    zone.find(node, TYPE.DNAME);
    const { ttl } = zone;
    const at = zone.varint(zone.recordsAt);
    this.#ownerOf(node);
    this.#set(SECTION.answer, 0);
    const spare = this.#spare;
    const target = nameLength(zone.data, at);
    if (nodeAt + target > NAME_MAX) return false;
    for (let i = 0; i < nodeAt; i++) spare[i] = this.#name[i]!;
    foldNameInto(zone.data, at, spare, nodeAt);
    this.#open(SECTION.answer, this.#nameAt, TYPE.CNAME, ttl);
    const stands = writer.length;
    writer.name(spare);
    writer.close();
    this.#becomes(nodeAt + target, stands);
    return true;
  }

  #spareLength = 0;
  #spareAt = 0;

  /** The spare name and the one that is looked for are the same: a DNAME, or a wildcard's alias, leads to itself. */
  get #spareIsName(): boolean {
    if (this.#spareLength !== this.#length) return false;
    for (let i = 0; i < this.#length; i++) if (this.#spare[i] !== this.#name[i]) return false;
    return true;
  }

  #becomes(length: number, stands: number): void {
    this.#spareLength = length;
    this.#spareAt = stands <= POINTER_MAX ? stands : -1;
  }

  /** From now on the spare name is looked for. */
  #swap(): void {
    this.#name = this.#spare;
    this.#length = this.#spareLength;
    this.#nameAt = this.#spareAt;
    this.#spare = this.#chained;
    this.#chained = this.#name;
  }

  #inZone(): boolean {
    return suffixAt(this.#name, this.#zone.origin, this.#length) >= 0;
  }

  /** The chain leads out of the zone. */
  #leave(): Reply {
    this.onward = this.#name.slice(0, this.#length);
    return this.#positive();
  }

  #positive(servers = false): Reply {
    const zone = this.#zone;
    if (!servers && zone.find(0, TYPE.NS)) {
      this.#apex();
      this.#set(SECTION.authority, 0);
    }
    this.#proofs();
    if (this.#answered >= 0) this.#addTargets();
    return this.#writer.finish(RCODE.NOERROR, this.#plugin);
  }

  /** NODATA or NXDOMAIN: the SOA record with the time that this may be remembered for (RFC 2308 section 3). */
  #negative(rcode: number): Reply {
    const zone = this.#zone;
    const at = zone.soa();
    const minimum = readUint32(zone.data, at + zone.value - 4);
    this.#apex();
    this.#set(SECTION.authority, 0, Math.min(zone.ttl, minimum));
    this.#proofs();
    return this.#writer.finish(rcode, this.#plugin);
  }

  /** The name lies in another zone: its name servers, and their addresses as far as they are known here. */
  #referral(query: Query, node: number, chained: boolean): Reply {
    const zone = this.#zone;
    const writer = this.#writer;
    if (!chained) {
      writer.abandon();
      writer.reply(query, 0);
    }
    const { nodeAt } = zone;
    this.#ownerOf(node);
    zone.find(node, TYPE.NS);
    this.#set(SECTION.authority, 0, -1, false);
    if (this.#dnssec) {
      if (zone.find(node, TYPE.DS)) this.#set(SECTION.authority, 0);
      else this.#denial.noType(node, this.#name, this.#length, nodeAt);
    }
    this.#proofs();
    this.#ownerOf(node);
    zone.find(node, TYPE.NS);
    this.#targetsIn(TYPE.NS);
    this.#addresses(true);
    return writer.finish(RCODE.NOERROR, this.#plugin);
  }

  #proofs(): void {
    const { nodes, count, type } = this.#denial;
    for (let i = 0; i < count; i++) {
      this.#ownerOf(nodes[i]!);
      if (this.#zone.find(nodes[i]!, type)) this.#set(SECTION.authority, 0);
    }
  }

  /** Addresses for what the answer names. */
  #addTargets(): void {
    if (targetOffset(this.#answeredType) < 0) return;
    this.#zone.find(this.#answered, this.#answeredType);
    this.#targetsIn(this.#answeredType);
    // Addresses below a cut are another zone's: whoever validates has no use for them.
    this.#addresses(!this.#dnssec);
  }

  #answeredType = 0;

  /** Collects the nodes that records of the present RRset name. */
  #targetsIn(type: number): void {
    const zone = this.#zone;
    this.#targetCount = 0;
    const before = targetOffset(type);
    if (before < 0) return;
    const { data } = zone;
    let at = zone.recordsAt;
    for (let left = zone.count; left > 0 && this.#targetCount < TARGETS_MAX; left--) {
      at = zone.varint(at);
      const length = zone.value;
      const folded = this.#spare;
      const size = foldNameInto(data, at + before, folded);
      at += length;
      if (suffixAt(folded, zone.origin, size) < 0) continue;
      const node = zone.nodeOf(folded, size);
      if (node >= 0) this.#addTarget(node);
    }
  }

  #addTarget(node: number): void {
    for (let i = 0; i < this.#targetCount; i++) if (this.#targets[i] === node) return;
    this.#targets[this.#targetCount++] = node;
  }

  #addresses(withGlue: boolean): void {
    const zone = this.#zone;
    for (let i = 0; i < this.#targetCount; i++) {
      const node = this.#targets[i]!;
      if (!withGlue && (zone.flags(node) & (NODE.CUT | NODE.GLUE)) !== 0) continue;
      this.#ownerOf(node);
      for (const type of addressTypes) {
        if (this.#writer.length > ROOMY) return;
        if (zone.find(node, type)) this.#set(SECTION.additional, 0);
      }
    }
  }

  /** The apex becomes the owner. */
  #apex(): void {
    const { origin } = this.#zone;
    for (let i = 0; i < origin.length; i++) this.#owner[i] = origin[i]!;
  }

  #ownerOf(node: number): void {
    this.#zone.name(node, this.#owner);
  }

  /**
   * Writes the present RRset of the zone.
   * @param ownerAt where its owner stands in the message; 0: the owner is `#owner`; -1: it is the name that is looked for
   * @param ttl instead of its own; -1: none
   */
  #set(section: Section, ownerAt: number, ttl = -1, signed = this.#dnssec): void {
    const zone = this.#zone;
    const writer = this.#writer;
    const { data, type } = zone;
    if (ttl < 0) ttl = zone.ttl;
    if (section === SECTION.answer) this.#answeredType = type;
    let at = zone.recordsAt;
    for (let left = zone.count; left > 0; left--) {
      at = zone.varint(at);
      const length = zone.value;
      this.#open(section, ownerAt, type, ttl);
      writeData(writer, type, data, at, length);
      writer.close();
      at += length;
    }
    if (signed) this.#signatures(section, ownerAt, ttl);
  }

  /** Writes the signatures of the present RRset. @returns whether there are any */
  #signatures(section: Section, ownerAt: number, ttl = this.#zone.ttl): boolean {
    const zone = this.#zone;
    const writer = this.#writer;
    let at = zone.signaturesAt;
    for (let left = zone.signatures; left > 0; left--) {
      at = zone.varint(at);
      this.#open(section, ownerAt, TYPE.RRSIG, ttl);
      writer.bytes(zone.data, at, zone.value);
      writer.close();
      at += zone.value;
    }
    return zone.signatures > 0;
  }

  #open(section: Section, ownerAt: number, type: number, ttl: number): void {
    if (ownerAt > 0) this.#writer.openAt(section, ownerAt, type, ttl);
    else this.#writer.open(section, ownerAt === 0 ? this.#owner : this.#name, type, ttl);
  }
}

const addressTypes = [TYPE.A, TYPE.AAAA] as const;

/** Whether a question for this type is answered by what an alias leads to. */
function follows(type: number): boolean {
  return type !== TYPE.CNAME && type !== TYPE.ANY && type !== TYPE.RRSIG && type !== TYPE.NSEC;
}

/** Where in the data of a type the name stands whose addresses are wanted, too; -1: nowhere. */
function targetOffset(type: number): number {
  switch (type) {
    case TYPE.NS:
      return 0;
    case TYPE.MX:
    case TYPE.SVCB:
    case TYPE.HTTPS:
      return 2;
    case TYPE.SRV:
      return 6;
    default:
      return -1;
  }
}
