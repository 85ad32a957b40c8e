/** The phrases that all models use to explain names from the search list. Each model adds its own details and rule. */
import { countDots } from './client.ts';
import type { ResolvConf } from './resolv-conf.ts';

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

function dotsOf(typed: string): string {
  const dots = countDots(typed);
  return dots === 1 ? '1 dot' : `${dots} dots`;
}

function domainOf(search: readonly string[], index: number): string {
  return `search domain ${index + 1} of ${search.length}`;
}
