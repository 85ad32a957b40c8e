/** Names as applications spelled them, from what their resolvers made of them. */
import type { SeenLookup } from './seen-exchange.ts';

/** What a lookup shows of the name that was typed. */
export interface NameWalk {
  /** The first name that was asked for: absolute. */
  readonly first: string;
  /** What the search path was appended to, if it was walked; null: there is one name only. */
  readonly stem: string | null;
}

export function walkOf({ name, candidates }: Pick<SeenLookup, 'name' | 'candidates'>): NameWalk {
  const [first = ''] = candidates;
  return { first, stem: candidates.length > 1 ? name.replace(/\.$/, '') : null };
}

/** The domains that were appended to the name, in order; without final dots. */
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
 * The name as the application spelled it: a name below the first search domain, with fewer dots than
 * `ndots` in front of it, was searched. A name that was not, though its dots are few, was written
 * with a final dot.
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
