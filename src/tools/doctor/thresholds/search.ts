/** Thresholds: search paths, absent names and cluster domains. */

/** Fewer queries for absent names are typing mistakes. Queries; chosen. */
export const MIN_ABSENT_QUERIES = 100;

/** From this share of all queries on, absent names are reported. Share; chosen. */
export const ABSENT_SHARE = 0.3;

/**
 * Resolvers that try search domains first ask for few names as written: less than this share. Share
 * of the absent queries; chosen.
 */
export const AS_WRITTEN_SHARE = 0.08;

/**
 * From this share on, the search path makes the absent names, even if a capture at one of several
 * servers shows single steps. Share; chosen.
 */
export const SEARCHED_SHARE = 0.5;

/** Fewer names that only look like those of Services are chance. Names; chosen. */
export const MIN_LOOKALIKE_NAMES = 2;

/** The most labels of a Service name, as in db.shop.svc. Labels; Kubernetes DNS specification. */
export const MAX_SERVICE_LABELS = 3;

/** At most this many external names may be lost for each name below the domain. Ratio; chosen. */
export const MAX_OTHER_LOSSES = 0.2;

/**
 * Of this many lookups that could have failed at the plain name as well, chance spares none.
 * Lookups; 2⁻⁷ is below 1 %.
 */
export const MANY_STOPPED_LOOKUPS = 7;

/** Among this many lookups, a mixture of two can occur. Lookups; chosen. */
export const MANY_LOOKUPS = 50;

/** Fewer needless queries are chance. Queries; chosen. */
export const MIN_WASTED_QUERIES = 10;

/**
 * In cut captures, from this share of queries for absent names on, the search path makes them.
 * Share; chosen.
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

/** The most labels of a short Service name (db.shop). Labels; Kubernetes DNS specification. */
export const MAX_SHORT_LABELS = 2;

/**
 * The least evidence that a search domain fails: failing queries and names, their lookups, and
 * those lookups that continue with an external name. Chosen.
 */
export const FAILING_WALKS = { queries: 4, names: 2, lookups: 4, goOn: 3 };

/** Share of the queries below the domain that fail at least. Chosen. */
export const FAILING_SHARE = 0.8;

/** Share of the other queries of these lookups that fails at most. Chosen. */
export const FAILING_ELSEWHERE = 0.1;

/**
 * The same where queries fail at random or repeats succeed: the share that fails, lookups that go
 * on, the part that is of the domain, and the probability that chance picks the domain. Chosen.
 */
export const FAILING_AT_TIMES = { fails: 0.3, goOn: 4, part: 0.7, chance: 0.005 };

/**
 * This many replies of one kind in a row are not chance, while the other type has both kinds.
 * Replies; 2⁻⁶ is below 2 %.
 */
export const STEADY_REPLIES = 6;

/** TTLs are whole seconds, so a computed time may be wrong by this. Milliseconds; 1 s and a margin. */
export const TTL_ERROR_MS = 1500;

/** A new name was missing this often before anybody had it. Replies; chosen. */
export const MIN_EARLY_DENIALS = 8;

/** A row of equal answers this unlikely is not chance. Probability; chosen. */
export const SAME_ANSWERS_CHANCE = 0.001;

/**
 * A new name was missing this often (queries) and this long (milliseconds), and was then found this
 * often (replies). More such names at once are not new ones. A server that denies it for this much
 * longer than others (milliseconds) is felt: the denials of CoreDNS last for 5 s. Chosen.
 */
export const NEW_NAME = { asked: 8, lastsMs: 2000, found: 3, names: 3, feltMs: 10_000 };

/** From this TTL on, a denial in the cluster’s domain lasts too long. Seconds; chosen: CoreDNS gives it 5 to 30. */
export const LONG_DENIAL_S = 300;

/** The domain of absent names is the one that this share of them has. Share; chosen. */
export const DOMAIN_SHARE = 0.8;

/** Absent names are few if there are at most this many for each lookup. Ratio; chosen. */
export const FEW_NAMES_SHARE = 0.1;

/** Fewer lookups of service configurations are not reported. Queries; chosen. */
export const MIN_GRPC_QUERIES = 10;

/** The same, as a share of all queries. Chosen. */
export const MIN_GRPC_SHARE = 0.05;

/** With fewer lookups, search paths cannot be compared. Lookups; chosen. */
export const MIN_SEARCH_LOOKUPS = 5;

/**
 * A search domain fails: queries, their share of those below it, and the share that may fail
 * elsewhere. Chosen.
 */
export const FAILING_DOMAIN = { queries: 4, share: 0.8, elsewhere: 0.25 };

/** With more losses below a domain than this, half of this number suffices. Queries; chosen. */
export const COMPARED_LOSSES = 5000;

/**
 * A slow search domain: a denial is late from this many milliseconds on, and takes this share of
 * the lookup. Also the share of slow lookups that waited for it. Chosen.
 */
export const SLOW_SEARCH = { ms: 200, ofLookup: 0.6, share: 0.6 };

/**
 * Names that a program makes up: their number below one domain, and their share of all external
 * names. The most queries for each (A and AAAA, retries, a forwarder’s), and the least names a second.
 * Chosen: people and services ask for the same names again.
 */
export const MADE_UP = { names: 40, share: 0.4, queriesEach: 10, perSecond: 1 };

/** Of real hosts, at most this share has the same address as another one. Share; chosen. */
export const SAME_HOST_SHARE = 0.5;

/**
 * One name that a program asks for all the time: queries a second, for this many seconds, and the
 * TTL of its answers (seconds). Their share of all queries, and the queries a second that deserve a
 * warning. Chosen.
 */
export const REPEATED = { perSecond: 10, seconds: 5, ttl: 5, share: 0.3, costly: 100 };
