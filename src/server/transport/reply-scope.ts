/** Marks replies that must not be shared between clients. */

/**
 * Opened for a query, and the queries that follow from it, by a plugin that shares replies among clients. A plugin
 * whose reply depends on the client's location closes it to other clients.
 */
export interface ReplyScope {
  /** True if no other client may be given the reply. */
  personal: boolean;
  /** The query's previous scope. */
  readonly outer: ReplyScope | null;
}

interface ScopedQuery {
  scope: ReplyScope | null;
}

export function openScope(query: ScopedQuery): ReplyScope {
  return (query.scope = { personal: false, outer: query.scope });
}

/** Marks the reply to this query as valid only for its own client. */
export function tailor(query: Readonly<ScopedQuery>): void {
  for (let scope = query.scope; scope !== null; scope = scope.outer) scope.personal = true;
}
