/**
 * How the resolvers that are told apart ask: of each way of asking, the share of its lookups that
 * show a trait.
 */
import { cares, evdns, glibc, go, musl, tool, type TraitShares } from './trait-shares.ts';

/** Kinds of resolvers that are distinguished. */
export const kinds = ['glibc', 'musl', 'go', 'c-ares', 'evdns', 'tool', 'forwarder'] as const;
/** One of them; a `tool` asks one question at a time: dig, host, nslookup. */
export type Kind = (typeof kinds)[number];

/** Of a program that wants one family. */
const oneFamily = { 'both families': 3, 'families walk by themselves': 97 };
/** Programs for one question each: a socket and an id of its own for every query. */
const oneShot = {
  'pair in one go': 2,
  'pair from one port': 1,
  'A before AAAA': 97,
  'ids of a pair close together': 4,
  'IP ids go on from port to port': 1.5,
  'one port for the whole walk': 0.5,
  'both families': 15,
  'families walk by themselves': 98,
  'the port of the lookup before': 0.5,
  'ids that count up': 0.5,
};
/**
 * Name servers that pass on what several kinds of clients ask, a pair as it comes: each query has
 * an id that they draw.
 */
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
  'families walk by themselves': 8,
  'a single label as it stands': 20,
};
/** Of Go with EDNS switched off. */
const withoutEdns = { 'no EDNS': 99, 'EDNS of 1232 without cookie': 0.5 };

/** Of c-ares that may take a new socket for what got no reply: from 1.34.6 on. */
const newSocket = { 'again from the same port': 45 };
/** Of Go with single-request: one question after the other. */
const oneByOne = { 'pair in one go': 4, 'A before AAAA': 99 };
/** Of glibc and Go with trust-ad, and of CoreDNS with cache. */
const trustingAd = { 'asks for AD': 97 };
/** Of glibc with edns0, and of several programs behind one address of which some send EDNS. */
const withEdns = { 'no EDNS': 3, 'EDNS of 1232 without cookie': 10 };
const halfWithEdns = { 'no EDNS': 50, 'EDNS of 1232 without cookie': 50 };
/** Of c-ares from 1.29 on, which keeps to it. */
const withCookies = { 'no EDNS': 1, 'EDNS of 1232 without cookie': 3, 'EDNS with cookie': 97 };
/**
 * Far from the client, behind a network that delays each packet by another time: A and AAAA come in
 * either order, and the second often after the first was answered.
 */
const farAway = { 'pair in one go': 35, 'A before AAAA': 55 };

/** Of c-ares that draws the server of each question (rotate), or takes the next one. */
const byTurns = {
  'pair to one server': 25,
  'one port for the whole walk': 40,
  'the port of the lookup before': 2,
};

/** A way of asking, and how common it is before anything is seen, in percent. */
export interface AskingClass {
  readonly kind: Kind;
  readonly prior: number;
  readonly shares: TraitShares;
}

/**
 * What is weighed. c-ares before 1.22 sends no EDNS, and a program has either the one or the other;
 * so has Go up to 1.18, and what is built of modules that say so (netedns0=0). glibc asks one
 * question at a time from the first lookup on that lost one of a pair, for as long as the process
 * lives; with single-request it always does; a pod with several processes does both; and who wants
 * one family has it asked for alone. c-ares may keep its socket from lookup to lookup, or not:
 * then it is glibc's like in all but the ids of a pair, the port of a walk,
 * and what it repeats. The time from A to AAAA does not tell them: it is tens of microseconds of
 * either, and a reply to A comes in between as often. Who never
 * goes along the search path is c-ares (Node's dns.resolve) nearly as often as glibc: one walk
 * tells them.
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
  // dig, and delv.
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
  // dnsmasq: a socket for each query, which is not connected.
  {
    kind: 'forwarder',
    prior: 1,
    shares: { ...passingOn, 'IP ids go on from port to port': 96 },
  },
  // CoreDNS: sockets in turn, which stay open; few of them where few ask. With cache it sets AD.
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
      'families walk by themselves': 15,
    },
  ].map((sockets) => ({
    kind: 'forwarder' as const,
    prior: 0.7,
    shares: { ...passingOn, ...sockets },
  })),
  // dnsdist: one socket for all, with ids that count up, their bytes swapped or not.
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
  // Where the server knows no cookies, c-ares sends none either; and a program that keeps no socket
  // has another port for each lookup.
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
  // With rotate, c-ares and Go choose a server for each question, glibc for each pair, and musl
  // asks all of them anyway.
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
  // Node's dns.resolve4 and the like.
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

/** The same under a circumstance that leaves the rest as it is, and how common that is. */
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

/** All that are weighed: the usual ones, and each under circumstances that come together by chance. */
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
