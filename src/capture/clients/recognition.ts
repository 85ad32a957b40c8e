/**
 * Which resolver a client has, by the traits of its lookups: for each kind the share of its lookups that show a trait, and from these the
 * likeliest kind (Bayes, the traits taken as independent). The shares are those of real resolvers, measured (docs/resolvers.md).
 */
import type { SeenLookup } from '../exchanges/seen-exchange.ts';
import { traitsOf, type Trait } from './lookup-traits.ts';

/** Kinds of resolvers that are told apart. */
export const kinds = ['glibc', 'musl', 'go', 'c-ares', 'evdns', 'tool'] as const;
/** One of them; a `tool` asks one question at a time: nslookup, dig, a forwarder. */
export type Kind = (typeof kinds)[number];

/** What a client's resolver is taken for. */
export interface Recognised {
  readonly kind: Kind;
  /** From 0 to 1. */
  readonly confidence: number;
  readonly lookups: number;
}

/**
 * What is weighed. c-ares before 1.22 sends no EDNS, and a program has either the one or the other. glibc asks one question at a time from
 * the first lookup on that lost one of a pair, for as long as the process lives; with single-request it always does.
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
];

/** In percent, in the order of `classes`: how many of its lookups that can show the trait do. */
const shares: Readonly<Record<Trait, readonly number[]>> = {
  'pair in one go': [94, 99, 97, 99, 99, 97, 30, 4],
  'pair from one port': [99, 99.5, 0.5, 99, 99, 96, 58, 20],
  'A before AAAA': [99, 99.5, 28, 99.5, 99.5, 97, 85, 99.5],
  'ids of a pair close together': [3, 98, 3, 3, 3, 3, 5, 3],
  'one port for the whole walk': [0.3, 0.3, 0.3, 99, 99, 99, 5, 0.3],
  'no EDNS': [97, 99.5, 3, 99.5, 4, 99, 70, 97],
  'EDNS of 1232 without cookie': [1, 0.5, 97, 0.5, 45, 1, 8, 1],
  'EDNS with cookie': [0.5, 0.5, 0.5, 0.5, 55, 0.5, 25, 0.5],
  'capitals by chance': [0.5, 0.5, 0.5, 0.5, 0.5, 97, 0.5, 0.5],
  'all servers at once': [0.3, 10, 0.3, 0.3, 0.3, 0.3, 0.3, 0.3],
  'again after 2.5 s': [1, 50, 1, 4, 4, 1, 10, 1],
  'again after 5 s': [60, 3, 60, 10, 10, 50, 50, 60],
  'again from the same port': [95, 99, 1, 87, 87, 95, 30, 80],
  'again with the same id': [98, 99, 2, 92, 92, 95, 50, 98],
  'SERVFAIL repeated at once, twice': [6, 95, 3, 83, 83, 85, 20, 6],
  'stops at NODATA': [30, 95, 30, 30, 30, 30, 43, 30],
  'both families': [90, 95, 95, 88, 88, 85, 30, 90],
  'families walk by themselves': [0.5, 0.5, 0.5, 0.5, 0.5, 20, 10, 0.5],
  'a single label as it stands': [2, 2, 2, 60, 60, 5, 60, 2],
};

/** How common each kind is, before anything is seen. */
const prior: readonly number[] = [38, 20, 20, 5, 5, 2, 8, 2];
/** One lookup says less than the sum of its traits, as they are not independent. */
const WEIGHT = 0.8;
/**
 * Lookups of one client are alike: what the first shows, the others show as well. So many of them say no more than
 * 1 / ALIKE lookups of different clients (the design effect of clustered samples).
 */
const ALIKE = 0.08;
/** Lookups of one client that are looked at: more change nothing. */
const LOOKUPS_MAX = 64;

/** Collects traits of one client. */
export class Recognition {
  /** By trait: lookups that show it, and lookups that show its absence. */
  readonly #counts = new Map<Trait, { present: number; absent: number }>();
  #lookups = 0;

  add(lookup: SeenLookup): void {
    if (this.#lookups >= LOOKUPS_MAX) return;
    const traits = traitsOf(lookup);
    // What shows nothing but a single question is no evidence of a resolver.
    if (traits.size === 0) return;
    this.#lookups++;
    for (const [trait, present] of traits) {
      let counts = this.#counts.get(trait);
      if (counts === undefined) this.#counts.set(trait, (counts = { present: 0, absent: 0 }));
      if (present) counts.present++;
      else counts.absent++;
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
    const total = weights.reduce((sum, weight) => sum + weight, 0);
    const best = Math.max(...weights);
    const kind = kinds[weights.indexOf(best)]!;
    return { kind, confidence: best / total, lookups: this.#lookups };
  }

  /** The logarithm of how likely each of `classes` is. */
  get #scores(): readonly number[] {
    const scores = prior.map((share) => Math.log(share / 100));
    for (const [trait, { present, absent }] of this.#counts) {
      const weight = WEIGHT / (1 + (present + absent - 1) * ALIKE);
      shares[trait].forEach((percent, index) => {
        const share = percent / 100;
        scores[index]! += weight * (present * Math.log(share) + absent * Math.log(1 - share));
      });
    }
    return scores;
  }
}
