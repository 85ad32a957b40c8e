/** Answers from a zone, deciding which RRsets and proofs go into a reply. */
import { readUint32 } from '../base/big-endian.ts';
import { EDE, FLAG, HEADER, MESSAGE_MAX, RCODE, TYPE } from '../wire/iana.ts';
import { foldNameInto, NAME_MAX, nameLength, suffixAt, type WireName } from '../wire/name.ts';
import type { Query } from '../transport/query.ts';
import { failure, type Reply } from '../wire/reply.ts';
import { MessageFull, SECTION, type MessageWriter } from '../wire/writer.ts';
import { Denial } from './denial.ts';
import { NODE } from './packed-zone.ts';
import { RrsetWriter } from './rrset-writer.ts';
import { NodeList, TargetAddresses } from './target-addresses.ts';
import type { ZoneData } from './zone-data.ts';

/** Maximum number of consecutive aliases to follow within a zone. */
const CHAIN_MAX = 10;
/** Maximum target of a compression pointer (RFC 1035 section 4.1.4). */
const POINTER_MAX = 0x3fff;
const STAR = Uint8Array.of(1, 0x2a);

/**
 * Answers from a zone according to RFC 1034, section 4.3.2. It also follows RFC 2308 (negative answers), 4592
 * (wildcards), 6672 (DNAME), 6604 (result codes of chains) and 8020 (empty non-terminals). If the query requests
 * DNSSEC, it is added (RFC 4035, section 3.1, RFC 5155, section 7.2). As in CoreDNS, an answer's authority section
 * contains the zone's name servers, and the zone's addresses for names in the answer are added.
 */
export class ZoneAnswers {
  /** Set if the last reply is incomplete because it ends in an alias to this name, which is outside this zone. */
  onward: WireName | null = null;
  readonly #writer: MessageWriter;
  readonly #plugin: string;
  readonly #denial = new Denial();
  readonly #sets: RrsetWriter;
  readonly #addresses: TargetAddresses;
  /** Aliases that have been followed. */
  readonly #followed = new NodeList();
  /** The current name in lower case, which is the one in the question at first, and then each alias's target. */
  #name: Uint8Array = new Uint8Array(0);
  #length = 0;
  #chained: Uint8Array = new Uint8Array(NAME_MAX + 1);
  #spare: Uint8Array = new Uint8Array(NAME_MAX + 1);
  /** The node whose RRset answers the question, for additional records, or -1 if there is none. */
  #answered = -1;
  #zone!: ZoneData;
  #dnssec = false;

  constructor(writer: MessageWriter, plugin: string) {
    this.#writer = writer;
    this.#plugin = plugin;
    this.#sets = new RrsetWriter(writer);
    this.#addresses = new TargetAddresses(writer, this.#sets);
  }

  /**
   * Returns the reply to a query for a name in the zone.
   * @param through true if another plugin answers for names that own nothing
   * @param most maximum reply size in bytes; anything beyond it is omitted and TC is set
   * @returns null if the name owns nothing
   */
  answer(query: Query, zone: ZoneData, through: boolean, most: number = MESSAGE_MAX): Reply | null {
    this.#zone = zone;
    this.#dnssec = query.dnssecOk;
    this.onward = null;
    this.#denial.begin(zone);
    this.#sets.begin(zone, query.dnssecOk, most);
    this.#followed.clear();
    this.#answered = -1;
    this.#name = query.folded;
    this.#length = query.nameLength;
    this.#sets.lookFor(this.#name, HEADER.SIZE);
    this.#writer.reply(query, FLAG.AA);
    try {
      return this.#follow(query, through);
    } catch (error) {
      if (!(error instanceof MessageFull)) throw error;
      return this.#failed(`the records of ${query.name} do not fit into a message`);
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
          // It may be in a child zone that is served here as well.
          if (links > 0) return this.#leave();
          if (this.#dnssec) this.#denial.noName(node, this.#name, this.#length, nodeAt, nextAt);
          return this.#negative(RCODE.NXDOMAIN);
        }
      } else if (through && links === 0 && zone.at(node + 1) === this.#endOfLabel(node)) {
        return this.#pass();
      }
      if ((zone.flags(source) & NODE.ALIAS) !== 0 && follows(type)) {
        // A loop is an error and is reported as one (RFC 1034 section 3.6.2).
        if (!wild && !this.#followed.add(source)) return this.#endless(query);
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
    // If the chain is long, the answer is the part that was followed, and the client continues from its end.
    return this.#positive();
  }

  #endOfLabel(node: number): number {
    const at = this.#zone.at(node);
    return at + 2 + this.#zone.data[at + 1]!;
  }

  /** Reports aliases that form a loop, or that lead to ever deeper names. */
  #endless(query: Query): Reply {
    this.#writer.abandon();
    return this.#failed(`the aliases of ${query.name} form a loop`);
  }

  /** Reports an error in the zone to the log and to the client. */
  #failed(text: string): Reply {
    return failure(RCODE.SERVFAIL, this.#plugin, new Error(text), [{ code: EDE.OTHER, text }]);
  }

