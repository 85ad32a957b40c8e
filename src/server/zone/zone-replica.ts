import { droppedShared } from '../runtime/memory-policy.ts';
import type { Replica } from '../engine/contract/data-set.ts';
import type { WireName } from '../wire/name.ts';
import type { Difference } from './difference.ts';
import { bytesOf, type PackedZone } from './packed-zone.ts';
import { ZoneData } from './zone-data.ts';
import { ZoneDirectory, type OfZone } from './zone-directory.ts';

/**
 * A change to the set of zones that a plugin serves. Its content is in shared memory, so sending it to a worker costs
 * almost nothing.
 */
export interface ZoneChange {
  readonly origin: WireName;
  /** Null if the zone has not been loaded. */
  readonly packed: PackedZone | null;
  /**
   * The changes that led to this version, oldest first. Each starts from the serial of the previous one, as IXFR
   * requires.
   */
  readonly history: readonly Difference[];
  readonly expired: boolean;
  /** True if the zone is no longer served. */
  readonly gone: boolean;
}

/** A zone used for answers. */
export interface ServedZone extends OfZone {
  readonly data: ZoneData | null;
  readonly history: readonly Difference[];
  readonly expired: boolean;
}

/** A worker's view of a plugin's zones. */
export class ZoneReplica implements Replica<ZoneChange> {
  readonly zones: ZoneDirectory<ServedZone> = new ZoneDirectory();
  /** Origins that a snapshot has not mentioned yet, with their bytes as the key, or null if there is no snapshot. */
  #unnamed: Map<string, WireName> | null = null;
  readonly #watchers = new Set<(zone: ServedZone) => void>();

  begin(): void {
    this.#unnamed = new Map();
    for (const { origin } of this.zones.all()) this.#unnamed.set(keyOf(origin), origin);
  }

  apply(changes: readonly ZoneChange[]): void {
    for (const { origin, packed, history, expired, gone } of changes) {
      this.#unnamed?.delete(keyOf(origin));
      const old = this.#dataOf(origin);
      if (old !== packed) droppedShared(bytesOf(old));
      if (gone) {
        this.zones.delete(origin);
        continue;
      }
      const data = packed === null ? null : new ZoneData(packed);
      const zone = { origin, data, history, expired };
      this.zones.put(zone);
      for (const tell of this.#watchers) tell(zone);
    }
  }

  #dataOf(origin: WireName): PackedZone | null {
    const found = this.zones.find(origin, origin.length);
    return found?.origin.length === origin.length ? (found.data?.packed ?? null) : null;
  }

  complete(): void {
    for (const origin of this.#unnamed?.values() ?? []) {
      droppedShared(bytesOf(this.#dataOf(origin)));
      this.zones.delete(origin);
    }
    this.#unnamed = null;
  }

  /**
   * Reports zones that have changed.
   * @returns a function that stops the reports
   */
  watch(tell: (zone: ServedZone) => void): () => void {
    this.#watchers.add(tell);
    return () => this.#watchers.delete(tell);
  }
}

function keyOf(origin: WireName): string {
  return Buffer.from(origin).toString('latin1');
}
