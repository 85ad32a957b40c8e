/**
 * Replays one server's queries through a token bucket and compares its drops with the losses.
 * Firewalls, clouds and network plugins limit rates in this way.
 */
import { isLost, type SeenExchange } from '../../capture/pair/seen-exchange.ts';
import {
  BUCKET_BURSTS,
  BUCKET_LOST,
  BUCKET_RATES,
  BUCKET_SLOT_MS,
  LOSS_SETTLED_MS,
} from '../thresholds/lateness.ts';
import { crowdingOf, type Crowding } from './crowding.ts';
import { NEARLY_ALL } from '../thresholds/evidence.ts';

/** Queries stored for one server. */
const QUERIES_MAX = 60_000;

export interface Bucket {
  /** Packets per second, and the burst after a pause. */
  readonly rate: number;
  readonly burst: number;
  /** Losses that the bucket puts in another slot, or not at all, as a share of all. */
  readonly error: number;
  /** The error if each query had the same probability of being lost. */
  readonly chance: number;
}

/** The queries to one server in the order in which they end. */
export class BucketReplay {
  /** The send times; negative for lost queries. */
  #queries: number[] = [];
  #lost = 0;
  #full = false;
  readonly #most: number;

  constructor(most: number = QUERIES_MAX) {
    this.#most = most;
  }

  add(exchange: SeenExchange): void {
    if (this.#full || exchange.protocol !== 'udp') return;
    if (this.#queries.length >= this.#most) {
      // Without losses, only the latest queries are needed: their losses are known later.
      if (this.#lost > 0) {
        this.#full = true;
        return;
      }
      this.#queries = this.#queries.slice(this.#most / 2);
    }
    const lost = isLost(exchange);
    if (lost) this.#lost++;
    this.#queries.push(lost ? -exchange.sentMs : exchange.sentMs);
  }

  /**
   * Compares how many queries were sent shortly before lost ones and before the others.
   * @returns null: all or none were lost
   */
  get crowding(): Crowding | null {
    return crowdingOf([this.#queries]);
  }

  /**
   * The limit that explains the losses best.
   * @param errorMax null as well: each one errs in more than this share of them, below 1
   * @returns null: too little was lost, or too much
   */
  best(errorMax: number): Bucket | null {
    if (this.#lost < BUCKET_LOST) return null;
    const sorted = this.#queries.toSorted((one, other) => Math.abs(one) - Math.abs(other));
    const untilMs = this.#full ? Math.abs(sorted.at(-1)!) - LOSS_SETTLED_MS : Infinity;
    const known = sorted.filter((ms) => Math.abs(ms) <= untilMs);
    // Before the first and after the last that is dropped there may be no limit; when the first one
    // is, the bucket is empty.
    const from = known.findIndex(isOfLost);
    const queries = known.slice(from, known.findLastIndex(isOfLost) + 1);
    const lost = queries.filter(isOfLost).length;
    if (lost < BUCKET_LOST || lost > NEARLY_ALL * queries.length) return null;
    const slots = slotsOf(queries);
    const even = lost / queries.length;
    let chance = 0;
    for (let at = 0, begin = 0; at < slots.count; begin = slots.ends[at++]!)
      chance += Math.abs(slots.lost[at]! - even * (slots.ends[at]! - begin));
    let best: Bucket | null = null;
    let least = Math.floor(errorMax * lost) + 1;
    const { least: slowest, most: fastest, step } = BUCKET_RATES;
    for (const burst of BUCKET_BURSTS)
      for (let rate = slowest; rate < fastest; rate *= step) {
        const { error, dropped } = dropsOf(slots, rate, burst, least);
        // One that lets through more drops nothing either, and errs as much at the same place.
        if (dropped === 0) break;
        if (error >= least) continue;
        least = error;
        best = { rate, burst, error: error / lost, chance: chance / lost };
      }
    return best;
  }
}

/** True if this is the send time of a lost query. */
function isOfLost(ms: number): boolean {
  return ms < 0;
}

/**
 * Queries by the slot in which they were sent. Flat arrays, because each is read for a thousand
 * buckets.
 */
interface Slots {
  readonly times: Float64Array;
  readonly count: number;
  /** Of each slot the place in `times` behind its last query. */
  readonly ends: Uint32Array;
  /** Of each slot. */
  readonly lost: Uint32Array;
}

/** @param queries in order, those that were lost as negative numbers */
function slotsOf(queries: readonly number[]): Slots {
  const times = Float64Array.from(queries, Math.abs);
  const [ends, lost] = [new Uint32Array(times.length), new Uint32Array(times.length)];
  let count = 0;
  let present = Number.NaN;
  for (const [at, ms] of times.entries()) {
    const slot = Math.floor(ms / BUCKET_SLOT_MS);
    if (slot !== present) count++;
    present = slot;
    ends[count - 1] = at + 1;
    if (isOfLost(queries[at]!)) lost[count - 1]!++;
  }
  return { times, count, ends, lost };
}

/**
 * The drops of this bucket, and their distance from the losses of the slots. @param most buckets at
 * this distance are not computed to their end
 */
function dropsOf(
  { times, count, ends, lost }: Slots,
  rate: number,
  burst: number,
  most: number,
): { readonly error: number; readonly dropped: number } {
  let tokens = 0;
  let lastMs = times[0]!;
  let error = 0;
  let dropped = 0;
  for (let slot = 0, at = 0; slot < count && error < most; slot++) {
    const before = dropped;
    for (const end = ends[slot]!; at < end; at++) {
      const ms = times[at]!;
      tokens = Math.min(burst, tokens + ((ms - lastMs) * rate) / 1000);
      lastMs = ms;
      if (tokens >= 1) tokens--;
      else dropped++;
    }
    error += Math.abs(lost[slot]! - (dropped - before));
  }
  return { error, dropped };
}
