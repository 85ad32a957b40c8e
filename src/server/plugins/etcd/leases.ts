/** Tracks when the leases of keys expire. */
import { every, type Clock, type Timer } from '../../base/clock.ts';
import { EtcdFailure } from '../../etcd/etcd-failure.ts';
import type { EtcdLease } from '../../etcd/messages.ts';

/** A lease clock's dependencies. */
export interface EtcdLeaseParts {
  readonly clock: Clock;
  ask(id: bigint): Promise<EtcdLease>;
  /** Called with a lease's expiry in milliseconds since 1970, or null once no key uses the lease any more. */
  changed(id: string, until: number | null): void;
}

interface Known {
  keys: number;
  /** Milliseconds since 1970; 0 if unknown. */
  until: number;
  /** Difference between the wall clock and the monotonic clock when they were read. */
  epoch: number;
  /** Time of the next request on the monotonic clock. */
  askAt: number;
}

/** Number of leases requested at a time. Given the interval, this is at most 40 requests per second. */
const AT_ONCE = 4;
const ROUND_MS = 100;
/** A lease is requested again after half its remaining time, but no sooner than this. */
const AGAIN_MIN_MS = 1000;
/** A smaller clock correction does not change the seconds. */
const JUMP_MS = 1000;

/**
 * Tracks when the leases of known keys expire. etcd does not report renewals, so each lease is requested again after
 * half its remaining time. If a lease has expired but its keys still exist, it must have been renewed.
 */
export class LeaseClock {
  readonly #parts: EtcdLeaseParts;
  readonly #known = new Map<string, Known>();
  #asking = 0;
  #timer: Timer | null = null;
  #order: Iterator<string> | null = null;

  constructor(parts: EtcdLeaseParts) {
    this.#parts = parts;
  }

  get size(): number {
    return this.#known.size;
  }

  add(id: string): void {
    if (id === '') return;
    const known = this.#known.get(id);
    if (known !== undefined) known.keys++;
    else {
      this.#known.set(id, { keys: 1, until: 0, epoch: 0, askAt: 0 });
      this.#timer ??= every(this.#parts.clock, ROUND_MS, () => this.#round());
      if (this.#asking < AT_ONCE) this.#ask(id);
    }
  }

  remove(id: string): void {
    const known = id === '' ? undefined : this.#known.get(id);
    if (known === undefined || --known.keys > 0) return;
    this.#known.delete(id);
    if (known.until > 0) this.#parts.changed(id, null);
    if (this.#known.size === 0) this.stop();
  }

  *entries(): Generator<readonly [id: string, until: number]> {
    for (const [id, { until }] of this.#known) if (until > 0) yield [id, until];
  }

  stop(): void {
    this.#timer?.cancel();
    this.#timer = null;
  }

  #round(): void {
    const { clock } = this.#parts;
    const now = clock.now();
    const epoch = clock.wall() - now;
    for (let looked = 0; looked < 5000 && this.#asking < AT_ONCE; looked++) {
      this.#order ??= this.#known.keys();
      const { done, value } = this.#order.next();
      if (done === true) {
        this.#order = null;
        return;
      }
      const known = this.#known.get(value);
      if (known === undefined) continue;
      if (known.until > 0 && Math.abs(epoch - known.epoch) >= JUMP_MS)
        this.#shift(value, known, epoch);
      if (known.askAt <= now) this.#ask(value);
    }
  }

  /**
   * Adjusts a lease after the machine's clock was set. It still ends at the same moment, but the wall time of that
   * moment has changed.
   */
  #shift(id: string, known: Known, epoch: number): void {
    known.until += epoch - known.epoch;
    known.epoch = epoch;
    this.#parts.changed(id, known.until);
  }

  #ask(id: string): void {
    const { clock, ask, changed } = this.#parts;
    const known = this.#known.get(id)!;
    known.askAt = Infinity;
    this.#asking++;
    ask(Buffer.from(id, 'latin1').readBigUInt64BE())
      .then(({ ttl }) => {
        const left = Math.max(0, ttl) * 1000;
        const until = clock.wall() + left;
        known.askAt = clock.now() + Math.max(AGAIN_MIN_MS, left / 2);
        // The answer is rounded to a second anyway.
        if (Math.abs(until - known.until) < 1000 || this.#known.get(id) !== known) return;
        known.until = until;
        known.epoch = clock.wall() - clock.now();
        changed(id, until);
      })
      .catch((error: unknown) => {
        if (!(error instanceof EtcdFailure)) throw error;
        known.askAt = clock.now() + 10 * AGAIN_MIN_MS;
      })
      .finally(() => {
        this.#asking--;
      });
  }
}
