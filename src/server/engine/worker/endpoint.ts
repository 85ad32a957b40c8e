/** Processes a query before any plugin sees it. */
import { andThen, isLater, orElse, type Maybe } from '../../base/maybe.ts';
import { CLASS, EDE, RCODE } from '../../wire/iana.ts';
import type { Query, Route } from '../../transport/query.ts';
import { failure, type ExtendedError, type Reply } from '../../wire/reply.ts';
import { DEPTH_MAX, endlessAliases, isEndless, LOOKUPS_MAX } from '../contract/lookup-bounds.ts';
import type { ZoneTable } from './router.ts';

/** A listen address as seen by queries: its server blocks, and the queries it accepts. */
export interface ServedEndpoint {
  /** Listen address with scheme, e.g. `dns://:53`. */
  readonly server: string;
  readonly table: ZoneTable;
  /** True if classes other than IN are served (a block here has `chaos` or `forward`). */
  readonly anyClass: boolean;
  /** Called for queries that matched no block. Their route is `nowhere`. */
  readonly dropped: readonly ((query: Query, reply: Reply) => void)[];
  readonly nowhere: Route;
  /**
   * Decides whether the error is sent for such a query, or for a message that is not a query (`Query.rejection`). If
   * null, it always is.
   */
  readonly judge: ((query: Query, reply: Reply) => Reply) | null;
  /**
   * Called when a plugin threw. Counts and logs this, or with `debug` ends this worker.
   * @returns SERVFAIL
   */
  readonly panicked: (error: unknown, query: Query) => Reply;
  /** True if `debug` is set for this address. */
  readonly debug: boolean;
}

/** Number of records above which the reply to a lookup is as much work as another lookup. */
const RECORDS_PER_LOOKUP = 64;

/**
 * Answers an internal lookup, which is a query that a plugin sends to complete another reply. Lookups are limited in
 * depth, number and size.
 */
export function answerLookup(endpoint: ServedEndpoint, query: Query): Maybe<Reply> {
  const lookups = (query.lookups ??= { count: 0 });
  query.depth++;
  lookups.count++;
  if (query.depth > DEPTH_MAX || lookups.count > LOOKUPS_MAX) return endlessAliases;
  const bounded = (reply: Reply): Reply => {
    lookups.count += reply.answers / RECORDS_PER_LOOKUP;
    return lookups.count > LOOKUPS_MAX && !isEndless(reply) ? endlessAliases : reply;
  };
  const reply = answer(endpoint, query);
  return isLater(reply) ? andThen(reply, bounded) : bounded(reply);
}

/**
 * Answers one query: applies the checks that come before any plugin (in CoreDNS: `ServeDNS`), chooses the server block,
 * and runs its chain. Never throws or rejects.
 */
export function answer(endpoint: ServedEndpoint, query: Query): Maybe<Reply> {
  try {
    const reply = pass(endpoint, query);
    return isLater(reply) ? orElse(reply, endpoint.panicked, query.keep()) : reply;
  } catch (error) {
    return endpoint.panicked(error, query);
  }
}

function pass(endpoint: ServedEndpoint, query: Query): Maybe<Reply> {
  if (query.rejection !== 0) return refuse(endpoint, query, query.rejection);
  if (query.nameLength === 0) return drop(endpoint, query, RCODE.SERVFAIL);
  if (query.class !== CLASS.IN && !endpoint.anyClass)
    return drop(endpoint, query, RCODE.REFUSED, otherClass);
  if (query.edns && query.ednsVersion !== 0) {
    query.udpSize = 0;
    return refuse(endpoint, query, RCODE.BADVERS);
  }
  const served = endpoint.table.match(query);
  if (served === null) return drop(endpoint, query, RCODE.REFUSED, noBlock);
  query.route = served.route;
  if (served.chain === null) return drop(endpoint, query, RCODE.REFUSED, noBlock);
  return served.chain(query);
}

/** Refuses a query with an error that no plugin created. */
function refuse(
  endpoint: ServedEndpoint,
  query: Query,
  rcode: number,
  errors: readonly ExtendedError[] | null = null,
): Reply {
  query.route = endpoint.nowhere;
  const refused = failure(rcode, '', null, errors);
  return endpoint.judge === null ? refused : endpoint.judge(query, refused);
}

/** RFC 8914 section 4.21. */
const noBlock: readonly ExtendedError[] = [
  { code: EDE.NOT_AUTHORITATIVE, text: 'no server block matches this name' },
];
const otherClass: readonly ExtendedError[] = [
  { code: EDE.NOT_SUPPORTED, text: 'no plugin answers this class' },
];

function drop(
  endpoint: ServedEndpoint,
  query: Query,
  rcode: number,
  errors: readonly ExtendedError[] | null = null,
): Reply {
  const reply = refuse(endpoint, query, rcode, errors);
  for (const tell of endpoint.dropped) tell(query, reply);
  return reply;
}
