/**
 * Creates the next version of a zone from the previous one and its changes. Only names that have changed are built. All
 * others are copied in packed form, in long runs.
 */
import { sharedBytes, sharedWords } from '../base/shared-memory.ts';
import type { Slices } from '../base/slices.ts';
import { TYPE } from '../wire/iana.ts';
import { LOWER, type WireName } from '../wire/name.ts';
import type { Changes } from './changes.ts';
import { partsOf, putRecord, trimmed } from './stored-record.ts';
import { GrowingBytes } from './growing.ts';
import type { PackedZone } from './packed-zone.ts';
import { RecordCursor } from './record-cursor.ts';
import { ZoneBuilder } from './zone-builder.ts';
import { ZoneData } from './zone-data.ts';
import { indexNodes } from './zone-index.ts';

/** Bit mask for the number of copied nodes after which the work may pause. */
const NODE_SLICE = 0x3fff;
/** Number of copied bytes after which the work may pause. */
const COPY_BYTES = 1024 * 1024;

/** The new version's SOA record. */
export interface NewSoa {
  readonly owner: WireName;
  readonly ttl: number;
  readonly data: Uint8Array;
}

/**
 * Returns the version of a zone after these changes. It contains the remaining records, the SOA record and the new
 * records, in this order.
 * @throws Error if a removed record does not exist, or a new one is rejected
 */
export function* changedZone(old: PackedZone, changes: Changes, soa: NewSoa): Slices<PackedZone> {
  const zone = new ZoneData(old);
  const touched = new Set<number>([0]);
  for (const name of changes.names) {
    const node = nodeOfOwner(zone, name);
    if (node >= 0) touched.add(node);
    yield;
  }
  const builder = new ZoneBuilder(old.origin, touched.size);
  /** Nodes that keep some of their records. */
  const kept = new Set<number>();
  /** Records at unchanged names. */
  let others = old.records - 1;
  const one = new GrowingBytes();
  for (const node of touched) {
    for (const cursor = new RecordCursor(zone, node); cursor.next();) {
      others--;
      const { type, ttl, at, length } = cursor;
      const owner = trimmed(cursor.owner);
      const data = zone.data.subarray(at, at + length);
      one.length = 0;
      putRecord(one, owner, type, ttl, data);
      if (changes.touches(one.bytes.subarray(0, one.length))) continue;
      builder.addTransferred(owner, type, ttl, data);
      kept.add(node);
    }
    yield;
  }
  builder.addTransferred(soa.owner, TYPE.SOA, soa.ttl, soa.data);
  for (const bytes of changes.added()) {
    const { fields, type, ttl } = partsOf(bytes);
    builder.addTransferred(bytes.subarray(0, fields), type, ttl, bytes.subarray(fields + 10));
    yield;
  }
  const fresh = new ZoneData(yield* builder.packing());
  const gone = yield* goneNodes(zone, touched, kept);
  const { data, nodes, sameNames } = yield* spliced(zone, fresh, touched, gone);
  return {
    origin: old.origin,
    data,
    nodes,
    ...(yield* indexNodes(data, nodes, sameNames ? old.slots : null)),
    records: others + fresh.packed.records,
    serial: fresh.packed.serial,
  };
}

/**
 * Returns the node below `parent` with the label at `at` (lower case), even if it has no records. If there is none,
 * returns the node that would follow it.
 */
function childOrPlace(
  zone: ZoneData,
  parent: number,
  name: Uint8Array,
  at: number,
): { node: number; isThere: boolean } {
  const node = zone.before(parent, name, at) + 1;
  const isThere =
    node < zone.size && zone.parent(node) === parent && zone.compareLabel(node, name, at) === 0;
  return { node, isThere };
}

/**
 * Returns the node for a name in the zone (lower case), or -1 if there is none. This includes nodes without records and
 * NSEC3 hashes.
 */
function nodeOfOwner(zone: ZoneData, name: WireName): number {
  const starts: number[] = [];
  for (let at = 0; at < name.length - zone.origin.length; at += name[at]! + 1) starts.push(at);
  let parent = 0;
  for (let i = starts.length - 1; i >= 0; i--) {
    const { node, isThere } = childOrPlace(zone, parent, name, starts[i]!);
    if (!isThere) return -1;
    parent = node;
  }
  return parent;
}

/**
 * Finds the nodes to remove, because neither they nor any names below them own records any more.
 * @param touched nodes affected by the changes; all others stay
 * @param kept those among them that still own something
 * @returns each of them with the next node that stays
 */
function* goneNodes(
  zone: ZoneData,
  touched: ReadonlySet<number>,
  kept: ReadonlySet<number>,
): Slices<ReadonlyMap<number, number>> {
  const candidates = new Set<number>();
  for (const node of touched) {
    for (let up = node; up > 0 && !candidates.has(up); up = zone.parent(up)) candidates.add(up);
    yield;
  }
  const gone = new Map<number, number>();
  // Nodes below a node have higher numbers, so they come first here.
  for (const node of (yield* inOrder(candidates)).reverse()) {
    yield;
    const owns = touched.has(node) ? kept.has(node) : zone.at(node + 1) > zone.setsAt(node);
    if (owns) continue;
    const next = gone.get(node + 1) ?? node + 1;
    if (!isBelow(zone, next, node)) gone.set(node, next);
  }
  return gone;
}

