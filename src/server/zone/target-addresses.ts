/** Adds addresses for the names in an answer or a referral to the additional section. */
import { addressTypes, TYPE } from '../wire/iana.ts';
import { foldNameInto, NAME_MAX, suffixAt } from '../wire/name.ts';
import { SECTION, type MessageWriter } from '../wire/writer.ts';
import { NODE } from './packed-zone.ts';
import type { RrsetWriter } from './rrset-writer.ts';
import type { ZoneData } from './zone-data.ts';

/** Size in bytes above which no optional records are added to a reply. */
const ROOMY = 60_000;
/** Maximum number of names whose addresses are added. */
const TARGETS_MAX = 64;

/** Adds the addresses that the zone has for names in records. */
export class TargetAddresses {
  readonly #writer: MessageWriter;
  readonly #sets: RrsetWriter;
  readonly #nodes = new NodeList();
  readonly #target = new Uint8Array(NAME_MAX + 1);

  constructor(writer: MessageWriter, sets: RrsetWriter) {
    this.#writer = writer;
    this.#sets = sets;
  }

  /**
   * Adds addresses for an RRset.
   * @param withGlue true to include those below a zone cut, which belong to a different zone
   */
  add(zone: ZoneData, node: number, type: number, withGlue: boolean): void {
    const before = targetOffset(type);
    if (before < 0) return;
    zone.find(node, type);
    this.#collect(zone, before);
    this.#write(zone, withGlue);
  }

  /** Collects the nodes for the names in the current RRset. */
  #collect(zone: ZoneData, before: number): void {
    this.#nodes.clear();
    const { data } = zone;
    let at = zone.recordsAt;
    for (let left = zone.count; left > 0 && this.#nodes.count < TARGETS_MAX; left--) {
      at = zone.varint(at);
      const length = zone.value;
      const size = foldNameInto(data, at + before, this.#target);
      at += length;
      if (suffixAt(this.#target, zone.origin, size) < 0) continue;
      const node = zone.nodeOf(this.#target, size);
      if (node >= 0) this.#nodes.add(node);
    }
  }

  #write(zone: ZoneData, withGlue: boolean): void {
    for (let i = 0; i < this.#nodes.count; i++) {
      const node = this.#nodes.at(i);
      if (!withGlue && (zone.flags(node) & (NODE.CUT | NODE.GLUE)) !== 0) continue;
      this.#sets.node(node);
      for (const type of addressTypes) {
        if (this.#writer.length > ROOMY) return;
        if (zone.find(node, type)) this.#sets.write(SECTION.additional, 'node');
      }
    }
  }
}

/** A list of up to `TARGETS_MAX` distinct nodes that creates no garbage. */
export class NodeList {
  count = 0;
  readonly #nodes = new Uint32Array(TARGETS_MAX);

  at(index: number): number {
    return this.#nodes[index]!;
  }

  /** @returns false if it is already in the list */
  add(node: number): boolean {
    for (let i = 0; i < this.count; i++) if (this.#nodes[i] === node) return false;
    this.#nodes[this.count++] = node;
    return true;
  }

  clear(): void {
    this.count = 0;
  }
}

/**
 * Returns the position, in the data of a record of this type, of the name whose addresses should be included, or -1.
 */
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
