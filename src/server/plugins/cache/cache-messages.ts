/** Messages between a cache's control part and its workers. */

/** A message to every worker. */
export type CacheOrder =
  | { readonly kind: 'pack'; readonly id: number }
  | { readonly kind: 'unpack'; readonly entries: Uint8Array }
  | InspectionOrder;

export interface InspectionOrder {
  readonly kind: 'explain' | 'flush';
  readonly id: number;
  /** Wire form, in lower case. */
  readonly name: Uint8Array;
  readonly below: boolean;
  /** Maximum number of entries to list. */
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
  /** Number of matching entries, all of which a flush removes. */
  readonly found: number;
  /** The matching entries, up to `limit`; empty for a flush. */
  readonly entries: readonly EntryReport[];
  /** Number of entries in the whole cache before the flush. */
  readonly size: number;
}

export interface EntryReport {
  readonly name: string;
  /** `ANY` if the name does not exist for any type. */
  readonly type: string;
  readonly class: string;
  /** Part of the client kind; entries are separate for each kind. */
  readonly dnssecOk: boolean;
  readonly checkingDisabled: boolean;
  readonly rcode: string;
  /** `denial` covers NXDOMAIN, no data and failures. */
  readonly half: 'success' | 'denial';
  /** Remaining seconds or, if negative, the seconds since the entry became stale. */
  readonly ttl: number;
  /** Seconds for which it was stored. */
  readonly storedTtl: number;
  readonly hits: number;
  /**
   * The reply's source: a plugin and, if there was one, the upstream's address. Empty if unknown, for example after a
   * handover.
   */
  readonly from: string;
  /** Size of the message in bytes. */
  readonly bytes: number;
}
