/**
 * Which resolver a client has, by the traits of its lookups: for each kind the share of its lookups that show a trait, and from these the
 * likeliest kind (Bayes, the traits taken as independent). The shares are those of real resolvers, measured (docs/resolvers.md).
 */
import type { SeenLookup } from '../exchanges/seen-exchange.ts';
import { goesOnInIp, traitNames, traitsOf, type SentPacket, type Trait } from './lookup-traits.ts';

/** Kinds of resolvers that are told apart. */
export const kinds = ['glibc', 'musl', 'go', 'c-ares', 'evdns', 'tool'] as const;
/** One of them; a `tool` asks one question at a time: nslookup, dig, a forwarder. */
export type Kind = (typeof kinds)[number];

/** What a client's resolver is taken for. */
export interface Recognised {
  readonly kind: Kind;
  /** From 0 to 1. */
  readonly confidence: number;
  /** The same of glibc and c-ares as one: in most they do the same. */
  readonly either: number;
  readonly lookups: number;
  /** The fewest kinds of which it is one for sure, the likeliest first; empty: it takes more than two, or it is like none. */
  readonly among: readonly Kind[];
}

/** From this on a kind is named. */
const SURE = 0.7;

/**
 * What is weighed. c-ares before 1.22 sends no EDNS, and a program has either the one or the other; so has Go up to 1.18, and what is built
 * of modules that say so (netedns0=0). glibc asks one question at a time from the first lookup on that lost one of a pair, for as long as the
 * process lives; with single-request it always does; a pod with several processes does both; and who wants one family has it asked for alone.
 * c-ares may keep its socket from lookup to lookup, or not (the last of its classes): then it is glibc's like in all but the ids of a pair, the port of a
 * walk, and what it repeats. The time from A to AAAA does not tell them: it is tens of microseconds of either, and a reply to A comes in between as
 * often. The last one is Go that asks two servers by turns, of which one has another address of the client's, or Go that wants one family.
 */
const classes: readonly Kind[] = [
  'glibc',
  'musl',
  'go',
  'c-ares',
  'c-ares',
  'evdns',
  'tool',
  'glibc',
  'go',
  'glibc',
  'glibc',
  'musl',
  'go',
  'glibc',
  'c-ares',
  'go',
  'musl',
  'c-ares',
  'tool',
  // Where the server knows no cookies, c-ares sends none either; and a program that keeps no socket has another port for each lookup.
  'c-ares',
];

