/**
 * Objects that could not be read, or of which there are too many; with the verdicts that are
 * missing because of it.
 */
import { printBytes } from '../../../server/base/limits.ts';
import type { Problem } from '../../../server/base/problem.ts';
import { clusterNotAsked } from '../../../server/kube/api/not-asked.ts';
import type { Lacking } from './facts.ts';
import { OBJECTS_BYTES_MAX, type ReadList } from './objects.ts';

/** The missing part of the lists. */
export function lackingOf(lists: readonly ReadList[]): readonly Lacking[] {
  return lists.flatMap(({ wanted, failure, narrowed, cutAt }) => {
    if (failure !== null) return [{ why: failure.message, so: wanted.for }];
    const outside = `${wanted.for}, outside of ${wanted.within}`;
    const why = `"list ${wanted.plural}" has more than is read: ${printBytes(OBJECTS_BYTES_MAX)} of all lists, half of it of one`;
    return [
      ...(narrowed === null ? [] : [{ why: narrowed.message, so: outside }]),
      ...(cutAt === null ? [] : [{ why, so: `${wanted.for}, behind the first ${cutAt}` }]),
    ];
  });
}

/** None of the lists could be read. */
export function unreadable(lists: readonly ReadList[]): Problem {
  const failures = lists.map(({ failure }) => failure!);
  const other = failures.find(({ kind }) => kind !== 'forbidden');
  return clusterNotAsked(
    other ?? failures[0]!,
    other === undefined
      ? {
          hint: 'None of the objects that affect DNS may be read.',
          remedy: 'ndots doctor cluster --rbac prints the rights that it needs.',
        }
      : { remedy: 'Check whether this works: kubectl get pods -n kube-system' },
  );
}

/** The first ones of a list; that there are more is noted. */
export function firstOf<T>(
  list: readonly T[],
  most: number,
  what: string,
  lacking: Lacking[],
): readonly T[] {
  if (list.length > most)
    lacking.push({ why: `there are ${list.length}`, so: `${what} behind the first ${most}` });
  return list.slice(0, most);
}
