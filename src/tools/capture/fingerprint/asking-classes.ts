/**
 * The behaviour of the resolvers that are distinguished: for each way of asking, the share of its lookups
 * that show a trait.
 */
import { cares, evdns, glibc, go, musl, tool, type TraitShares } from './trait-shares.ts';

export const kinds = ['glibc', 'musl', 'go', 'c-ares', 'evdns', 'tool', 'forwarder'] as const;
/** A `tool` sends one question at a time: dig, host, nslookup. */
export type Kind = (typeof kinds)[number];

/** A program that looks up one address family. */
const oneFamily = { 'both families': 3, 'families walk separately': 97 };
/** Programs that ask one question: each query has its own socket and id. */
const oneShot = {
  'pair in one go': 2,
  'pair from one port': 1,
  'A before AAAA': 97,
  'ids of a pair close together': 4,
  'IP ids go on from port to port': 1.5,
  'one port for the whole walk': 0.5,
  'both families': 15,
  'families walk separately': 98,
  'the port of the lookup before': 0.5,
  'ids that count up': 0.5,
};
/** Forwarders that relay the queries of several kinds of clients, pairs unchanged; each query gets a new id. */
const passingOn: TraitShares = {
  ...go,
  'pair in one go': 90,
  'pair to one server': 85,
  'A before AAAA': 60,
  'no EDNS': 65,
  'EDNS of 1232 without cookie': 30,
  'EDNS with cookie': 5,
  'again after 2.5 s': 10,
  'SERVFAIL repeated at once, twice': 20,
  'both families': 85,
  'families walk separately': 8,
  'a single label as written': 20,
};
/** Go with EDNS disabled. */
const withoutEdns = { 'no EDNS': 99, 'EDNS of 1232 without cookie': 0.5 };

/** c-ares from 1.34.6 on, which may retry an unanswered query from a new socket. */
const newSocket = { 'again from the same port': 45 };
/** Go with single-request: one question after the other. */
const oneByOne = { 'pair in one go': 4, 'A before AAAA': 99 };
/** glibc and Go with trust-ad, and CoreDNS with cache. */
const trustingAd = { 'asks for AD': 97 };
/** glibc with edns0, or several programs behind one address of which some send EDNS. */
const withEdns = { 'no EDNS': 3, 'EDNS of 1232 without cookie': 10 };
const halfWithEdns = { 'no EDNS': 50, 'EDNS of 1232 without cookie': 50 };
/** c-ares from 1.29 on, unless the server does not support cookies. */
const withCookies = { 'no EDNS': 1, 'EDNS of 1232 without cookie': 3, 'EDNS with cookie': 97 };
/**
 * A client behind a network with varying delay: A and AAAA arrive in either order, and the second often
 * arrives after the first was answered.
 */
const farAway = { 'pair in one go': 35, 'A before AAAA': 55 };

/** c-ares that draws the server of each question (rotate), or takes the next one. */
const byTurns = {
  'pair to one server': 25,
  'one port for the whole walk': 40,
  'the port of the lookup before': 2,
};

/** A way of asking, and its prior probability in percent. */
export interface AskingClass {
  readonly kind: Kind;
  readonly prior: number;
  readonly shares: TraitShares;
}

/**
 * The classes without special circumstances.
 *
 * EDNS: c-ares before 1.22 and Go up to 1.18 send none; nor do Go modules that set netedns0=0. A program
 * either sends it or does not.
 * glibc asks one question at a time with single-request. It also does so for the rest of the process once it
 * has lost one reply of a pair. A pod with several processes shows both.
 * c-ares may reuse its socket for the next lookup. If it does not, it differs from glibc only in the ids of a
 * pair, the port of a walk, and what it repeats. The time from A to AAAA does not distinguish them: it is
 * tens of microseconds for both, and a reply to A arrives in between as often.
 * A client that never walks the search path is c-ares (Node's dns.resolve) nearly as often as glibc. One walk
 * distinguishes them.
 */