/** In percent, in the order of `classes`: how many of its lookups that can show the trait do. */
const shares: Readonly<Record<Trait, readonly number[]>> = {
  'pair in one go': [94, 99, 97, 99, 99, 97, 30, 4, 97, 50, 30, 99, 97, 94, 94, 97, 99, 85, 30, 99],
  'pair from one port': [
    99, 99.5, 0.5, 99, 99, 96, 58, 20, 0.5, 40, 30, 99.5, 0.5, 99, 99, 0.5, 99.5, 50, 58, 99,
  ],
  'A before AAAA': [
    99, 99.5, 28, 99.5, 99.5, 97, 85, 99.5, 28, 99.5, 50, 99.5, 28, 99, 99, 28, 99.5, 99, 85, 99.5,
  ],
  'ids of a pair close together': [3, 98, 3, 3, 3, 3, 5, 3, 3, 3, 3, 98, 3, 3, 3, 3, 98, 3, 5, 3],
  'ids of a pair of one clock': [
    93, 6, 12.5, 12.5, 12.5, 12.5, 14, 93, 12.5, 93, 60, 6, 12.5, 93, 12.5, 12.5, 6, 12.5, 14, 12.5,
  ],
  'ids of a pair of one moment': [
    75, 25, 25, 25, 25, 25, 25, 75, 25, 75, 60, 25, 25, 75, 25, 25, 25, 25, 25, 25,
  ],
  'IP ids go on from port to port': [
    1.5, 97, 1.5, 1.5, 1.5, 1.5, 40, 1.5, 1.5, 1.5, 1.5, 97, 1.5, 1.5, 1.5, 1.5, 97, 1.5, 96, 1.5,
  ],
  'one port for the whole walk': [
    0.3, 0.3, 0.3, 93, 93, 99, 5, 0.3, 0.3, 0.3, 0.3, 0.3, 0.3, 0.3, 93, 0.3, 0.3, 93, 5, 93,
  ],
  'no EDNS': [97, 99.5, 3, 99.5, 4, 99, 70, 97, 99, 97, 97, 99.5, 99, 3, 97, 3, 99.5, 97, 99.5, 1],
  'EDNS of 1232 without cookie': [
    1, 0.5, 97, 0.5, 45, 1, 8, 1, 0.5, 1, 1, 0.5, 0.5, 10, 1, 97, 0.5, 1, 0.5, 97,
  ],
  'EDNS with cookie': [
    0.5, 0.5, 0.5, 0.5, 55, 0.5, 25, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5,
    0.5,
  ],
  'capitals by chance': [
    0.5, 0.5, 0.5, 0.5, 0.5, 97, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5,
    0.5,
  ],
  'all servers at once': [
    0.3, 10, 0.3, 0.3, 0.3, 0.3, 0.3, 0.3, 0.3, 0.3, 0.3, 10, 0.3, 0.3, 0.3, 0.3, 97, 0.3, 1, 0.3,
  ],
  'again after 2.5 s': [1, 50, 1, 4, 4, 1, 10, 1, 1, 1, 1, 50, 1, 1, 4, 1, 50, 4, 10, 4],
  'again after 5 s': [60, 3, 60, 10, 10, 50, 50, 60, 60, 60, 60, 3, 60, 60, 10, 60, 3, 10, 50, 10],
  'again from the same port': [
    95, 99, 1, 87, 87, 95, 30, 80, 1, 80, 80, 99, 1, 95, 87, 1, 99, 5, 30, 87,
  ],
  'again with the same id': [
    98, 99, 2, 80, 80, 95, 50, 98, 2, 98, 98, 99, 2, 98, 80, 2, 99, 95, 50, 80,
  ],
  'SERVFAIL repeated at once, twice': [
    6, 95, 3, 83, 83, 85, 20, 6, 3, 6, 6, 95, 3, 6, 45, 3, 95, 45, 20, 83,
  ],
  'stops at NODATA': [
    30, 95, 30, 30, 30, 30, 43, 30, 30, 30, 30, 95, 30, 30, 30, 30, 95, 30, 43, 30,
  ],
  'both families': [90, 95, 95, 88, 88, 85, 30, 90, 95, 90, 3, 3, 3, 90, 90, 3, 95, 90, 1.5, 88],
  'families walk by themselves': [
    0.5, 0.5, 0.5, 0.5, 0.5, 20, 50, 0.5, 0.5, 0.5, 97, 97, 97, 0.5, 0.5, 97, 0.5, 0.5, 50, 0.5,
  ],
  'a single label as it stands': [
    2, 2, 2, 60, 60, 5, 60, 2, 2, 2, 2, 2, 2, 2, 60, 2, 2, 60, 60, 60,
  ],
  'the port of the lookup before': [
    0.5, 0.5, 0.5, 45, 45, 95, 40, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 40, 2,
  ],
  'ids that count up': [
    0.3, 0.3, 0.3, 0.3, 0.3, 0.3, 10, 0.3, 0.3, 0.3, 0.3, 0.3, 0.3, 0.3, 0.3, 0.3, 0.3, 0.3, 1, 0.3,
  ],
};

/** How common each kind is, before anything is seen. Who never goes along the search path is c-ares (Node's dns.resolve) nearly as often as glibc: one walk tells them. */
const prior: readonly number[] = [
  34, 20, 15, 5, 5, 2, 8, 2, 5, 0.5, 3, 1, 0.5, 1, 20, 0.5, 3, 1, 1, 3,
];
/** One lookup says less than the sum of its traits, as they are not independent. */
const WEIGHT = 0.8;
/**
 * Lookups of one client are alike: what the first shows, the others show as well. So many of them say no more than
 * 1 / ALIKE lookups of different clients (the design effect of clustered samples).
 */
const ALIKE = 0.08;
/** How common resolvers of other kinds are, and what each number costs that is fitted to them. */
const UNKNOWN = 0.02;
const FITTED = 0.5;
/** Lookups of one client that are looked at: more change nothing. */
const LOOKUPS_MAX = 64;

const noCounts = new Uint8Array(0);
const noPorts: readonly number[] = [];

/** Collects traits of one client. */
export class Recognition {
  /** By trait, in the order of their names: lookups that show it, and lookups that show its absence. */
  #counts = noCounts;
  #lookups = 0;
  #ports = noPorts;
  /** The last query over UDP. */
  #last: SentPacket | null = null;

