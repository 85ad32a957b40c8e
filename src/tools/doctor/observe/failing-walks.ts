/**
 * Search domains that fail at times. A lookup compares by itself: the name with the domain behind
 * it fails, the name as it is, asked of the same server a moment later, does not.
 */
import { isCut } from '../../capture/pair/message-head.ts';
import type { Observations } from './observations.ts';
import { isFailure } from './outcomes.ts';
import {
  isLost,
  sentSpan,
  type SeenExchange,
  type SeenLookup,
} from '../../capture/pair/seen-exchange.ts';
import { failedInSilence } from './consequences.ts';
import type { Claims } from './claims.ts';

/** So much of all that fails is below the domain: otherwise it is not the domain. */
const NEARLY_ALL = 0.9;
/**
 * Queries and names that fail, lookups that they are of, and those of these lookups that go on to a
 * name of outside.
 */
const LEAST = { queries: 4, names: 2, lookups: 4, goOn: 3 };
/** So much of what these lookups ask below the domain fails, and of what they ask besides may. */
const FAILS = 0.8;
const OTHERS = 0.1;
/**
 * Where less of it fails, as each query does by chance or is answered when it is repeated: so much,
 * of so many lookups that go on, and so unlikely is it that chance picks the domain.
 */
const AT_CHANCE = { fails: 0.3, goOn: 4, part: 0.7, chance: 0.005 };

/** What a search domain makes fail. */
export interface FailingWalks {
  /** Queries below the domain that failed or got no reply, and those names. */
  readonly failures: readonly SeenExchange[];
  readonly names: ReadonlySet<string>;
  readonly lookups: number;
  /** Of these, those whose next names of outside were answered. */
  readonly goOn: number;
}

/**
 * @param isBelow whether a name is made by this domain, and no longer one; null: others fail as
 * well, or too little does
 */
export function failingWalks(
  observed: Observations,
  claims: Claims,
  isBelow: (name: string) => boolean,
): FailingWalks | null {
  if (!isAllBelow(observed, claims, isBelow)) return null;
  const isBad = (each: SeenExchange): boolean => isFailure(each) || isLost(each);
  const lookups = observed.affected.filter(({ exchanges }) =>
    exchanges.some((each) => isBelow(each.name) && isBad(each)),
  );
  const own = lookups.flatMap(({ exchanges }) => exchanges.filter(({ name }) => isBelow(name)));
  const failures = own.filter(isBad);
  const names = new Set(failures.map(({ name }) => name));
  if (failures.length < LEAST.queries || names.size < LEAST.names) return null;
  if (lookups.length < LEAST.lookups || failures.length < AT_CHANCE.fails * own.length) return null;
  const next = lookups.map((lookup) => nextOutside(lookup, observed, isBelow));
  const others = next.flat();
  const isAnswered = (each: SeenExchange): boolean => each.ending === 'answered' && !isBad(each);
  const goOn = next.filter((exchanges) => exchanges.some(isAnswered)).length;
  if (goOn < LEAST.goOn || others.filter(isBad).length > OTHERS * others.length) return null;
  const isSeldom = failures.length < FAILS * own.length;
  if (isSeldom) {
    if (goOn < Math.max(AT_CHANCE.goOn, AT_CHANCE.part * lookups.length)) return null;
    // What is asked again after it failed is one try.
    const tries = lookups.reduce((sum, { exchanges }) => {
      const theirs = exchanges.filter((each) => isBelow(each.name) && isBad(each));
      return sum + new Set(theirs.map(({ name, type }) => `${type} ${name}`)).size;
    }, 0);
    if (chanceOf(observed, isBelow, tries) > AT_CHANCE.chance) return null;
  }
  return { failures, names, lookups: lookups.length, goOn };
}

/**
 * How likely it is that so many failures, of all queries for names of outside, are just of names
 * below the domain.
 */
function chanceOf(
  { names, domains }: Observations,
  isBelow: (name: string) => boolean,
  failing: number,
): number {
  let [below, all] = [0, 0];
  for (const { name, outcomes } of names.list) {
    if (domains.isOfCluster(name)) continue;
    all += outcomes.asked;
    if (isBelow(name)) below += outcomes.asked;
  }
  return (below / all) ** failing;
}

/** Whether (nearly) all that fails, and of which the reason is not known, is below the domain. */
export function isAllBelow(
  observed: Observations,
  claims: Claims,
  isBelow: (name: string) => boolean,
): boolean {
  const isOfSilence = failedInSilence(observed, claims);
  const open = [
    ...observed.failed.filter(({ name, type }) => !isOfSilence(name, type)),
    ...claims.open,
    // Of one that is cut nobody knows what it is below.
  ].filter(({ name }) => !claims.names.has(name) && !isCut(name));
  const below = open.filter(({ name }) => isBelow(name));
  return (
    below.length >= LEAST.queries &&
    below.length >= NEARLY_ALL * open.length &&
    new Set(below.map(({ name }) => name)).size >= LEAST.names
  );
}

/** What a lookup asks of names that go the same way, from the domain's failure on. */
function nextOutside(
  { exchanges }: SeenLookup,
  { domains }: Observations,
  isBelow: (name: string) => boolean,
): readonly SeenExchange[] {
  const { fromMs } = sentSpan(exchanges.filter(({ name }) => isBelow(name)));
  return exchanges.filter(
    ({ name, sentMs }) => sentMs >= fromMs && !isBelow(name) && !domains.isOfCluster(name),
  );
}
