/** Sources of a query's search path: the queried name, the querying pod, or a file. */
import { ROOT, suffixAt, type WireName } from '../../wire/name.ts';
import type { Query } from '../../transport/query.ts';
import type { ClientSearchPaths } from '../../engine/contract/ports.ts';

export interface NameSuffix {
  from: Uint8Array;
  at: number;
  end: number;
}

/**
 * The search path of a query. Its first domain is part of the queried name. `suffix` returns the others, with indexes 1
 * to `length - 1`; the last one is the root, for the name as the user wrote it.
 */
export interface SearchPath {
  /** Offset of the first search domain in the name, or -1 if this query is not completed. */
  begin(query: Query): number;
  readonly length: number;
  suffix(query: Query, begin: number, index: number, into: NameSuffix): void;
}

/** `NS.svc.ZONE`, `svc.ZONE` and `ZONE`, all taken from the name, then `more`, then the root. */
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

/** The path that `kubernetes` derives from a query, using either the name alone or the client's address. */
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

/** Returns the offset of `domain` (lower case) in the name if labels precede it, otherwise -1. */
function beginOf({ folded, nameLength }: Query, domain: WireName): number {
  const at = suffixAt(folded, domain, nameLength);
  return at > 0 ? at : -1;
}
