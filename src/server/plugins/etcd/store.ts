/** The control thread's copy of the etcd data. */
import { every, type Clock, type Timer } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import type { ListedEntry, MirrorTarget } from '../../etcd/mirror.ts';
import type { EtcdLease, WatchEvent } from '../../etcd/messages.ts';
import type { Registry } from '../../metrics/registry.ts';
import type { DataSet, OpenDataSet } from '../../engine/contract/data-set.ts';
import { sizeOf, type EtcdChange } from './replica.ts';
import type { KeyRoom } from './key-memory.ts';
import { KeyTable } from './key-table.ts';
import { LeaseClock } from './leases.ts';
import { nameOf } from './path.ts';
import {
  leaseOf,
  packService,
  skipReasons,
  type Skipped,
  type SkipReason,
} from './skydns-service.ts';

export interface EtcdStoreParts {
  /** Prefix of all keys, from the directive's `path`. */
  readonly prefix: string;
  readonly maxKeys: number;
  readonly maxValueBytes: number;
  readonly room: KeyRoom;
  readonly open: OpenDataSet;
  askLease(id: bigint): Promise<EtcdLease>;
  onListed(): void;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Registry;
}

/** Stored instead of a packed service for keys that are skipped. No packed service starts with this. */
const SKIPPED = '\u0004';
/** Size of an entry excluding the bytes of its key and value. */
const ENTRY = 64;
/** Maximum size of a key under `path`, in bytes. A name has at most 255, and few keys get longer through escapes. */
const KEY_MAX = 4096;
/** Number of characters of a key that the log shows. */
const KEY_SHOWN = 300;
/** Number of skipped keys logged individually per minute. */
const NAMED_PER_MINUTE = 10;

/**
 * The control thread's copy of the etcd data, which is replicated to the workers. Values are packed when they arrive.
 * When the keys are listed again, the list is compared key by key, and only differences are sent to the workers.
 */
export class EtcdStore implements MirrorTarget {
  readonly #parts: EtcdStoreParts;
  readonly #table = new KeyTable();
  readonly #changes: DataSet<EtcdChange>;
  readonly #leases: LeaseClock;
  readonly #meters: ReturnType<typeof meters>;
  readonly #skipped = new Map<SkipReason, number>(skipReasons.map((reason) => [reason, 0]));
  #listed = false;
  #serial = 0;
  /** Keys in the incomplete list, or null. */
  #list: string[] | null = null;
  /** Number of keys beyond `maxKeys` or `room` since everything was listed. */
  #tooMany = 0;
  #lacksRoom = false;
  #bytes = 0;
  /** Number of keys logged during this minute, and of those that were not. */
  #named = 0;
  #unnamed = 0;
  readonly #minute: Timer;
  #raising: Timer | null = null;

