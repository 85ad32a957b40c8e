/** Finds the server block for a query. */
import { hashBytes } from '../../base/hash.ts';
import { TYPE } from '../../wire/iana.ts';
import { foldName, type WireName } from '../../wire/name.ts';
import type { Query, Route } from '../../transport/query.ts';
import type { Next } from '../contract/plugin.ts';

/** One server block, for one of its zones on one listen address. */
export interface RoutedBlock {
  readonly zone: WireName;
  readonly route: Route;
  /** Null for a block without plugins. */
  readonly chain: Next | null;
  /** All filters must accept a query for the block to serve it. */
  readonly filters: readonly ((query: Query) => boolean)[];
}

interface ZoneBucket {
  readonly zone: WireName;
  /** In Corefile order. There is more than one only if views are used. */
  readonly served: RoutedBlock[];
}

/**
 * Finds the server block with the longest zone that matches a name. Among blocks with views, it chooses the first whose
 * filters accept the query.
 */
export class ZoneTable {
  readonly #buckets = new Map<number, ZoneBucket[]>();
  readonly #root: RoutedBlock[] = [];
  #onlyRoot = true;
  readonly #starts = new Uint8Array(128);
  readonly #hashes = new Int32Array(128);

  constructor(all: readonly RoutedBlock[]) {
    for (const served of all) this.#insert({ ...served, zone: foldName(served.zone) });
  }

  #insert(served: RoutedBlock): void {
    if (served.zone.length === 1) {
      this.#root.push(served);
      return;
    }
    this.#onlyRoot = false;
    const hash = this.#hash(served.zone, served.zone.length);
    const bucket = this.#buckets.get(hash) ?? [];
    this.#buckets.set(hash, bucket);
    const same = bucket.find(({ zone }) => equalBytes(zone, 0, served.zone));
    if (same === undefined) bucket.push({ zone: served.zone, served: [served] });
    else same.served.push(served);
  }

  /** Returns the block for this query, or null, which means REFUSED. */
  match(query: Query): RoutedBlock | null {
    if (this.#onlyRoot) return pick(this.#root, query);
    const { folded, nameLength } = query;
    this.#hash(folded, nameLength);
    const { length } = this;
    // A DS query belongs to the parent zone, if that is served too.
    let found: RoutedBlock | null = null;
    for (let label = 0; label < length; label++) {
      const bucket = this.#buckets.get(this.#hashes[label]!);
      if (bucket === undefined) continue;
      const start = this.#starts[label]!;
      for (const { zone, served } of bucket) {
        if (nameLength - start !== zone.length || !equalBytes(folded, start, zone)) continue;
        const picked = pick(served, query);
        if (picked === null) continue;
        if (query.type !== TYPE.DS || start > 0) return picked;
        found = picked;
      }
    }
    return pick(this.#root, query) ?? found;
  }

  /** Number of labels in the name that was last hashed. */
  length = 0;

  /** Hashes every suffix of a folded name, starting from the right, and returns the hash of the whole name. */
  #hash(name: Uint8Array, length: number): number {
    const starts = this.#starts;
    let labels = 0;
    for (let at = 0; at < length - 1; at += name[at]! + 1) starts[labels++] = at;
    this.length = labels;
    let hash = 0;
    let end = length - 1;
    for (let label = labels - 1; label >= 0; label--) {
      const start = starts[label]!;
      hash = hashBytes(name, start, end, hash) & 0x3fffffff;
      this.#hashes[label] = hash;
      end = start;
    }
    return hash;
  }
}

function pick(served: readonly RoutedBlock[], query: Query): RoutedBlock | null {
  for (const one of served) if (passes(one.filters, query)) return one;
  return null;
}

/** Written without a closure, because every query runs this. */
function passes(filters: RoutedBlock['filters'], query: Query): boolean {
  for (const accepts of filters) if (!accepts(query)) return false;
  return true;
}

function equalBytes(bytes: Uint8Array, at: number, other: Uint8Array): boolean {
  for (let i = 0; i < other.length; i++) if (bytes[at + i] !== other[i]) return false;
  return true;
}
