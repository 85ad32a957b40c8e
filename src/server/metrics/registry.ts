import type { Merge } from './registration.ts';

/** A count that only increases. `add` is a single array write. */
export interface Counter {
  /** Negative and NaN amounts are ignored. */
  add(amount: number): void;
}

/** A value that goes up and down. */
export interface Gauge {
  set(value: number): void;
  add(amount: number): void;
}

/**
 * Observations counted into buckets, in the unit at the end of the name (seconds or bytes). `observe` allocates
 * nothing.
 */
export interface Histogram {
  /** NaN is ignored. */
  observe(value: number): void;
}

/** One metric name with all its label sets. */
export interface Family<L extends readonly string[], M> {
  /**
   * Returns the instrument for a label set, which is created on the first call. If the labels are known at setup, call
   * this once and store the result. Calling it for each query costs one map lookup per label and a short-lived array.
   */
  with(...values: { [K in keyof L]: string }): M;
  /** Removes a label set. Counts on instruments that are still in use are discarded from then on. */
  remove(...values: { [K in keyof L]: string }): void;
}

/**
 * Registers metrics. Names are given in full, as exposed: `coredns_dns_requests_total`. A metric registered without
 * labels is a single instrument rather than a family.
 */
export interface Registry {
  counter(name: string, help: string): Counter;
  counter<const L extends readonly string[]>(
    name: string,
    help: string,
    labels: L,
  ): Family<L, Counter>;
  gauge(name: string, help: string): Gauge;
  /** `merge` (default `sum`) determines how values from several threads are combined. */
  gauge<const L extends readonly string[]>(
    name: string,
    help: string,
    labels: L,
    merge?: Merge,
  ): Family<L, Gauge>;
  /** `bounds` are ascending upper bounds of the buckets, without +Inf (see buckets.ts). */
  histogram<const L extends readonly string[]>(
    name: string,
    help: string,
    labels: L,
    bounds: readonly number[],
  ): Family<L, Histogram>;
}