  constructor(parts: EtcdStoreParts) {
    this.#parts = parts;
    const { clock, metrics } = parts;
    this.#changes = parts.open<EtcdChange>({ snapshot: () => this.#snapshot(), size: sizeOf });
    this.#leases = new LeaseClock({
      clock,
      ask: (id) => parts.askLease(id),
      changed: (id, until) => this.#changes.publish([{ about: 'lease', id, until }]),
    });
    this.#meters = meters(metrics, parts.prefix);
    this.#minute = every(clock, 60_000, () => this.#tellUnnamed());
  }

  /** Calls `run` as soon as every worker has all the data that is known here. */
  whenApplied(run: () => void): void {
    this.#changes.whenApplied(run);
  }

  /** True if keys had to be omitted for lack of memory since the last complete listing. */
  get lacksRoom(): boolean {
    return this.#lacksRoom;
  }

  close(): void {
    this.#minute.cancel();
    this.#raising?.cancel();
    this.#leases.stop();
    this.#parts.room.leave();
    this.#changes.close();
  }

  begin(): void {
    this.#list = [];
    this.#tooMany = 0;
    this.#lacksRoom = false;
  }

  listed(entries: readonly ListedEntry[]): void {
    const changes: EtcdChange[] = [];
    for (const { key: bytes, value, lease } of entries) {
      const key = this.#keyOf(bytes);
      if (key === null) continue;
      // Omitted keys need not be marked as listed, because the list may contain more keys than fit into memory.
      if (this.#take(key, value, lease, changes)) this.#list?.push(this.#table.own(key));
    }
    this.#publish(changes);
  }

  complete(): void {
    const changes: EtcdChange[] = [];
    const list = this.#list ?? [];
    this.#list = null;
    for (const [key, packed] of this.#table.retain(list.toSorted(byBytes)))
      this.#gone(key, packed, changes);
    const first = !this.#listed;
    this.#listed = true;
    this.#publish(changes, first);
    if (first) this.#parts.onListed();
  }

  changed(events: readonly WatchEvent[]): void {
    const changes: EtcdChange[] = [];
    for (const { deleted, kv } of events) {
      const key = this.#keyOf(kv.key);
      if (key === null) continue;
      if (!deleted) this.#take(key, kv.value, kv.lease, changes);
      else {
        const before = this.#table.delete(key);
        if (before !== null) this.#gone(key, before, changes);
      }
    }
    this.#publish(changes);
  }

  /** Returns the key relative to `path`, or null if it is outside `path` or longer than any domain name. */
  #keyOf(bytes: Buffer): string | null {
    const { prefix } = this.#parts;
    if (bytes.length > prefix.length + KEY_MAX) {
      this.#full(`there is a key of ${bytes.length} bytes`, `${KEY_MAX} bytes`);
      return null;
    }
    const key = bytes.toString('latin1');
    return key.startsWith(prefix) ? key.slice(prefix.length) : null;
  }

  /**
   * Stores a key's value, which is null if it is too large.
   * @returns false if there is no room
   */
  #take(key: string, value: Buffer | null, lease: bigint, changes: EtcdChange[]): boolean {
    const { maxKeys, maxValueBytes, room } = this.#parts;
    const before = this.#table.get(key);
    if (before === null && this.#table.size >= maxKeys)
      return this.#full(`there are more than ${maxKeys} keys`, 'max_keys');
    let read = readEntry(key, value, lease, maxValueBytes);
    let packed = typeof read === 'string' ? read : SKIPPED + read.reason;
    if (packed === before) return true;
    if (!room.fits(this.#bytes + growth(key, before, packed))) {
      this.#lacksRoom = true;
      const keys = room.shared ? 'the keys of all etcd directives' : 'the keys';
      this.#full(`${keys} take more than ${room.most} bytes`, 'max_bytes');
      if (before === null) return false;
      // The key was known before, so its old value must be removed.
      read = { reason: 'size', detail: 'there is no room for its value (max_bytes)' };
      packed = SKIPPED + read.reason;
      if (packed === before) return true;
    }
    this.#grow(growth(key, before, packed));
    this.#table.set(key, packed);
    if (before !== null) this.#forget(before);
    this.#leases.add(leaseIn(packed));
    if (typeof read !== 'string') this.#skip(key, read);
    const [told, toldBefore] = [forWorkers(packed), before === null ? null : forWorkers(before)];
    if (told !== toldBefore) changes.push({ about: 'key', key, packed: told });
    return true;
  }

  #gone(key: string, before: string, changes: EtcdChange[]): void {
    this.#grow(-growth(key, null, before));
    this.#forget(before);
    if (forWorkers(before) !== null) changes.push({ about: 'key', key, packed: null });
  }

  #grow(bytes: number): void {
    this.#bytes += bytes;
    this.#parts.room.hold(this.#bytes);
  }

  #forget(packed: string): void {
    this.#leases.remove(leaseIn(packed));
    const reason = reasonIn(packed);
    if (reason !== null) this.#skipped.set(reason, this.#skipped.get(reason)! - 1);
  }

  #skip(key: string, { reason, detail }: Skipped): void {
    const { prefix, log } = this.#parts;
    this.#skipped.set(reason, this.#skipped.get(reason)! + 1);
    if (this.#named++ >= NAMED_PER_MINUTE) this.#unnamed++;
    else log.warning(`${JSON.stringify(shown(prefix + key))} is ignored: ${detail}`);
  }

  #full(what: string, limit: string): false {
    if (this.#tooMany++ === 0)
      this.#parts.log.error(`${what}; ndots omits keys above the limit (${limit})`);
    return false;
  }

  #tellUnnamed(): void {
    const count = this.#unnamed;
    this.#named = 0;
    this.#unnamed = 0;
    if (count > 0) this.#parts.log.warning(`${count} more keys are ignored`);
  }

  #publish(changes: EtcdChange[], first = false): void {
    // Until everything has been listed, no zone has a serial.
    if (this.#listed && (changes.length > 0 || first) && this.#raiseSerial())
      changes.push(this.#state());
    if (changes.length > 0) this.#changes.publish(changes);
    const { keys, bytes, skipped, tooMany, leases, serial } = this.#meters;
    keys.set(this.#table.size);
    bytes.set(this.#bytes);
    leases.set(this.#leases.size);
    serial.set(this.#serial);
    tooMany.set(this.#tooMany);
    for (const [reason, count] of this.#skipped) skipped(reason).set(count);
  }

  /**
   * Raises the serial to the current second. If it already has that value, it is raised once the second is over.
   * Otherwise, a secondary that transferred the zone within that second would miss later changes. It never decreases,
   * even if the machine's clock is set back.
   * @returns true if it was raised now
   */
  #raiseSerial(): boolean {
    const { clock } = this.#parts;
    const wall = clock.wall();
    const now = Math.floor(wall / 1000);
    if (now !== this.#serial) {
      this.#serial = Math.max(now, this.#serial + 1);
      return true;
    }
    this.#raising ??= clock.after(1000 - (wall % 1000), () => {
      this.#raising = null;
      if (this.#raiseSerial()) this.#changes.publish([this.#state()]);
      this.#meters.serial.set(this.#serial);
    });
    return false;
  }

  #state(): EtcdChange {
    return { about: 'state', listed: this.#listed, serial: this.#serial };
  }

  *#snapshot(): Generator<EtcdChange> {
    yield this.#state();
    for (const [id, until] of this.#leases.entries()) yield { about: 'lease', id, until };
    for (const [key, value] of this.#table.entries()) {
      const packed = forWorkers(value);
      if (packed !== null) yield { about: 'key', key, packed };
    }
    yield this.#state();
  }
}

/** Returns how many more bytes a key needs if `after` replaces `before` (null if it did not exist). */
function growth(key: string, before: string | null, after: string): number {
  return before === null ? ENTRY + key.length + after.length : after.length - before.length;
}

function shown(key: string): string {
  return key.length <= KEY_SHOWN ? key : `${key.slice(0, KEY_SHOWN)}…`;
}

function readEntry(
  key: string,
  value: Buffer | null,
  lease: bigint,
  maxValueBytes: number,
): string | Skipped {
  if (value === null || value.length > maxValueBytes) {
    const size = value === null ? 'more than a message holds' : `${value.length} bytes`;
    return {
      reason: 'size',
      detail: `its value is ${size}, but at most ${maxValueBytes} are accepted`,
    };
  }
  if (nameOf(key) === null) return { reason: 'name', detail: 'it does not match a domain name' };
  return packService(value, lease);
}

function reasonIn(packed: string): SkipReason | null {
  return packed.startsWith(SKIPPED) ? (packed.slice(SKIPPED.length) as SkipReason) : null;
}

function leaseIn(packed: string): string {
  return packed.startsWith(SKIPPED) ? '' : leaseOf(packed);
}

/** Returns a value as workers see it: a name exists even if its value is invalid. */
function forWorkers(packed: string): string | null {
  const reason = reasonIn(packed);
  if (reason === null) return packed;
  return reason === 'name' ? null : '';
}

function byBytes(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

function meters(metrics: Registry, prefix: string) {
  const path = prefix === '' ? '/' : prefix;
  const skipped = metrics.gauge(
    'ndots_etcd_skipped_keys',
    'Keys that are ignored because they are not valid SkyDNS records.',
    ['path', 'reason'],
  );
  return {
    keys: metrics.gauge('ndots_etcd_keys', 'Keys under the path.', ['path']).with(path),
    bytes: metrics
      .gauge('ndots_etcd_bytes', 'Bytes of memory used by each copy of the keys (max_bytes).', [
        'path',
      ])
      .with(path),
    leases: metrics.gauge('ndots_etcd_leases', 'Leases attached to the keys.', ['path']).with(path),
    serial: metrics
      .gauge(
        'ndots_etcd_changed_timestamp_seconds',
        'Time of the last change, which is the SOA serial.',
        ['path'],
      )
      .with(path),
    tooMany: metrics
      .gauge('ndots_etcd_omitted_keys', 'Keys omitted because of max_keys or max_bytes.', ['path'])
      .with(path),
    skipped: (reason: SkipReason) => skipped.with(path, reason),
  };
}
