/**
 * Identifies a client's resolver from the traits of its lookups. Each kind shows a trait in a known share of lookups,
 * and these shares determine the most likely kind (Bayes, with independent traits).
 * docs/resolvers.md describes where the shares come from.
 */
import type { SeenLookup } from '../pair/seen-exchange.ts';
import { classes, kinds, type Kind } from './asking-classes.ts';
import { goesOnInIp, traitNames, traitsOf, type SentPacket, type Trait } from './lookup-traits.ts';

export interface Recognised {
  readonly kind: Kind;
  /** From 0 to 1. */
  readonly confidence: number;
  /** The same, but with glibc and c-ares counted as one kind because they share most of their traits. */
  readonly either: number;
  readonly lookups: number;
  /**
   * The smallest set of kinds that is certain to contain the client's, likeliest first. Empty if that would take more
   * than two kinds, or if the client resembles none.
   */
  readonly among: readonly Kind[];
  /** The probability that it is one of `among`, between 0 and 1. */
  readonly sure: number;
  /** The kinds of programs that share the address. Empty if there is only one program. */
  readonly several: readonly Kind[];
}

/** The numbers of lookups that show a trait and that show its absence. */
export type TraitCount = readonly [trait: Trait, present: number, absent: number];

const SURE = 0.7;

/** A lookup proves less than its traits add up to, because they are not independent. */
const WEIGHT = 0.8;
/**
 * A client's lookups resemble each other. Any number of them therefore count as at most 1 / ALIKE lookups by different
 * clients (the design effect of clustered samples).
 */
const ALIKE = 0.08;
/** The prior probability of unknown resolvers, and the penalty for each number fitted to them. */
const UNKNOWN = 0.02;
const FITTED = 0.5;
/**
 * Traits that a program shows in nearly all of its lookups or nearly none. If they vary, lookups with and without the
 * trait are compared as if they came from two programs.
 */
const splitBy: readonly Trait[] = [
  'no EDNS',
  'EDNS with cookie',
  'asks for AD',
  'asks for DNSSEC',
  'pair from one port',
  'pair in one go',
  'ids of a pair close together',
  'ids of a pair of one clock',
  'one port for the whole walk',
  'families walk separately',
];
/** The minimum number and share of lookups that each of two programs must have. */
const PART = { lookups: 3, share: 0.2 };
/** The required likelihood of two programs over one, as the logarithm of a Bayes factor of 8 000. */
const SPLIT = 9;
/** The highest confidence in a kind if several programs share an address. */
const SEVERAL_AT_MOST = 0.5;

/** Beyond this, more lookups from a client do not change the result. */
const LOOKUPS_MAX = 64;

/** A lookup may show this trait within itself, and also together with the lookup before it. */
const ACROSS: Trait = 'IP IDs continue across ports';
/** For each trait its bit, and one more for `ACROSS` between lookups. */
const bits: ReadonlyMap<Trait, number> = new Map(traitNames.map((trait, at) => [trait, 1 << at]));
const ACROSS_LOOKUPS = 1 << traitNames.length;
const noLookups = new Uint32Array(0);
/** Room for the first 8 lookups, which V8 stores in its heap and not separately (at most 64 bytes). */
const FIRST_BITS = 16;
const noPorts: readonly number[] = [];

export class Recognition {
  /**
   * For each lookup the traits that it shows, and then those that it shows to be absent, as bits. A large capture has
   * tens of thousands of clients, most of them with few lookups.
   */
  #seen = noLookups;
  #lookups = 0;
  #ports = noPorts;
  #last: SentPacket | null = null;

  /** Undefined if lookups were added since it was last computed. Cached because many rules read it. */
  #best: Recognised | null | undefined;

  /** True if lookups were skipped because they have no times. */
  untimed: boolean = false;

