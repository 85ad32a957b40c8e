/**
 * The behaviour of each resolver that we can recognise. For each way of querying, gives the share of lookups that show
 * a trait.
 */
import { traitShares, type TraitShares } from './trait-shares.ts';

export const kinds = ['glibc', 'musl', 'go', 'c-ares', 'evdns', 'tool', 'forwarder'] as const;
/** A `tool` sends one question at a time, like dig, host and nslookup. */
export type Kind = (typeof kinds)[number];

/** A way of querying, and its prior probability in percent. */
export interface AskingClass {
  readonly kind: Kind;
  readonly prior: number;
  readonly shares: TraitShares;
}

/** The shares of each kind in normal circumstances. */
const usual: Readonly<Record<Kind, TraitShares>> = {
  ...traitShares,
  /** Relays queries from several kinds of clients. Pairs stay the same, but each query gets a new ID. */
  forwarder: {
    ...traitShares.go,
    'pair in one go': 90,
    'pair to one server': 85,
    'A before AAAA': 60,
    'no EDNS': 65,
    'EDNS of 1232 without cookie': 30,
    'EDNS with cookie': 5,
    'again after 2.5 s': 10,
    'SERVFAIL retried immediately, twice': 20,
    'both families': 85,
    'families walk separately': 8,
    'a single label as written': 20,
  },
};

/** Builds a class that differs from its kind's usual shares only in these. */
function asking(
  kind: Kind,
  prior: number,
  ...changes: readonly Partial<TraitShares>[]
): AskingClass {
  return { kind, prior, shares: Object.assign({}, usual[kind], ...changes) as TraitShares };
}

/** A program that looks up only one address family. */
const oneFamily = { 'both families': 3, 'families walk separately': 97 };
/** Programs that send a single question. Each query has a separate socket and ID. */
const oneShot = {
  'pair in one go': 2,
  'pair from one port': 1,
  'A before AAAA': 97,
  'ids of a pair close together': 4,
  'IP IDs continue across ports': 1.5,
  'one port for the whole walk': 0.5,
  'both families': 15,
  'families walk separately': 98,
  'the port of the lookup before': 0.5,
  'ids that count up': 0.5,
};
/** Go with EDNS disabled. */
const withoutEdns = { 'no EDNS': 99, 'EDNS of 1232 without cookie': 0.5 };

/** c-ares since 1.34.6, which may retry an unanswered query from a new socket. */
const newSocket = { 'again from the same port': 45 };
/** Go with single-request, which sends one question at a time. */
const oneByOne = { 'pair in one go': 4, 'A before AAAA': 99 };
/** glibc and Go with trust-ad, and CoreDNS with cache. */
const trustingAd = { 'asks for AD': 97 };
/** glibc with edns0, or several programs behind one address of which some send EDNS. */
const withEdns = { 'no EDNS': 3, 'EDNS of 1232 without cookie': 10 };
const halfWithEdns = { 'no EDNS': 50, 'EDNS of 1232 without cookie': 50 };
/** c-ares since 1.29, unless the server does not support cookies. */
const withCookies = { 'no EDNS': 1, 'EDNS of 1232 without cookie': 3, 'EDNS with cookie': 97 };
/**
 * A client on a network with varying delay. A and AAAA arrive in either order, and the second one often arrives after
 * the first has been answered.
 */
const farAway = { 'pair in one go': 35, 'A before AAAA': 55 };

/** c-ares before 1.22. */
const oldCares = { 'no EDNS': 97, 'EDNS of 1232 without cookie': 1 };
/** Several programs using c-ares, some with cookies. */
const mixedCares = {
  'no EDNS': 4,
  'EDNS of 1232 without cookie': 45,
  'EDNS with cookie': 55,
  ...newSocket,
};
/** glibc sending one question at a time. */
const serial = {
  'pair in one go': 4,
  'pair to one server': 70,
  'pair from one port': 20,
  'A before AAAA': 99.5,
  'again from the same port': 80,
};
/** dig and delv. */
const digEdns = { ...withCookies, 'EDNS of 1232 without cookie': 2 };
/** Go with rotate. */
const anyServer = { 'pair to one server': 5 };
/** dnsdist: a single socket for all queries. */
const oneSocket = {
  'ids of a pair of one clock': 93,
  'ids of a pair of one moment': 93,
  'pair from one port': 95,
  'one port for the whole walk': 97,
  'the port of the lookup before': 95,
};

/** c-ares when it picks a random server for each question (rotate), or the next one in turn. */
const byTurns = {
  'pair to one server': 25,
  'one port for the whole walk': 40,
  'the port of the lookup before': 2,
};

/**
 * The classes for normal circumstances.
 *
 * EDNS: c-ares before 1.22 and Go up to 1.18 send none. Neither do Go modules that set netedns0=0. A program either
 * always sends it or never does.
 *
 * glibc sends one question at a time with single-request. It also does so for the rest of the process once it has lost
 * one reply of a pair. A pod with several processes shows both behaviours.
 *
 * c-ares may reuse its socket for the next lookup. If it does not, it differs from glibc only in the IDs of a pair, the
 * port during a search, and what it retries. The time from A to AAAA does not distinguish them: it is tens of
 * microseconds for both, and a reply to A arrives in between equally often.
 *
 * A client that never uses the search path is c-ares (Node's dns.resolve) nearly as often as glibc. A single search
 * distinguishes them.
 */
