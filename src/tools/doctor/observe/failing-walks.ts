/**
 * Search domains that fail at times. A lookup is its own comparison: the name with the domain
 * fails, and the plain name, at the same server a moment later, does not.
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
import { NEARLY_ALL } from '../thresholds/evidence.ts';
import {
  FAILING_AT_TIMES,
  FAILING_ELSEWHERE,
  FAILING_SHARE,
  FAILING_WALKS,
} from '../thresholds/search.ts';

export interface FailingWalks {
  /** Queries below the domain that failed or got no reply, and those names. */
  readonly failures: readonly SeenExchange[];
  readonly names: ReadonlySet<string>;
  readonly lookups: number;
  /** Of these, those whose next external names were answered. */
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
  if (failures.length < FAILING_WALKS.queries || names.size < FAILING_WALKS.names) return null;
  if (
    lookups.length < FAILING_WALKS.lookups ||
    failures.length < FAILING_AT_TIMES.fails * own.length
  )
    return null;
  const next = lookups.map((lookup) => nextOutside(lookup, observed, isBelow));
  const others = next.flat();
  const isAnswered = (each: SeenExchange): boolean => each.ending === 'answered' && !isBad(each);
  const goOn = next.filter((exchanges) => exchanges.some(isAnswered)).length;
  if (goOn < FAILING_WALKS.goOn || others.filter(isBad).length > FAILING_ELSEWHERE * others.length)
    return null;
  const isSeldom = failures.length < FAILING_SHARE * own.length;
  if (isSeldom) {
    // A lookup that ends at the domain has no other external name to compare with.
    const compared = next.filter((exchanges) => exchanges.length > 0).length;
    if (goOn < Math.max(FAILING_AT_TIMES.goOn, FAILING_AT_TIMES.part * compared)) return null;
    const tries = lookups.reduce(
      (sum, { exchanges }) =>
        sum + questionsOf(exchanges.filter((each) => isBelow(each.name) && isBad(each))),
      0,
    );
    if (chanceOf(observed, isBelow, tries) > FAILING_AT_TIMES.chance) return null;
  }
  return { failures, names, lookups: lookups.length, goOn };
}

/** The number of different questions. Repeats of a failed query are one try. */
function questionsOf(exchanges: readonly SeenExchange[]): number {
  return new Set(exchanges.map(({ name, type }) => `${type} ${name}`)).size;
}

/**
 * The probability that this many failures, of all tries of external names, are all below the
 * domain.
 */
function chanceOf(
  { names, domains, affected }: Observations,
  isBelow: (name: string) => boolean,
  failing: number,
): number {
  let [below, all] = [0, 0];
  for (const { name, outcomes } of names.list) {
    if (domains.isOfCluster(name)) continue;
    all += outcomes.asked;
    if (isBelow(name)) below += outcomes.asked;
  }
  for (const { exchanges } of affected) {
    const outside = exchanges.filter(({ name }) => !domains.isOfCluster(name));
    const own = outside.filter(({ name }) => isBelow(name));
    all -= outside.length - questionsOf(outside);
    below -= own.length - questionsOf(own);
  }
  return (below / all) ** failing;
}

/** True if (nearly) all failures without a known reason are below the domain. */
export function isAllBelow(
  observed: Observations,
  claims: Claims,
  isBelow: (name: string) => boolean,
): boolean {
  const isOfSilence = failedInSilence(observed, claims);
  const open = [
    ...observed.failed.filter(({ name, type }) => !isOfSilence(name, type)),
    ...claims.open,
    // The domain of a cut name is unknown.
  ].filter(({ name }) => !claims.names.has(name) && !isCut(name));
  const below = open.filter(({ name }) => isBelow(name));
  return (
    below.length >= FAILING_WALKS.queries &&
    below.length >= NEARLY_ALL * open.length &&
    new Set(below.map(({ name }) => name)).size >= FAILING_WALKS.names
  );
}

/** The queries of a lookup for names of the same kind, from the domain's failure on. */
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
