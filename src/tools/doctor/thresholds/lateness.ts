/** Thresholds: slow servers, overload and limits. */

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
 * A low limit: replies a second from which it counts, seconds in which it is seen, and spread
 * compared with chance. Chosen.
 */
export const LOW_LIMIT = { rate: 8, seconds: 10, spread: 0.6 };

/**
 * Under a constant load: how much more even than chance (standard deviations), losses expected of
 * others, and the share of these that they lose. Chosen.
 */
export const EVEN_REPLIES = { least: -4, others: 10, spared: 0.1 };

/**
 * A socket is not a silent one after this many queries with at most this share of its losses at its
 * end. Chosen.
 */
export const ALIVE_SOCKET = { asked: 3, share: 0.2 };

/** Replies that take longer come from a server that is behind with its work. Milliseconds; chosen. */
export const BEHIND_WITH_WORK_MS = 150;

/** From this share on, the losses are those of one search domain. Share; chosen. */
export const LIMIT_OF_DOMAIN = 0.95;

/** A second is full from this many queries on: from all clients, from one client. Chosen. */
export const FULL_SECOND = { all: 60, one: 15 };

/** Fewer losses show no limit. Queries; chosen. */
export const MIN_LIMIT_LOSSES = 20;

/**
 * A load is constant if its busiest second has at most this many times the queries of its quietest.
 * Factor; chosen.
 */
export const CONSTANT_LOAD = 1.3;

/** Others may have asked the server for the same name up to this long before. Milliseconds; chosen. */
export const ASKED_BEFORE_MS = 3000;

/**
 * Waiting clients send nothing: a server whose quantile here is late keeps clients waiting most of
 * the time. Quantile; chosen.
 */
export const LATE_QUANTILE = 0.65;

/** Late replies, and their share of all, that are reported although most replies are quick. Chosen. */
export const LATE_AT_TIMES = { late: 5, share: 0.01 };

/** Programs give up if this share of the lookups takes a second or more. Share; chosen. */
export const SLOW_LOOKUPS = 0.5;

/**
 * A slow zone: late replies, their share of its queries, other names or quick replies for them, and
 * the least share of slow lookups. Chosen.
 */
export const SLOW_ZONE = { late: 5, share: 0.5, others: 3, quick: 5, felt: 0.02 };

/** A server that waits for another one does so within this time. Milliseconds; chosen. */
export const WAITS_AT_TIME_MS = 1500;

/**
 * A server slower than another with the same names: factor, milliseconds at least, replies, names.
 * Chosen.
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
 * Mean time of cluster names in a second, from which the server is late. Milliseconds; measured: of
 * 116 captures of healthy clusters none took more than 32 ms, except one whose server was far away.
 */
export const MEMORY_LATE_MS = 50;

/** Late seconds, their share of the time from first to last, and replies in them. Chosen. */
export const MEMORY_LATE = { seconds: 4, share: 0.5, replies: 20 };

/**
 * Otherwise the server is this many times quicker, or this many at least: else the way to it is
 * long. Factors; chosen.
 */
export const MEMORY_QUICKER = { otherwise: 4, least: 1.5 };

/** From this many queries for cluster names on, an upstream gets them by configuration. Queries; chosen. */
export const MIN_FORWARDED = 5;

/** A free thread takes the next lookup within this time. Milliseconds; chosen. */
export const NEXT_LOOKUP_MS = 2;

/** Fewer lookups that began with all threads at work show nothing. Lookups; chosen. */
export const MIN_FULL_LOOKUPS = 30;

/** At least this share of these follows the end of another one; the rest begins a batch. Share; chosen. */
export const HANDED_SHARE = 0.8;

/** A shorter wait is not felt. Milliseconds; chosen. */
export const THREAD_WAIT_MS = 10;

/** Fewer queries show no queue. Queries; chosen. */
export const MIN_LINE_QUERIES = 60;

/** A query sent this much later came behind the late one. Milliseconds; chosen. */
export const BEHIND_MS = 20;

/** Fewer late replies show no queue. Replies; chosen. */
export const MIN_LINE_LATE = 8;

/** A reply that takes less than this share of the queue's time did not wait. Share; chosen. */
export const DID_NOT_WAIT = 0.1;

/** Lines without times that are many. Lines; chosen. */
export const MANY_LINES = 20;

