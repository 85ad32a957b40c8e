/**
 * Reads the behaviour of each known resolver from `asking-classes.json`. For each way of querying, computes the share
 * of lookups that show a trait. docs/resolvers.md describes where the numbers come from.
 */
import profiles from './asking-classes.json' with { type: 'json' };
import type { Trait } from './lookup-traits.ts';

export const kinds = ['glibc', 'musl', 'go', 'c-ares', 'evdns', 'tool', 'forwarder'] as const;
/** A `tool` sends one question at a time, like dig, host and nslookup. evdns is libevent. */
export type Kind = (typeof kinds)[number];

/** For each trait, the percentage of the lookups in which it can be observed that show it. */
export type TraitShares = Readonly<Record<Trait, number>>;

/** A way of querying, and its prior probability in percent. */
export interface AskingClass {
  readonly kind: Kind;
  readonly prior: number;
  readonly shares: TraitShares;
}

/** For each trait the number of lookups that show it, and the number in which it can be observed. */
export type MeasuredTraits = Readonly<
  Partial<Record<Trait, readonly [shown: number, seen: number]>>
>;

/** The contents of the file. */
export interface AskingProfiles {
  readonly about: readonly string[];
  /** By the client's kind or by the name of a capture. */
  readonly measured: Readonly<Record<string, MeasuredTraits>>;
  /** Shares that are not measured, or that apply instead of the measured ones. */
  readonly assumed: readonly {
    readonly why: string;
    readonly shares: Readonly<Partial<Record<Trait, Readonly<Partial<Record<Kind, number>>>>>>;
  }[];
  /** Named sets of shares that differ from the usual ones. */
  readonly changes: Readonly<
    Record<string, { readonly why: string; readonly shares: Partial<TraitShares> }>
  >;
  /** In normal circumstances. `like` names the measured captures of such programs. */
  readonly classes: readonly {
    readonly kind: Kind;
    readonly prior: number;
    readonly why?: string;
    readonly like?: readonly string[];
    readonly changes?: readonly string[];
    readonly shares?: Partial<TraitShares>;
  }[];
  /** Each changes the classes of these kinds with that probability, independently of the others. */
  readonly circumstances: readonly {
    readonly change: string;
    readonly share: number;
    readonly kinds: readonly Kind[];
  }[];
}

// The compiler infers tuples as arrays.
export const askingProfiles = profiles as unknown as AskingProfiles;

/**
 * The lookups added to the measured ones, half of which show the trait (Laplace's rule of succession). A trait that was
 * not seen in a few lookups may still occur.
 */
const EXTRA_LOOKUPS = 2;
/** In percent. Even a trait that was never seen in a thousand lookups occurs in clients that were not measured. */
const SHARE = { least: 0.3, most: 99.5 };

export function smoothed([shown, seen]: readonly [shown: number, seen: number]): number {
  const share = (100 * (shown + EXTRA_LOOKUPS / 2)) / (seen + EXTRA_LOOKUPS);
  return Math.min(SHARE.most, Math.max(SHARE.least, share));
}

/** The shares of a kind in normal circumstances. */
function usualShares(kind: Kind): TraitShares {
  const measured = Object.entries(askingProfiles.measured[kind] ?? {}).map(([trait, counts]) => [
    trait,
    smoothed(counts),
  ]);
  const assumed = askingProfiles.assumed.flatMap(({ shares }) =>
    Object.entries(shares).flatMap(([trait, { [kind]: share }]) =>
      share === undefined ? [] : [[trait, share]],
    ),
  );
  return Object.fromEntries([...measured, ...assumed]) as TraitShares;
}

function changed(shares: TraitShares, names: readonly string[]): TraitShares {
  return Object.assign({}, shares, ...names.map((name) => askingProfiles.changes[name]!.shares));
}

const usualClasses: readonly AskingClass[] = askingProfiles.classes.map(
  ({ kind, prior, changes = [], shares = {} }) => ({
    kind,
    prior,
    shares: { ...changed(usualShares(kind), changes), ...shares },
  }),
);

/** The usual classes, each combined with independent circumstances. */
export const classes: readonly AskingClass[] = askingProfiles.circumstances.reduce(
  (list, { change, share, kinds: affected }) => [
    ...list,
    ...list
      .filter(({ kind }) => affected.includes(kind))
      .map(({ kind, prior, shares }) => ({
        kind,
        prior: prior * share,
        shares: changed(shares, [change]),
      })),
  ],
  usualClasses,
);
