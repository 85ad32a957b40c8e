import { errorCode } from '../base/error-code.ts';
import { whyFailed } from '../base/why-failed.ts';
import type { Clock, Timer } from '../base/clock.ts';
import type { Log } from '../base/log.ts';
import { Problem } from '../base/problem.ts';
import type { Counter, Gauge, Registry } from '../metrics/registry.ts';
import { parseName } from '../wire/name.ts';
import { isNewer } from './serial.ts';
import { areAsRead, fileStamp, type FileStamp } from './file-stamp.ts';
import { loadZone } from './load-zone.ts';
import type { ZonePublisher } from './zone-publisher.ts';
import { tellProgress, type ReadingProgress } from './zone-progress.ts';

/** A zone and its file. */
export interface ZoneSource {
  /** Absolute, lower case. */
  readonly zone: string;
  readonly path: string;
  /** True to reload the zone whenever the file has changed, rather than when its serial has. */
  readonly byTime: boolean;
}

/** The parts of a reloader: the publisher, and the reloader's access to files and time. */
export interface ZoneReloaderParts {
  readonly publisher: ZonePublisher;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Registry;
}

/**
 * Keeps zones in sync with their files by reading them, reloading them when they have changed, and publishing the
 * result. If a file is missing or has an error, its zone stays unchanged.
 */
export class ZoneReloader {
  readonly #parts: ZoneReloaderParts;
  /** For each zone, its file and the included files as they were when last read. */
  readonly #stamps = new Map<string, readonly FileStamp[]>();
  readonly #metrics: ZoneMetrics;
  /**
   * Promises for the end of the sliced read on this thread, and of reads on other threads. Only one file of each kind
   * is read at a time.
   */
  #busy: Promise<void> = Promise.resolve();
  #busyThread: Promise<unknown> = Promise.resolve();
  /** Zones that are being reloaded. */
  readonly #reading = new Set<string>();

  constructor(parts: ZoneReloaderParts) {
    this.#parts = parts;
    this.#metrics = zoneMetrics(parts.metrics);
  }

  /**
   * Reads a zone for the first time. If the file does not exist, the zone is not loaded.
   * @returns all errors in the file; `missing` if it could not be read
   */
  async load(source: ZoneSource): Promise<{
    readonly problems: readonly Problem[];
    readonly missing: Error | null;
  }> {
    const { publisher, log } = this.#parts;
    const { zone, path, byTime } = source;
    // The zone was already served under a different Corefile.
    const serial = publisher.packed(zone)?.serial ?? null;
    const digest = publisher.digests.get(zone);
    const { problems, missing, taken } = await this.#read(source, null);
    if (!publisher.has(zone)) publisher.put(zone, null);
    this.#compare(source, serial, taken);
    if (taken !== null && taken === serial && !byTime && digest !== publisher.digests.get(zone))
      log.warning(
        `zone "${zone}": "${path}" has changed but its serial has not (${serial}): secondaries will not transfer it; increase the serial`,
      );
    return { problems, missing };
  }

