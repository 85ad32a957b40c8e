/** Thresholds for examining a running cluster: waits, and objects that are worth a query. */

/** A running pod returns its metrics within this time: itself, and through the API server. Milliseconds; chosen. */
export const METRICS_WAIT_MS = { direct: 2000, proxy: 8000 };

/** An API server returns one page of a list within this time. Milliseconds; chosen. */
export const PAGE_WAIT_MS = 8000;

/** An API server lists fifty thousand pods within this time. Milliseconds; chosen. */
export const LIST_WAIT_MS = 60_000;

/** An API server checks a permission within this time. Milliseconds; chosen. */
export const RIGHTS_WAIT_MS = 5000;

/** DNS pods may not know a younger Service yet. Milliseconds; chosen. */
export const NEW_SERVICE_MS = 60_000;

/** The number of addresses in a reply that does not fit into 512 bytes. Addresses; 16 bytes for each A record with a compressed owner (RFC 1035). */
export const LARGE_ANSWER_ADDRESSES = 40;
