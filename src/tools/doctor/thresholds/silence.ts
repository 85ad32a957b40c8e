/** Thresholds for servers and pods that stop answering. */

/** With this many new sockets for each pod, every pod gets one in all likelihood. Factor; e⁻³ is 5 %. */
export const SOCKETS_PER_POD = 3;

/** This many losses before a silence are not chance. Queries; chosen. */
export const MIN_EARLIER_LOSSES = 4;

/** Losses below this share of the explained ones in the same silence have the same cause. Share; chosen. */
export const OUTAGE_REST = 0.5;

/** An address stopped answering: queries, and milliseconds. Chosen. */
export const ADDRESS_SILENT = { queries: 8, ms: 2000 };

/** A DNS pod works at the time: the minimum replies, and the maximum share that it loses. Chosen. */
export const POD_WELL = { replies: 3, lost: 0.1 };

/** The most silent addresses to examine, busiest first, since few addresses belong to a DNS Service. Addresses; chosen. */
export const MAX_SILENT_ADDRESSES = 16;

/** Share of all sockets that dead pods of a Service can have: from one of twelve replicas to more dead than live ones. Chosen. */
export const DEAD_POD_SHARES = { least: 0.08, most: 0.75 };

/** The maximum deviation of the share of lost choices from one dead endpoint's. Standard deviations; chosen, 1% by chance. */
export const ENDPOINT_SHARE_DEVIATIONS = 2.5;

/** Losses of new sockets that last for less of the capture may come from a table that was full. Share; chosen. */
export const MOST_OF_CAPTURE = 0.6;

/**
 * Alternations of silent and answered sockets, few and many, and how far each may be from chance (standard deviations). A
 * client that waits for one socket opens no other, so silent ones come in groups. If some sockets are silent before and
 * after others are answered, few alternations may be as far from chance as many. Chosen.
 */
export const SOCKET_TURNS = { least: 4, few: -2.5, many: 8, most: -4 };

/** Sockets stay whole or without any reply by chance with this probability at most. Chosen. */
export const WHOLE_SOCKETS_CHANCE = 0.003;

/** Losses depend on the client: silent sockets of each client that has one, the largest answered share of these, and answered sockets of other clients. Chosen. */
export const SILENT_BY_CLIENT = { each: 3, answered: 0.05, others: 12 };

/** With one query for each socket, only a loss larger than a link ever has points to a pod: share, losses, queries, milliseconds. Chosen. */
export const SILENT_SINGLE_QUERIES = { least: 0.18, lost: 6, asked: 16, ms: 2000 };

/** A port gets no replies: the minimum queries with different ids, and milliseconds. Chosen. */
export const STALE_FLOW = { queries: 3, ms: 1500 };

/** The minimum if a client repeats the same queries, each with one id: queries including repeats, and milliseconds. Chosen; no resolver library keeps a socket for so long. */
export const STALE_REPEATS = { tries: 4, ms: 12_000 };

/** The answered queries that show that the only socket to an address worked before it fell silent. Chosen. */
export const MIN_ANSWERED_BEFORE = 4;

/** From this share of lost queries on other sockets on, a late server is busy rather than some sockets stale. Chosen. */
export const BUSY_SERVER_LOST = 0.1;

/** This many new sockets to other servers, and none to this one, show that it gets no new ones. Sockets; chosen. */
export const NEW_SOCKETS_ELSEWHERE = 8;

/** Sockets answered among silent ones. Sockets; chosen. */
export const ANSWERED_BETWEEN = 2;

/** A server fell silent: replies and losses before, then queries, sockets, names and milliseconds without a reply. Chosen. */
export const FELL_SILENT = { answered: 20, lost: 2, asked: 4, sockets: 3, names: 2, ms: 3000 };

/** A shorter standstill is hardly felt. Milliseconds; chosen. */
export const MIN_STANDSTILL_MS = 1500;

/** Shorter standstills count if they repeat: times, waiting queries each time, and queries for cluster names among these. Chosen. */
export const REPEATED_STANDSTILL = { times: 3, waited: 6, own: 2 };

/** At most one reply for this many waiting queries was already on its way. Ratio; chosen. */
export const WAITING_PER_REPLY = 10;

/** The minimum numbers of waiting queries, their sockets, their names, and the cluster names among these. Chosen. */
export const STANDSTILL_WAITING = { queries: 6, sockets: 3, names: 2, own: 2 };

/** If at most this share of the standstills is without any reply, others answer during the rest. Share; chosen. */
export const STANDSTILL_WHOLE = 0.5;

