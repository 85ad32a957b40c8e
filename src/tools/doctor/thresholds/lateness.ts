/** Thresholds for slow servers, overload and limits. */

/**
 * Mean time of cluster names below which a server is not busy, unless several clients lose queries.
 * Twice this if it waits for a slow upstream. Milliseconds; chosen.
 */
export const BUSY_MEAN_MS = 100;

/** A token bucket explains the losses if it is wrong about at most this share of them. Share; chosen. */
export const BUCKET_MAX_ERROR = 0.3;

/** Chance has to be wrong this many times more often. Factor; chosen. */
export const BUCKET_CHANCE_FACTOR = 2;

/** A bucket for each client: largest error, clients, and the largest share of other losses. Chosen. */
export const BUCKET_OF_CLIENT = { error: 0.25, clients: 2, others: 0.4 };

/**
 * A low limit: the minimum replies per second, the seconds in which it is visible, and the spread
 * compared with chance. Chosen.
 */
export const LOW_LIMIT = { rate: 8, seconds: 10, spread: 0.6 };

/**
 * Under a constant load, replies are this much more even than chance (standard deviations). Other
 * clients lose at most `spared` of the losses expected for them, of which there are `others`. Chosen.
 */
export const EVEN_REPLIES = { least: -4, others: 10, spared: 0.1 };

/**
 * A socket is not silent after this many queries if at most this share of its losses is at its end.
 * Chosen.
 */
export const ALIVE_SOCKET = { asked: 3, share: 0.2 };

/** Replies that take longer come from a server with a backlog. Milliseconds; chosen. */
export const BEHIND_WITH_WORK_MS = 150;

/** The minimum share of losses in one search domain that makes it the cause. Share; chosen. */
export const LIMIT_OF_DOMAIN = 0.95;

/** The minimum number of queries in a full second, from all clients and from one client. Chosen. */
export const FULL_SECOND = { all: 60, one: 15 };

/** Fewer losses show no limit. Queries; chosen. */
export const MIN_LIMIT_LOSSES = 20;

/**
 * A load is constant if its busiest second has at most this many times the queries of its quietest.
 * Factor; chosen.
 */
export const CONSTANT_LOAD = 1.3;

/** Others may have queried the server for the same name up to this long before. Milliseconds; chosen. */
export const ASKED_BEFORE_MS = 3000;

/**
 * Waiting clients send nothing, so a server that is late at this quantile keeps clients waiting most
 * of the time. Quantile; chosen.
 */
export const LATE_QUANTILE = 0.65;

/** The minimum number and share of late replies to report although most replies are quick. Chosen. */
export const LATE_AT_TIMES = { late: 5, share: 0.01 };

/** Programs give up if this share of the lookups takes a second or more. Share; chosen. */
export const SLOW_LOOKUPS = 0.5;

/**
 * A slow zone: late replies, their share of its queries, other names or quick replies for them, and
 * the minimum share of slow lookups. Chosen.
 */
export const SLOW_ZONE = { late: 5, share: 0.5, others: 3, quick: 5, felt: 0.02 };

/** A server that waits for another one does so within this time. Milliseconds; chosen. */
export const WAITS_AT_TIME_MS = 1500;

/**
 * A server that is slower than another with the same names: factor, minimum milliseconds, replies
 * and names. Chosen.
 */
export const SLOW_SISTER = { times: 10, ms: 8, replies: 10, names: 2 };

/** In a full conntrack table a younger query may still be answered. Milliseconds; chosen. */
export const LOSS_SETTLED_MS = 15_000;

/**
 * Losses are compared by slots of this length, since microseconds decide which packet of a burst is
 * dropped. Milliseconds; chosen.
 */
export const BUCKET_SLOT_MS = 50;

/** The share of late replies whose reason has to be known. Chosen. */
export const WAITED_FOR_SHARE = 0.7;

/**
 * A server is late if cluster names take this long on average in a second. Milliseconds; measured in
 * 116 captures of healthy clusters. None took more than 32 ms, except one with a distant server.
 */
export const MEMORY_LATE_MS = 50;

/** Late seconds, their share of the time from first to last, and replies in them. Chosen. */
export const MEMORY_LATE = { seconds: 4, share: 0.5, replies: 20 };

/**
 * The server is `otherwise` times, or at least `least` times, quicker in other seconds. If not, the
 * path to it is long. Factors; chosen.
 */
export const MEMORY_QUICKER = { otherwise: 4, least: 1.5 };

/** The minimum number of cluster name queries that shows that an upstream gets them by configuration. Queries; chosen. */
export const MIN_FORWARDED = 5;

