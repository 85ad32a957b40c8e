/** Thresholds: servers and types whose answers differ. */

/** Fewer equal answers are chance. Replies; chosen. */
export const MIN_SAME_ANSWERS = 2;

/** A server is steady if it gives one set of addresses in this share of its answers. Share; chosen. */
export const STEADY_SERVER = 0.9;

/** Sets of one server that return this often alternate; otherwise the name changed. Times; chosen. */
export const MIN_RETURNS = 2;

/** The same for sets that share addresses, since pods come and go. Times; chosen. */
export const MIN_RETURNS_IN_PART = 5;

/** Caches fetched an external name this often and got the same addresses. Times; chosen. */
export const MIN_RENEWALS = 2;

/** An answer is up to this much older than its TTL says, since TTLs are whole seconds. Milliseconds; RFC 1035. */
export const TTL_ROUNDED_MS = 1000;

/** This many NXDOMAIN replies are not chance, however often the server had the name before. Replies; chosen. */
export const MANY_NXDOMAIN = 5;

/** Names with one address, where one of them cannot exist. Names; chosen. */
export const MIN_SAME_ADDRESS_NAMES = 3;

/** Zones of those names. Zones; chosen. */
export const MIN_SAME_ADDRESS_ZONES = 3;

/** The same, where this many names cannot exist or are hardly in use. Names; chosen. */
export const MIN_IMPOSSIBLE_NAMES = 2;

/** The same, where every name may exist. Zones; chosen. */
export const MIN_UNRELATED_ZONES = 5;

/** At most this many failures of A for each failure of AAAA. Ratio; chosen. */
export const A_FAILURES = 0.5;

/** The same question this long after a reply is still the same attempt. Milliseconds; chosen. */
export const SAME_ATTEMPT_MS = 8000;

/** Capitals in this many places that a person would not use show random case. Places; chosen. */
export const MIN_HUMPS = 2;

/** From this share of ignored replies on, the changed case is the reason. Share; chosen. */
export const MIXED_CASE_SHARE = 0.3;

/**
 * A name with TTL 0: the greatest TTL that counts as such (seconds), answers, their mean latency in
 * milliseconds, answers for other names, and lines of the report. Without other names: the share of
 * all answers, and their number. Chosen.
 */
export const UNCACHED = {
  ttl: 2,
  answers: 10,
  meanMs: 50,
  others: 20,
  listed: 3,
  share: 0.5,
  alone: 50,
};

/** Other names are fast if their mean latency is at most this share of that of a name with TTL 0. Share; chosen. */
export const FAST_BESIDE = 0.5;

/** A TTL is raised if it is at least this many seconds, and this many times that of the source; chosen. */
export const RAISED_TTL = { seconds: 300, times: 10 };

/** Names of this many domains change to one address together. Domains; chosen. */
export const MIN_CHANGED_ZONES = 3;

/** Two servers have different versions of a zone if both give theirs for this long: all of them take over a change sooner. Milliseconds; chosen. */
export const MIN_VERSIONS_MS = 5000;

/** The prefix before an IPv4 address, as most networks have it. Bytes; RFC 6052. */
export const NAT64_PREFIX = 12;

/** Names of different owners with one IPv6 prefix before their IPv4 addresses. Names; chosen: one owner may number hosts so. */
export const MIN_PREFIX_NAMES = 2;

/** Zones outside of a wildcard's domain with its address: then another server makes it up. Zones; chosen. */
export const MIN_OTHER_ZONES = 2;

/** This many names of one zone with addresses such as 127.0.0.2 show a block list. Names; chosen. */
export const MIN_LIST_CODES = 2;

/** Names with TTL 0 from some moment on, and their replies. Chosen: one name may get a new TTL at its source. */
export const STALE_ANSWERS = { names: 2, replies: 6 };
