/** Thresholds for packets lost in transit: sockets, sizes, ports, families, firewalls. */

/** Evidence about the client that is cut off: queries, ports, milliseconds. Chosen. */
export const CUT_CLIENT = { queries: 4, ports: 2, ms: 2000 };

/**
 * Evidence that others are served: clients, replies to each, and the largest share that they may
 * lose. Chosen.
 */
export const CUT_CLIENT_OTHERS = { clients: 2, answers: 4, lost: 0.2 };

/** AAAA is dropped if this many times more names lack a reply than chance explains. Factor; chosen. */
export const AAAA_SURPLUS = 4;

/** At most this many other queries are lost for each lost AAAA query. Ratio; chosen: a third. */
export const AAAA_OTHERS_LOST = 0.34;

/** At least this share of the AAAA queries lost at the time is never answered. Share; chosen. */
export const AAAA_NEVER_ANSWERED = 0.6;

/**
 * No resolver retries sooner; queries of several clients within a shorter time are of one moment.
 * Milliseconds; the shortest timeout of resolv.conf is 1 s.
 */
export const SOONEST_RETRY_MS = 900;

/**
 * This many FORMERR replies, and no other error, are about EDNS: no other part of a program's query
 * varies. Replies; chosen.
 */
export const MIN_FORMERR = 8;

/** A loss that only one client has must hit this many names. Names; chosen. */
export const MIN_NAMES_OF_ONE = 3;

/**
 * This many external names, and as many cluster names, show that losses depend on which of the two
 * a name is. Names; chosen.
 */
export const MIN_SIDE_NAMES = 4;

/** The minimum numbers of silent sockets, and of answered sockets outside the range. Chosen. */
export const PORT_RANGE_SOCKETS = { silent: 6, fine: 12 };

/**
 * The minimum share of silent sockets that are within the range, and the maximum share of sockets
 * within the range that are answered. Chosen.
 */
export const PORT_RANGE_SHARES = { silent: 0.9, fine: 0.1 };

/**
 * Below this, silent sockets come in periods of time, in which clients that use ports in order have
 * consecutive silent ports. Standard deviations; chosen.
 */
export const SILENT_BY_TIME = -3;

/** At least this share of the losses has to be of large replies. Share; chosen. */
export const MIN_LARGE_LOSSES = 0.3;

/**
 * A router reports an unreachable neighbour within this time. Milliseconds; Linux probes for 3 s
 * (mcast_solicit × retrans_time), and 1 s is a margin.
 */
export const NEIGHBOUR_REPORT_MS = 4000;

/**
 * Losses below this share of those that other findings explain do not have a separate cause. Share;
 * chosen.
 */
export const REST_OF_OTHERS = 0.1;

/** The minimum share of a race's losses that were sent second. Share; chosen. */
export const SECOND_OF_PAIR = 0.75;

/**
 * The race is critical if this number of pairs lose a query, or `FELT_SHARE` of all pairs. Pairs; chosen: each of them
 * makes a lookup wait for 2.5 or 5 s, and a few in thousands are hardly noticed.
 */
export const MANY_LOST_HALVES = 10;

/** This many pairs suffice if all lost the second query and nothing else is lost. Pairs; chosen. */
export const MIN_PAIRS_ALONE = 2;

/** The score from which a client's resolver is known to a firewall finding. 0 to 1; chosen. */
export const POLICY_SURE_RESOLVER = 0.7;

/** A smaller share of lost queries causes no trouble. Share; chosen. */
export const LOSS_RARE = 0.002;

/**
 * A wave of losses lasts at least this many seconds without any answer and hits at least `names`
 * different names. There are at least `count` waves, with this share of all lost queries. Chosen.
 */
export const LOSS_WAVE = { seconds: 3, names: 3, count: 2, share: 0.7 };

/** Losses within this time count as one moment. Milliseconds; chosen. */
export const LOSS_MOMENT_MS = 1000;

/** The minimum number of answered queries before the first loss to report, as a ratio of the losses. Ratio; chosen. */
export const LOSS_LATER_HALF = 0.5;

