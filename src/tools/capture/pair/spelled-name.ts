/** Reconstructs names as applications wrote them. */
import type { SeenLookup } from './seen-exchange.ts';

export interface NameWalk {
  /** The first queried name, absolute. */
  readonly first: string;
  /** The name before the search path was applied, or null if there was no search. */
  readonly stem: string | null;
}

export function walkOf({ name, candidates }: Pick<SeenLookup, 'name' | 'candidates'>): NameWalk {
  const [first = ''] = candidates;
  return { first, stem: candidates.length > 1 ? name.replace(/\.$/, '') : null };
}

/** The appended domains, in order, without trailing dots. */
export function searchOf({
  name,
  candidates,
}: Pick<SeenLookup, 'name' | 'candidates'>): readonly string[] {
  const stem = `${name.replace(/\.$/, '')}.`;
  return candidates
    .filter((candidate) => candidate.startsWith(stem) && candidate.length > stem.length)
    .map((candidate) => candidate.slice(stem.length).replace(/\.$/, ''));
}

/**
 * Returns the name as the application wrote it. A name under the first search domain comes from a search if its prefix
 * has fewer dots than `ndots`. A name with few dots that was not searched had a trailing dot.
 */
export function spelledName(
  { first, stem }: NameWalk,
  { search, ndots }: { readonly search: readonly string[]; readonly ndots: number },
): string {
  if (stem !== null) return stem;
  const bare = first.replace(/\.$/, '');
  const [domain = ''] = search;
  const suffix = `.${domain.toLowerCase().replace(/\.$/, '')}`;
  if (suffix !== '.' && bare.endsWith(suffix)) {
    const front = bare.slice(0, -suffix.length);
    if (front !== '' && dotsOf(front) < ndots) return front;
  }
  return dotsOf(bare) < ndots && search.length > 0 ? `${bare}.` : bare;
}

function dotsOf(name: string): number {
  return name.split('.').length - 1;
}
