/** Zones on their way from the control thread to the workers. */
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

/** Bytes of a message about a zone to a worker: the zone itself is shared memory. */
const CHANGE_BYTES = 256;
/**
 * The older versions of a zone are remembered as differences as long as these take no more than
 * this part of the zone.
 */
const HISTORY_PART = 0.25;
/** Maximum number of differences stored for a zone. */
const HISTORY_MAX = 64;

/**
 * The control thread's end of the zones of a plugin: every worker answers from the zones that it
 * publishes.
 */
export class ZonePublisher implements KeptAcrossReloads {
  readonly #set: DataSet<ZoneChange>;
  readonly #zones = new Map<string, ZoneChange>();
  readonly #confirmed = new Map<string, number>();
  /** By zone: the digest of the file that is served, if it is one. */
  readonly digests: Map<string, string> = new Map();
  /** By zone: the path of its file at the last look, if there was one. */
  readonly paths: Map<string, string> = new Map();
  readonly #clock: Clock;

  constructor(open: OpenDataSet, clock: Clock) {
    this.#clock = clock;
    this.#set = open<ZoneChange>({
      snapshot: () => [...this.#zones.values()],
      size: () => CHANGE_BYTES,
    });
  }

  /** The version of a zone that is served; null: none, or there is no such zone. */
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
   * Serves another version of a zone, which is there from now on.
   * @param packed null: it has not been loaded, and its names are SERVFAIL
   * @param differences what changed since the version before; null: that is not known
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

  /** The changes of this version; null: not known, or not worth their memory. */
  async differences(zone: string, packed: PackedZone): Promise<readonly Difference[] | null> {
    const old = this.packed(zone);
    if (old === null || !isNewer(packed.serial, old.serial)) return null;
    return inSlices(differenceOf(old, packed, mostHistory(packed)), this.#clock);
  }

  /**
   * The zone is as its primary has it at this time of the clock: one that was expired is good
   * again.
   */
  confirm(zone: string, now: number): void {
    this.#confirmed.set(zone, now);
    const entry = this.#zones.get(zone);
    if (entry?.expired === true) this.#tell(zone, { ...entry, expired: false });
  }

  /**
   * The last confirmation of a zone, milliseconds of the clock; null: never. It outlives reloads.
   */
  confirmedAt(zone: string): number | null {
    return this.#confirmed.get(zone) ?? null;
  }

  /** The zone is no longer good, although it is known (RFC 1035 section 3.3.13, EXPIRE). */
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

  /** Runs when every worker answers from the published zones. */
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

/** Bytes that the differences to older versions may take. */
function mostHistory(packed: PackedZone): number {
  return HISTORY_PART * bytesOf(packed);
}

/** The differences that lead to this version, if they are worth their memory. */
function historyOf(
  before: ZoneChange | undefined,
  packed: PackedZone,
  added: readonly Difference[] | null,
): readonly Difference[] {
  const old = before?.packed ?? null;
  // Another version may have come while this one was compared.
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