  /** Ends without an answer. */
  #pass(): null {
    this.#writer.abandon();
    return null;
  }

  /**
   * Writes the node's records of this type as the answer.
   * @returns false if there are none
   */
  #records(node: number, type: number): boolean {
    const zone = this.#zone;
    if (type !== TYPE.ANY && type !== TYPE.RRSIG) {
      if (!zone.find(node, type)) return false;
      this.#sets.write(SECTION.answer, 'name');
      this.#answered = node;
      return true;
    }
    let any = false;
    zone.sets(node);
    while (zone.next()) {
      if (type === TYPE.RRSIG) any = this.#sets.signatures(SECTION.answer, 'name') || any;
      else if (zone.count > 0) {
        this.#sets.write(SECTION.answer, 'name');
        any = true;
      }
    }
    return any;
  }

  /** Writes a node's CNAME record, and stores its target as the spare name. */
  #alias(node: number): void {
    const zone = this.#zone;
    const writer = this.#writer;
    zone.find(node, TYPE.CNAME);
    const { ttl } = zone;
    const at = zone.varint(zone.recordsAt);
    this.#sets.open(SECTION.answer, 'name', TYPE.CNAME, ttl);
    const stands = writer.length;
    writer.name(zone.data, true, at);
    writer.close();
    if (this.#dnssec) this.#sets.signatures(SECTION.answer, 'name');
    const length = foldNameInto(zone.data, at, this.#spare);
    this.#becomes(length, stands);
  }

  /**
   * Writes a DNAME record and the CNAME derived from it, and stores the target as the spare name.
   * @returns false if the new name would be too long
   */
  #rename(node: number, nodeAt: number): boolean {
    const zone = this.#zone;
    const writer = this.#writer;
    zone.find(node, TYPE.DNAME);
    const { ttl } = zone;
    const at = zone.varint(zone.recordsAt);
    this.#sets.node(node);
    this.#sets.write(SECTION.answer, 'node');
    const spare = this.#spare;
    const target = nameLength(zone.data, at);
    if (nodeAt + target > NAME_MAX) return false;
    for (let i = 0; i < nodeAt; i++) spare[i] = this.#name[i]!;
    foldNameInto(zone.data, at, spare, nodeAt);
    this.#sets.open(SECTION.answer, 'name', TYPE.CNAME, ttl);
    const stands = writer.length;
    writer.name(spare);
    writer.close();
    this.#becomes(nodeAt + target, stands);
    return true;
  }

  #spareLength = 0;
  #spareAt = 0;

  /** True if the spare name equals the current one, because a DNAME or a wildcard's alias leads to itself. */
  get #spareIsName(): boolean {
    if (this.#spareLength !== this.#length) return false;
    for (let i = 0; i < this.#length; i++) if (this.#spare[i] !== this.#name[i]) return false;
    return true;
  }

  #becomes(length: number, stands: number): void {
    this.#spareLength = length;
    this.#spareAt = stands <= POINTER_MAX ? stands : -1;
  }

  /** Continues with the spare name. */
  #swap(): void {
    this.#name = this.#spare;
    this.#length = this.#spareLength;
    this.#sets.lookFor(this.#name, this.#spareAt);
    this.#spare = this.#chained;
    this.#chained = this.#name;
  }

  #inZone(): boolean {
    return suffixAt(this.#name, this.#zone.origin, this.#length) >= 0;
  }

  /** Ends a chain that leads out of the zone. */
  #leave(): Reply {
    this.onward = this.#name.slice(0, this.#length);
    return this.#positive();
  }

  #positive(servers = false): Reply {
    const zone = this.#zone;
    if (!servers && zone.find(0, TYPE.NS)) {
      this.#sets.apex();
      this.#sets.write(SECTION.authority, 'node');
    }
    this.#proofs();
    // Addresses below a zone cut belong to a different zone, and validators ignore them.
    if (this.#answered >= 0)
      this.#addresses.add(zone, this.#answered, this.#sets.answeredType, !this.#dnssec);
    return this.#writer.finish(RCODE.NOERROR, this.#plugin);
  }

  /** Writes NODATA or NXDOMAIN, with the SOA record that determines how long it may be cached (RFC 2308 section 3). */
  #negative(rcode: number): Reply {
    const zone = this.#zone;
    const at = zone.soa();
    const minimum = readUint32(zone.data, at + zone.value - 4);
    this.#sets.apex();
    this.#sets.write(SECTION.authority, 'node', Math.min(zone.ttl, minimum));
    this.#proofs();
    return this.#writer.finish(rcode, this.#plugin);
  }

  /** Refers the client to another zone, with its name servers and any of their addresses that are known here. */
  #referral(query: Query, node: number, chained: boolean): Reply {
    const zone = this.#zone;
    const writer = this.#writer;
    if (!chained) {
      writer.abandon();
      writer.reply(query, 0);
    }
    const { nodeAt } = zone;
    this.#sets.node(node);
    zone.find(node, TYPE.NS);
    this.#sets.write(SECTION.authority, 'node', -1, false);
    if (this.#dnssec) {
      if (zone.find(node, TYPE.DS)) this.#sets.write(SECTION.authority, 'node');
      else this.#denial.noType(node, this.#name, this.#length, nodeAt);
    }
    this.#proofs();
    this.#addresses.add(zone, node, TYPE.NS, true);
    return writer.finish(RCODE.NOERROR, this.#plugin);
  }

  #proofs(): void {
    const { nodes, count, type } = this.#denial;
    for (let i = 0; i < count; i++) {
      this.#sets.node(nodes[i]!);
      if (this.#zone.find(nodes[i]!, type)) this.#sets.write(SECTION.authority, 'node');
    }
  }
}

/** Returns true if an alias's target answers a question for this type. */
function follows(type: number): boolean {
  return type !== TYPE.CNAME && type !== TYPE.ANY && type !== TYPE.RRSIG && type !== TYPE.NSEC;
}