/** Losses up to this share of explained ones, close to them in time, have the same cause. Share; chosen. */
export const LOSS_REST = 0.3;

/** "Close in time" to explained losses. Milliseconds; chosen. */
export const LOSS_AROUND_MS = 1500;

/** Other clients are spared only if this many losses would be expected of them. Queries; chosen. */
export const LOSS_EXPECTED = 10;

/** The minimum share of their own queries at which the only losing clients notice it. Share; chosen. */
export const LOSS_FELT_BY_FEW = 0.1;

/** Fewer stray replies were on their way while the pods behind a Service changed. Replies; chosen. */
export const STRAYS_FEW = 5;

/** The same, as a share of all queries. Chosen. */
export const STRAYS_RARE = 0.005;

/** An address whose replies are not translated loses at least this share. Share; chosen. */
export const STRAYS_LOST = 0.95;

/**
 * The minimum share of such clients' repeated queries whose replies the kernel rejected. Share;
 * kernels limit their ICMP errors to one per second.
 */
export const REPLIES_REFUSED = 0.2;

/** A client and server pair fails if at least this share of its connections does. Share; chosen. */
export const TCP_PAIR_FAILS = 0.5;

/**
 * A client that opens fewer connections for each truncated reply does not retry over TCP; one
 * connection serves both families. Ratio; chosen.
 */
export const TCP_PER_TRUNCATED = 0.1;

/**
 * A forwarder that waits for TCP only fails (nearly) all queries from this long before it gives up
 * to this long after. Milliseconds; chosen.
 */
export const TCP_WAIT_MS = { before: 6000, after: 20_000 };

/** A resolver repeats queries after a constant time, plus at most this much. Milliseconds; chosen. */
export const TIMEOUT_SPREAD_MS = 50;

/** A resolver repeats a query at most this often; glibc and musl twice, others up to three times. Repeats; chosen. */
export const MOST_TRIES = 3;

/** No resolver retries sooner. Milliseconds; chosen. */
export const SHORTEST_PATIENCE_MS = 250;

/** Both queries of a pair leave within this time. Milliseconds; chosen. */
export const PAIR_MS = 50;

/**
 * Ids are not random if a client uses one for this many names (queries, share) or this many times
 * in a row. Chosen.
 */
export const FIXED_IDS = { least: 4, share: 0.2, run: 6 };

/** Fewer queries with EDNS, or without, show nothing. Queries; chosen. */
export const MIN_EDNS_QUERIES = 4;

/** A server that drops EDNS loses at least this share of queries with it. Share; chosen. */
export const EDNS_LOST = 0.9;

/**
 * The limits if long replies arrive at other times: lookups that lose them, and the probability of
 * chance. Chosen.
 */
export const LONG_AT_TIMES = { lookups: 4, chance: 0.002 };

/** A client retries a name within this time. Milliseconds; the 5 s of resolv.conf(5), and a margin. */
export const RETRY_MS = 5500;

/**
 * Losses of unknown size: queries, names, share of all losses, similar queries that are
 * answered, and queries if it is one name alone. Chosen.
 */
export const LONG_UNSEEN = { alone: 4, queries: 6, names: 2, share: 0.9, answered: 6 };

/**
 * Other connections that repeat their first packet: connections opened, and the share that repeats.
 * Chosen.
 */
export const OTHER_CONNECTIONS = { opened: 5, repeated: 0.5 };

/**
 * This many lost queries are hardly of one type by chance, since programs ask for A as often.
 * Queries; 2⁻⁵ is 3 %.
 */
export const MIN_OF_ONE_TYPE = 5;

/** The minimum number of queries from new sockets that lose everything. Queries; chosen. */
export const MIN_NEW_QUERIES = 8;

/** The minimum number of queries from known sockets that lose nothing. Queries; chosen. */
export const MIN_KNOWN_QUERIES = 20;

/** Known sockets lose at most this share. Share; chosen. */
export const MAX_KNOWN_LOST = 0.02;

/**
 * The minimum share of sockets opened at the time that get no reply. A dead server would affect only
 * its own share. Share; chosen.
 */
