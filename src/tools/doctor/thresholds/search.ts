/** Thresholds for search paths, absent names and cluster domains. */

/** Fewer queries for absent names are typing mistakes. Queries; chosen. */
export const MIN_ABSENT_QUERIES = 100;

/** The minimum share of queries for absent names to report. Share; chosen. */
export const ABSENT_SHARE = 0.3;

/**
 * Resolvers that try search domains first query less than this share of names as written. Share of
 * the absent queries; chosen.
 */
export const AS_WRITTEN_SHARE = 0.08;

/**
 * The minimum share of absent names that the search path creates. It applies even if a capture at
 * one of several servers shows only single steps. Share; chosen.
 */
export const SEARCHED_SHARE = 0.5;

/** Fewer names that only look like Service names are chance. Names; chosen. */
export const MIN_LOOKALIKE_NAMES = 2;

/** The most labels in a Service name, as in db.shop.svc. Labels; Kubernetes DNS specification. */
export const MAX_SERVICE_LABELS = 3;

/** The most external names that may be lost for each name below the domain. Ratio; chosen. */
export const MAX_OTHER_LOSSES = 0.2;

/**
 * It is not chance if none of this many lookups fails at the plain name. Lookups; 2⁻⁷ is below 1%.
 */
export const MANY_STOPPED_LOOKUPS = 7;

/** Among this many lookups, a mixture of two can occur. Lookups; chosen. */
export const MANY_LOOKUPS = 50;

/** Fewer needless queries are chance. Queries; chosen. */
export const MIN_WASTED_QUERIES = 10;

/**
 * In truncated captures, the minimum share of queries for absent names that shows that the search
 * path creates them. Share; chosen.
 */
export const WASTED_SHARE_OF_CUT = 0.5;

/** Fewer failed lookups are hardly noticed. Lookups; chosen. */
export const MIN_FAILED_LOOKUPS = 4;

/** Fewer replies of a kind, from one view of a zone, are chance. Replies; chosen. */
export const MIN_REPLIES_OF_KIND = 2;

/** Fewer denials below a domain are chance. Replies; chosen. */
export const MIN_DENIALS = 8;

/** Fewer names that fail to the end do not show a wrong domain. Names; chosen. */
export const MIN_FAILED_NAMES = 2;

/** The most labels in a short Service name (db.shop). Labels; Kubernetes DNS specification. */
export const MAX_SHORT_LABELS = 2;

/**
 * The minimum evidence that a search domain fails: failing queries and names, their lookups, and
 * lookups that continue with an external name. Chosen.
 */
export const FAILING_WALKS = { queries: 4, names: 2, lookups: 4, goOn: 3 };

/** The minimum share of queries below the domain that fail. Chosen. */
export const FAILING_SHARE = 0.8;

/** The maximum share of these lookups' other queries that fail. Chosen. */
export const FAILING_ELSEWHERE = 0.1;

/**
 * The limits if queries fail at random or repeats succeed: the share that fails, lookups whose next
 * external name is answered, their share of those that have one, and the probability of chance.
 * Chosen.
 */
export const FAILING_AT_TIMES = { fails: 0.3, goOn: 4, part: 0.7, chance: 0.005 };

/**
 * This many replies of one kind in a row are not chance, while the other type has both kinds.
 * Replies; 2⁻⁶ is below 2 %.
 */
export const STEADY_REPLIES = 6;

/** TTLs are whole seconds, so a computed time may be wrong by this. Milliseconds; 1 s and a margin. */
export const TTL_ERROR_MS = 1500;

/** The number of denials of a new name before any server had it. Replies; chosen. */
export const MIN_EARLY_DENIALS = 8;

/** A run of equal answers this unlikely is not chance. Probability; chosen. */
export const SAME_ANSWERS_CHANCE = 0.001;

