/**
 * Native buckets, which a histogram counts in addition to its own. These are Prometheus's native histograms with
 * sixteen buckets per power of two (schema 4, a growth factor of 1.05). A sparse set would have to be searched, and
 * would grow while queries are answered. Instead, each bucket in a range derived from the histogram's own bounds is a
 * cell.
 */

/** The number of buckets per power of two is 2 to the power of this number. */
export const NATIVE_SCHEMA = 4;
const PER_OCTAVE = 1 << NATIVE_SCHEMA;
/** Extent of the range below the smallest nonzero bound and above the largest, in powers of two. */
const OCTAVES_BELOW = 8;
const OCTAVES_ABOVE = 3;
/** Maximum range, 641 cells that fit into one block. Times from 1 µs to 18 days stay within it. */
const OCTAVES_MAX = 40;

/**
 * One histogram's native buckets. Values up to `zeroThreshold` share the zero bucket, as the format requires. Values
 * above the range are counted in the last bucket.
 */
export class NativeRange {
  /** Number of cells per label set, including the zero bucket and those in the range. */
  readonly cells: number;
  readonly zeroThreshold: number;
  readonly #top: number;
  readonly #lowest: number;

  /** @param bounds the histogram's own bounds, ascending */
  constructor(bounds: readonly number[]) {
    const smallest = bounds.find((bound) => bound > 0) ?? 1;
    const largest = Math.max(smallest, bounds.at(-1)!);
    // Stay clear of the limits of floats, so that powers of two are exact.
    const lowest = Math.floor(Math.log2(smallest)) - OCTAVES_BELOW;
    this.#lowest = Math.min(100, Math.max(-100, lowest));
    const highest = Math.min(
      this.#lowest + OCTAVES_MAX,
      Math.max(this.#lowest + 1, Math.ceil(Math.log2(largest)) + OCTAVES_ABOVE),
    );
    this.zeroThreshold = 2 ** this.#lowest;
    this.#top = 2 ** highest;
    this.cells = (highest - this.#lowest) * PER_OCTAVE + 1;
  }

  /** Returns the cell that counts a value other than NaN. Cell 0 is the zero bucket. */
  cellOf(value: number): number {
    if (value <= this.zeroThreshold) return 0;
    if (value >= this.#top) return this.cells - 1;
    float[0] = value;
    const high = words[HIGH]!;
    const octave = (high >>> 20) - 1023;
    let step = stepsAt[(high >>> 12) & 0xff]!;
    // The same mantissa, but with the exponent of numbers between 1 and 2.
    words[HIGH] = (high & 0xf_ffff) | 0x3ff0_0000;
    if (float[0]! > steps[step]!) step++;
    return (octave - this.#lowest) * PER_OCTAVE + step;
  }

  /** Returns the number that the format assigns to a cell's bucket. Its upper bound is 2^(number / 16). */
  indexOf(cell: number): number {
    return this.#lowest * PER_OCTAVE + cell;
  }
}

const float = new Float64Array(1);
const words = new Uint32Array(float.buffer);
/** Index of the half of a float that contains its sign and exponent. It depends on the byte order. */
const HIGH = new Uint8Array(new Uint16Array([1]).buffer)[0] === 1 ? 1 : 0;
/** Upper bounds of the buckets between 1 and 2, starting with 1 itself. */
const steps = Float64Array.from({ length: PER_OCTAVE + 1 }, (_, step) => 2 ** (step / PER_OCTAVE));
/**
 * Maps the first eight binary digits of the fraction to the bucket of the smallest number that begins with these
 * digits. The bounds are farther apart than that, so at most one more has to be compared.
 */
const stepsAt = Uint8Array.from({ length: 256 }, (_, digits) =>
  steps.findIndex((bound) => 1 + digits / 256 <= bound),
);
