/** Determines how a lookup ended from the program's point of view. */
import { FLAG, RCODE } from '../../server/wire/iana.ts';
import { isServiceConfig } from '../doctor/observe/service-config.ts';
import type { SeenExchange } from '../capture/pair/seen-exchange.ts';
import { isLostQuery, type StoredQuery } from './packed-lookup.ts';
import type { LookupEnding } from './view.ts';

/** The parts of a query that determine how the lookup ended. A log line does not say if there were records. */
export type JudgedQuery = Pick<
  StoredQuery,
  'name' | 'type' | 'ending' | 'rcode' | 'answers' | 'protocol'
> &
  Partial<
    Pick<SeenExchange, 'logged' | 'replyFlags' | 'tcpFailed'> & Pick<StoredQuery, 'truncated'>
  >;

/**
 * Returns how the lookup ended, and the query whose reply ended it. A program that continues to the next name has not
 * found the previous one, even if a reply with records came: another server denied the name first. A truncated reply
 * does not count if the program repeated the query over TCP, or if its connection failed.
 */
export function endingOf<Q extends JudgedQuery>(
  queries: readonly Q[],
): { readonly ending: LookupEnding; readonly by: Q | null } {
  const last = queries.findLast(({ name, type }) => !isServiceConfig(name, type)) ?? queries.at(-1);
  if (last === undefined) return { ending: 'lost', by: null };
  const named = queries.filter(({ name }) => name === last.name);
  const ofLast = named.filter(
    (query, at) =>
      !isTruncated(query) || (!isRepeated(query, named, at) && query.tcpFailed !== true),
  );
  const found = ofLast.findLast(
    ({ rcode, answers, logged }) =>
      rcode === RCODE.NOERROR && (answers === null || answers > 0 || logged !== undefined),
  );
  if (found !== undefined) return { ending: 'answered', by: found };
  if (named.some(({ tcpFailed }) => tcpFailed === true)) return { ending: 'error', by: null };
  const replied = ofLast.findLast(({ rcode }) => rcode >= 0);
  if (replied === undefined)
    return { ending: ofLast.some(isLostQuery) ? 'lost' : 'waiting', by: null };
  // A program waits for a family without a reply, regardless of the other.
  const open = new Set(ofLast.map(({ type }) => type));
  for (const { rcode, type } of ofLast) if (rcode >= 0) open.delete(type);
  if (open.size > 0) {
    const isLost = ofLast.some((query) => open.has(query.type) && isLostQuery(query));
    return { ending: isLost ? 'lost' : 'waiting', by: null };
  }
  if (replied.rcode === RCODE.NXDOMAIN) return { ending: 'no-such-name', by: replied };
  return { ending: replied.rcode === RCODE.NOERROR ? 'no-record' : 'error', by: replied };
}

export function isTruncated({
  truncated,
  replyFlags = 0,
  rcode,
}: Pick<JudgedQuery, 'truncated' | 'replyFlags' | 'rcode'>): boolean {
  return truncated ?? (rcode >= 0 && (replyFlags & FLAG.TC) !== 0);
}

function isRepeated({ type }: JudgedQuery, named: readonly JudgedQuery[], at: number): boolean {
  return named.some((each, later) => later > at && each.type === type && each.protocol === 'tcp');
}

/**
 * Returns a lookup's wasted queries, which are those its search path sent for nonexistent names, except for the last
 * name. Queries for gRPC service configurations do not come from a search path.
 */
export function wastedOf<Q extends JudgedQuery>(queries: readonly Q[]): readonly Q[] {
  const last = queries.at(-1);
  return queries.filter(
    ({ name, type, rcode }) =>
      name !== last!.name && rcode === RCODE.NXDOMAIN && !isServiceConfig(name, type),
  );
}