const usualClasses: readonly AskingClass[] = [
  asking('glibc', 34),
  asking('musl', 20),
  asking('go', 15),
  asking('c-ares', 5),
  asking('c-ares', 5, mixedCares),
  asking('evdns', 2),
  asking('tool', 8),
  asking('glibc', 2, serial),
  asking('go', 5, withoutEdns),
  asking('glibc', 0.5, serial, { 'pair in one go': 50, 'pair from one port': 40 }),
  asking('glibc', 3, serial, oneFamily, {
    'pair in one go': 30,
    'pair from one port': 30,
    'A before AAAA': 50,
    'ids of a pair of one clock': 60,
    'ids of a pair of one moment': 60,
  }),
  asking('musl', 1, oneFamily),
  asking('go', 0.5, withoutEdns, oneFamily),
  asking('glibc', 1, withEdns),
  asking('c-ares', 20, oldCares, {
    'pair in one go': 94,
    'A before AAAA': 99,
    'SERVFAIL retried immediately, twice': 45,
    'both families': 90,
    'the port of the lookup before': 0.5,
  }),
  asking('go', 0.5, oneFamily),
  asking('musl', 3, { 'all servers at once': 97 }),
  asking('c-ares', 1, oldCares, {
    'pair in one go': 85,
    'pair from one port': 50,
    'A before AAAA': 99,
    'again from the same port': 5,
    'again with the same id': 95,
    'SERVFAIL retried immediately, twice': 45,
    'both families': 90,
    'the port of the lookup before': 0.5,
  }),
  asking('tool', 1, {
    'IP IDs continue across ports': 96,
    'no EDNS': 99.5,
    'EDNS of 1232 without cookie': 0.5,
    'EDNS with cookie': 0.5,
    'all servers at once': 1,
    'both families': 1.5,
    'ids that count up': 1,
  }),
  // dig and delv.
  asking('tool', 1.5, oneShot, digEdns, { 'asks for AD': 97, 'asks for DNSSEC': 3 }),
  asking('tool', 1.5, oneShot, digEdns, { 'asks for AD': 50, 'asks for DNSSEC': 97 }),
  // host and nslookup.
  asking('tool', 0.6, oneShot, {
    'no EDNS': 99,
    'EDNS of 1232 without cookie': 0.5,
    'EDNS with cookie': 0.5,
    'asks for AD': 0.5,
    'asks for DNSSEC': 0.5,
  }),
  // Unbound: one socket per query.
  asking('forwarder', 1, {
    'no EDNS': 0.5,
    'EDNS of 1232 without cookie': 97,
    'EDNS with cookie': 1,
    'asks for DNSSEC': 97,
  }),
  // BIND: the same, with cookies.
  asking('forwarder', 1, withCookies, { 'EDNS with cookie': 96, 'asks for DNSSEC': 97 }),
  // dnsmasq: an unconnected socket per query.
  asking('forwarder', 1, { 'IP IDs continue across ports': 96 }),
  // CoreDNS, which uses a few long-lived sockets in turn and sets AD with cache.
  asking('forwarder', 0.7, {
    'pair from one port': 5,
    'one port for the whole walk': 93,
    'the port of the lookup before': 85,
  }),
  asking('forwarder', 0.7, {
    'pair in one go': 80,
    'pair from one port': 8,
    'one port for the whole walk': 45,
    'the port of the lookup before': 60,
    'both families': 65,
    'families walk separately': 15,
  }),
  // dnsdist: incrementing IDs, in either byte order.
  asking('forwarder', 0.5, oneSocket, {
    'ids that count up': 95,
    'ids of a pair close together': 3,
  }),
  asking('forwarder', 0.5, oneSocket, {
    'ids that count up': 1,
    'ids of a pair close together': 95,
  }),
  // Unless the server sends cookies, c-ares does not either. A program that does not reuse its socket has a different
  // port for each lookup.
  asking('c-ares', 3, newSocket, {
    'no EDNS': 1,
    'EDNS of 1232 without cookie': 97,
    'the port of the lookup before': 2,
  }),
  // With rotate, c-ares and Go pick a server per question and glibc picks one per pair. musl always queries all of
  // them.
  asking('c-ares', 1, byTurns, oldCares),
  asking('c-ares', 1, byTurns, mixedCares),
  asking('go', 1, anyServer),
  asking('go', 0.3, withoutEdns, anyServer),
  // Node's dns.resolve4 and dns.resolve6.
  asking('c-ares', 2, oldCares, oneFamily, { 'the port of the lookup before': 0.5 }),
  asking('c-ares', 1, mixedCares, oneFamily),
];

/** Builds the same class under a circumstance that changes only these traits, along with its probability. */
function under(
  circumstance: Partial<TraitShares>,
  share: number,
  list: readonly AskingClass[],
): readonly AskingClass[] {
  return list.map(({ kind, prior, shares }) => ({
    kind,
    prior: prior * share,
    shares: { ...shares, ...circumstance },
  }));
}

/** The usual classes, each combined with independent circumstances. */
export const classes: readonly AskingClass[] = [
  ...([
    [oneByOne, 0.05, ['go']],
    [withEdns, 0.05, ['glibc']],
    [trustingAd, 0.05, ['glibc', 'go']],
    [trustingAd, 0.5, ['forwarder']],
    [withCookies, 0.5, ['c-ares']],
    [halfWithEdns, 0.02, ['go', 'c-ares']],
    [farAway, 0.03, ['glibc', 'musl', 'go', 'c-ares', 'evdns']],
  ] as const),
].reduce<readonly AskingClass[]>(
  (list, [circumstance, share, ofKinds]) => [
    ...list,
    ...under(
      circumstance,
      share,
      list.filter(({ kind }) => (ofKinds as readonly Kind[]).includes(kind)),
    ),
  ],
  usualClasses,
);
