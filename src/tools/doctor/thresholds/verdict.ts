/** Thresholds that prevent a report without critical findings from stating that DNS works. */

/** The minimum number of error replies that a report's head lists, explained or not. Replies; chosen. */
export const MIN_HEAD_ERRORS = 10;

/** With slower replies, no report states that it is not DNS. Milliseconds; chosen, because users notice it. */
export const NOTICED_MS = 800;

/** The minimum number of losses, errors or slow lookups that may matter. Queries or lookups; chosen. */
export const MIN_TROUBLES = 2;

/** The minimum share of lookups without an address that is more than misspelled names. Share; chosen. */
export const FAILED_LOOKUPS_SHARE = 0.05;

/** A lookup that waits this long for a retry keeps its program waiting. Milliseconds; chosen. */
export const RETRY_WAIT_MS = 2000;

/**
 * An address without an answer to this many ARP or neighbour requests is absent. Requests; chosen.
 */
export const MIN_UNANSWERED_REQUESTS = 3;