function* inOrder(nodes: ReadonlySet<number>): Slices<Uint32Array> {
  const numbers = new Uint32Array(nodes.size);
  let count = 0;
  for (const node of nodes) {
    numbers[count++] = node;
    if ((count & NODE_SLICE) === 0) yield;
  }
  return numbers.sort();
}

/** Returns a node's label, preceded by its length. */
function labelOf(zone: ZoneData, node: number): Uint8Array {
  return zone.data.subarray(zone.at(node) + 1, zone.setsAt(node));
}

function isBelow(zone: ZoneData, node: number, above: number): boolean {
  if (node >= zone.size) return false;
  // Parents have lower numbers than their children.
  while (node > above) node = zone.parent(node);
  return node === above;
}

/**
 * Returns the place of each node in `fresh`, which is either the node that it replaces or the node after it (`isNew`).
 */
function* placesOf(
  zone: ZoneData,
  fresh: ZoneData,
): Slices<{ places: Uint32Array; isNew: Uint8Array }> {
  const places = new Uint32Array(fresh.size);
  const isNew = new Uint8Array(fresh.size);
  const name = new Uint8Array(65);
  for (let i = 1; i < fresh.size; i++) {
    yield;
    const parent = fresh.parent(i);
    if (isNew[parent] === 1) {
      places[i] = places[parent]!;
      isNew[i] = 1;
      continue;
    }
    // The label, and the end of a name.
    name.fill(0);
    const label = labelOf(fresh, i);
    for (let j = 0; j < label.length; j++) name[j] = LOWER[label[j]!]!;
    const { node, isThere } = childOrPlace(zone, places[parent]!, name, 0);
    places[i] = node;
    isNew[i] = isThere ? 0 : 1;
  }
  return { places, isNew };
}

/**
 * Merges the nodes of both in canonical order, omitting those that were removed. Changed nodes come from `fresh`, and
 * the others from `zone`.
 */
function* spliced(
  zone: ZoneData,
  fresh: ZoneData,
  touched: ReadonlySet<number>,
  gone: ReadonlyMap<number, number>,
): Slices<{ data: Uint8Array; nodes: Uint32Array; sameNames: boolean }> {
  const { places, isNew } = yield* placesOf(zone, fresh);
  let come = 0;
  let back = 0;
  for (let i = 0; i < fresh.size; i++) {
    if (isNew[i] === 1) come++;
    else if (gone.has(places[i]!)) back++;
    if ((i & NODE_SLICE) === NODE_SLICE) yield;
  }
  const count = zone.size - gone.size + back + come;
  const nodes = sharedWords(2 * (count + 1));
  const room = zone.data.length + fresh.data.length;
  const data = new GrowingBytes(sharedBytes(room));
  /** The nodes' new numbers. */
  const ofOld = new Uint32Array(zone.size);
  const ofFresh = new Uint32Array(fresh.size);
  const stopping = new Set(touched);
  for (const node of gone.keys()) {
    stopping.add(node);
    yield;
  }
  const stops = yield* inOrder(stopping);
  let made = 0;
  const begin = (parent: number): number => {
    nodes[2 * made] = data.length;
    nodes[2 * made + 1] = parent;
    return made++;
  };
  let at = 0;
  let stop = 0;
  for (let i = 0; ;) {
    const next = Math.min(stops[stop] ?? zone.size, i < fresh.size ? places[i]! : zone.size);
    // Everything up to here is unchanged.
    const shift = data.length - zone.at(at);
    for (let from = zone.at(at); from < zone.at(next); from += COPY_BYTES) {
      data.push(zone.data.subarray(from, Math.min(zone.at(next), from + COPY_BYTES)));
      yield;
    }
    for (; at < next; at++) {
      ofOld[at] = made;
      nodes[2 * made] = zone.at(at) + shift;
      nodes[2 * made + 1] = ofOld[zone.parent(at)]!;
      made++;
      if ((at & NODE_SLICE) === NODE_SLICE) yield;
    }
    if (at === zone.size && i === fresh.size) break;
    const isFresh = i < fresh.size && places[i] === at;
    if (isFresh && isNew[i] === 1) {
      ofFresh[i] = begin(ofFresh[fresh.parent(i)]!);
      data.push(fresh.data.subarray(fresh.at(i), fresh.at(i + 1)));
      i++;
      yield;
      continue;
    }
    if (isFresh || !gone.has(at)) {
      ofOld[at] = begin(ofOld[zone.parent(at)]!);
      if (touched.has(at) || gone.has(at)) {
        data.u8(isFresh ? fresh.flags(i) : 0);
        // If none of a name's old records stay, the new ones determine its spelling.
        data.push(gone.has(at) ? labelOf(fresh, i) : labelOf(zone, at));
        if (isFresh) data.push(fresh.data.subarray(fresh.setsAt(i), fresh.at(i + 1)));
      } else data.push(zone.data.subarray(zone.at(at), zone.at(at + 1)));
      if (isFresh) ofFresh[i++] = ofOld[at]!;
    }
    if (stops[stop] === at) stop++;
    at++;
    yield;
  }
  nodes[2 * count] = data.length;
  return {
    data: data.bytes.subarray(0, data.length),
    nodes,
    sameNames: come === 0 && back === gone.size,
  };
}
