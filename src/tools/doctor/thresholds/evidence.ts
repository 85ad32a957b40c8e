/** Thresholds that several findings share for sufficient evidence. */

/** Fewer losses, failures or replies of a kind may be chance. Cases; chosen. */
export const MIN_CASES = 3;

/** The minimum share that counts as "nearly all". Share; chosen. */
export const NEARLY_ALL = 0.9;

/** The minimum share that counts as "most", for example of the losses that fit a cause. Share; chosen. */
export const MOST = 0.8;

/** A pattern less likely than this is not chance. Probability; chosen. */
export const MAX_CHANCE = 0.01;

/** The limit if many patterns are tried and the most striking one is used. Probability; chosen. */
export const MAX_CHANCE_OF_MANY = 0.0001;

/** With fewer queries, a share of them is not meaningful. Queries; chosen. */
export const MIN_QUERIES = 20;

/** With fewer queries between two metrics readings, a share of them is not meaningful. Queries; chosen. */
export const MIN_MEASURED_QUERIES = 50;

/** The minimum share of failing queries that users notice. Share; chosen. */
export const FELT_SHARE = 0.01;

/** Below this share of all queries or connections, failures without a pattern are rare. Share; chosen. */
export const RARE_SHARE = 0.02;

/** The minimum share of error replies that counts as an outage. Share; chosen. */
export const OUTAGE_SHARE = 0.1;

/** Clients, types or ports are spared if they lose at most this share. Share; chosen. */
export const SPARED_SHARE = 0.1;

/** An upstream is the cause if it returns at least this share of the errors. Share of the errors seen on both sides of the server; chosen. */
export const FROM_UPSTREAM_SHARE = 0.3;

/** The minimum share of unnecessary queries that deserves a warning. Share; chosen. */
export const COSTLY_SHARE = 0.3;

/** The minimum score at which a resolver's kind is known. 0 to 1; chosen. */
export const SURE_RESOLVER = 0.75;

/** A reply that takes longer is late. Milliseconds; chosen, because users notice it. */
export const LATE_MS = 400;

/** A reply that takes this long keeps its program waiting. Milliseconds; chosen: just below a second. */
export const FELT_MS = 900;

/** A DNS pod never takes this long to answer from memory, so it waited for another server. Milliseconds; chosen. */
export const LONG_WAIT_MS = 1000;

/** A query sent this shortly before the last reply may still overtake it. Milliseconds; chosen. */
export const OVERTAKEN_MS = 50;

/** Events within this time count as one moment. Milliseconds; chosen. */
export const SAME_MOMENT_MS = 100;

/** A silence that lasts this long is neither slowness nor a single moment. Milliseconds; chosen. */
export const MIN_LASTING_MS = 2000;

/** A forwarder gives up within this time, and CoreDNS caches a failure for 5 s. Milliseconds; the 5 s are the CoreDNS cache's, 1 s is a margin. */
export const FORWARDER_WAITS_MS = 6000;

/** A UDP payload of this size fits into a packet on (nearly) every link. Bytes; DNS flag day 2020 (IPv6 minimum MTU 1280). */
export const UNFRAGMENTED_BYTES = 1232;

/** A client that repeats a query within this time has not used the reply. Milliseconds; chosen: more than two timeouts of 5 s (resolv.conf(5)). */
export const SAME_QUERY_MS = 12_000;

/** The minimum number of errors to report. Replies or lookups; chosen. */
export const MANY_ERRORS = 5;

/** A server or address that loses this share is dead. Share; chosen. */
export const DEAF_SHARE = 0.95;

/** The latency quantile that represents slow replies; one reply in ten takes longer. Quantile; chosen. */
export const SLOW_QUANTILE = 0.9;
