/** A zone that follows its primaries. */
import { Backoff } from '../../base/backoff.ts';
import type { Clock, Timer } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import { printHostPort } from '../../base/ip.ts';
import { printBytes } from '../../base/limits.ts';
import type { Random } from '../../base/random.ts';
import type { Counter } from '../../metrics/registry.ts';
import type { RemoteServer } from '../../transport/one-exchange.ts';
import type { TsigSigningKey } from '../../transport/tsig-keys.ts';
import { TYPE } from '../../wire/iana.ts';
import { parseName, type WireName } from '../../wire/name.ts';
import { bytesOf, type PackedZone } from '../../zone/packed-zone.ts';
import { isNewer } from '../../zone/serial.ts';
import type { Transferred } from '../../zone/incoming-zone.ts';
import { primarySerial, transferIn } from '../../zone/transfer-in.ts';
import { tellProgress } from '../../zone/zone-progress.ts';
import type { ZoneMetrics } from '../../zone/zone-reloader.ts';
import type { ZonePublisher } from '../../zone/zone-publisher.ts';
import { ZoneData } from '../../zone/zone-data.ts';
import type { PrimaryTurns } from './primary-turns.ts';
import type { FailureLog } from './failure-lines.ts';
import { NoRoom, type ArrivingZone, type ZoneMemory } from './zone-memory.ts';

/** Maximum pause in ms between attempts to get a zone for the first time. */
const FIRST_RETRY_MAX_MS = 10_000;
/** Random ms added to refresh and retry, so that a primary's secondaries do not all query it at once. */
const REFRESH_JITTER_MS = 5000;
const RETRY_JITTER_MS = 2000;
const IDLE_MS = 10_000;
const TOTAL_MS = 10 * 60_000;
/**
 * Time in ms after startup in which an unreachable primary is not an error. Servers that start together, or one that is
 * its own primary, need this long.
 */
const STARTING_MS = 10_000;

export interface Fetching {
  serial: typeof primarySerial;
  transfer: typeof transferIn;
}

const network: Fetching = { serial: primarySerial, transfer: transferIn };

/** Metrics for a followed zone: those that every zone has, and failed incremental transfers. */
export interface FollowedMetrics extends ZoneMetrics {
  readonly fallbacks: { with(zone: string): Counter };
}

export interface FollowedZoneParts {
  /** Absolute, in lower case. */
  readonly zone: string;
  readonly primaries: readonly RemoteServer[];
  /** The key that signs queries and their replies, or null. */
  readonly key: TsigSigningKey | null;
  /** Maximum size of the zone's records in bytes. */
  readonly maxBytes: number;
  readonly memory: ZoneMemory;
  readonly turns: PrimaryTurns;
  readonly publisher: ZonePublisher;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly failures: FailureLog;
  readonly metrics: FollowedMetrics;
  /**
   * Checks a version before it is accepted.
   * @returns a function to run afterwards
   * @throws Error with a text for the log, to reject the version
   */
  readonly accept?: (packed: PackedZone) => () => void;
  readonly fetching?: Fetching;
}

/**
 * A copy of a zone (RFC 1034 section 4.3.5). It queries the serial on its primaries every refresh interval and after a
 * NOTIFY, and transfers any changes. After a failure, it tries again every retry interval. If no primary could be
 * reached for the expire interval, the zone expires. The intervals are given in the zone's SOA record.
 */
export class FollowedZone {
  readonly #parts: FollowedZoneParts;
  readonly #origin: WireName;
  readonly #abort = new AbortController();
  #timer: Timer | null = null;
  #expiry: Timer | null = null;
  readonly #backoff: Backoff;
  #startedAt = -Infinity;
  #busy = false;
  #again = false;
  /** True if a primary has a newer version that could not be fetched. */
  #isBehind = false;
  #held = 0;
  /** The last reported older serial, by primary. */
  readonly #olderTold = new Map<string, number>();

  constructor(parts: FollowedZoneParts) {
    this.#parts = parts;
    this.#origin = parseName(parts.zone);
    this.#backoff = new Backoff(parts.clock, parts.random, { mostMs: FIRST_RETRY_MAX_MS });
  }

  start(): void {
    this.#startedAt = this.#parts.clock.now();
    // A zone from the previous configuration expires when it would have expired without the reload.
    const confirmedAt = this.#parts.publisher.confirmedAt(this.#parts.zone);
    if (confirmedAt !== null) this.#expireAfter(confirmedAt);
    // The current version has already been accepted.
    const packed = this.#packed;
    if (packed !== null) this.#parts.accept?.(packed)();
    this.#hold(packed);
    void this.#look();
  }

