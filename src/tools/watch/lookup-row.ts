/** Converts a stored lookup into a row, with its client, each query and the reason for it, and how it ended. */
import { rcodeName, typeName } from '../../server/wire/iana.ts';
import { endingOf, wastedOf } from './lookup-ending.ts';
import type { RingLookup } from './lookup-ring.ts';
import { isLostQuery } from './packed-lookup.ts';
import type { Parties } from './parties.ts';
import { reasonsOf } from './query-reasons.ts';
import type { LookupRow } from './view.ts';

export function lookupRow(lookup: RingLookup, parties: Parties): LookupRow {
  const { id, client, name, startMs, endMs, queries, more } = lookup;
  const { ending, by } = endingOf(queries);
  const reasons = reasonsOf(lookup);
  return {
    id,
    client: parties.at(client, startMs),
    clientId: parties.idAt(client, startMs),
    name,
    startMs,
    tookMs: endMs - startMs,
    outcome: ending,
    rcode: by === null ? '' : rcodeName(by.rcode),
    wasted: wastedOf(queries).length,
    lost: queries.filter(isLostQuery).length,
    queries: queries.map((query, at) => ({
      name: query.name,
      type: typeName(query.type),
      protocol: query.protocol,
      server: parties.at(query.server.address, query.sentMs),
      behind: query.hops.map((hop) => parties.at(hop.server.address, query.sentMs)),
      afterMs: query.sentMs - startMs,
      tookMs: query.repliedMs === null ? null : query.repliedMs - query.sentMs,
      rcode: query.rcode < 0 ? '' : rcodeName(query.rcode),
      answers: query.answers,
      truncated: query.truncated,
      attempt: query.attempt,
      ...reasons[at]!,
    })),
    more,
  };
}