  add(lookup: SeenLookup): void {
    if (this.#lookups >= LOOKUPS_MAX) return;
    const traits = traitsOf(lookup);
    // What shows nothing but a single question is no evidence of a resolver.
    if (traits.size === 0) return;
    this.#lookups++;
    for (const [trait, present] of traits) this.#count(trait, present);
    const datagrams = lookup.exchanges.filter(({ protocol }) => protocol === 'udp');
    const ports = datagrams.map(({ client }) => client.port);
    if (this.#ports.length > 0 && ports.length > 0)
      this.#count(
        'the port of the lookup before',
        ports.some((port) => this.#ports.includes(port)),
      );
    this.#ports = ports;
    const [first] = datagrams;
    const goesOn =
      this.#last === null || first === undefined ? null : goesOnInIp(this.#last, first);
    if (goesOn !== null) this.#count('IP ids go on from port to port', goesOn);
    const last = datagrams.at(-1);
    // Not the exchange itself, which has the bytes of many others with it.
    if (last !== undefined) {
      const { ipId, sentMs, server, client } = last;
      this.#last = { ipId, sentMs, server, client };
    }
  }

  /** Null: nothing was seen. */
  get best(): Recognised | null {
    if (this.#lookups === 0) return null;
    const scores = this.#scores;
    const most = Math.max(...scores);
    const weights = kinds.map((kind) =>
      scores.reduce(
        (sum, score, index) => (classes[index] === kind ? sum + Math.exp(score - most) : sum),
        0,
      ),
    );
    const total = weights.reduce((sum, weight) => sum + weight, Math.exp(this.#unlike - most));
    const best = Math.max(...weights);
    const kind = kinds[weights.indexOf(best)]!;
    // What is like none of them is a tool, if it is like anything.
    const rest = kind === 'tool' ? total - weights.reduce((sum, weight) => sum + weight, 0) : 0;
    const isAlike = kind === 'glibc' || kind === 'c-ares';
    const both = weights[kinds.indexOf('glibc')]! + weights[kinds.indexOf('c-ares')]!;
    return {
      kind,
      confidence: (best + rest) / total,
      either: (isAlike ? both : best + rest) / total,
      lookups: this.#lookups,
      among: among(
        kinds.map((each, at) => [each, (weights[at]! + (each === kind ? rest : 0)) / total]),
      ),
    };
  }

  #count(trait: Trait, present: boolean): void {
    // Clients are many, and of most nothing is seen that tells.
    if (this.#counts === noCounts) this.#counts = new Uint8Array(2 * traitNames.length);
    this.#counts[2 * traitNames.indexOf(trait) + (present ? 0 : 1)]!++;
  }

  /** Traits of which something is known. */
  get #known(): readonly (readonly [trait: Trait, present: number, absent: number])[] {
    const counts = this.#counts;
    return traitNames
      .map((trait, at) => [trait, counts[2 * at] ?? 0, counts[2 * at + 1] ?? 0] as const)
      .filter(([, present, absent]) => present + absent > 0);
  }

  /**
   * The same of a resolver that is none of these: its shares are whatever was seen, at the price of as many numbers that were fitted
   * (Schwarz, 1978). Without it the least unlikely kind would be certain, however unlike it the client is.
   */
  get #unlike(): number {
    let score = Math.log(UNKNOWN);
    for (const [, present, absent] of this.#known) {
      const all = present + absent;
      const weight = WEIGHT / (1 + (all - 1) * ALIKE);
      for (const part of [present, absent])
        if (part > 0) score += weight * part * Math.log(part / all);
      score -= FITTED * Math.log(1 + weight * all);
    }
    return score;
  }

  /** The logarithm of how likely each of `classes` is. */
  get #scores(): readonly number[] {
    const scores = prior.map((share) => Math.log(share / 100));
    for (const [trait, present, absent] of this.#known) {
      const weight = WEIGHT / (1 + (present + absent - 1) * ALIKE);
      shares[trait].forEach((percent, index) => {
        const share = percent / 100;
        scores[index]! += weight * (present * Math.log(share) + absent * Math.log(1 - share));
      });
    }
    return scores;
  }
}

/** The fewest kinds that are sure together, two at most. @param shares how likely each is */
function among(shares: readonly (readonly [kind: Kind, share: number])[]): readonly Kind[] {
  const [one, other] = shares.toSorted(([, one], [, other]) => other - one);
  if (one![1] >= SURE) return [one![0]];
  return one![1] + other![1] >= SURE ? [one![0], other![0]] : [];
}
