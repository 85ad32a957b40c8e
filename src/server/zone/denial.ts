/** Builds proofs that a name or type does not exist from NSEC and NSEC3 records. */
import { TYPE } from '../wire/iana.ts';
import { NODE } from './packed-zone.ts';
import { hashName, ITERATIONS_MAX, readHashParts, type HashParts } from './nsec3-hash.ts';
import type { ZoneData } from './zone-data.ts';

/** Maximum number of proofs per reply. A chain of wildcards could require more, in which case some are missing. */
const PROOFS_MAX = 32;
/** Maximum number of names whose proof is cached. */
const KNOWN_MAX = 10_000;
const STAR = Uint8Array.of(1, 0x2a);

/**
 * Collects the NSEC or NSEC3 records that prove a denial (RFC 4035 section 3.1.3, RFC 5155 section 7.2). Does nothing
 * if the zone is unsigned or its names are hashed too many times. Names are in lower case.
 */
export class Denial {
  readonly nodes: Uint32Array = new Uint32Array(PROOFS_MAX);
  count = 0;
  #zone: ZoneData | null = null;
  #parts: HashParts | null = null;
  #isSigned = false;
  /**
   * For each node: its own NSEC3 node or -1, and the node that covers the wildcard below it. Missing names vary, but
   * their closest enclosers do not, and a hash with a hundred iterations is expensive.
   */
  readonly #own = new Map<number, number>();
  readonly #starCovering = new Map<number, number>();
  /** The most recently proved encloser. */
  #proved = 0;
  readonly #wildcard = new Uint8Array(257);

  /** The type of record that proofs in this zone use. */
  get type(): number {
    return this.#parts === null ? TYPE.NSEC : TYPE.NSEC3;
  }