  /** Handles a primary's notification that the zone has changed (RFC 1996). */
  notified(from: string): void {
    const { log, zone } = this.#parts;
    log.info(`Notify from ${from} for ${zone}: checking transfer`);
    if (this.#busy) this.#again = true;
    else void this.#look();
  }

  stop(): void {
    this.#abort.abort();
    this.#timer?.cancel();
    this.#expiry?.cancel();
    this.#hold(null);
  }

  #hold(packed: PackedZone | null): void {
    const bytes = bytesOf(packed);
    this.#parts.memory.serve(bytes - this.#held);
    this.#held = bytes;
  }

  get #isStarting(): boolean {
    return this.#parts.clock.now() - this.#startedAt < STARTING_MS;
  }

  get #packed(): PackedZone | null {
    return this.#parts.publisher.packed(this.#parts.zone);
  }

  /** Checks one primary after another until a newer version is found, and schedules the next check. */
  async #look(): Promise<void> {
    if (this.#abort.signal.aborted) return;
    this.#timer?.cancel();
    this.#busy = true;
    this.#again = false;
    const failure = await this.#ask();
    this.#busy = false;
    if (this.#abort.signal.aborted) return;
    if (failure === null) this.#wasGood();
    if (this.#again) return void this.#look();
    this.#timer = this.#parts.clock.after(this.#pause(failure), () => void this.#look());
  }

  /** @returns why no primary was reached, or null if those that were reached have no newer version */
  async #ask(): Promise<string | null> {
    const { failures, zone, primaries, metrics, turns } = this.#parts;
    let failure = 'there is none';
    let isReached = false;
    this.#isBehind = false;
    for (const server of primaries) {
      const where = printHostPort(server.host, server.port);
      try {
        if (await turns.run(server, () => this.#follow(server, where))) return null;
        isReached = true;
      } catch (error) {
        failure = (error as Error).message;
        if (this.#abort.signal.aborted) return failure;
        const text = `Failed to transfer \`${zone}' from "${where}": ${failure}`;
        if (this.#isStarting) failures.info(text);
        else failures.error(text);
      }
    }
    if (!isReached || this.#isBehind) metrics.failures.with(zone).add(1);
    return isReached ? null : failure;
  }

  /**
   * @returns true if the primary had a newer version, which is now being served
   * @throws Error
   */
  async #follow(server: RemoteServer, where: string): Promise<boolean> {
    const { memory } = this.#parts;
    const arrival = memory.arrive();
    try {
      return await this.#followInto(arrival, server, where);
    } catch (error) {
      arrival.check();
      throw error;
    } finally {
      memory.leave(arrival);
    }
  }

  async #followInto(arrival: ArrivingZone, server: RemoteServer, where: string): Promise<boolean> {
    const { log, zone, publisher, metrics, accept, fetching = network } = this.#parts;
    if (this.#abort.signal.aborted) return false;
    const old = this.#packed;
    let said = 0;
    if (old !== null) {
      const serial = await fetching.serial(this.#origin, server, this.#terms(arrival));
      if (serial !== old.serial && !isNewer(serial, old.serial)) this.#wentBack(serial, old, where);
      else this.#olderTold.delete(where);
      if (!isNewer(serial, old.serial)) return false;
      said = serial;
      this.#isBehind = true;
    }
    const telling = this.#tellProgress(arrival, where);
    let found: Transferred;
    try {
      found = await this.#fetch(arrival, server, old);
    } finally {
      telling.cancel();
    }
    if (this.#abort.signal.aborted) return false;
    if (old !== null && !isNewer(found.serial, old.serial))
      throw new Error(`it announces serial ${said} but transfers ${found.serial}`);
    if (found.packed === null) return false;
    const differences = found.differences ?? (await publisher.differences(zone, found.packed));
    if (this.#abort.signal.aborted) return false;
    const accepted = accept?.(found.packed);
    publisher.put(zone, found.packed, differences);
    this.#hold(found.packed);
    metrics.records.with(zone).set(found.packed.records);
    metrics.serial.with(zone).set(found.packed.serial);
    if (old !== null) metrics.reloads.with(zone).add(1);
    log.info(
      `Transferred: ${zone} from ${where}, ${found.records} records${found.differences === undefined ? '' : ' of differences'}, ${found.serial} SOA serial`,
    );
    accepted?.();
    this.#isBehind = false;
    return true;
  }

  #tellProgress(arrival: ArrivingZone, where: string): Timer {
    const { zone, metrics } = this.#parts;
    return tellProgress(
      { ...this.#parts, gauge: metrics.loading.with(zone) },
      () => arrival.records,
      () =>
        `Transferring ${zone} from ${where}: ${arrival.records} records so far, ${printBytes(arrival.bytes)}`,
    );
  }

  /** Reports once that the primary has an older version. The current one continues to be served. */
  #wentBack(serial: number, old: PackedZone, where: string): void {
    const { log, zone, metrics } = this.#parts;
    metrics.failures.with(zone).add(1);
    if (this.#olderTold.get(where) === serial) return;
    this.#olderTold.set(where, serial);
    log.warning(
      `${zone} has serial ${serial} at ${where}, which is older than ${old.serial}; the newer version stays in use`,
    );
  }

  async #fetch(
    arrival: ArrivingZone,
    server: RemoteServer,
    old: PackedZone | null,
  ): Promise<Transferred> {
    const { log, zone, memory, metrics } = this.#parts;
    if (old !== null) {
      try {
        return this.#checked(await this.#transfer(arrival, server, old), old);
      } catch (error) {
        if (this.#abort.signal.aborted || arrival.signal.aborted || error instanceof NoRoom)
          throw error;
        metrics.fallbacks.with(zone).add(1);
        log.info(`IXFR of ${zone}: ${(error as Error).message}; requesting the whole zone`);
        memory.restart(arrival);
      }
    }
    return this.#checked(await this.#transfer(arrival, server, null), old);
  }

  #transfer(
    arrival: ArrivingZone,
    server: RemoteServer,
    base: PackedZone | null,
  ): Promise<Transferred> {
    const { fetching = network } = this.#parts;
    return fetching.transfer(this.#origin, base, server, this.#terms(arrival));
  }

  /**
   * Rejects a zone whose NS records have disappeared, because it must be damaged. The previous version stays. As in
   * CoreDNS, a zone that never had any is accepted.
   * @throws Error
   */
  #checked(found: Transferred, old: PackedZone | null): Transferred {
    if (found.packed === null || hasNs(found.packed)) return found;
    const { log, zone } = this.#parts;
    if (old === null) log.warning(`${zone} has no NS record at its apex`);
    else if (hasNs(old))
      throw new Error(
        `the version with serial ${found.serial} no longer has an NS record at the zone's apex`,
      );
    return found;
  }

  #terms(arrival: ArrivingZone): Parameters<typeof transferIn>[3] {
    const { random, clock, key, maxBytes } = this.#parts;
    return {
      idleMs: IDLE_MS,
      totalMs: TOTAL_MS,
      maxBytes,
      claim: (bytes) => arrival.take(bytes),
      reserve: (bytes) => arrival.reserve(bytes),
      signal: AbortSignal.any([this.#abort.signal, arrival.signal]),
      id: random.integer(65_536),
      key,
      seconds: () => Math.floor(clock.wall() / 1000),
      clock,
    };
  }

  #wasGood(): void {
    const { clock, publisher, zone } = this.#parts;
    this.#backoff.succeed();
    publisher.confirm(zone, clock.now());
    this.#expireAfter(clock.now());
  }

  /** Makes the zone expire one expire interval after this clock time. */
  #expireAfter(confirmedAt: number): void {
    const { clock, log, publisher, zone } = this.#parts;
    const left = confirmedAt + 1000 * this.#times().expire - clock.now();
    this.#expiry?.cancel();
    this.#expiry = clock.after(Math.max(0, left), () => {
      log.error(
        `Zone ${zone} is expired: no primary could be reached for ${this.#times().expire} s`,
      );
      publisher.expire(zone);
    });
  }

  /** @param failure why no primary was reached, or null if one was */
  #pause(failure: string | null): number {
    const { failures, random, zone } = this.#parts;
    if (this.#packed === null) {
      const pause = Math.round(this.#backoff.fail());
      if (!this.#isStarting)
        failures.warning(
          `All '${zone}' masters failed to transfer, retrying in ${pause}ms: ${failure ?? 'there is none'}`,
        );
      return pause;
    }
    const { refresh, retry } = this.#times();
    return failure === null && !this.#isBehind
      ? 1000 * refresh + random.integer(REFRESH_JITTER_MS)
      : 1000 * retry + random.integer(RETRY_JITTER_MS);
  }

  /**
   * Returns the SOA record's timers in seconds. They are at least 1, because a timer of 0 would cause an endless loop.
   */
  #times(): { readonly refresh: number; readonly retry: number; readonly expire: number } {
    const packed = this.#packed;
    if (packed === null) return { refresh: 1, retry: 1, expire: 1 };
    const zone = new ZoneData(packed);
    const at = zone.soa();
    const end = at + zone.value;
    const view = new DataView(zone.data.buffer, zone.data.byteOffset);
    const time = (back: number): number => Math.max(1, view.getUint32(end - back));
    const [refresh, retry] = [time(16), time(12)];
    // Otherwise, a zone would expire before its primary is queried.
    const least = refresh + retry + (REFRESH_JITTER_MS + RETRY_JITTER_MS + IDLE_MS) / 1000;
    return { refresh, retry, expire: Math.max(time(8), least) };
  }
}

function hasNs(packed: PackedZone): boolean {
  return new ZoneData(packed).find(0, TYPE.NS);
}
