/** Thresholds: SERVFAIL, REFUSED, negative answers and replies that clients cannot use. */

/** More failing names are not those of a few Services. Names; chosen. */
export const MAX_FAILING_TARGETS = 5;

/** This many other cluster names that are found show that the server has its data. Names; chosen. */
export const MIN_FOUND_NAMES = 1;

/** A query that comes back does so within this time. Milliseconds; chosen. */
export const LOOP_RETURN_MS = 2000;

/** A query in a loop returns within this time after it was forwarded. Milliseconds; chosen. */
export const LOOP_AT_ONCE_MS = 5;

/** From this share of queries on that come back, they go round. Share; chosen. */
export const LOOP_COMES_BACK = 0.5;

/** Queries for the same name that are compared with one of them. Queries; a limit of work. */
export const LOOP_NEIGHBOURS = 50;

/** Fewer queries come from a program on the server's own host. Queries; chosen. */
export const MIN_LOOP_QUERIES = 5;

/** A loop has fewer servers than this. Servers; chosen, and a limit of work. */
export const MAX_LOOP_SERVERS = 100;

/** Upstreams of one cause that get a finding of their own. Upstreams; chosen. */
export const MAX_LOGGED_UPSTREAMS = 5;

/** From this share of refusals for names answered at other times on, refusals do not depend on the name. Share; chosen. */
export const REFUSED_AT_TIMES = 0.3;

/** If no external name resolves, this share of the failures comes at once when failures are cached. Share; chosen. */
export const CACHED_FAILURE_SHARE = 0.7;

/** A name that fails again at this many moments, so far apart, is not a failure that a cache keeps. Moments, milliseconds; chosen. */
export const FAILS_ANEW = { moments: 3, apartMs: 1000 };

/** So long a cache may keep a failure: 5 s in CoreDNS, and a second for chance. Milliseconds; CoreDNS. */
export const FAILURE_KEPT_MS = 6000;

/** Queries that show that a name always fails, and other names that resolve. Chosen. */
export const ALWAYS_FAILS = { asked: 4, fine: 2 };

/** This many replies show that a name does not fail. Replies; chosen. */
export const MIN_FINE_REPLIES = 2;

/** Names (each of a type) that disappear together are a zone from this number on. Names; chosen. */
export const MIN_GONE_NAMES = 4;

/** The same without the type. Names; chosen. */
export const MIN_GONE_DIFFERENT = 3;

/** At least this share of a name's negative answers comes in one time. Share; chosen. */
export const GONE_TOGETHER_SHARE = 0.7;

/** Names that disappear within this time go together. Milliseconds; chosen. */
export const GONE_TOGETHER_MS = 60_000;

/** Names that come back sooner alternate. Milliseconds; chosen. */
export const MIN_GONE_MS = 1500;

/** The zone is back if this share of the names is. Share; chosen. */
export const BACK_SHARE = 0.5;

/** If more names than this, for each that goes with the others, alternate on their own, all of them do. Ratio; chosen. */
export const ALTERNATING_NAMES = 0.5;

/** Answers of a server that show that it has all these names, or none. Replies; chosen. */
export const MIN_SERVER_ANSWERS = 2;

/** From this share of repeats on, clients repeat queries because they reject the reply. Share; chosen. */
export const REJECTED_SHARE = 0.3;

/** The INFO-CODE of an Extended DNS Error. Bytes; RFC 8914 section 2. */
export const MIN_REASON_BYTES = 2;

/** An upstream that gave no reply was waited for this long. Milliseconds; chosen. */
export const UPSTREAM_WAIT_MS = 5000;

/** Queries of a loop are seen up to this many seconds after the one that began it. Seconds; chosen. */
export const LOOP_SECONDS = 7;

/** A server in a loop: queries, and the share that fails. Chosen. */
export const LOOPING_SERVER = { queries: 10, failed: 0.5 };

/** From this share of lookups on that REFUSED ends, it is critical. Share; chosen. */
export const ENDED_LOOKUPS = 0.05;

/** Cluster names fail and external ones do not: the share that fails at least, and at most. Chosen. */
export const CLUSTER_SERVFAIL = { inside: 0.3, outside: 0.1 };

/** Cached failures: the share that comes at once, the share that comes with a denial, and the largest share of names. Chosen. */
export const QUICK_FAILURES = { quick: 0.8, denied: 0.9, names: 0.6 };

/** One client is refused one name this often, and never answered: a rule. Replies; chosen. */
export const MIN_RULED = 2;

/** An RRSIG record: its least length, and where its expiration and inception are. Bytes; RFC 4034 section 3.1. */
export const RRSIG = { leastBytes: 18, expirationAt: 8, inceptionAt: 12 };

/** One of several servers refuses: slots of the capture, queries in each, queries of a refused lookup, and the spread compared with chance at most (standard deviations). Chosen. */
export const REFUSED_IN_TURN = { slots: 8, asked: 8, perLookup: 4, uneven: 3 };

/** A name comes and goes in rows: the times that it vanishes by chance at least, and how much less it does (standard deviations). Chosen. */
export const FEW_DEPARTURES = { expected: 4, deviations: 3 };

/** A client gets BADCOOKIE once from each server; more are this share of all replies. Share; chosen. */
export const REJECTED_COOKIES = 0.02;

/**
 * A rate limit refuses. The answered queries of a second are near their median in this share of the busy seconds. Busy
 * seconds have this many times as many queries. One client is the cause from this share of all queries on. Chosen.
 */
export const REFUSED_RATE = { near: 0.5, steady: 0.6, above: 1.5, ofOne: 0.5 };

/** Fewer waiting queries do not fill a forwarder’s limit. Queries; chosen: dnsmasq’s default is 150, forward has none. */
export const FORWARD_LIMIT_LEAST = 20;