  begin(zone: ZoneData): void {
    this.count = 0;
    if (zone === this.#zone) return;
    this.#zone = zone;
    this.#own.clear();
    this.#starCovering.clear();
    this.#parts = zone.hashed ? readHashParts(zone) : null;
    // Every name in a signed zone has an NSEC record, including its apex (RFC 4035 section 2.3).
    this.#isSigned =
      this.#parts === null ? zone.find(0, TYPE.NSEC) : this.#parts.iterations <= ITERATIONS_MAX;
  }

  /** Proves that the name starting at `at` exists but has no records of this type. */
  noType(node: number, name: Uint8Array, length: number, at: number): void {
    if (!this.#isSigned) return;
    const zone = this.#zone!;
    if (this.#parts === null) {
      // An empty non-terminal has no NSEC record, but the previous one spans it.
      if (zone.find(node, TYPE.NSEC)) this.#add(node);
      else if (node > 0) this.#add(this.#signedBefore(node - 1));
      return;
    }
    const own = this.#matching(node, name, at, length);
    if (own >= 0) this.#add(own);
    // With opt-out, delegations may lack a record of their own (RFC 5155 section 7.2.7).
    else if (node > 0) this.#enclosed(zone.parent(node), name, length, at + 1 + name[at]!, at);
  }

  /** Proves that the name does not exist and that no wildcard matches it. `node` is its closest encloser. */
  noName(node: number, name: Uint8Array, length: number, nodeAt: number, nextAt: number): void {
    if (!this.#isSigned) return;
    const zone = this.#zone!;
    if (this.#parts === null) {
      this.#add(this.#signedBefore(zone.before(node, name, nextAt)));
      this.#add(this.#signedBefore(zone.before(node, STAR, 0)));
      return;
    }
    // The wildcard is below the proven encloser, which with opt-out may be farther up.
    const proved = this.#enclosed(node, name, length, nodeAt, nextAt);
    let covering = this.#starCovering.get(this.#proved);
    if (covering === undefined) {
      covering = this.#covering(this.#wildcard, 0, this.#starBelow(name, length, proved));
      remember(this.#starCovering, this.#proved, covering);
    }
    this.#add(covering);
  }

  /** Proves that the name itself does not exist, because the answer comes from a wildcard. */
  noExactName(
    node: number,
    name: Uint8Array,
    length: number,
    nodeAt: number,
    nextAt: number,
    encloser = false,
  ): void {
    if (!this.#isSigned) return;
    const zone = this.#zone!;
    if (this.#parts === null) this.#add(this.#signedBefore(zone.before(node, name, nextAt)));
    else if (encloser) this.#enclosed(node, name, length, nodeAt, nextAt);
    else this.#add(this.#covering(name, nextAt, length));
  }

  /** Proves that the wildcard below the name's closest encloser exists but has no records of this type. */
  noTypeOfWildcard(
    wildcard: number,
    name: Uint8Array,
    length: number,
    nodeAt: number,
    nextAt: number,
  ): void {
    if (!this.#isSigned) return;
    const zone = this.#zone!;
    this.noExactName(zone.parent(wildcard), name, length, nodeAt, nextAt, true);
    if (this.#parts === null) this.noType(wildcard, name, length, 0);
    else
      this.#add(this.#matching(wildcard, this.#wildcard, 0, this.#starBelow(name, length, nodeAt)));
  }

  /**
   * Writes `*` and the rest of the name from `at` on to the wildcard's buffer.
   * @returns the length
   */
  #starBelow(name: Uint8Array, length: number, at: number): number {
    this.#wildcard.set(STAR);
    for (let i = at; i < length; i++) this.#wildcard[2 + i - at] = name[i]!;
    return 2 + length - at;
  }

  #add(node: number): void {
    if (node < 0 || this.count === PROOFS_MAX) return;
    for (let i = 0; i < this.count; i++) if (this.nodes[i] === node) return;
    this.nodes[this.count++] = node;
  }

  /** Returns the last node before or at this one that has an NSEC record, or -1. */
  #signedBefore(node: number): number {
    const zone = this.#zone!;
    while (node >= 0) {
      // Skip everything below a zone cut at once, because there may be a hundred thousand addresses.
      if ((zone.flags(node) & NODE.GLUE) !== 0) node = zone.parent(node);
      else if (zone.find(node, TYPE.NSEC)) return node;
      else node--;
    }
    return -1;
  }

  /**
   * Proves the closest encloser that can be proven, and that the name one label longer does not exist (RFC 5155 section
   * 7.2.1).
   * @returns where the encloser's name starts
   */
  #enclosed(
    node: number,
    name: Uint8Array,
    length: number,
    nodeAt: number,
    nextAt: number,
  ): number {
    for (;;) {
      this.#proved = node;
      const own = this.#matching(node, name, nodeAt, length);
      if (own >= 0) {
        this.#add(own);
        this.#add(this.#covering(name, nextAt, length));
        return nodeAt;
      }
      if (node === 0) return nodeAt;
      node = this.#zone!.parent(node);
      nextAt = nodeAt;
      nodeAt += name[nodeAt]! + 1;
    }
  }

  /** Returns the NSEC3 node for the node whose name is at `at`, or -1. */
  #matching(node: number, name: Uint8Array, at: number, length: number): number {
    let own = this.#own.get(node);
    if (own === undefined) {
      own = this.#search(name, at, length);
      remember(this.#own, node, own);
    }
    return own;
  }

  #search(name: Uint8Array, at: number, length: number): number {
    const hash = hashName(name, at, length, this.#parts!);
    const { nsec3 } = this.#zone!.packed;
    const index = this.#lastUpTo(hash);
    return index >= 0 && this.#zone!.compareLabel(nsec3[index]!, hash, 0) === 0
      ? nsec3[index]!
      : -1;
  }

  /** Returns the NSEC3 node whose span includes the hash of the name at `at`. The last span wraps around. */
  #covering(name: Uint8Array, at: number, length: number): number {
    const { nsec3 } = this.#zone!.packed;
    const index = this.#lastUpTo(hashName(name, at, length, this.#parts!));
    return nsec3[index < 0 ? nsec3.length - 1 : index]!;
  }

  /** Returns the index of the last NSEC3 node whose label is not after this one, or -1. */
  #lastUpTo(label: Uint8Array): number {
    const zone = this.#zone!;
    const { nsec3 } = zone.packed;
    let low = -1;
    let high = nsec3.length;
    while (high - low > 1) {
      const middle = (low + high) >>> 1;
      if (zone.compareLabel(nsec3[middle]!, label, 0) <= 0) low = middle;
      else high = middle;
    }
    return low;
  }
}

function remember(known: Map<number, number>, node: number, found: number): void {
  if (known.size >= KNOWN_MAX) known.clear();
  known.set(node, found);
}
