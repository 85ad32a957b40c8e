/** Selects the lookups of a name. */
import type { GivenFilter } from '../capture/filter.ts';

/** Matches the name as written and with search domains appended, because a lookup may send only the latter. */
export function nameFilter(name: string): GivenFilter {
  return { word: 'name', value: `${name.replace(/\.$/, '')}.*`, negated: false };
}
