/** Thresholds for servers and types with different answers. */

/** Fewer equal answers are chance. Replies; chosen. */
export const MIN_SAME_ANSWERS = 2;

/** A server is steady if it gives one set of addresses in this share of its answers. Share; chosen. */
export const STEADY_SERVER = 0.9;

/** Sets of one server that return this often alternate; otherwise the name changed. Times; chosen. */
export const MIN_RETURNS = 2;

/** The number of returns for sets that share addresses, since pods come and go. Times; chosen. */
export const MIN_RETURNS_IN_PART = 5;

/** The number of times that caches fetch an external name and get the same addresses. Times; chosen. */
export const MIN_RENEWALS = 2;

/** An answer is up to this much older than its TTL says, since TTLs are whole seconds. Milliseconds; RFC 1035. */
export const TTL_ROUNDED_MS = 1000;

/** This many NXDOMAIN replies are not chance, however often the server had the name before. Replies; chosen. */
export const MANY_NXDOMAIN = 5;

/** Names with one address, where one of them cannot exist. Names; chosen. */
export const MIN_SAME_ADDRESS_NAMES = 3;

/** Zones of those names. Zones; chosen. */
export const MIN_SAME_ADDRESS_ZONES = 3;

/** The number of names among them that cannot exist or are hardly in use. Names; chosen. */
export const MIN_IMPOSSIBLE_NAMES = 2;

/**
 * Fewer of the names with one address that cannot exist show nothing about the others. Share; chosen.
 */
export const IMPOSSIBLE_SHARE = 0.01;

/** The number of zones if every name may exist. Zones; chosen. */
export const MIN_UNRELATED_ZONES = 5;

/** The most A failures for each AAAA failure. Ratio; chosen. */
export const A_FAILURES = 0.5;

/** The same question this long after a reply is still the same attempt. Milliseconds; chosen. */
export const SAME_ATTEMPT_MS = 8000;

/** Capitals in this many places that a person would not use show random case. Places; chosen. */
export const MIN_HUMPS = 2;

/** The minimum share of ignored replies that shows that the changed case is the reason. Share; chosen. */
export const MIXED_CASE_SHARE = 0.3;

/**
 * A name with TTL 0. `ttl` is the highest TTL that counts as 0 (seconds). `answers` and `meanMs` are
 * the minimum number of answers and their mean latency. `others` is the minimum number of answers
 * for other names, and `listed` the lines in the report. Without other names, the answers have to be
 * `share` of all, and at least `alone`. Chosen.
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

/** The highest mean latency of other, fast names compared with a name with TTL 0. Share; chosen. */
export const FAST_BESIDE = 0.5;

/** A raised TTL is at least this many seconds, and this many times the source's TTL; chosen. */
export const RAISED_TTL = { seconds: 300, times: 10 };

/** The minimum number of names in one domain that change to the same address, or appear there, together. Names; chosen. */
export const MIN_CHANGED_NAMES = 3;

/** The minimum number of domains whose names change to the same address together. Domains; chosen. */
export const MIN_CHANGED_ZONES = 3;

/** Servers that return different versions of a zone for this long disagree, because a change spreads sooner. Milliseconds; chosen. */
export const MIN_VERSIONS_MS = 5000;

/** The usual length of the prefix before an IPv4 address. Bytes; RFC 6052. */
export const NAT64_PREFIX = 12;

/** The number of names with one IPv6 prefix before their IPv4 addresses. Names; chosen, since one owner may number hosts like this. */
export const MIN_PREFIX_NAMES = 2;

/** The number of zones outside a wildcard's domain with the same address, which show that another server returns it. Zones; chosen. */
export const MIN_OTHER_ZONES = 2;

/** The number of names in one zone with addresses such as 127.0.0.2 that shows a block list. Names; chosen. */
export const MIN_LIST_CODES = 2;

/** Names with TTL 0 from some moment on, and their replies. Chosen: one name may get a new TTL at its source. */
export const STALE_ANSWERS = { names: 2, replies: 6 };

/** Addresses that share this many leading bits are of one network. Bits; chosen: common allocations of one owner. */
export const OWN_NETWORK_BITS = { ipv4: 16, ipv6: 32 };

/**
 * A server without a cache queries its upstream for a name although the earlier answer is valid: `repeats` times for one
 * name, `perSecond` or more, with a TTL of `ttl` seconds or more, and these are `share` of its queries. Seen by clients,
 * `failed` queries for such names fail after a wait. Chosen: a cache with a limit of 1 s is below that rate.
 */
export const MISSING_CACHE = { repeats: 50, perSecond: 2, ttl: 5, share: 0.5, failed: 20 };

/** With this many unrelated names at a wildcard's address, the wildcard is sure. Names; chosen. */
export const SURE_WILDCARD_NAMES = 3;

/** With this many errors for AAAA queries, the server is sure to cause them. Replies; chosen. */
export const SURE_AAAA_ERRORS = 4;

/** A TTL that stays the same for less time is not stored again; otherwise a busy capture would store only the first moment. Milliseconds; TTLs are whole seconds. */
export const SAME_TTL_MS = 1000;

/** A faster reply comes from memory, because no other server replies so soon. Milliseconds; chosen. */
export const CACHED_MS = 1.5;

/** Types from this one on ask for records of other types. RFC 6895 section 3.1. */
export const FIRST_META_TYPE = 128;

/** The length of a client cookie. Bytes; RFC 7873 section 4. */
export const CLIENT_COOKIE_BYTES = 8;
