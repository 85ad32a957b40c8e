/** Marks replies that must not be shared between clients. */

/**
 * Opened by a plugin that shares replies among clients, for one query and the queries that follow from it. A plugin
 * whose reply depends on the client's location closes it to others.
 */
export interface ReplyScope {
  /** True if no other client may get the reply. */
  personal: boolean;
  /** The query's previous scope. */
  readonly outer: ReplyScope | null;
}

interface ScopedQuery {
  scope: ReplyScope | null;
}

/** Puts the query into a new scope. */
export function openScope(query: ScopedQuery): ReplyScope {
  return (query.scope = { personal: false, outer: query.scope });
}

/** Marks the reply to this query as valid for its client only. */
export function tailor(query: Readonly<ScopedQuery>): void {
  for (let scope = query.scope; scope !== null; scope = scope.outer) scope.personal = true;
}
