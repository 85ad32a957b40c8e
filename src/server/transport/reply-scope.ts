/** Marks replies that only their client may get. */

/**
 * Opened by a plugin that shares replies among clients, for one query and the queries that follow
 * from it. A plugin whose reply depends on the client's place closes it to others.
 */
export interface ReplyScope {
  /** True if no other client may get the reply. */
  personal: boolean;
  /** The scope that the query was in before. */
  readonly outer: ReplyScope | null;
}

interface ScopedQuery {
  scope: ReplyScope | null;
}

/** Puts the query into a scope of its own. */
export function openScope(query: ScopedQuery): ReplyScope {
  return (query.scope = { personal: false, outer: query.scope });
}

/** Marks the reply to this query as one that no other client may get. */
export function tailor(query: Readonly<ScopedQuery>): void {
  for (let scope = query.scope; scope !== null; scope = scope.outer) scope.personal = true;
}