/** A free thread takes the next lookup within this time. Milliseconds; chosen. */
export const NEXT_LOOKUP_MS = 2;

/** Fewer lookups that began with all threads at work show nothing. Lookups; chosen. */
export const MIN_FULL_LOOKUPS = 30;

/** The minimum share of these that follow the end of another one; the others start a batch. Share; chosen. */
export const HANDED_SHARE = 0.8;

/** A shorter wait is not felt. Milliseconds; chosen. */
export const THREAD_WAIT_MS = 10;

/** Fewer queries show no queue. Queries; chosen. */
export const MIN_LINE_QUERIES = 60;

/** A query sent this much later is queued after the late one. Milliseconds; chosen. */
export const BEHIND_MS = 20;

/** Fewer late replies show no queue. Replies; chosen. */
export const MIN_LINE_LATE = 8;

/** A reply that takes less than this share of the queue's time did not wait. Share; chosen. */
export const DID_NOT_WAIT = 0.1;

/** The number of lines without times that counts as many. Lines; chosen. */
export const MANY_LINES = 20;

/** The number of lines per minute that counts as many. Lines; chosen. */
export const MANY_LINES_A_MINUTE = 2;

/**
 * A finding that affects this many times more queries is listed before one about certain names.
 * Factor; chosen.
 */
export const MANY_MORE_HITS = 2;

/** With at least this share of truncated messages, missing evidence may be in those. Share; chosen. */
export const CUT_SHARE = 0.05;

/** Fewer failures or losses show no pattern in time. Cases; chosen. */
export const MIN_PART_CASES = 4;

/** A stretch is a part of the capture if this much time precedes it. Milliseconds; chosen. */
export const BEFORE_PART_MS = 1500;

/** The minimum time after it, since queries in the last seconds may still be answered. Milliseconds; chosen. */
export const AFTER_PART_MS = 5000;

/**
 * Failures belong to a few clients only if these send at most this share of all queries. Share;
 * chosen.
 */
export const FEW_CLIENTS_SHARE = 0.6;

/** The minimum share of a part's losses that its finding has to explain. Share; chosen. */
export const PART_EXPLAINS = 0.5;

/** A shorter part is chance. Milliseconds; chosen. */
export const MIN_PART_MS = 1000;

/** With this confidence in a finding about the whole capture, no part has to be examined. 0 to 1; chosen. */
export const PART_NEEDLESS = 0.9;

/** A finding about a part with less confidence does not replace one about the whole. 0 to 1; chosen. */
export const PART_SURE = 0.7;

/** The minimum number of losses to report loss without a pattern for a part. Queries; chosen. */
export const MIN_PART_LOSSES = 6;

/** The minimum length of such a part. Milliseconds; chosen. */
export const PART_LASTS_MS = 3000;

/** With fewer lookups, threads are not examined. Lookups; chosen. */
export const MIN_THREAD_LOOKUPS = 30;

/**
 * The minimum mean time of cluster names while a server is busy: `aloneMs` without a comparison,
 * otherwise `ms`, and `times` the earlier mean time. Chosen.
 */
export const BUSY = { aloneMs: 500, ms: 150, times: 4 };

/**
 * Replies take longer with the number of waiting queries: correlation, the longest queue, and the
 * quantile that has to be late. Chosen.
 */
export const QUEUE = { correlation: 0.8, longest: 4, quantile: 0.65 };

/** The minimum share of slow lookups at which clients wait most of the time. Share; chosen. */
export const WAITING_LOOKUPS = 0.3;

/**
 * The minimum number of queries for a capture to show a server's limit, overall and by seconds.
 * Queries; chosen.
 */
export const MIN_LIMITED_QUERIES = { busy: 150, measured: 300 };

/**
 * AWS limits each network interface to about 1024 packets per second. Packets per second; AWS VPC
 * quotas.
 */
export const AWS_LIMIT = { from: 900, to: 1100 };

/** The recommended rate, as a share of a limit that was seen. Chosen. */
export const BELOW_LIMIT = 0.9;

/** Clients send at least this many times the limit in seconds that show it. Factor; chosen. */
export const LIMIT_EXCEEDED = 1.15;

/** A steady reply rate: the minimum replies per second, and the maximum relative deviation. Chosen. */
export const LIMIT_RATE = { least: 50, deviation: 0.06 };

/**
 * A second below the limit that still loses queries contradicts it: shares of the limit and of the
 * queries. Chosen.
 */
export const LIMIT_BELOW = { rate: 0.9, lost: 0.1 };

/** With fewer replies, a server is not called slow. Replies; chosen. */
export const MIN_TIMED_REPLIES = 10;

/** An upstream with a longer mean time is slow. Milliseconds; chosen. */
export const SLOW_UPSTREAM_MS = 500;