export const NEW_SILENT = 0.9;

/**
 * Known sockets would lose at least this many queries if they lost as new ones do; chance can spare
 * fewer. Queries; e⁻⁵ is below 1 %.
 */
export const MIN_EXPECTED = 5;

/** The same, for a sure verdict. Queries; e⁻⁸ is below 0.1 %. */
export const SURE_EXPECTED = 8;

/**
 * The same for known sockets between the first and the last moment, as waiting clients leave few
 * moments. Queries; chosen.
 */
export const EXPECTED_THROUGHOUT = 20;

/**
 * Connection tracking loses sockets whole: pairs lost whole, halves for each of these at most,
 * other connections that repeat their first packet, and sockets served in between. Chosen.
 */
export const WHOLE_PAIRS = { pairs: 8, halves: 0.15, others: 6, amid: 6 };

/**
 * Queries of new sockets lost without one answered among them, and other connections that repeat
 * their first packet. Chosen.
 */
export const ALL_NEW_LOST = { lost: 20, others: 10 };

/**
 * With at least this share of losses during a silence, this many queries from known sockets show
 * that those are spared. Chosen.
 */
export const LOST_IN_SILENCE = { share: 0.3, known: 3 };

/** Sockets opened this close together count as one moment. Milliseconds; chosen. */
export const OPENED_TOGETHER_MS = 150;

/** This many answered sockets of other clients show that one client alone loses. Sockets; chosen. */
export const MIN_OTHER_SOCKETS = 10;

/** At most this share of those sockets is lost. Share; chosen. */
export const OTHER_SOCKETS_LOST = 0.08;

/**
 * A packet repeated sooner is a copy, not a retransmission. Milliseconds; Linux retransmits a SYN
 * after 1 s.
 */
export const COPY_MS = 200;

/**
 * A connection accepted later lost more than one packet. Milliseconds; Linux retransmits a SYN
 * after 1 s and after 3 s.
 */
export const CONNECT_LATE_MS = 2500;

/**
 * A client tries for at least this long, so a younger connection at the end of a capture may still
 * be accepted. Milliseconds; chosen.
 */
export const CONNECT_OPEN_MS = 3000;

/**
 * A kernel gives up this long after its last request. Milliseconds; Linux waits 1 s
 * (retrans_time_ms), timers and busy machines add the rest.
 */
export const NEIGHBOUR_GIVEN_UP_MS = { from: 900, to: 1300 };

/**
 * At most this share of new sockets has the port of an earlier one and finds its conntrack entry.
 * Share; chosen.
 */
export const REUSED_PORTS = 0.02;

/** The minimum numbers of silent sockets and of alternations that show a pattern. Chosen. */
export const SILENT_BY_TURNS = { silent: 3, turns: 4 };

/**
 * Share of the conntrack table in use: full, nearly full, and nearly full where packets were
 * dropped. Chosen.
 */
export const TABLE_FULL = { entries: 0.98, nearly: 0.95, dropped: 0.8 };

/** This many queries of known sockets make a full table sure. Queries; chosen. */
export const SURE_NEW_QUERIES = 60;

/** With fewer other connections, they are not examined. Connections; chosen. */
export const MIN_OTHER_CONNECTIONS = 10;

/** Other connections fail like DNS: their rate compared with that of DNS, and at least. Chosen. */
export const OTHERS_ALIKE = { ofRate: 0.3, share: 0.01 };

/**
 * Single queries lost beside a race: at most this share of its losses; from this many single
 * queries on, at most this share of the expected losses. Chosen.
 */
export const PAIR_REST = { ofLosses: 0.25, singles: 10, ofExpected: 0.3 };

/** Pairs from two sockets that are immune: pairs, and the largest share lost. Chosen. */
export const PAIR_IMMUNE = { pairs: 5, lost: 0.02 };

/** This many pairs make a race sure. Pairs; chosen. */
export const SURE_PAIRS = 8;

/** A client that a rule cuts off: queries without a reply, and the share that others lose at most. Chosen. */
export const POLICY_CUT = { queries: 4, others: 0.2 };

