import { readUint32 } from '../base/big-endian.ts';
import { hashBytes } from '../base/hash.ts';
import { TYPE } from '../wire/iana.ts';
import { LOWER, type WireName } from '../wire/name.ts';
import { homeSlot, NODE, nodeBits, type PackedZone } from './packed-zone.ts';

/** The result of a walk down the tree. */
export type WalkEnd = 'exact' | 'cut' | 'dname' | 'nothing';

/**
 * Looks up names in a packed zone and iterates over their records. The fields describe the results of the last `walk`,
 * `first` and `next`. Nothing is allocated.
 */
export class ZoneData {
  readonly packed: PackedZone;
  readonly origin: WireName;
  readonly data: Uint8Array;
  readonly #nodes: Uint32Array;
  readonly #slots: Uint32Array;
  readonly #bits: number;
  readonly #nodeMask: number;
  readonly #tags: number;

  /** The node where the walk ended, which is the name's own, the zone cut, the DNAME, or the closest encloser. */
  node = 0;
  /** Position in the queried name where the node's own name starts. */
  nodeAt = 0;
  /** Position of the name that is one label longer (for `nothing`, `dname` and `cut`). */
  nextAt = 0;

  constructor(packed: PackedZone) {
    this.packed = packed;
    this.origin = packed.origin;
    this.data = packed.data;
    this.#nodes = packed.nodes;
    this.#slots = packed.slots;
    this.#bits = nodeBits(this.size);
    this.#nodeMask = this.#bits === 32 ? 0xffff_ffff : (1 << this.#bits) - 1;
    this.#tags = 0xffff_ffff >>> this.#bits;
  }

  get size(): number {
    return this.#nodes.length / 2 - 1;
  }

  /** Returns the position of the node in `data`. */
  at(node: number): number {
    return this.#nodes[2 * node]!;
  }

  parent(node: number): number {
    return this.#nodes[2 * node + 1]!;
  }

