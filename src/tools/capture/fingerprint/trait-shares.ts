/** The share of lookups that show each trait, by resolver kind. */
import type { Trait } from './lookup-traits.ts';

/** As a percentage of the lookups in which the trait can be observed. */
export type TraitShares = Readonly<Record<Trait, number>>;

/** A `tool` sends one question at a time, and evdns is libevent. */
const kinds = ['glibc', 'musl', 'go', 'c-ares', 'evdns', 'tool'] as const;

/** In the order of `kinds`. */
const measured: Readonly<Record<Trait, readonly number[]>> = {
  'begins over TCP': [90, 2, 90, 90, 5, 90],
  'pair in one go': [94, 99, 97, 99, 97, 30],
  'pair to one server': [99, 99, 90, 98, 80, 80],
  'pair from one port': [99, 99.5, 0.5, 99, 96, 58],
  'A before AAAA': [99, 99.5, 28, 99.5, 97, 85],
  'ids of a pair close together': [3, 98, 3, 3, 3, 5],
  'ids of a pair of one clock': [93, 6, 12.5, 12.5, 12.5, 14],
  'ids of a pair of one moment': [75, 25, 25, 25, 25, 25],
  'IP IDs continue across ports': [1.5, 97, 1.5, 1.5, 1.5, 40],
  'one port for the whole walk': [0.3, 0.3, 0.3, 93, 99, 5],
  'no EDNS': [97, 99.5, 3, 99.5, 99, 70],
  'EDNS of 1232 without cookie': [1, 0.5, 97, 0.5, 1, 8],
  'EDNS with cookie': [0.5, 0.5, 0.5, 0.5, 0.5, 25],
  'capitals by chance': [0.5, 0.5, 0.5, 0.5, 97, 0.5],
  'asks for AD': [0.5, 0.3, 0.3, 0.3, 0.3, 10],
  'asks for DNSSEC': [0.5, 0.3, 0.3, 0.3, 0.3, 10],
  'all servers at once': [0.3, 10, 0.3, 0.3, 0.3, 0.3],
  'again after 2.5 s': [1, 50, 1, 4, 1, 10],
  'again after 5 s': [60, 3, 60, 10, 50, 50],
  'again from the same port': [95, 99, 1, 87, 95, 30],
  'again with the same id': [98, 99, 2, 80, 95, 50],
  'SERVFAIL retried immediately, twice': [6, 95, 3, 83, 85, 20],
  'stops at NODATA': [30, 95, 30, 30, 30, 43],
  'both families': [90, 95, 95, 88, 85, 30],
  'families walk separately': [0.5, 0.5, 0.5, 0.5, 20, 50],
  'a single label as written': [2, 2, 2, 60, 5, 60],
  'the port of the lookup before': [0.5, 0.5, 0.5, 45, 95, 40],
  'ids that count up': [0.3, 0.3, 0.3, 0.3, 0.3, 10],
};

export const traitShares = Object.fromEntries(
  kinds.map((kind, column) => [
    kind,
    Object.fromEntries(Object.entries(measured).map(([trait, shares]) => [trait, shares[column]!])),
  ]),
) as Readonly<Record<(typeof kinds)[number], TraitShares>>;