  add(lookup: SeenLookup): void {
    if (this.#lookups >= LOOKUPS_MAX) return;
    // Half of the resolvers' traits are about timing.
    if (lookup.exchanges[0]!.logged === 'without times') {
      this.untimed = true;
      return;
    }
    const traits = traitsOf(lookup);
    // A single question says nothing about the resolver.
    if (traits.size === 0) return;
    let present = 0;
    let absent = 0;
    const see = (bit: number, isPresent: boolean): void => {
      if (isPresent) present |= bit;
      else absent |= bit;
    };
    for (const [trait, isPresent] of traits) see(bits.get(trait)!, isPresent);
    const datagrams = lookup.exchanges.filter(({ protocol }) => protocol === 'udp');
    const ports = datagrams.map(({ client }) => client.port);
    if (this.#ports.length > 0 && ports.length > 0)
      see(
        bits.get('the port of the lookup before')!,
        ports.some((port) => this.#ports.includes(port)),
      );
    this.#ports = ports;
    const [first] = datagrams;
    const goesOn =
      this.#last === null || first === undefined ? null : goesOnInIp(this.#last, first);
    if (goesOn !== null) see(ACROSS_LOOKUPS, goesOn);
    this.#best = undefined;
    if (2 * this.#lookups === this.#seen.length) {
      const larger = new Uint32Array(2 * this.#seen.length || FIRST_BITS);
      larger.set(this.#seen);
      this.#seen = larger;
    }
    this.#seen.set([present, absent], 2 * this.#lookups++);
    const last = datagrams.at(-1);
    // Copied, because the exchange shares its memory with many others.
    if (last !== undefined) {
      const { ipId, sentMs, server, client } = last;
      this.#last = { ipId, sentMs, server, client };
    }
  }

  /** @param only counts the lookups that show the trait with this bit; 0: all */
  #counts(only: number = 0): Counts {
    const counts = new Counts();
    for (let at = 0; at < 2 * this.#lookups; at += 2)
      if ((this.#seen[at]! & only) === only) counts.add(this.#seen[at]!, this.#seen[at + 1]!);
    return counts;
  }

  /** For each trait that is visible, the numbers of lookups that show it and that show its absence. */
  get traitCounts(): readonly TraitCount[] {
    return this.#counts().known;
  }

  get best(): Recognised | null {
    if (this.#best === undefined) this.#best = this.#recognise();
    return this.#best;
  }

  /** Drops the lookups, after the last one. */
  settle(): void {
    if (this.#best === undefined) this.#best = this.#recognise();
    this.#seen = noLookups;
    this.#ports = noPorts;
    this.#last = null;
  }

  #recognise(): Recognised | null {
    const lookups = this.#lookups;
    if (lookups === 0) return null;
    const counts = this.#counts();
    const scores = counts.scores();
    const most = Math.max(...scores);
    const weights = kinds.map((kind) =>
      scores.reduce(
        (sum, score, index) => (classes[index]!.kind === kind ? sum + Math.exp(score - most) : sum),
        0,
      ),
    );
    const total = weights.reduce((sum, weight) => sum + weight, Math.exp(counts.unlike() - most));
    const best = Math.max(...weights);
    const kind = kinds[weights.indexOf(best)]!;
    const isAlike = kind === 'glibc' || kind === 'c-ares';
    const both = weights[kinds.indexOf('glibc')]! + weights[kinds.indexOf('c-ares')]!;
    const confidence = best / total;
    const either = (isAlike ? both : best) / total;
    const several = this.#several(most);
    if (several.length > 0)
      return {
        kind,
        confidence: Math.min(SEVERAL_AT_MOST, confidence),
        either: Math.min(SEVERAL_AT_MOST, either),
        lookups,
        among: [],
        sure: 0,
        several,
      };
    return {
      ...{ kind, confidence, either, lookups, several },
      ...among(kinds.map((each, at) => [each, weights[at]! / total])),
    };
  }

  /**
   * Returns the kinds of two programs if they explain the lookups much better than one would.
   * @param one how well the likeliest class explains all lookups
   */
  #several(one: number): readonly Kind[] {
    const all = this.#counts();
    const least = Math.max(PART.lookups, PART.share * all.lookups);
    let most = one + SPLIT;
    let found: readonly Kind[] = [];
    for (const trait of splitBy) {
      const part = this.#counts(bits.get(trait)!);
      const rest = all.lookups - part.lookups;
      if (part.lookups < least || rest < least) continue;
      const pair = [part, all.without(part)].map((counts) => {
        const scores = counts.scores();
        const score = Math.max(...scores);
        return { score, kind: classes[scores.indexOf(score)]!.kind };
      });
      const score = pair[0]!.score + pair[1]!.score;
      if (score <= most || pair[0]!.kind === pair[1]!.kind) continue;
      most = score;
      found = pair.map(({ kind }) => kind);
    }
    return found;
  }
}

/** For each trait, counts the lookups that show it and those that show its absence. */
class Counts {
  lookups = 0;
  /** For each trait, in the order of their names. */
  readonly #present = new Uint8Array(traitNames.length);
  readonly #absent = new Uint8Array(traitNames.length);

  /** Adds a lookup by the bits of the traits that it shows, and of those that it shows to be absent. */
  add(present: number, absent: number): void {
    this.lookups++;
    count(this.#present, present);
    count(this.#absent, absent);
  }

  /** Subtracts the counts of a subset. */
  without(part: Counts): Counts {
    const rest = new Counts();
    rest.lookups = this.lookups - part.lookups;
    for (const at of traitNames.keys()) {
      rest.#present[at] = this.#present[at]! - part.#present[at]!;
      rest.#absent[at] = this.#absent[at]! - part.#absent[at]!;
    }
    return rest;
  }

  /** Traits that at least one lookup shows to be present or absent. */
  get known(): readonly TraitCount[] {
    return traitNames
      .map((trait, at) => [trait, this.#present[at]!, this.#absent[at]!] as const)
      .filter(([, present, absent]) => present + absent > 0);
  }

  /**
   * The score of an unknown resolver whose shares are the observed ones, minus a penalty for each fitted number
   * (Schwarz, 1978). Without it, the least unlikely kind would be certain even for a client that resembles none.
   */
  unlike(): number {
    let score = Math.log(UNKNOWN);
    for (const [, present, absent] of this.known) {
      const all = present + absent;
      const weight = WEIGHT / (1 + (all - 1) * ALIKE);
      for (const part of [present, absent])
        if (part > 0) score += weight * part * Math.log(part / all);
      score -= FITTED * Math.log(1 + weight * all);
    }
    return score;
  }

  /** The log-likelihood of each class in `classes`. */
  scores(): Float64Array {
    const scores = Float64Array.from(classes, ({ prior }) => Math.log(prior / 100));
    for (const [trait, present, absent] of this.known) {
      const weight = WEIGHT / (1 + (present + absent - 1) * ALIKE);
      const { shown, lacking } = logarithms[trait];
      for (let at = 0; at < scores.length; at++)
        scores[at]! += weight * (present * shown[at]! + absent * lacking[at]!);
    }
    return scores;
  }
}

function count(counts: Uint8Array, seen: number): void {
  for (let rest = seen; rest !== 0; rest &= rest - 1) {
    const bit = rest & -rest;
    counts[bit === ACROSS_LOOKUPS ? traitNames.indexOf(ACROSS) : 31 - Math.clz32(bit)]!++;
  }
}

/** For each class, the logarithms of the share of lookups that show each trait and of the share that do not. */
const logarithms = Object.fromEntries(
  traitNames.map((trait) => [
    trait,
    {
      shown: Float64Array.from(classes, ({ shares }) => Math.log(shares[trait] / 100)),
      lacking: Float64Array.from(classes, ({ shares }) => Math.log(1 - shares[trait] / 100)),
    },
  ]),
) as Readonly<Record<Trait, { readonly shown: Float64Array; readonly lacking: Float64Array }>>;

/**
 * Returns the smallest set of kinds that is certain, with two at most.
 * @param shares each kind's probability
 */
function among(
  shares: readonly (readonly [kind: Kind, share: number])[],
): Pick<Recognised, 'among' | 'sure'> {
  const [one, other] = shares.toSorted(([, one], [, other]) => other - one);
  if (one![1] >= SURE) return { among: [one![0]], sure: one![1] };
  const both = one![1] + other![1];
  return both >= SURE ? { among: [one![0], other![0]], sure: both } : { among: [], sure: 0 };
}
