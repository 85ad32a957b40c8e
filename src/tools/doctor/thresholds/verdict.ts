/** Thresholds: what keeps a report without critical findings from saying that DNS is well. */

/** Errors that explain themselves or not: from this many replies on the head of a report names them. Replies; chosen. */
export const MIN_HEAD_ERRORS = 10;

/** With replies slower than this, no report says that it is not DNS. Milliseconds; chosen: a person notices it. */
export const NOTICED_MS = 800;

/** From this many losses, errors or slow lookups on, they may matter. Queries or lookups; chosen. */
export const MIN_TROUBLES = 2;

/** From this share of lookups without an address on, these are more than misspelled names. Share; chosen. */
export const FAILED_LOOKUPS_SHARE = 0.05;

/** A lookup that waits this long for a retry keeps its program waiting. Milliseconds; chosen. */
export const RETRY_WAIT_MS = 2000;

/**
 * An address without an answer to this many ARP or neighbour requests is absent. Requests; chosen.
 */
export const MIN_UNANSWERED_REQUESTS = 3;
