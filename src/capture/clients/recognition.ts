/**
 * Which resolver a client has, by the traits of its lookups: for each kind the share of its lookups
 * that show a trait, and from these the likeliest kind (Bayes, the traits taken as independent).
 * The shares are those of real resolvers, measured (docs/resolvers.md).
 */
import type { SeenLookup } from '../exchanges/seen-exchange.ts';
import { classes, kinds, type Kind } from './asking-classes.ts';
import { goesOnInIp, traitNames, traitsOf, type SentPacket, type Trait } from './lookup-traits.ts';

/** What a client's resolver is taken for. */
export interface Recognised {
  readonly kind: Kind;
  /** From 0 to 1. */
  readonly confidence: number;
  /** The same of glibc and c-ares as one: in most they do the same. */
  readonly either: number;
  readonly lookups: number;
  /**
   * The fewest kinds of which it is one for sure, the likeliest first; empty: it takes more than
   * two, or it is like none.
   */
  readonly among: readonly Kind[];
  /** How sure it is that it is one of `among`, 0 to 1. */
  readonly sure: number;
}

/** From this on a kind is named. */
const SURE = 0.7;

/** One lookup says less than the sum of its traits, as they are not independent. */
const WEIGHT = 0.8;
/**
 * Lookups of one client are alike: what the first shows, the others show as well. So many of them
 * say no more than 1 / ALIKE lookups of different clients (the design effect of clustered samples).
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
  /**
   * By trait, in the order of their names: lookups that show it, and lookups that show its absence.
   */
  #counts = noCounts;
  #lookups = 0;
  #ports = noPorts;
  /** The last query over UDP. */
  #last: SentPacket | null = null;

  /** Whether there were lookups that do not count, as nothing tells when they were. */
  untimed: boolean = false;

  add(lookup: SeenLookup): void {
    if (this.#lookups >= LOOKUPS_MAX) return;
    // Half of what resolvers are known by is when they send.
    if (lookup.exchanges[0]!.logged === 'without times') {
      this.untimed = true;
      return;
    }
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
        (sum, score, index) => (classes[index]!.kind === kind ? sum + Math.exp(score - most) : sum),
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
      ...among(
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
   * The same of a resolver that is none of these: its shares are whatever was seen, at the price of
   * as many numbers that were fitted (Schwarz, 1978). Without it the least unlikely kind would be
   * certain, however unlike it the client is.
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
  get #scores(): Float64Array {
    const scores = Float64Array.from(classes, ({ prior }) => Math.log(prior / 100));
    for (const [trait, present, absent] of this.#known) {
      const weight = WEIGHT / (1 + (present + absent - 1) * ALIKE);
      const { shown, lacking } = logarithms[trait];
      for (let at = 0; at < scores.length; at++)
        scores[at]! += weight * (present * shown[at]! + absent * lacking[at]!);
    }
    return scores;
  }
}

/** Of each trait and class the logarithms of the share of lookups that show it, and of the rest. */
const logarithms = Object.fromEntries(
  traitNames.map((trait) => [
    trait,
    {
      shown: Float64Array.from(classes, ({ shares }) => Math.log(shares[trait] / 100)),
      lacking: Float64Array.from(classes, ({ shares }) => Math.log(1 - shares[trait] / 100)),
    },
  ]),
) as Readonly<Record<Trait, { readonly shown: Float64Array; readonly lacking: Float64Array }>>;

/** The fewest kinds that are sure together, two at most. @param shares how likely each is */
function among(
  shares: readonly (readonly [kind: Kind, share: number])[],
): Pick<Recognised, 'among' | 'sure'> {
  const [one, other] = shares.toSorted(([, one], [, other]) => other - one);
  if (one![1] >= SURE) return { among: [one![0]], sure: one![1] };
  const both = one![1] + other![1];
  return both >= SURE ? { among: [one![0], other![0]], sure: both } : { among: [], sure: 0 };
}