/** A pod above this share of its memory limit is close to being killed. Share; chosen. */
export const MEMORY_FULL = 0.9;

/** Fewer losses do not show overload. Queries; chosen. */
export const OVERLOAD_LOSSES = 5;

/**
 * Exchanges this close to a part are read with it, because a query in the part waits for them or
 * repeats them. Milliseconds; chosen.
 */
export const AROUND_PART_MS = 20_000;

/**
 * One pod is late while another is not if their means differ by `times`. If the pods are not
 * visible, the mean and the geometric mean of all replies differ by `ofUsual`. Factors; chosen.
 */
export const PODS_APART = { times: 10, ofUsual: 6 };

/**
 * One client floods DNS: its minimum share of all queries while some are lost, queries per second,
 * and share of NXDOMAIN replies. Chosen; a busy pod sends some tens of queries per second.
 */
export const FLOOD = { share: 0.5, perSecond: 15, absent: 0.75 };

/**
 * A cold cache: the maximum share of slow lookups, the minimum number of names queried at the
 * upstream, and the share of them queried once. Chosen.
 */
export const COLD_CACHE = { slow: 0.03, names: 5, once: 0.9 };

/**
 * Response rate limiting: the minimum ratio of the query rates with and without losses. Also the minimum ratio of the
 * rates in the window before lost and other queries, and its deviations in standard errors. Factors; chosen.
 */
export const RESPONSE_LIMIT = { factor: 3, before: 1.25, deviations: 4, windowMs: 500 };

/**
 * Short stalls of a server that answers cluster names from memory. `quickQuantile` of the replies take the usual time
 * (quantile). A reply is late from `ms` (milliseconds) and from `times` the usual time on. At least `share` of the
 * replies are late. They fall into at least `seconds` seconds, and into `lasting` of the seconds with queries (share).
 * `together` of the late replies (share), and `ofChance` times as many as by chance, come in bursts. In a burst, replies
 * come within `togetherMs` although their queries were sent `apartMs` apart (milliseconds). If others overtake at least
 * `outrun` of the late replies (share), another pod answers. Chosen: a CPU quota stops a process for up to 100 ms in each
 * period, and often in several periods in a row.
 */
export const STALLS = {
  quickQuantile: 0.25,
  ms: 20,
  times: 50,
  share: 0.05,
  seconds: 5,
  lasting: 0.5,
  together: 0.25,
  togetherMs: 5,
  apartMs: 10,
  ofChance: 3,
  outrun: 0.2,
};

/**
 * One of several upstreams never answers, and the DNS server then queries the next one. Late replies take `ms`
 * (milliseconds; the read timeout of CoreDNS’s forward), or up to `marginMs` more for the next upstream. There are at
 * least `late` of them. They are from `least` to `most` of the replies for external names (shares): one of up to five
 * upstreams is dead, and the others answer. After pauses of `idleMs` (milliseconds), a dropped idle connection looks the
 * same. Queries are counted by the second (`resolutionMs`). Chosen.
 */
export const DEAD_UPSTREAM = {
  ms: 2000,
  marginMs: 150,
  late: 5,
  least: 0.2,
  most: 0.9,
  idleMs: 4000,
  resolutionMs: 1000,
};

/** Limits of several clients are the same one if their rates differ by this share at most. Share; chosen. */
export const SAME_RATE = 0.1;

/** The quantile of a server's fastest replies. Share; chosen. */
export const FASTEST_QUANTILE = 0.05;

/** A second loses queries, rather than a single one, above this share. Share; chosen. */
export const LOSSY_SECOND = 0.05;

/** The upper end of the first bucket of latencies; each next one is twice as wide. Milliseconds; chosen, below any network's latency. */
export const FIRST_BUCKET_MS = 0.1;

/** The share of late queries that another overtakes, above which a server does not answer one after the other. Share; chosen, since several workers hardly overtake. */
export const OVERTAKEN_SHARE = 0.3;

/** With fewer losses, a rate limit and chance look the same. Queries; chosen. */
export const BUCKET_LOST = 20;

/** The bursts that a replay of a rate limit tries. Packets; chosen, since smaller ones look like pairs of A and AAAA that lose the second query. */
export const BUCKET_BURSTS: readonly number[] = [
  5, 6, 8, 10, 12, 16, 20, 25, 32, 40, 50, 64, 80, 100, 128, 160, 200, 256, 320, 400, 512, 700,
  1024,
];

/** The rates that a replay of a rate limit tries, and the factor from one to the next. Packets a second; chosen. */
export const BUCKET_RATES = { least: 10, most: 3000, step: 1.08 };