/** Lines a minute that are many. Lines; chosen. */
export const MANY_LINES_A_MINUTE = 2;

/**
 * A finding that hits this many times more queries is listed before a finding about certain names.
 * Factor; chosen.
 */
export const MANY_MORE_HITS = 2;

/** From this share of messages without their end on, what was not found may be in those. Share; chosen. */
export const CUT_SHARE = 0.05;

/** Fewer failures or losses show no pattern in time. Cases; chosen. */
export const MIN_PART_CASES = 4;

/** A stretch is a part of the capture if this much time precedes it. Milliseconds; chosen. */
export const BEFORE_PART_MS = 1500;

/** The same after it: queries of the last seconds may still be answered. Milliseconds; chosen. */
export const AFTER_PART_MS = 5000;

/**
 * Failures are those of a few clients only if these send at most this share of all queries. Share;
 * chosen.
 */
export const FEW_CLIENTS_SHARE = 0.6;

/** A part explains its losses from this share on. Share; chosen. */
export const PART_EXPLAINS = 0.5;

/** A shorter part is chance. Milliseconds; chosen. */
export const MIN_PART_MS = 1000;

/** A finding about the whole with this confidence has its cause, so that no part has to be examined. 0 to 1; chosen. */
export const PART_NEEDLESS = 0.9;

/** A finding about a part with less confidence does not replace one about the whole. 0 to 1; chosen. */
export const PART_SURE = 0.7;

/** Loss without a pattern is reported for a part from this many losses on. Queries; chosen. */
export const MIN_PART_LOSSES = 6;

/** The same, for a part of this length at least. Milliseconds; chosen. */
export const PART_LASTS_MS = 3000;

/** With fewer lookups, nothing is said about threads. Lookups; chosen. */
export const MIN_THREAD_LOOKUPS = 30;

/**
 * Cluster names take this long on average while a server is busy: with nothing to compare, else at
 * least, and compared with the time before (factor). Chosen.
 */
export const BUSY = { aloneMs: 500, ms: 150, times: 4 };

/**
 * Replies take longer with the number of waiting queries: correlation, the longest queue, and the
 * quantile that has to be late. Chosen.
 */
export const QUEUE = { correlation: 0.8, longest: 4, quantile: 0.65 };

/** From this share of slow lookups on, clients wait most of the time. Share; chosen. */
export const WAITING_LOOKUPS = 0.3;

/**
 * With fewer queries a server has no limit that a capture shows: at all, and by its seconds.
 * Queries; chosen.
 */
export const MIN_LIMITED_QUERIES = { busy: 150, measured: 300 };

/**
 * Limits of about 1024 packets a second are those of AWS for each network interface. Packets a
 * second; AWS VPC quotas.
 */
export const AWS_LIMIT = { from: 900, to: 1100 };

/** Clients send this many times the limit where it is seen. Factor; chosen. */
export const LIMIT_EXCEEDED = 1.15;

/** A steady rate of replies: replies a second at least, and the largest relative deviation. Chosen. */
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
 * Exchanges this near to a part are read with it: a query of the part waits for them, or repeats
 * them. Milliseconds; chosen.
 */
export const AROUND_PART_MS = 20_000;

/**
 * One pod is late and another is not: their means differ this many times; where the pods are not
 * seen, the mean and the geometric mean of all do. Factors; chosen.
 */
export const PODS_APART = { times: 10, ofUsual: 6 };

/**
 * One client floods the DNS: its share of all queries while some are lost, queries a second, and
 * the share of its replies that are NXDOMAIN, at least. Chosen; a busy pod sends some tens a
 * second.
 */
export const FLOOD = { share: 0.5, perSecond: 15, absent: 0.75 };

/**
 * A cold cache: lookups that are slow at most, names that the upstream was asked for, and the share
 * of them that it was asked once. Chosen.
 */
export const COLD_CACHE = { slow: 0.03, names: 5, once: 0.9 };

/**
 * Response rate limiting: queries a second with losses, at least this many times those without (factor). Or queries
 * in the time before a lost one, at least this many times those before others (factor, standard errors, milliseconds).
 * Chosen.
 */
export const RESPONSE_LIMIT = { factor: 3, before: 1.25, deviations: 4, windowMs: 500 };
