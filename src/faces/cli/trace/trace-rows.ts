/** Groups a trace's queries into rows. Queries that were sent together share a row. */
import type { QueryDocument, TraceDocument } from '../../../tools/resolver/trace-document.ts';

/** Queries for one name, sent together to the same server over the same protocol. */
export interface TraceRow {
  readonly first: QueryDocument;
  readonly queries: readonly QueryDocument[];
}

/** Returns the rows in the order their queries were sent. */
export function rowsOf({ queries }: TraceDocument): readonly TraceRow[] {
  const rows: { first: QueryDocument; queries: QueryDocument[] }[] = [];
  for (const query of queries) {
    const row = rows.at(-1);
    if (row !== undefined && joins(query, row)) row.queries.push(query);
    else rows.push({ first: query, queries: [query] });
  }
  return rows;
}

function joins(query: QueryDocument, { first, queries }: TraceRow): boolean {
  return (
    first.batch === query.batch &&
    first.name.toLowerCase() === query.name.toLowerCase() &&
    first.server === query.server &&
    first.protocol === query.protocol &&
    queries.every((one) => one.type !== query.type)
  );
}

/** The conclusion that the client draws from the replies in a row. */
export function outcomeOf({ queries }: TraceRow): string {
  return [...new Set(queries.map(({ outcome }) => outcome).filter((text) => text !== ''))].join(
    ' ',
  );
}

/** Milliseconds from sending the queries until the last reply or the timeout. */
export function lastedMs({ first, queries }: TraceRow): number {
  const ends = queries.map(({ atMs, tookMs, waitedMs }) => atMs + (tookMs ?? waitedMs ?? 0));
  return Math.max(...ends) - first.atMs;
}