const usualClasses: readonly AskingClass[] = [
  { kind: 'glibc', prior: 34, shares: glibc },
  { kind: 'musl', prior: 20, shares: musl },
  { kind: 'go', prior: 15, shares: go },
  { kind: 'c-ares', prior: 5, shares: cares },
  {
    kind: 'c-ares',
    prior: 5,
    shares: {
      ...cares,
      'no EDNS': 4,
      'EDNS of 1232 without cookie': 45,
      'EDNS with cookie': 55,
      ...newSocket,
    },
  },
  { kind: 'evdns', prior: 2, shares: evdns },
  { kind: 'tool', prior: 8, shares: tool },
  {
    kind: 'glibc',
    prior: 2,
    shares: {
      ...glibc,
      'pair in one go': 4,
      'pair to one server': 70,
      'pair from one port': 20,
      'A before AAAA': 99.5,
      'again from the same port': 80,
    },
  },
  {
    kind: 'go',
    prior: 5,
    shares: {
      ...go,
      ...withoutEdns,
    },
  },
  {
    kind: 'glibc',
    prior: 0.5,
    shares: {
      ...glibc,
      'pair in one go': 50,
      'pair to one server': 70,
      'pair from one port': 40,
      'A before AAAA': 99.5,
      'again from the same port': 80,
    },
  },
  {
    kind: 'glibc',
    prior: 3,
    shares: {
      ...glibc,
      'pair in one go': 30,
      'pair to one server': 70,
      'pair from one port': 30,
      'A before AAAA': 50,
      'ids of a pair of one clock': 60,
      'ids of a pair of one moment': 60,
      'again from the same port': 80,
      ...oneFamily,
    },
  },
  {
    kind: 'musl',
    prior: 1,
    shares: {
      ...musl,
      ...oneFamily,
    },
  },
  {
    kind: 'go',
    prior: 0.5,
    shares: {
      ...go,
      ...withoutEdns,
      ...oneFamily,
    },
  },
  {
    kind: 'glibc',
    prior: 1,
    shares: {
      ...glibc,
      'no EDNS': 3,
      'EDNS of 1232 without cookie': 10,
    },
  },
  {
    kind: 'c-ares',
    prior: 20,
    shares: {
      ...cares,
      'pair in one go': 94,
      'A before AAAA': 99,
      'no EDNS': 97,
      'EDNS of 1232 without cookie': 1,
      'SERVFAIL repeated at once, twice': 45,
      'both families': 90,
      'the port of the lookup before': 0.5,
    },
  },
  {
    kind: 'go',
    prior: 0.5,
    shares: {
      ...go,
      ...oneFamily,
    },
  },
  {
    kind: 'musl',
    prior: 3,
    shares: {
      ...musl,
      'all servers at once': 97,
    },
  },
  {
    kind: 'c-ares',
    prior: 1,
    shares: {
      ...cares,
      'pair in one go': 85,
      'pair from one port': 50,
      'A before AAAA': 99,
      'no EDNS': 97,
      'EDNS of 1232 without cookie': 1,
      'again from the same port': 5,
      'again with the same id': 95,
      'SERVFAIL repeated at once, twice': 45,
      'both families': 90,
      'the port of the lookup before': 0.5,
    },
  },
  {
    kind: 'tool',
    prior: 1,
    shares: {
      ...tool,
      'IP ids go on from port to port': 96,
      'no EDNS': 99.5,
      'EDNS of 1232 without cookie': 0.5,
      'EDNS with cookie': 0.5,
      'all servers at once': 1,
      'both families': 1.5,
      'ids that count up': 1,
    },
  },
  // dig and delv.
  ...[
    { 'asks for AD': 97, 'asks for DNSSEC': 3 },
    { 'asks for AD': 50, 'asks for DNSSEC': 97 },
  ].map((flags) => ({
    kind: 'tool' as const,
    prior: 1.5,
    shares: {
      ...tool,
      ...oneShot,
      ...flags,
      'no EDNS': 1,
      'EDNS of 1232 without cookie': 2,
      'EDNS with cookie': 97,
    },
  })),
  // host and nslookup.
  {
    kind: 'tool',
    prior: 0.6,
    shares: {
      ...tool,
      ...oneShot,
      'no EDNS': 99,
      'EDNS of 1232 without cookie': 0.5,
      'EDNS with cookie': 0.5,
      'asks for AD': 0.5,
      'asks for DNSSEC': 0.5,
    },
  },
  // Unbound: a socket for each query.
  {
    kind: 'forwarder',
    prior: 1,
    shares: {
      ...passingOn,
      'no EDNS': 0.5,
      'EDNS of 1232 without cookie': 97,
      'EDNS with cookie': 1,
      'asks for DNSSEC': 97,
    },
  },
  // BIND, the same with cookies.
  {
    kind: 'forwarder',
    prior: 1,
    shares: {
      ...passingOn,
      'no EDNS': 1,
      'EDNS of 1232 without cookie': 3,
      'EDNS with cookie': 96,
      'asks for DNSSEC': 97,
    },
  },
  // dnsmasq: an unconnected socket for each query.
  {
    kind: 'forwarder',
    prior: 1,
    shares: { ...passingOn, 'IP ids go on from port to port': 96 },
  },
  // CoreDNS: a few long-lived sockets in turn. With cache it sets AD.
  ...[
    {
      'pair from one port': 5,
      'one port for the whole walk': 93,
      'the port of the lookup before': 85,
    },
    {
      'pair in one go': 80,
      'pair from one port': 8,
      'one port for the whole walk': 45,
      'the port of the lookup before': 60,
      'both families': 65,
      'families walk separately': 15,
    },
  ].map((sockets) => ({
    kind: 'forwarder' as const,
    prior: 0.7,
    shares: { ...passingOn, ...sockets },
  })),
  // dnsdist: one socket for all, with ids that count up, in either byte order.
  ...[
    { 'ids that count up': 95, 'ids of a pair close together': 3 },
    { 'ids that count up': 1, 'ids of a pair close together': 95 },
  ].map((ids) => ({
    kind: 'forwarder' as const,
    prior: 0.5,
    shares: {
      ...passingOn,
      ...ids,
      'ids of a pair of one clock': 93,
      'ids of a pair of one moment': 93,
      'pair from one port': 95,
      'one port for the whole walk': 97,
      'the port of the lookup before': 95,
    },
  })),
  // Without cookies from the server, c-ares sends none either. A program that does not reuse its socket has
  // another port for each lookup.
  {
    kind: 'c-ares',
    prior: 3,
    shares: {
      ...cares,
      'no EDNS': 1,
      'EDNS of 1232 without cookie': 97,
      'the port of the lookup before': 2,
      ...newSocket,
    },
  },
  // With rotate, c-ares and Go choose a server for each question, glibc for each pair. musl always asks all
  // of them.
  {
    kind: 'c-ares',
    prior: 1,
    shares: {
      ...cares,
      ...byTurns,
      'no EDNS': 97,
      'EDNS of 1232 without cookie': 1,
    },
  },
  {
    kind: 'c-ares',
    prior: 1,
    shares: {
      ...cares,
      ...byTurns,
      'no EDNS': 4,
      'EDNS of 1232 without cookie': 45,
      'EDNS with cookie': 55,
      ...newSocket,
    },
  },
  {
    kind: 'go',
    prior: 1,
    shares: {
      ...go,
      'pair to one server': 5,
    },
  },
  {
    kind: 'go',
    prior: 0.3,
    shares: {
      ...go,
      ...withoutEdns,
      'pair to one server': 5,
    },
  },
  // Node's dns.resolve4 and dns.resolve6.
  {
    kind: 'c-ares',
    prior: 2,
    shares: {
      ...cares,
      'no EDNS': 97,
      'EDNS of 1232 without cookie': 1,
      'the port of the lookup before': 0.5,
      ...oneFamily,
    },
  },
  {
    kind: 'c-ares',
    prior: 1,
    shares: {
      ...cares,
      'no EDNS': 4,
      'EDNS of 1232 without cookie': 45,
      'EDNS with cookie': 55,
      ...newSocket,
      ...oneFamily,
    },
  },
];

/** The same class under a circumstance that changes only these traits, with the probability of that circumstance. */
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

/** The usual classes, and each of them under independent circumstances. */
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
