import { hashBytes } from '../base/hash.ts';
import { sharedWords } from '../base/shared-memory.ts';
import type { Slices } from '../base/slices.ts';
import { LOWER } from '../wire/name.ts';
import { chainOf } from './nsec3-hash.ts';
import { homeSlot, NODE, nodeBits, type PackedZone } from './packed-zone.ts';
import { ZoneData } from './zone-data.ts';

/** Facts about the nodes in a finished zone. */
export interface ZoneIndex {
  readonly slots: Uint32Array;
  readonly nsec3: Uint32Array;
}

/** Flags that depend on a node's parent and children. All other flags depend on its records. */
const BY_PLACE = NODE.GLUE | NODE.WILD;
const origin = Uint8Array.of(0);
const none = new Uint32Array(0);
/** Bit mask for the number of nodes after which the work may pause. */
const NODE_SLICE = 0x3ff;

/**
 * Writes the flags that depend on parents and children into all nodes, and builds the tables for finding nodes.
 * @param data contains nodes with the flags that depend on their own records
 * @param known the hash table from a version with the same names, or null to build it
 */
export function* indexNodes(
  data: Uint8Array,
  nodes: Uint32Array,
  known: Uint32Array | null = null,
): Slices<ZoneIndex> {
  const count = nodes.length / 2 - 1;
  const bits = nodeBits(count);
  const slots = known ?? sharedWords(Math.ceil((count * 3) / 2) + 1);
  const hidden: number[] = [];
  data[0] = data[0]! & ~BY_PLACE;
  for (let node = 0; node < count; node++) {
    const at = nodes[2 * node]!;
    const parent = nodes[2 * node + 1]!;
    if (node > 0) {
      const above = nodes[2 * parent]!;
      let flags = data[at]! & ~BY_PLACE;
      if ((data[above]! & (NODE.CUT | NODE.DNAME | NODE.GLUE)) !== 0) flags |= NODE.GLUE;
      data[at] = flags;
      if (data[at + 1] === 1 && data[at + 2] === 0x2a) data[above] = data[above]! | NODE.WILD;
      if (known === null) {
        const hash = hashLabel(parent, data, at + 1);
        putSlot(slots, hash, (bits === 32 ? 0 : (hash << bits) >>> 0) | (node + 1));
      }
    }
    if ((data[at]! & NODE.HIDDEN) !== 0) hidden.push(node);
    if ((node & NODE_SLICE) === NODE_SLICE) yield;
  }
  const bare: PackedZone = { origin, data, nodes, slots, nsec3: none, records: 0, serial: 0 };
  const chain = hidden.length === 0 ? hidden : yield* chainOf(new ZoneData(bare), hidden);
  const nsec3 = sharedWords(chain.length);
  nsec3.set(chain);
  return { slots, nsec3 };
}

/** Returns the hash for the child of `parent` whose label is at `at`, ignoring case. */
export function hashLabel(parent: number, bytes: Uint8Array, at: number): number {
  const length = bytes[at]!;
  for (let i = 0; i < length; i++) label[i] = LOWER[bytes[at + 1 + i]!]!;
  return hashBytes(label, 0, length, parent) >>> 0;
}

const label = new Uint8Array(63);

/** Compares two labels in canonical order (RFC 4034 section 6.1). */
export function compareLabels(a: Uint8Array, aAt: number, b: Uint8Array, bAt: number): number {
  const length = Math.min(a[aAt]!, b[bAt]!);
  for (let i = 1; i <= length; i++) {
    const difference = LOWER[a[aAt + i]!]! - LOWER[b[bAt + i]!]!;
    if (difference !== 0) return difference;
  }
  return a[aAt]! - b[bAt]!;
}

/** Puts a value into the first free slot for a hash. */
export function putSlot(slots: Uint32Array, hash: number, value: number): void {
  let slot = homeSlot(hash, slots.length);
  while (slots[slot] !== 0) slot = slot + 1 === slots.length ? 0 : slot + 1;
  slots[slot] = value;
}