  /**
   * Reloads zones whose files have changed, one at a time, and loads those that are not known yet. A file that needs
   * its own thread delays only others like it, and is not read twice at the same time.
   * @returns resolves when all of them have been read
   */
  async refresh(sources: readonly ZoneSource[]): Promise<void> {
    const slow: Promise<void>[] = [];
    this.#busy = this.#busy.then(async () => {
      for (const source of sources) {
        const { zone } = source;
        if (this.#reading.has(zone)) continue;
        this.#reading.add(zone);
        const { promise: isSlow, resolve: goOn } = Promise.withResolvers<void>();
        const done = this.#refresh(source, (run) => {
          goOn();
          const turn = this.#busyThread.then(run);
          this.#busyThread = turn.catch(() => undefined);
          return turn;
        }).finally(() => this.#reading.delete(zone));
        slow.push(done);
        await Promise.race([done, isSlow]);
      }
    });
    await this.#busy;
    await Promise.all(slow);
  }

  forget(zone: string): void {
    this.#stamps.delete(zone);
    this.#reading.delete(zone);
    this.#parts.publisher.remove(zone);
    this.#metrics.records.with(zone).set(0);
  }

  async #refresh(source: ZoneSource, inTurn: InTurn): Promise<void> {
    const { zone, path, byTime } = source;
    const { log, publisher } = this.#parts;
    const read = this.#stamps.get(zone);
    if (read?.[0]?.[0] === path && areAsRead(read)) return;
    const serial = publisher.packed(zone)?.serial ?? null;
    const known = publisher.has(zone);
    const { problems, missing, taken } = await this.#read(source, byTime ? null : serial, inTurn);
    if (missing !== null) {
      log.error(`Failed to open zone "${zone}" in "${path}": ${whyFailed(missing)}`);
    }
    for (const problem of problems) log.error(`Parsing zone "${zone}": ${problem.print()}`);
    if (problems.length > 0) this.#metrics.failures.with(zone).add(1);
    if (taken === null || !known) return;
    this.#metrics.reloads.with(zone).add(1);
    this.#compare(source, serial, taken);
    log.info(`Successfully reloaded zone "${zone}" in "${path}" with ${taken} SOA serial`);
  }

  /** Warns about a serial that is older than that of the previous version. */
  #compare({ zone, path }: ZoneSource, before: number | null, taken: number | null): void {
    if (before === null || taken === null || taken === before || isNewer(taken, before)) return;
    this.#parts.log.warning(
      `zone "${zone}": the serial in "${path}" decreased from ${before} to ${taken}: secondaries keep their version until the serial is newer than theirs (RFC 1982)`,
    );
  }

  #tellProgress(zone: string, path: string, progress: ReadingProgress): Timer {
    const gauge = this.#metrics.loading.with(zone);
    return tellProgress(
      { ...this.#parts, gauge },
      () => progress.records,
      () => `Reading zone "${zone}" in "${path}": ${progress.print()}`,
    );
  }

  async #read(
    { zone, path }: ZoneSource,
    unless: number | null,
    inTurn?: InTurn,
  ): Promise<{
    readonly problems: readonly Problem[];
    readonly missing: Error | null;
    /** The serial of the version that is served from now on. */
    readonly taken: number | null;
  }> {
    const { clock, log, publisher } = this.#parts;
    const stamp = fileStamp(path);
    try {
      const { packed, problems, warnings, digest, included } = await loadZone(
        path,
        parseName(zone),
        clock,
        unless,
        { inTurn, watch: (progress) => this.#tellProgress(zone, path, progress) },
      );
      const differences = packed === null ? null : await publisher.differences(zone, packed);
      const isForgotten = inTurn !== undefined && !this.#reading.has(zone);
      if (isForgotten) return { problems: [], missing: null, taken: null };
      if (stamp !== null) this.#stamps.set(zone, [[path, stamp], ...included]);
      for (const warning of warnings) log.warning(warning.print());
      if (packed === null) {
        if (problems.length === 0 && digest !== publisher.digests.get(zone))
          log.warning(
            `zone "${zone}": "${path}" has changed but its serial has not (${unless}): the new content is not served, and secondaries would not transfer it; increase the serial`,
          );
        return { problems, missing: null, taken: null };
      }
      publisher.digests.set(zone, digest);
      publisher.put(zone, packed, differences);
      this.#metrics.records.with(zone).set(packed.records);
      this.#metrics.serial.with(zone).set(packed.serial);
      return { problems, missing: null, taken: packed.serial };
    } catch (error) {
      if (error instanceof Problem) return { problems: [error], missing: null, taken: null };
      // A file that needs too much memory would do so again, so it is read again only after it has changed.
      if (errorCode(error) === 'ERR_WORKER_OUT_OF_MEMORY') {
        if (stamp !== null) this.#stamps.set(zone, [[path, stamp]]);
        return { problems: [tooMuch(path)], missing: null, taken: null };
      }
      return { problems: [], missing: error as Error, taken: null };
    }
  }
}

function tooMuch(path: string): Problem {
  return new Problem({
    code: 'bad-zone',
    text: `${path}: reading it needs more memory than a thread may use`,
    place: { file: path, line: 1, column: 1 },
    hint: 'Most likely, one of its lines is very long, or $GENERATE and $INCLUDE produce too much.',
  });
}

type InTurn = <T>(run: () => Promise<T>) => Promise<T>;

/**
 * Metrics by zone name: the records and serial of the version being served, the numbers of accepted and rejected
 * versions, and the records of an incoming one.
 */
export interface ZoneMetrics {
  readonly records: { with(zone: string): Gauge };
  readonly serial: { with(zone: string): Gauge };
  readonly reloads: { with(zone: string): Counter };
  readonly failures: { with(zone: string): Counter };
  readonly loading: { with(zone: string): Gauge };
}

/** Returns the zone metrics that all plugins with zones share. */
export function zoneMetrics(metrics: Registry): ZoneMetrics {
  return {
    records: metrics.gauge('ndots_zone_records', 'Records in the zone.', ['zone'], 'last'),
    serial: metrics.gauge('ndots_zone_serial', "The zone's current serial.", ['zone'], 'last'),
    reloads: metrics.counter(
      'ndots_zone_reloads_total',
      'New versions of the zone that replaced an earlier one.',
      ['zone'],
    ),
    failures: metrics.counter(
      'ndots_zone_reload_failures_total',
      'Versions of the zone that could not be read or transferred; the previous one stays in use.',
      ['zone'],
    ),
    loading: metrics.gauge(
      'ndots_zone_loading_records',
      'Records read so far from the version being read or transferred; otherwise 0.',
      ['zone'],
      'last',
    ),
  };
}
