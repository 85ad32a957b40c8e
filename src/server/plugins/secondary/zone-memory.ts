/** Memory shared by all transferred zones. */
import type { Gauge } from '../../metrics/registry.ts';
import type { KeptAcrossReloads } from '../../engine/contract/control-context.ts';

/** Memory is reserved in steps of this many received bytes. */
const STEP = 64 * 1024;
/** An incoming transfer counts three times: as received data, as a growing zone, and as the zone being served. */
const TIMES = 3;

/** Thrown if the zone does not fit into memory. */
export class NoRoom extends Error {}

/**
 * The memory for all transferred zones, complete or not. If it runs short, the largest incomplete one is dropped,
 * because a transfer that never ends must not block one that does.
 */
export class ZoneMemory implements KeptAcrossReloads {
  #most = 0;
  readonly #gauge: Pick<Gauge, 'set'>;
  readonly #arrivals = new Set<ArrivingZone>();
  #used = 0;

  constructor(gauge: Pick<Gauge, 'set'>) {
    this.#gauge = gauge;
  }

  /** Raises the limit for all zones together to `most` bytes, unless it is already higher. */
  allow(most: number): this {
    this.#most = Math.max(this.#most, most);
    return this;
  }

  /** Changes the size of the served zones, which exist even if there is no room. */
  serve(bytes: number): void {
    this.#used += bytes;
    this.#gauge.set(this.#used);
  }

  arrive(): ArrivingZone {
    const arrival = new ArrivingZone((bytes) => this.#claim(arrival, bytes));
    this.#arrivals.add(arrival);
    return arrival;
  }

  /** Called when a transfer is complete or has been abandoned. */
  leave(arrival: ArrivingZone): void {
    if (!this.#arrivals.delete(arrival)) return;
    this.serve(-arrival.claimed);
  }

  /** Discards what was received so far, because the transfer starts again. */
  restart(arrival: ArrivingZone): void {
    if (!this.#arrivals.has(arrival)) return;
    this.serve(-arrival.claimed);
    arrival.forget();
  }

  close(): void {
    // The memory is released by the transfer that reserved it.
  }

  #claim(by: ArrivingZone, bytes: number): void {
    while (this.#used + bytes > this.#most) {
      const largest = this.#largest(by);
      this.leave(largest);
      largest.giveUp(
        new NoRoom(
          `there is not enough memory for it, because all zones together may use only ${this.#most} bytes (max_size)`,
        ),
      );
      if (largest === by) return;
    }
    by.claimed += bytes;
    this.serve(bytes);
  }

  #largest(by: ArrivingZone): ArrivingZone {
    let largest = by;
    for (const one of this.#arrivals) if (one.claimed > largest.claimed) largest = one;
    return largest;
  }
}

export class ArrivingZone {
  claimed = 0;
  records = 0;
  bytes = 0;
  readonly #claim: (bytes: number) => void;
  readonly #ending = new AbortController();
  #left = 0;

  constructor(claim: (bytes: number) => void) {
    this.#claim = claim;
  }

  /** Aborted when the transfer is dropped. */
  get signal(): AbortSignal {
    return this.#ending.signal;
  }

  /**
   * Counts a record of this many bytes, and reserves memory for it.
   * @throws NoRoom
   */
  take(bytes: number): void {
    this.check();
    this.records++;
    this.bytes += bytes;
    this.#left -= bytes;
    if (this.#left >= 0) return;
    const steps = Math.ceil(-this.#left / STEP);
    this.#left += steps * STEP;
    this.#claim(TIMES * steps * STEP);
    this.check();
  }

  /**
   * Reserves memory for anything other than a received record.
   * @throws NoRoom
   */
  reserve(bytes: number): void {
    this.check();
    this.#claim(bytes);
    this.check();
  }

  forget(): void {
    this.claimed = 0;
    this.records = 0;
    this.bytes = 0;
    this.#left = 0;
  }

  /** @throws NoRoom if the transfer was dropped */
  check(): void {
    if (this.signal.aborted) throw this.signal.reason;
  }

  giveUp(why: NoRoom): void {
    this.#ending.abort(why);
  }
}
