/** Thresholds for SERVFAIL, REFUSED, negative answers and replies that clients cannot use. */

/** The most failing names that may belong to a few Services. Names; chosen. */
export const MAX_FAILING_TARGETS = 5;

/** A cache may answer cluster names for this long without the cluster's DNS. Milliseconds; kubeadm's Corefile has 30 s. */
export const CLUSTER_TTL_MS = 30_000;

/** This many other cluster names that are found show that the server has its data. Names; chosen. */
export const MIN_FOUND_NAMES = 1;

/** A query that comes back does so within this time. Milliseconds; chosen. */
export const LOOP_RETURN_MS = 2000;

/** A query in a loop returns within this time after it was forwarded. Milliseconds; chosen. */
export const LOOP_AT_ONCE_MS = 5;

/** The minimum share of returning queries that shows a loop. Share; chosen. */
export const LOOP_COMES_BACK = 0.5;

/** Queries for the same name that are compared with one of them. Queries; a limit of work. */
export const LOOP_NEIGHBOURS = 50;

/** Fewer queries come from a program on the server's own host. Queries; chosen. */
export const MIN_LOOP_QUERIES = 5;

/** A loop has fewer servers than this. Servers; chosen, and a limit of work. */
export const MAX_LOOP_SERVERS = 100;

/** The most upstreams with one cause that each get a separate finding. Upstreams; chosen. */
export const MAX_LOGGED_UPSTREAMS = 5;

/** The share of refusals for names that are answered at other times, above which refusals do not depend on the name. Share; chosen. */
export const REFUSED_AT_TIMES = 0.3;

/** If no external name resolves, this share of the failures comes at once when failures are cached. Share; chosen. */
export const CACHED_FAILURE_SHARE = 0.7;

/** A name that fails again at this many moments, this far apart, is not a cached failure. Moments, milliseconds; chosen. */
export const FAILS_ANEW = { moments: 3, apartMs: 1000 };

/** The longest time for which a cache may keep a failure: 5 s in CoreDNS, plus a margin of 1 s. Milliseconds; CoreDNS. */
export const FAILURE_KEPT_MS = 6000;

/** The number of queries that shows that a name always fails, and of other names that resolve. Chosen. */
export const ALWAYS_FAILS = { asked: 4, fine: 2 };

/** This many replies show that a name does not fail. Replies; chosen. */
export const MIN_FINE_REPLIES = 2;

/** The minimum number of names, counted by type, that disappear together as a zone. Names; chosen. */
export const MIN_GONE_NAMES = 4;

/** The minimum number of such names regardless of type. Names; chosen. */
export const MIN_GONE_DIFFERENT = 3;

/** The minimum share of a name's negative answers that fall into one period. Share; chosen. */
export const GONE_TOGETHER_SHARE = 0.7;

/** Names that disappear within this time disappear together. Milliseconds; chosen. */
export const GONE_TOGETHER_MS = 60_000;

/** Names that come back sooner alternate. Milliseconds; chosen. */
export const MIN_GONE_MS = 1500;

/** The share of names that have to return for the zone to be back. Share; chosen. */
export const BACK_SHARE = 0.5;

/** The most names that alternate separately, for each that disappears with the others; above it, all alternate. Ratio; chosen. */
export const ALTERNATING_NAMES = 0.5;

/** The number of answers that shows that a server has all these names, or none. Replies; chosen. */
export const MIN_SERVER_ANSWERS = 2;

/** The minimum share of repeats that shows that clients reject the reply. Share; chosen. */
export const REJECTED_SHARE = 0.3;

/** The size of an Extended DNS Error's INFO-CODE. Bytes; RFC 8914 section 2. */
export const MIN_REASON_BYTES = 2;

/** The time for which a server waits for a silent upstream. Milliseconds; chosen. */
export const UPSTREAM_WAIT_MS = 5000;

/** A loop's queries are seen up to this long after the query that started it. Seconds; chosen. */
export const LOOP_SECONDS = 7;

/** The minimum number of queries at a server in a loop, and the share that fails. Chosen. */
export const LOOPING_SERVER = { queries: 10, failed: 0.5 };

/** REFUSED is critical if it ends at least this share of the lookups. Share; chosen. */
export const ENDED_LOOKUPS = 0.05;

/** The minimum share of cluster names that fail, and the maximum share of external names. Chosen. */
export const CLUSTER_SERVFAIL = { inside: 0.3, outside: 0.1 };

/** Cached failures: the minimum shares that come at once and with a denial, and the maximum share of names. Chosen. */
export const QUICK_FAILURES = { quick: 0.8, denied: 0.9, names: 0.6 };

/** The number of refusals for one client and name, without an answer, that shows a rule. Replies; chosen. */
export const MIN_RULED = 2;

/** An RRSIG record's minimum length, and the offsets of its expiration and inception. Bytes; RFC 4034 section 3.1. */
export const RRSIG = { leastBytes: 18, expirationAt: 8, inceptionAt: 12 };

/** One of several servers refuses: time slots, queries in each, queries in a refused lookup, and the maximum spread compared with chance (standard deviations). Chosen. */
export const REFUSED_IN_TURN = { slots: 8, asked: 8, perLookup: 4, uneven: 3 };

/** A name comes and goes in long runs: the minimum number of disappearances expected by chance, and how far below it the actual number is (standard deviations). Chosen. */
export const FEW_DEPARTURES = { expected: 4, deviations: 3 };

/** The minimum share of BADCOOKIE replies that is a fault, since a client gets one from each server. Share; chosen. */
export const REJECTED_COOKIES = 0.02;

/**
 * A rate limit that refuses queries. In `steady` of the busy seconds, the number of answered queries is within `near` of
 * its median. Busy seconds have at least `above` times as many queries. One client is the cause if it sends `ofOne` of
 * all queries. Chosen.
 */
export const REFUSED_RATE = { near: 0.5, steady: 0.6, above: 1.5, ofOne: 0.5 };

/** Fewer waiting queries do not fill a forwarder’s limit. Queries; chosen: dnsmasq’s default is 150, forward has none. */
export const FORWARD_LIMIT_LEAST = 20;

/** One of several servers fails: the names and types that it fails for. Chosen. */
export const FAILS_IN_TURN = { names: 2 };

/** With fewer refused names, refusals may depend on the name rather than the client. Names; chosen. */
export const MIN_REFUSED_NAMES = 2;

/** The length of the server's time in a reply with BADTIME. Bytes; RFC 8945 section 5.2.3. */
export const BADTIME_BYTES = 6;

/**
 * A limit on waiting queries: the fewest waiting queries that show one, and the share of the maximum that counts as
 * full. `refused` is the share of failures that come while it is full, within `atOnceMs` milliseconds. Chosen: dnsmasq’s
 * default limit is 150.
 */
export const WAITING_LIMIT = { least: 10, full: 0.75, refused: 0.9, atOnceMs: 50 };

/**
 * A limit that bursts exceed. Milliseconds: a reply that takes `forwardedMs` does not come from memory, and bursts have
 * `gapMs` between them. Chosen.
 */
export const BURST_LIMIT = { forwardedMs: 5, gapMs: 1000 };

/** A limit that unanswered queries use up is full while this share of the most waits. Share; chosen: repeats and timeouts are not simultaneous. */
export const FILLED_LIMIT = { full: 0.5 };

/** A longer text of an Extended DNS Error is shortened in its middle. Characters; chosen: Unbound’s longest reasons fit. */
export const STATED_TEXT_LENGTH = 320;