/** A client that is cut off for a time: its sockets without a reply, and others’ sockets with replies during that time. If one of two servers were dead, this many losses in a row would have a probability of 3%. Sockets; chosen. */
export const POLICY_CUT_TIME = { ports: 5, others: 5 };

/** With fewer queries, a loss rate is not meaningful. Queries; chosen. */
export const MIN_LOSS_QUERIES = 5;

/**
 * Sockets that ask several questions and get one reply: at least, and the share of others (two
 * replies, or none) at most. Chosen.
 */
export const ONE_REPLY = { sockets: 8, others: 0.05 };

/**
 * Losses depend on the pod: the minimum and maximum share that one loses. Also the losses expected
 * for the others at that share, and the maximum part of these that they lose. Chosen.
 */
export const LOSSY_PODS = { least: 0.02, most: 0.8, expected: 8, spared: 0.1 };

/**
 * UDP is filtered: minimum of lost queries, or fewer if this many sockets of the same clients are
 * silent. Chosen.
 */
export const UDP_BLOCKED = { queries: 4, amidSilent: 2, sockets: 8 };

/**
 * A translation has few source ports: at most this many, and this share of the range. Each is used
 * this often on average, or there are more than chance puts side by side. Chosen; a kernel has 28 000
 * and more.
 */
export const FEW_PORTS = { most: 256, timesEach: 5, notChance: 16, dense: 0.8 };

/** Queries that do not leave a node with too few source ports, at least. Queries; chosen. */
export const PORTS_GONE_LOST = 10;

/**
 * One source opens this many sockets a second: it may fill the connection tracking table. Sockets a
 * second; chosen, an entry of UDP stays for 30 s.
 */
export const FLOW_SURGE = 25;

/**
 * A surge that filled the table before the losses: the time that counts, and the shortest one. Seconds; the first is the
 * time for which an entry of UDP stays (nf_conntrack_udp_timeout), the second is chosen.
 */
export const SURGE_BEFORE = { mostS: 30, leastS: 10 };

/** Addresses whose connections fail that a finding lists. Addresses; chosen. */
export const MAX_LISTED_CONTACTS = 3;

/** The minimum share of failed connections to an upstream that is critical. Share; chosen. */
export const LOST_CONNECTIONS = 0.3;

/** This many connections that a name server did not accept are not chance. Connections; chosen. */
export const MIN_FAILED_CONNECTIONS = 3;

/**
 * The same for the first packet of one connection and its repeats. Packets; Linux sends that many
 * in the first four seconds (tcp_syn_linear_timeouts).
 */
export const MIN_UNANSWERED_FIRST_PACKETS = 5;

/**
 * A forwarder repeats the health check of a failed upstream within this time. Milliseconds; CoreDNS
 * checks every 0.5 s with a time-out of 1 s.
 */
export const HEALTH_CHECK_MS = 2500;

/**
 * A slow path to a server. Its fastest reply takes `ms` to `mostMs`, and the median reply at most `spread` times as
 * long. `replies` and `share` are the minimum number of replies and their share of the replies to all clients.
 * `handshakes` TCP handshakes take at least `handshakeShare` of the median reply’s time, or the server itself takes at
 * most `insideShare` of it. Chosen; 50 ms is a path to another region, 700 ms one over a geostationary satellite.
 */
export const SLOW_PATH = {
  ms: 50,
  mostMs: 700,
  spread: 1.5,
  replies: 5,
  share: 0.8,
  handshakes: 2,
  handshakeShare: 0.5,
  insideShare: 0.2,
};

/**
 * Two hosts have one address: how often the hardware address has to change (a move or failover changes it once). A host
 * that claims more than `owned` addresses answers for others (proxy ARP). Chosen.
 */
export const SHARED_ADDRESS = { changes: 2, owned: 4 };

/**
 * Share of the TCP queries to one server for truncated names that get no reply. Chosen: often only one of A and AAAA
 * is long.
 */
export const LARGE_BY_TCP_SHARE = 0.5;

