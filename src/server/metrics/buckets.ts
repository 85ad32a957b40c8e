/**
 * Bucket bounds of CoreDNS's histograms. Dashboards compute quantiles from them, so they are part of the interface.
 * Changing a bound would change every latency panel.
 */

/** From 0.25 ms up to 8.192 s, doubling each time, in seconds. Used for query durations. */
export const timeBuckets: readonly number[] = exponential(0.00025, 2, 16);

/** From 0.25 ms to 2.5 s in steps of ten, in seconds. Used where five buckets are enough, e.g. for health checks. */
export const slimBuckets: readonly number[] = exponential(0.00025, 10, 5);

/** Message sizes in bytes. 8291 is CoreDNS's number (probably a typo for 8192), retained for comparability. */
export const sizeBuckets: readonly number[] = [
  0, 100, 200, 300, 400, 511, 1023, 2047, 4095, 8291, 16e3, 32e3, 48e3, 64e3,
];

/** From 5 ms to 10 s, in seconds. The default in Prometheus clients. */
export const defaultBuckets: readonly number[] = [
  0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10,
];

/**
 * From 1 ms up to 524 s, doubling each time, in seconds. Used for the delay between an endpoint change and its
 * visibility in DNS.
 */
export const programmingBuckets: readonly number[] = exponential(0.001, 2, 20);

/**
 * Returns `count` bounds, each of which is `factor` times the previous one. They are multiplied step by step as in Go's
 * client. The bounds are printed as `le` labels, and different rounding would change the label values.
 */
function exponential(start: number, factor: number, count: number): readonly number[] {
  const bounds: number[] = [];
  for (let bound = start; bounds.length < count; bound *= factor) bounds.push(bound);
  return bounds;
}
