/** Messages between a cache's control part and its parts in workers. */

/** To every worker. */
export type CacheOrder =
  | { readonly kind: 'pack'; readonly id: number }
  | { readonly kind: 'unpack'; readonly entries: Uint8Array }
  | InspectionOrder;

export interface InspectionOrder {
  readonly kind: 'explain' | 'flush';
  readonly id: number;
  /** Wire form, lower case. */
  readonly name: Uint8Array;
  readonly below: boolean;
  /** The most entries to list. */
  readonly limit: number;
}

export type CacheMessage = Packed | Inspected;

export interface Packed {
  readonly kind: 'packed';
  readonly id: number;
  readonly entries: Uint8Array;
}

export interface Inspected {
  readonly kind: 'inspected';
  readonly id: number;
  /** Number of matching entries; a flush removes them all. */
  readonly found: number;
  /** The matching entries, at most `limit`; none for a flush. */
  readonly entries: readonly EntryReport[];
  /** Entries of the whole cache, before a flush. */
  readonly size: number;
}

export interface EntryReport {
  readonly name: string;
  /** `ANY`: the name does not exist, for any type. */
  readonly type: string;
  readonly class: string;
  /** The kind of client: each kind has separate entries. */
  readonly dnssecOk: boolean;
  readonly checkingDisabled: boolean;
  readonly rcode: string;
  /** `denial`: NXDOMAIN, no data, failures. */
  readonly half: 'success' | 'denial';
  /** Remaining seconds; negative: seconds since it became stale. */
  readonly ttl: number;
  /** Seconds that it was stored with. */
  readonly storedTtl: number;
  readonly hits: number;
  /**
   * The source of the reply: a plugin, and the upstream's address if there was one; empty: unknown,
   * as after a handover.
   */
  readonly from: string;
  /** Bytes of the message. */
  readonly bytes: number;
}
