import { readUint32 } from '../base/big-endian.ts';
import { sharedBytes, sharedWords } from '../base/shared-memory.ts';
import { atOnce, type Slices } from '../base/slices.ts';
import { sortSlowly } from '../base/sort-slowly.ts';
import { TYPE } from '../wire/iana.ts';
import { foldNameInto, NAME_MAX, printName, suffixAt, type WireName } from '../wire/name.ts';
import { DistinctRecords, placeOf, setOf } from './distinct-records.ts';
import { GrowingNumbers, GrowingBytes } from './growing.ts';
import { homeSlot, NODE, type PackedZone } from './packed-zone.ts';
import { compareLabels, hashLabel, indexNodes, putSlot } from './zone-index.ts';

/** The reasons for rejecting a record. */
export type RecordRefusal =
  | 'outside'
  | 'second-soa'
  | 'soa-below-apex'
  | 'alias-and-other'
  | 'second-alias'
  | 'twice'
  | 'too-many';

/** Maximum number of records per name. No reply has room for as many, and a name's records are searched linearly. */
export const NAME_RECORDS_MAX = 65_536;

const NONE = 0xffff_ffff;
/** Types that may exist next to a CNAME (RFC 4034, section 2.5, RFC 2535, section 2.3.5). */
const besideAlias: ReadonlySet<number> = new Set([TYPE.RRSIG, TYPE.NSEC, TYPE.KEY, TYPE.SIG]);

/**
 * Collects a zone's records in any order, and packs them. Until then, records use little more memory than when packed.
 */
export class ZoneBuilder {
  readonly #origin: WireName;
  /**
   * For each node: the position of its label, its parent, its first and last record, and their number. Node 0 is the
   * apex.
   */
  readonly #labels = new GrowingBytes();
  readonly #labelAt = new GrowingNumbers();
  readonly #parents = new GrowingNumbers();
  readonly #first = new GrowingNumbers();
  readonly #last = new GrowingNumbers();
  readonly #counts = new GrowingNumbers();
  /** For each record: the node's next record, and its own position (type, TTL, length, data). */
  readonly #next = new GrowingNumbers();
  readonly #recordAt = new GrowingNumbers();
  readonly #log = new GrowingBytes();
  #slots: Uint32Array;
  /** Scratch space for packing one node at a time. */
  readonly #ofNode = new GrowingNumbers();
  readonly #distinct = new DistinctRecords(this.#log);
  readonly #distinctSignatures = new DistinctRecords(this.#log);
  /** The CNAME record of each node that has one, and the nodes with records that rule out a CNAME. */
  readonly #aliases = new Map<number, number>();
  readonly #noAliases = new Set<number>();
  #soa = NONE;
  #hasNs = false;
  #serial = -1;

  /**
   * @param origin in lower case
   * @param nodes number of names, if known
   */
  constructor(origin: WireName, nodes = 0) {
    this.#origin = origin;
    this.#slots = new Uint32Array(Math.max(1024, 2 * nodes));
    const root = this.#labels.length;
    this.#labels.u8(0);
    this.#node(NONE, root);
  }

  get records(): number {
    return this.#recordAt.length;
  }

  /** True if there is an SOA record, which every zone requires. */
  get hasSoa(): boolean {
    return this.#serial >= 0;
  }

  /** The SOA's serial, or -1 until there is an SOA. */
  get serial(): number {
    return this.#serial;
  }

  /** True if the apex has NS records. */
  get hasNs(): boolean {
    return this.#hasNs;
  }

