/**
 * Objects that could not be read or are too many, with the verdicts that are missing as a result.
 */
import { printBytes } from '../../../server/base/limits.ts';
import type { Problem } from '../../../server/base/problem.ts';
import { clusterNotAsked } from '../../pods/not-asked.ts';
import type { Lacking } from './facts.ts';
import { OBJECTS_BYTES_MAX, type ReadList } from './objects.ts';

/** The parts of the lists that are missing. */
export function lackingOf(lists: readonly ReadList[]): readonly Lacking[] {
  return lists.flatMap(({ wanted, failure, narrowed, cutAt }) => {
    if (failure !== null) return [{ why: failure.message, so: wanted.for }];
    const outside = `${wanted.for}, outside ${wanted.within}`;
    const why = `"list ${wanted.plural}" is larger than the limit (${printBytes(OBJECTS_BYTES_MAX)} for all lists, and half of that for one)`;
    return [
      ...(narrowed === null ? [] : [{ why: narrowed.message, so: outside }]),
      ...(cutAt === null ? [] : [{ why, so: `${wanted.for}, after the first ${cutAt}` }]),
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
          hint: 'You do not have permission to read any of the objects that affect DNS.',
          remedy: 'ndots doctor cluster --rbac prints the permissions that it needs.',
        }
      : { remedy: 'Check whether this works: kubectl get pods -n kube-system' },
  );
}

/** The first items in a list. Records in `lacking` that there are more. */
export function firstOf<T>(
  list: readonly T[],
  most: number,
  what: string,
  lacking: Lacking[],
): readonly T[] {
  if (list.length > most)
    lacking.push({ why: `there are ${list.length}`, so: `${what} after the first ${most}` });
  return list.slice(0, most);
}
