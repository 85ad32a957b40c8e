/** Publishes zones from the control thread to the workers. */
import type { Clock } from '../base/clock.ts';
import { droppedShared } from '../runtime/memory-policy.ts';
import { inSlices } from '../base/slices.ts';
import type { KeptAcrossReloads } from '../engine/contract/control-context.ts';
import type { DataSet, OpenDataSet } from '../engine/contract/data-set.ts';
import { foldName, parseName } from '../wire/name.ts';
import { differenceOf, type Difference } from './difference.ts';
import { bytesOf, type PackedZone } from './packed-zone.ts';
import { isNewer } from './serial.ts';
import type { ZoneChange } from './zone-replica.ts';

/** Size in bytes of a message to a worker about a zone; the zone itself is in shared memory. */
const CHANGE_BYTES = 256;
/** Differences to older versions of a zone are stored as long as they use at most this fraction of the zone's size. */
const HISTORY_PART = 0.25;
/** Maximum number of differences per zone. */
const HISTORY_MAX = 64;

/** The control thread's end of the zones in a plugin. Every worker answers from the zones that it publishes. */
export class ZonePublisher implements KeptAcrossReloads {
  readonly #set: DataSet<ZoneChange>;
  readonly #zones = new Map<string, ZoneChange>();
  readonly #confirmed = new Map<string, number>();
  /** For each zone, the digest of the file being served, if there is one. */
  readonly digests: Map<string, string> = new Map();
  /** For each zone, the path of its file at the last check, if there is one. */
  readonly paths: Map<string, string> = new Map();
  readonly #clock: Clock;

  constructor(open: OpenDataSet, clock: Clock) {
    this.#clock = clock;
    this.#set = open<ZoneChange>({
      snapshot: () => [...this.#zones.values()],
      size: () => CHANGE_BYTES,
    });
  }

  /** Returns the version of a zone that is being served, or null if there is no version or no such zone. */
  packed(zone: string): PackedZone | null {
    return this.#zones.get(zone)?.packed ?? null;
  }

  has(zone: string): boolean {
    return this.#zones.has(zone);
  }

  get names(): readonly string[] {
    return [...this.#zones.keys()];
  }

  /**
   * Serves a new version of a zone, adding the zone if necessary.
   * @param packed null if the zone has not been loaded, in which case its names are SERVFAIL
   * @param differences the changes since the previous version, or null if unknown
   */
  put(
    zone: string,
    packed: PackedZone | null,
    differences: readonly Difference[] | null = null,
  ): void {
    const before = this.#zones.get(zone);
    const history = packed === null ? [] : historyOf(before, packed, differences);
    droppedShared(bytesOf(before?.packed ?? null));
    this.#tell(zone, { ...this.#entry(zone), packed, history, expired: false });
  }

  /** Returns the changes in this version, or null if they are unknown or not worth their memory. */
  async differences(zone: string, packed: PackedZone): Promise<readonly Difference[] | null> {
    const old = this.packed(zone);
    if (old === null || !isNewer(packed.serial, old.serial)) return null;
    return inSlices(differenceOf(old, packed, mostHistory(packed)), this.#clock);
  }

  /** Records that the zone matched its primary at this clock time. If it had expired, it becomes valid again. */
  confirm(zone: string, now: number): void {
    this.#confirmed.set(zone, now);
    const entry = this.#zones.get(zone);
    if (entry?.expired === true) this.#tell(zone, { ...entry, expired: false });
  }

  /** Returns when a zone was last confirmed, in clock milliseconds, or null if it never was. This survives reloads. */
  confirmedAt(zone: string): number | null {
    return this.#confirmed.get(zone) ?? null;
  }

  /** Marks the zone as no longer valid, although its content is known (RFC 1035 section 3.3.13, EXPIRE). */
  expire(zone: string): void {
    this.#tell(zone, { ...this.#entry(zone), expired: true });
  }

  remove(zone: string): void {
    const entry = this.#zones.get(zone);
    if (entry === undefined) return;
    this.#zones.delete(zone);
    this.#confirmed.delete(zone);
    this.digests.delete(zone);
    this.paths.delete(zone);
    droppedShared(bytesOf(entry.packed));
    this.#set.publish([{ ...entry, packed: null, history: [], gone: true }]);
  }

  /** Runs once every worker answers from the published zones. */
  whenApplied(run: () => void): void {
    this.#set.whenApplied(run);
  }

  close(): void {
    this.#set.close();
  }

  #entry(zone: string): ZoneChange {
    return (
      this.#zones.get(zone) ?? {
        origin: foldName(parseName(zone)),
        packed: null,
        history: [],
        expired: false,
        gone: false,
      }
    );
  }

  #tell(zone: string, change: ZoneChange): void {
    this.#zones.set(zone, change);
    this.#set.publish([change]);
  }
}

/** Returns the maximum size in bytes of the differences to older versions. */
function mostHistory(packed: PackedZone): number {
  return HISTORY_PART * bytesOf(packed);
}

/** Returns the differences that lead to this version, if they are worth their memory. */
function historyOf(
  before: ZoneChange | undefined,
  packed: PackedZone,
  added: readonly Difference[] | null,
): readonly Difference[] {
  const old = before?.packed ?? null;
  // Another version may have arrived during the comparison.
  if (old === null || added === null || added[0]?.from !== old.serial) return [];
  const most = mostHistory(packed);
  const history = [...before!.history, ...added];
  let bytes = 0;
  let first = history.length;
  while (first > 0 && history.length - first < HISTORY_MAX) {
    const { removed, added: came } = history[first - 1]!;
    bytes += removed.length + came.length;
    if (bytes > most) break;
    first--;
  }
  return history.slice(first);
}