/** Without cluster names: queries, names and clients that have only the server in common. Chosen. */
export const STANDSTILL_OF_ALL = { queries: 10, names: 3, clients: 3 };

/** A stopped process sends no reply for this many seconds, then replies that are this late (milliseconds). Chosen. */
export const STOPPED_PROCESS = { seconds: 3, ms: 2000 };

/** A queue answers for about as long as it was filled; a stopped process was filled this many times longer. Factor; chosen. */
export const STANDSTILL_RATIO = 3;

/** The minimum number of waiting queries, and of their sockets. Chosen. */
export const STANDSTILL = { waited: 3, sockets: 2 };

/** Pauses, and in each the queries without a reply, their sockets and their names. Chosen. */
export const REPEATED_SILENCE = { pauses: 2, queries: 4, sockets: 2, names: 2 };

/** The first lost query may have been sent this long before the last reply. Milliseconds; chosen. */
export const SILENCE_BEGINS_MS = 20;

/** Some clients query all servers of their list one after the other, within this time. Milliseconds; chosen. */
export const ASKED_AT_ONCE_MS = 5;

/** This many queries show how a client divides them among its servers. Queries; chosen. */
export const MIN_ASKED_OF_LIST = 4;

/** This many questions repeated to another server are not chance. Questions; chosen. */
export const MIN_WENT_ON = 2;

/** For each of those, at most this many are repeated to the same server. Ratio; chosen. */
export const MAX_STAYED = 0.1;

/** The minimum share of a server's losses for names that it never answers. Share; chosen. */
export const DEAD_NAMES_SHARE = 0.95;

/** With at least this share of sockets that get replies after losses, each query is a separate trial rather than each socket. Share; chosen. */
export const MIXED_SOCKETS = 0.3;

/** Names that chance leaves unanswered with this probability are dead. Probability; chosen. */
export const UNLIKELY_DEAD = 0.02;

/** A stretch differs from the rest if a change is this much likelier than chance. Natural logarithm; chosen. */
export const MIN_CHANGE_LIKELIHOOD = 12;

/** Most replies of an overloaded server take this many times longer than otherwise. Factor; chosen. */
export const BREATHLESS_FACTOR = 15;

/** The minimum difference in milliseconds. Chosen. */
export const BREATHLESS_MS = 15;

/** A node cache that answered before is down after this silence. Milliseconds; chosen. */
export const NODE_CACHE_SILENT_MS = 3000;

/** A shorter capture shows no silence. Seconds; chosen. */
export const MIN_OUTAGE_SECONDS = 3;

/** The most sockets with both losses and replies, for each silent one. Ratio; chosen. */
export const MIXED_SILENT = 0.1;

/** The number of sockets with several queries that shows whether losses depend on the socket. Sockets; chosen. */
export const MIN_SEVERAL = 4;

/** More silent sockets are not single ones. Sockets; chosen. */
export const MAX_STALE = 5;

/** A socket with more queries than this is one that its program reuses. Queries; chosen. */
export const REUSED_SOCKET = 4;

/** An ICMP error that comes later than this after a query is not for it. Milliseconds; the kernel sends it at once, a capture may merge hosts. */
export const REJECTED_WITHIN_MS = 1000;

/** Rejections further apart than this, with replies in between, belong to two separate incidents. Milliseconds; more than the 5 s that resolv.conf(5) waits. */
export const REJECTED_APART_MS = 6000;

/** A server that runs again answers this many queries after the last rejection, and loses at most this share. Chosen. */
export const RUNS_AGAIN = { replies: 5, lost: 0.1 };

/** The number of times that shows that a process restarts, since a rollout ends each pod only once. Times; chosen. */
export const ENDS_AGAIN = 3;

/** Other names, answered elsewhere, that show that one zone is forwarded separately. Names; chosen. */
export const MIN_OUTSIDE_NAMES = 2;

/** Addresses that accept a client’s TCP connections while its queries get no reply: the network works. Addresses; chosen. */
export const REACHED_ADDRESSES = 2;

/** A silent stretch with fewer losses may be chance. Queries; chosen. */
export const SILENCE_LOST = 5;

/** Losses outside a silence: above this share of the queries and this many more, they are losses and not a silence. Share, queries; chosen. */
export const LOST_OUTSIDE = { share: 0.05, more: 2 };

/** A time without replies is remembered from this length on. Milliseconds; chosen. */
export const PAUSE_MS = 1000;

/** Names with fewer labels have no zone in common, only a top-level domain. Labels, counting the root; chosen. */
export const ZONE_LABELS = 3;
