import type { Merge } from './registration.ts';

/** A count that only rises. `add` is one array write. */
export interface Counter {
  /** Amounts that are negative or not a number are ignored. */
  add(amount: number): void;
}

/** A value that rises and falls. */
export interface Gauge {
  set(value: number): void;
  add(amount: number): void;
}

/**
 * Observations counted into buckets, in the unit the name ends in (seconds, bytes). `observe`
 * allocates nothing.
 */
export interface Histogram {
  /** NaN is ignored. */
  observe(value: number): void;
}

/** One metric name with all its label sets. */
export interface Family<L extends readonly string[], M> {
  /**
   * The instrument of one label set, made at the first call. Where labels are known at setup, call
   * this once and keep the result. Calling it per query costs a map lookup per label and a
   * short-lived array.
   */
  with(...values: { [K in keyof L]: string }): M;
  /** Removes one label set. Instruments of it that are still in use count nowhere from then on. */
  remove(...values: { [K in keyof L]: string }): void;
}

/** The registration of metrics. Names are full names, as exposed: `coredns_dns_requests_total`. */
export interface Registry {
  counter<const L extends readonly string[]>(
    name: string,
    help: string,
    labels: L,
  ): Family<L, Counter>;
  /** `merge` (default `sum`) says how the values of several threads are combined. */
  gauge<const L extends readonly string[]>(
    name: string,
    help: string,
    labels: L,
    merge?: Merge,
  ): Family<L, Gauge>;
  /** `bounds`: upper bucket bounds, ascending, without +Inf (see buckets.ts). */
  histogram<const L extends readonly string[]>(
    name: string,
    help: string,
    labels: L,
    bounds: readonly number[],
  ): Family<L, Histogram>;
}
