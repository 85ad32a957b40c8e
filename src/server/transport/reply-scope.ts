/** Records the clients that a reply is for. */
import type { Query } from './query.ts';

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

/** Puts the query into a scope of its own. */
export function openScope(query: Query): ReplyScope {
  return (query.scope = { personal: false, outer: query.scope });
}

/** Marks the reply to this query as one that no other client may get. */
export function tailor(query: Query): void {
  for (let scope = query.scope; scope !== null; scope = scope.outer) scope.personal = true;
}
