/** What happens to a query before any plugin sees it. */
import { andThen, isLater, orElse, type Maybe } from '../../base/maybe.ts';
import { CLASS, RCODE } from '../../wire/iana.ts';
import type { Query, Route } from '../../wire/query.ts';
import { failure, type Reply } from '../../wire/reply.ts';
import { DEPTH_MAX, endlessAliases, isEndless, LOOKUPS_MAX } from '../contract/lookup-bounds.ts';
import type { ZoneTable } from './router.ts';

/** One listen address as queries see it: what is served there, and what is let in. */
export interface ServedEndpoint {
  /** Listen address with scheme, e.g. `dns://:53`. */
  readonly server: string;
  readonly table: ZoneTable;
  /** Whether classes other than IN pass (some block here has `chaos` or `forward`). */
  readonly anyClass: boolean;
  /** Told of queries that no block took; their route is `nowhere`. */
  readonly dropped: readonly ((query: Query, reply: Reply) => void)[];
  readonly nowhere: Route;
  /** Decides whether the error is sent that such a query gets, or a message that is no query (`Query.rejection`); null: it always is. */
  readonly judge: ((query: Query, reply: Reply) => Reply) | null;
  /** A plugin threw: counts and logs, or with `debug` ends this worker. @returns SERVFAIL */
  readonly panicked: (error: unknown, query: Query) => Reply;
  /** Whether `debug` holds here. */
  readonly debug: boolean;
}

/** So many records in the reply to a look-up are as much work as another look-up. */
const RECORDS_PER_LOOKUP = 64;

/** Answers an internal look-up: a query that is asked on the way to another one's reply. Bounded in depth, number and size. */
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
 * Answers one query: filters that come before any plugin (CoreDNS: `ServeDNS`), choice of the server block, its chain.
 * Never throws, never rejects.
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
  if (query.class !== CLASS.IN && !endpoint.anyClass) return drop(endpoint, query, RCODE.REFUSED);
  if (query.edns && query.ednsVersion !== 0) {
    query.udpSize = 0;
    return refuse(endpoint, query, RCODE.BADVERS);
  }
  const served = endpoint.table.match(query);
  if (served === null) return drop(endpoint, query, RCODE.REFUSED);
  query.route = served.route;
  if (served.chain === null) return drop(endpoint, query, RCODE.REFUSED);
  return served.chain(query);
}

/** An error that stands before any plugin. */
function refuse(endpoint: ServedEndpoint, query: Query, rcode: number): Reply {
  query.route = endpoint.nowhere;
  const refused = failure(rcode, '');
  return endpoint.judge === null ? refused : endpoint.judge(query, refused);
}

function drop(endpoint: ServedEndpoint, query: Query, rcode: number): Reply {
  const reply = refuse(endpoint, query, rcode);
  for (const tell of endpoint.dropped) tell(query, reply);
  return reply;
}