  /**
   * Adds a record. Its owner and its data may each be at the start of a larger buffer.
   * @returns null, or the reason for rejecting it
   */
  add(
    owner: Uint8Array,
    type: number,
    ttl: number,
    data: Uint8Array,
    length: number = data.length,
  ): RecordRefusal | null {
    const depthAt = this.#depthAt(owner);
    if (depthAt < 0) return 'outside';
    const node = this.#find(owner, depthAt);
    if (type === TYPE.SOA) {
      if (node !== 0) return 'soa-below-apex';
      // dig's output for a transfer repeats the SOA record at the end.
      if (this.#serial >= 0) return this.#is(this.#soa, data, length) ? 'twice' : 'second-soa';
      this.#serial = serialIn(data);
      this.#soa = this.#recordAt.length;
    }
    if (type === TYPE.NS && node === 0) this.#hasNs = true;
    const refusal = this.#conflict(node, type, data, length);
    if (refusal !== null) return refusal;
    const count = this.#counts.at(node);
    if (count >= NAME_RECORDS_MAX) return 'too-many';
    this.#counts.set(node, count + 1);
    const record = this.#recordAt.push(this.#log.length);
    this.#next.push(NONE);
    this.#log.u16(type);
    this.#log.u32(ttl);
    this.#log.u16(length);
    this.#log.copy(data, 0, length);
    if (this.#first.at(node) === NONE) this.#first.set(node, record);
    else this.#next.set(this.#last.at(node), record);
    this.#last.set(node, record);
    return null;
  }

  /**
   * Adds a record from a primary. Glue for other zones, and records next to a CNAME, are ignored, because only the
   * primary can fix them.
   * @throws Error if no zone can contain this record, or none can do without it
   */
  addTransferred(
    owner: Uint8Array,
    type: number,
    ttl: number,
    data: Uint8Array,
    length: number = data.length,
  ): void {
    const refusal = this.add(owner, type, ttl, data, length);
    if (refusal === 'soa-below-apex') throw new Error(`${printName(owner)} has an SOA record`);
    if (refusal === 'too-many')
      throw new Error(`${printName(owner)} has more than ${NAME_RECORDS_MAX} records`);
  }

  /** Returns where the origin starts in the owner, or -1. */
  #depthAt(owner: Uint8Array): number {
    return suffixAt(folded, this.#origin, foldNameInto(owner, 0, folded));
  }

  /** Scans the node's records at most once, however many are repeated. */
  #conflict(node: number, type: number, data: Uint8Array, length: number): RecordRefusal | null {
    const alias = this.#aliases.get(node);
    if (type !== TYPE.CNAME)
      return alias !== undefined && !besideAlias.has(type) ? 'alias-and-other' : null;
    if (alias !== undefined) return this.#is(alias, data, length) ? 'twice' : 'second-alias';
    if (this.#noAliases.has(node)) return 'alias-and-other';
    for (let at = this.#first.at(node); at !== NONE; at = this.#next.at(at)) {
      if (besideAlias.has(this.#typeOf(at))) continue;
      this.#noAliases.add(node);
      return 'alias-and-other';
    }
    this.#aliases.set(node, this.#recordAt.length);
    return null;
  }

  #typeOf(record: number): number {
    return this.#log.readU16(this.#recordAt.at(record));
  }

  /** Returns true if this is the record's data. */
  #is(record: number, data: Uint8Array, length: number): boolean {
    return this.#log.equals(this.#recordAt.at(record) + 8, data, length);
  }

  /** Returns the node for a name whose part before the origin ends at `end`, creating it if necessary. */
  #find(owner: Uint8Array, end: number): number {
    let starts = 0;
    for (let at = 0; at < end; at += owner[at]! + 1) labelStarts[starts++] = at;
    let node = 0;
    while (--starts >= 0) node = this.#child(node, owner, labelStarts[starts]!);
    return node;
  }

  #child(parent: number, owner: Uint8Array, at: number): number {
    const length = owner[at]!;
    const hash = hashLabel(parent, owner, at);
    const size = this.#slots.length;
    let slot = homeSlot(hash, size);
    for (; this.#slots[slot] !== 0; slot = slot + 1 === size ? 0 : slot + 1) {
      const node = this.#slots[slot]! - 1;
      if (this.#parents.at(node) === parent && this.#sameLabel(node, owner, at)) return node;
    }
    const node = this.#node(parent, this.#labels.copy(owner, at, length + 1));
    this.#slots[slot] = node + 1;
    if (3 * this.#parents.length > 2 * size) this.#grow();
    return node;
  }

  #node(parent: number, labelAt: number): number {
    this.#labelAt.push(labelAt);
    this.#first.push(NONE);
    this.#last.push(NONE);
    this.#counts.push(0);
    return this.#parents.push(parent);
  }

  #sameLabel(node: number, owner: Uint8Array, at: number): boolean {
    return compareLabels(this.#labels.bytes, this.#labelAt.at(node), owner, at) === 0;
  }

  #grow(): void {
    this.#slots = new Uint32Array(2 * this.#slots.length);
    for (let node = 1; node < this.#parents.length; node++) {
      const { bytes } = this.#labels;
      const at = this.#labelAt.at(node);
      const hash = hashLabel(this.#parents.at(node), bytes, at);
      putSlot(this.#slots, hash, node + 1);
    }
  }

  /** Packs the zone into the form that answers are read from. The builder cannot be used afterwards. */
  pack(): PackedZone {
    return atOnce(this.packing());
  }

  *packing(): Slices<PackedZone> {
    const order = yield* this.#preorder();
    const count = order.length;
    const renumbered = new Uint32Array(count);
    for (let i = 0; i < count; i++) {
      renumbered[order[i]!] = i;
      if ((i & LOOP_SLICE) === LOOP_SLICE) yield;
    }
    const nodes = sharedWords(2 * (count + 1));
    const most = this.#log.length + this.#labels.length + count + 10 * this.#recordAt.length + 16;
    const data = new GrowingBytes(most < IN_PLACE_FROM ? most : sharedBytes(most));
    let records = 0;
    for (let node = 0; node < count; node++) {
      const old = order[node]!;
      const labelAt = this.#labelAt.at(old);
      const { bytes } = this.#labels;
      nodes[2 * node] = data.length;
      nodes[2 * node + 1] = node === 0 ? 0 : renumbered[this.#parents.at(old)]!;
      data.u8(this.#flags(old, node));
      data.copy(bytes, labelAt, bytes[labelAt]! + 1);
      records += this.#packSets(old, data);
      if ((node & NODE_SLICE) === NODE_SLICE) yield;
    }
    nodes[2 * count] = data.length;
    if (data.bytes.buffer instanceof ArrayBuffer) data.move(sharedBytes(data.length));
    const packed = data.written;
    return {
      origin: this.#origin.slice(),
      data: packed,
      nodes,
      ...(yield* indexNodes(packed, nodes)),
      records,
      serial: this.#serial,
    };
  }

  /** Returns all nodes in canonical order. */
  *#preorder(): Slices<Uint32Array> {
    const count = this.#parents.length;
    const starts = new Uint32Array(count + 1);
    for (let node = 1; node < count; node++) {
      starts[this.#parents.at(node) + 1]!++;
      if ((node & LOOP_SLICE) === LOOP_SLICE) yield;
    }
    for (let node = 0; node < count; node++) starts[node + 1]! += starts[node]!;
    yield;
    const fill = starts.slice();
    const children = new Uint32Array(count);
    for (let node = 1; node < count; node++) {
      children[fill[this.#parents.at(node)]!++] = node;
      if ((node & LOOP_SLICE) === LOOP_SLICE) yield;
    }
    const { bytes } = this.#labels;
    const compare = (a: number, b: number): number =>
      compareLabels(bytes, this.#labelAt.at(a), bytes, this.#labelAt.at(b));
    const order = new Uint32Array(count);
    let done = 0;
    const stack: number[] = [0];
    while (stack.length > 0) {
      const node = stack.pop()!;
      if ((done & LOOP_SLICE) === LOOP_SLICE) yield;
      order[done++] = node;
      const from = starts[node]!;
      const end = starts[node + 1]!;
      if (end - from > 1) yield* sortSlowly(children.subarray(from, end), compare);
      for (let i = end - 1; i >= from; i--) stack.push(children[i]!);
    }
    return order;
  }

  #flags(old: number, node: number): number {
    let flags = 0;
    let hidden = false;
    let other = false;
    for (let at = this.#first.at(old); at !== NONE; at = this.#next.at(at)) {
      const type = this.#typeOf(at);
      if (type === TYPE.NS && node !== 0) flags |= NODE.CUT;
      else if (type === TYPE.DNAME) flags |= NODE.DNAME;
      else if (type === TYPE.CNAME) flags |= NODE.ALIAS;
      if (type === TYPE.NSEC3) hidden = true;
      else if (type !== TYPE.RRSIG) other = true;
    }
    return hidden && !other ? flags | NODE.HIDDEN : flags;
  }

  /**
   * Writes a node's RRsets.
   * @returns how many records they have
   */
  #packSets(old: number, to: GrowingBytes): number {
    const log = this.#log;
    const all = this.#ofNode;
    const records = this.#distinct;
    const signatures = this.#distinctSignatures;
    all.length = 0;
    for (let record = this.#first.at(old); record !== NONE; record = this.#next.at(record))
      all.push(this.#recordAt.at(record));
    let count = 0;
    if (all.length > 1) all.written.sort((a, b) => placeOf(log, a) - placeOf(log, b));
    for (let i = 0; i < all.length;) {
      const type = setOf(log, all.at(i));
      records.clear();
      signatures.clear();
      let ttl = 0xffff_ffff;
      for (; i < all.length && setOf(log, all.at(i)) === type; i++) {
        const at = all.at(i);
        const isSignature = log.readU16(at) === TYPE.RRSIG;
        if (!(isSignature ? signatures : records).add(at)) continue;
        // All records in an RRset have the same TTL (RFC 2181 section 5.2), so the lowest one is used.
        ttl = Math.min(ttl, log.readU32(at + 2));
      }
      to.u16(type);
      to.u32(ttl);
      records.pack(to);
      signatures.pack(to);
      count += records.size + signatures.size;
    }
    return count;
  }
}

/**
 * Size in bytes above which a zone is packed in place, with room for the largest size it may have. Pages that are never
 * written to cost no memory, but a second copy would. In smaller blocks, no pages would stay unwritten.
 */
const IN_PLACE_FROM = 1024 * 1024;
/** Bit masks for the number of iterations of a tight loop, and the number of nodes, after which the work may pause. */
const LOOP_SLICE = 0x3fff;
const NODE_SLICE = 0xff;
const labelStarts = new Uint8Array(128);
const folded = new Uint8Array(NAME_MAX);

/** Reads the serial in SOA data, which follows the two names. */
export function serialIn(data: Uint8Array): number {
  let at = 0;
  for (let names = 0; names < 2; names++) {
    while (data[at]! > 0) at += data[at]! + 1;
    at++;
  }
  return readUint32(data, at);
}
