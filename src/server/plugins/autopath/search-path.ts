/** Sources for a query's search path: the queried name, the querying pod, or a file. */
import { ROOT, suffixAt, type WireName } from '../../wire/name.ts';
import type { Query } from '../../transport/query.ts';
import type { ClientSearchPaths } from '../../engine/contract/ports.ts';

export interface NameSuffix {
  from: Uint8Array;
  at: number;
  end: number;
}

/**
 * A query's search path. Its first domain is part of the queried name. `suffix` returns the others, with indexes 1 to
 * `length - 1`. The last one is the root, which gives the name as the user wrote it.
 */
export interface SearchPath {
  /** Offset of the first search domain in the name, or -1 if this query should not be completed. */
  begin(query: Query): number;
  readonly length: number;
  suffix(query: Query, begin: number, index: number, into: NameSuffix): void;
}

/** `NS.svc.ZONE`, `svc.ZONE` and `ZONE`, all taken from the name, followed by `more` and the root. */
function clusterPath(begin: (query: Query) => number, more: readonly WireName[]): SearchPath {
  const rest = [...more, ROOT];
  return {
    begin,
    length: 3 + rest.length,
    suffix(query, at, index, into) {
      if (index >= 3) return whole(rest[index - 3]!, into);
      const { folded, nameLength } = query;
      let from = at;
      for (let i = 0; i < index; i++) from += folded[from]! + 1;
      into.from = folded;
      into.at = from;
      into.end = nameLength;
    },
  };
}

/** The same search path for every client. */
export function fixedPath(domains: readonly WireName[]): SearchPath {
  const [first, ...more] = domains;
  const rest = [...more, ROOT];
  return {
    begin: (query) => (first === undefined ? -1 : beginOf(query, first)),
    length: 1 + rest.length,
    suffix: (_query, _begin, index, into) => whole(rest[index - 1]!, into),
  };
}

/** The search path that `kubernetes` derives from a query, based on either the name or the client's address. */
export function offeredPath(
  offered: () => ClientSearchPaths | null,
  by: 'byName' | 'byClient',
  more: readonly WireName[],
): SearchPath {
  return clusterPath((query) => offered()?.[by](query) ?? -1, more);
}

function whole(name: WireName, into: NameSuffix): void {
  into.from = name;
  into.at = 0;
  into.end = name.length;
}

/** Returns the offset of `domain` (lower case) in the name, or -1 unless the name has labels before it. */
function beginOf({ folded, nameLength }: Query, domain: WireName): number {
  const at = suffixAt(folded, domain, nameLength);
  return at > 0 ? at : -1;
}
