/** The names to try for one with a search list, and the phrases that all models use to explain them. */
import { countDots } from './client.ts';
import type { ResolvConf } from './resolv-conf.ts';
import { cite } from './resolver-rules.ts';

/** A name with a trailing dot is tried only as written. */
export const rootedReason: string = 'The name ends in a dot, so it is tried only as written.';

/** A search domain for a name with too few dots: `1 dot, fewer than ndots (5): search domain 2 of 4`. */
export function fewDots(
  typed: string,
  { ndots, search }: Pick<ResolvConf, 'ndots' | 'search'>,
  index: number,
): string {
  return `${dotsOf(typed)}, fewer than ndots (${ndots}): ${domainOf(search, index)}`;
}

/** The name has enough dots: `2 dots, ndots is 2`. */
export function enoughDots(typed: string, { ndots }: Pick<ResolvConf, 'ndots'>): string {
  return `${dotsOf(typed)}, ndots is ${ndots}`;
}

/** A search domain after the name as written. */
export function afterAsIs({ search }: Pick<ResolvConf, 'search'>, index: number): string {
  return `It was not found as written: ${domainOf(search, index)}.`;
}

/** The name as written, after the search list. */
export function lastAsIs({ search }: Pick<ResolvConf, 'search'>): string {
  return search.length === 0
    ? 'There is no search list, so the name is tried as written.'
    : 'The search list is exhausted, so the name is tried as written.';
}

/** A name with enough dots, before the search list. */
export function asIsFirst(typed: string, conf: Pick<ResolvConf, 'ndots'>): string {
  return `${enoughDots(typed, conf)}, so the name is tried as written first. ${cite('as-is')}`;
}

/** A search domain, before or after the name as written. */
export function searchReason(
  typed: string,
  conf: Pick<ResolvConf, 'ndots' | 'search'>,
  index: number,
  isAfter: boolean,
): string {
  if (isAfter) return afterAsIs(conf, index);
  return `${fewDots(typed, conf, index)} first. ${cite('search')}`;
}

/** A name to try, and why. */
export interface SearchCandidate {
  readonly name: string;
  readonly why: string;
}

/**
 * Returns the names to try in order. The name as written is first if it has enough dots, and otherwise last.
 * @param joined appends a search domain
 * @param asIs the name as written, in the form in which it is sent
 */
export function candidates(
  typed: string,
  conf: Pick<ResolvConf, 'ndots' | 'search'>,
  joined: (domain: string) => string,
  asIs: string = typed,
): readonly SearchCandidate[] {
  const enough = countDots(typed) >= conf.ndots || typed.endsWith('.');
  const list = conf.search.map((domain, index) => ({
    name: joined(domain),
    why: searchReason(typed, conf, index, enough),
  }));
  return enough
    ? [{ name: asIs, why: asIsFirst(typed, conf) }, ...list]
    : [...list, { name: asIs, why: lastAsIs(conf) }];
}

function dotsOf(typed: string): string {
  const dots = countDots(typed);
  return dots === 1 ? '1 dot' : `${dots} dots`;
}

function domainOf(search: readonly string[], index: number): string {
  return `search domain ${index + 1} of ${search.length}`;
}