/**
 * A new name was missing for `asked` queries and `lastsMs`, and was then found in `found` replies.
 * More than `names` such names at once are not new ones. Users notice a server that denies the name
 * `feltMs` longer than others, since CoreDNS caches denials for 5 s. Chosen.
 */
export const NEW_NAME = { asked: 8, lastsMs: 2000, found: 3, names: 3, feltMs: 10_000 };

/**
 * A cached denial with a lower TTL may be one of many that follow each other, of a server that lacks the name. Seconds;
 * chosen, since CoreDNS’s cache 30 limits denials to 30 s.
 */
export const ONE_ENTRY_TTL_S = 60;

/** A denial in the cluster’s domain with this TTL or more lasts too long. Seconds; chosen, CoreDNS uses 5 to 30. */
export const LONG_DENIAL_S = 300;

/** The share of absent names that have to be in a domain for it to be theirs. Share; chosen. */
export const DOMAIN_SHARE = 0.8;

/** Absent names are few if there are at most this many for each lookup. Ratio; chosen. */
export const FEW_NAMES_SHARE = 0.1;

/** Fewer lookups of service configurations are not reported. Queries; chosen. */
export const MIN_GRPC_QUERIES = 10;

/** The minimum number as a share of all queries. Chosen. */
export const MIN_GRPC_SHARE = 0.05;

/** With fewer lookups, search paths cannot be compared. Lookups; chosen. */
export const MIN_SEARCH_LOOKUPS = 5;

/**
 * A search domain fails: the number of failing queries, their share below the domain, and the share
 * that may fail elsewhere. Chosen.
 */
export const FAILING_DOMAIN = { queries: 4, share: 0.8, elsewhere: 0.25 };

/** With more losses below a domain than this, half of this number suffices. Queries; chosen. */
export const COMPARED_LOSSES = 5000;

/**
 * A slow search domain: a late denial takes at least `ms` and `ofLookup` of its lookup. `share` is
 * the share of slow lookups that waited for it. Chosen.
 */
export const SLOW_SEARCH = { ms: 200, ofLookup: 0.6, share: 0.6 };

/**
 * Names that a program invents: their number below one domain, and their share of all external
 * names. `queriesEach` is the most queries for each (A and AAAA, retries, a forwarder’s).
 * `perSecond` is the fewest names per second. Chosen, since people and services query the same
 * names again, and a page with its pictures needs a few new names a second. If several clients send
 * at least `shared` of the names (share), they are forwarders. A flood without failures is reported
 * if it is at least `harmless` of all queries (share) and has `harmlessPerSecond` names per second.
 */
export const MADE_UP = {
  names: 40,
  share: 0.4,
  queriesEach: 10,
  perSecond: 1,
  shared: 0.1,
  harmless: 0.5,
  harmlessPerSecond: 3,
};

/**
 * Names are not random if this share of those found or denied have an address. Share; chosen, since
 * random names below a domain without a wildcard record have none.
 */
export const EXISTING_SHARE = 0.2;

/** The maximum share of real hosts that have the same address as another one. Share; chosen. */
export const SAME_HOST_SHARE = 0.5;

/**
 * One name that a program queries constantly: queries per second, for at least this many seconds,
 * and the TTL of the answers (seconds). Also their share of all queries, with the search path’s. The
 * queries per second that deserve a warning count if some fail, or if the search path makes at least
 * `factor` queries of each. Chosen.
 */
export const REPEATED = { perSecond: 10, seconds: 5, ttl: 5, share: 0.3, costly: 100, factor: 2 };

/** So many denials of a name that no host can have show the mistake: one lookup of A and AAAA. Replies; chosen. */
export const MIN_DENIALS_OF_NO_HOST = 2;

/** A name that is denied with this many search domains is not in the cluster. Domains; chosen: a pod’s namespace, `svc` and the cluster domain are three. */
export const MIN_SEARCHED_DOMAINS = 3;

/** Names are below one of the search domains by chance with this probability at most. Probability; chosen. */
export const SEARCH_DOMAIN_CHANCE = 0.1;