/**
 * A segment that never arrives. The minimum size in bytes is the smallest limit that TCP assumes (RFC 9293, section
 * 3.7.1). Repeats are at least `timerMs` apart, which is less than Linux’s 200 ms retransmission timer. Chosen.
 */
export const STUCK_SEGMENT = { bytes: 536, timerMs: 150, times: 4 };

/** Fewer connections with such segments may all belong to one client that vanished. Chosen. */
export const STUCK_CONNECTIONS = 2;

/**
 * For each large reply that a forwarder asks for again, at most this many small ones: its own clients also repeat
 * questions. Ratio; chosen.
 */
export const SMALL_ANEW = 0.25;

/** A TCP connection without packets for so long is idle. Milliseconds; chosen, below the shortest timeouts of firewalls. */
export const MIN_IDLE_MS = 1000;

/** A program may use an address a little longer than its TTL says. Milliseconds; chosen: lookups take time, and TTLs are whole seconds. */
export const TTL_MARGIN_MS = 5000;

/** Both queries of a pair leave within this time. Milliseconds; chosen. */
export const TOGETHER_MS = 30;

/** Networks by which access lists tell clients apart, the smallest first: a node’s pods, and a cluster’s. Bits; chosen (kubelet’s defaults). */
export const SOURCE_NETS = [
  { ipv4: 24, ipv6: 64 },
  { ipv4: 16, ipv6: 48 },
] as const;

/**
 * A client with this number of open TCP connections to a name server never closes them. Connections; chosen, since
 * resolvers need one or two, and dnsmasq serves 20 by default.
 */
export const MIN_LEAKED_CONNECTIONS = 10;

/** Limits that make an upstream lossy. Chosen. */
export const LOSSY_UPSTREAM = {
  /** The minimum numbers of queries and losses. */
  asked: 100,
  lost: 20,
  /** The share of lost queries. Above it, the server is dead. */
  least: 0.05,
  most: 0.9,
  /** The largest share of seconds without any reply, of those with losses. */
  wholeSeconds: 0.5,
  /** The busy half of the seconds loses this many times as much as the calm half. */
  times: 2,
  /** The minimum number of seconds to compare. */
  seconds: 10,
};

/** With this many lost AAAA queries, their type is sure to be the cause. Queries; chosen. */
export const SURE_AAAA_LOSSES = 4;

/** With this many lost queries that had EDNS, EDNS is sure to be the cause. Queries; chosen. */
export const SURE_EDNS_LOSSES = 10;

/** This many other connections that repeat their first packet show that the path loses all kinds of packets. Connections; chosen. */
export const SURE_REPEATED = 5;

/** With at most this many clients of a server, one that is cut off may be chance. Clients; chosen. */
export const POLICY_CUT_FEW = 3;

/** New sockets fail as other connections do: connections opened and repeated, and their rate compared with that of new sockets. Chosen. */
export const FAIL_ALIKE = { opened: 10, repeated: 3, ofRate: 0.3 };

/** Silent sockets that were opened at the same moments: sockets, and the deviation of their alternations. Sockets, standard deviations; chosen. */
export const SILENT_IN_CROWDS = { sockets: 5, deviations: -3 };

/** Sockets that are answered when they retry, pairs lost whole, and halves for each of these at most. Chosen. */
export const ANSWERED_LATER = { sockets: 4, pairs: 4, halves: 0.15 };

/** Moments at which known sockets are spared, and fewer if many losses are expected of them. Moments; chosen, since the moments before and after an outage are two. */
export const SPARED_MOMENTS = { least: 4, ifSure: 3 };

/** Queries within this time are of the same moment, for comparing new and known sockets. Milliseconds; chosen. */
export const SOCKET_STRETCH_MS = 250;

/** Stretches further apart are of different times. Stretches of SOCKET_STRETCH_MS; chosen, one second. */
export const NEAR_STRETCHES = 4;

/** Clients use ports from this one on. Port; Linux (ip_local_port_range). */
export const FIRST_CLIENT_PORT = 32_768;

/** A status from this one on means a server failure. HTTP status; RFC 9110 section 15.6. */
export const HTTP_SERVER_ERROR = 500;
