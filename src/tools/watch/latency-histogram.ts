/** Latencies in buckets, which give quantiles accurate to within 5% in a few dozen bytes. */

/** The shortest latency that has a bucket of its own, in milliseconds. */
const LEAST_MS = 0.01;
/** Each bucket is this much wider than the one before, so its middle is at most 5% off. */
const RATIO = 1.1;
/** The number of buckets, enough for 100 s. */
const BUCKETS = 170;
/** The number of buckets added at a time. A server's latencies are close together. */
const GROWTH = 8;

const PER_LOG = 1 / Math.log(RATIO);
const none = new Uint32Array(0);

export class LatencyHistogram {
  /** The maximum size of its buckets in bytes. */
  static readonly limitBytes: number = 4 * (BUCKETS + GROWTH);
  count = 0;
  /** The longest latency; 0 if there are none. */
  maxMs = 0;
  /** The bucket at which `#counts` starts. */
  #first = 0;
  #counts = none;

  add(ms: number): void {
    this.count++;
    if (ms > this.maxMs) this.maxMs = ms;
    const at = this.#place(bucketOf(ms));
    this.#counts[at]!++;
  }

  merge(other: LatencyHistogram): void {
    this.count += other.count;
    if (other.maxMs > this.maxMs) this.maxMs = other.maxMs;
    for (let from = 0; from < other.#counts.length; from++) {
      const count = other.#counts[from]!;
      if (count === 0) continue;
      const at = this.#place(other.#first + from);
      this.#counts[at]! += count;
    }
  }

  /**
   * @param part between 0 and 1
   * @returns milliseconds, or null if there are no latencies
   */
  quantile(part: number): number | null {
    if (this.count === 0) return null;
    let left = Math.max(1, Math.ceil(part * this.count));
    for (const [at, count] of this.#counts.entries()) {
      left -= count;
      if (left <= 0) return Math.min(this.maxMs, middleOf(this.#first + at));
    }
    return this.maxMs;
  }

  /** The size of its buckets in bytes. */
  get bytes(): number {
    return this.#counts.byteLength;
  }

  /** Returns a bucket's index, growing the array if necessary. */
  #place(bucket: number): number {
    const at = bucket - this.#first;
    if (at >= 0 && at < this.#counts.length) return at;
    const known = this.#counts;
    const from = known.length === 0 ? bucket : Math.min(this.#first, bucket);
    const to = known.length === 0 ? bucket : Math.max(this.#first + known.length - 1, bucket);
    const first = Math.max(0, from - (from % GROWTH));
    const counts = new Uint32Array(to - first + 1 + (GROWTH - 1 - (to % GROWTH)));
    counts.set(known, known.length === 0 ? 0 : this.#first - first);
    this.#first = first;
    this.#counts = counts;
    return bucket - first;
  }
}

function bucketOf(ms: number): number {
  if (ms <= LEAST_MS) return 0;
  return Math.min(BUCKETS - 1, 1 + Math.floor(Math.log(ms / LEAST_MS) * PER_LOG));
}

/** A bucket's geometric middle, in milliseconds. */
function middleOf(bucket: number): number {
  return bucket === 0 ? LEAST_MS : LEAST_MS * RATIO ** (bucket - 0.5);
}