  flags(node: number): number {
    return this.data[this.#nodes[2 * node]!]!;
  }

  /**
   * Walks from the apex down to a name in the zone (lower case). The walk stops at the name, where the tree ends, at a
   * zone cut, or at a DNAME.
   */
  walk(name: Uint8Array, length: number): WalkEnd {
    let starts = 0;
    const end = length - this.origin.length;
    for (let at = 0; at < end; at += name[at]! + 1) labelStarts[starts++] = at;
    let node = 0;
    let nodeAt = end;
    while (starts > 0) {
      const next = labelStarts[--starts]!;
      const flags = this.flags(node);
      if ((flags & (NODE.CUT | NODE.DNAME)) !== 0) {
        return this.#ends(node, nodeAt, next, (flags & NODE.CUT) !== 0 ? 'cut' : 'dname');
      }
      const child = this.child(node, name, next);
      if (child < 0) return this.#ends(node, nodeAt, next, 'nothing');
      node = child;
      nodeAt = next;
    }
    const cut = (this.flags(node) & NODE.CUT) !== 0;
    return this.#ends(node, nodeAt, nodeAt, cut ? 'cut' : 'exact');
  }

  /** Returns the node for a name in the zone, or -1. This includes names below zone cuts (glue). */
  nodeOf(name: Uint8Array, length: number): number {
    let starts = 0;
    const end = length - this.origin.length;
    for (let at = 0; at < end; at += name[at]! + 1) labelStarts[starts++] = at;
    let node = 0;
    while (starts > 0 && node >= 0) node = this.child(node, name, labelStarts[--starts]!);
    return node;
  }

  /** Returns the child of `node` whose label (lower case) is at `at`, or -1. */
  child(node: number, name: Uint8Array, at: number): number {
    const hash = hashBytes(name, at + 1, at + 1 + name[at]!, node) >>> 0;
    const slots = this.#slots;
    const tag = hash & this.#tags;
    let slot = homeSlot(hash, slots.length);
    for (let value = slots[slot]!; value !== 0; value = slots[slot]!) {
      if ((this.#bits === 32 ? 0 : value >>> this.#bits) === tag) {
        const found = ((value & this.#nodeMask) >>> 0) - 1;
        if (this.parent(found) === node && this.#hasLabel(found, name, at)) {
          return (this.flags(found) & NODE.HIDDEN) === 0 ? found : -1;
        }
      }
      if (++slot === slots.length) slot = 0;
    }
    return -1;
  }

  #hasLabel(node: number, name: Uint8Array, at: number): boolean {
    const { data } = this;
    const there = this.at(node) + 1;
    const length = name[at]!;
    if (data[there] !== length) return false;
    for (let i = 1; i <= length; i++) if (LOWER[data[there + i]!] !== name[at + i]) return false;
    return true;
  }

  #ends(node: number, nodeAt: number, nextAt: number, how: WalkEnd): WalkEnd {
    this.node = node;
    this.nodeAt = nodeAt;
    this.nextAt = nextAt;
    return how;
  }

  /**
   * Writes a node's name to `to`.
   * @returns its length
   */
  name(node: number, to: Uint8Array): number {
    const { data, origin } = this;
    let length = 0;
    for (; node !== 0; node = this.parent(node)) {
      let from = this.at(node) + 1;
      for (let left = data[from]!; left >= 0; left--) to[length++] = data[from++]!;
    }
    for (let i = 0; i < origin.length; i++) to[length++] = origin[i]!;
    return length;
  }

  // RRsets. Call `first` to start and `next` to advance; the fields describe the current one.

  type = 0;
  ttl = 0;
  /** Number of records, and where the length of the first one is. */
  count = 0;
  recordsAt = 0;
  /** Likewise for signatures. */
  signatures = 0;
  signaturesAt = 0;
  #setEnd = 0;
  #nodeEnd = 0;

  /** Returns where a node's RRsets start in `data`, after its flags and label. */
  setsAt(node: number): number {
    const at = this.at(node) + 1;
    return at + 1 + this.data[at]!;
  }

  /** Starts iterating over a node's RRsets. `next` then returns the first one. */
  sets(node: number): void {
    this.#setEnd = this.setsAt(node);
    this.#nodeEnd = this.at(node + 1);
  }

  /** Advances to the node's next RRset. Returns false if there is none. */
  next(): boolean {
    const { data } = this;
    let at = this.#setEnd;
    if (at === this.#nodeEnd) return false;
    this.type = (data[at]! << 8) | data[at + 1]!;
    this.ttl = readUint32(data, at + 2);
    at = this.#list(at + 6);
    this.count = this.#listed;
    this.recordsAt = this.#listAt;
    this.#setEnd = this.#list(at);
    this.signatures = this.#listed;
    this.signaturesAt = this.#listAt;
    return true;
  }

  /** Moves to a node's RRset of this type. Returns false if there is none. A set may have signatures but no records. */
  find(node: number, type: number): boolean {
    this.sets(node);
    while (this.next()) {
      if (this.type === type) return this.count > 0;
      if (this.type > type) return false;
    }
    return false;
  }

  #listed = 0;
  #listAt = 0;

  /**
   * Reads how many items are in the list at `at`.
   * @returns where they end
   */
  #list(at: number): number {
    const { data } = this;
    let count = data[at++]!;
    if (count >= 0x80) {
      at = this.varint(at - 1);
      count = this.value;
    }
    this.#listed = count;
    if (count === 0) return at;
    let size = data[at++]!;
    if (size >= 0x80) {
      at = this.varint(at - 1);
      size = this.value;
    }
    this.#listAt = at;
    return at + size;
  }

  value = 0;

  /**
   * Reads the number at `at` into `value`.
   * @returns the position after it
   */
  varint(at: number): number {
    const { data } = this;
    let value = 0;
    let shift = 0;
    for (; data[at]! >= 0x80; shift += 7) value |= (data[at++]! & 0x7f) << shift;
    this.value = value | (data[at]! << shift);
    return at + 1;
  }

  /** Returns the last node in canonical order before the child of `parent` whose label (lower case) is at `at`. */
  before(parent: number, name: Uint8Array, at: number): number {
    let low = parent;
    let high = this.size;
    while (high - low > 1) {
      const middle = (low + high) >>> 1;
      if (this.#precedes(middle, parent, name, at)) low = middle;
      else high = middle;
    }
    return low;
  }

  /** Returns true if any node after `parent` comes before its child with this label. */
  #precedes(node: number, parent: number, name: Uint8Array, at: number): boolean {
    let up = this.parent(node);
    // Parents have lower numbers than their children.
    while (up > parent) {
      node = up;
      up = this.parent(node);
    }
    if (up !== parent) return false;
    return this.compareLabel(node, name, at) < 0;
  }

  /** Compares the node's label with the one at `at` (lower case) in canonical order. */
  compareLabel(node: number, name: Uint8Array, at: number): number {
    const { data } = this;
    const there = this.at(node) + 1;
    const length = Math.min(data[there]!, name[at]!);
    for (let i = 1; i <= length; i++) {
      const difference = LOWER[data[there + i]!]! - name[at + i]!;
      if (difference !== 0) return difference;
    }
    return data[there]! - name[at]!;
  }

  /** True if the zone uses NSEC3. */
  get hashed(): boolean {
    return this.packed.nsec3.length > 0;
  }

  /** Returns where the SOA record's data is, and stores its TTL in `ttl`. A zone has exactly one SOA record. */
  soa(): number {
    this.find(0, TYPE.SOA);
    return this.varint(this.recordsAt);
  }
}

const labelStarts = new Uint8Array(128);
