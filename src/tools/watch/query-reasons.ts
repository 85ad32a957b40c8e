/** Explains each query in a lookup based on the queries before it. */
import { isAddressType, RCODE, TYPE } from '../../server/wire/iana.ts';
import { isLostQuery, type StoredLookup, type StoredQuery } from './packed-lookup.ts';
import type { QueryReason } from './view.ts';

export interface WordedReason {
  readonly reason: QueryReason;
  /** For display. */
  readonly why: string;
}

export function reasonsOf({ name, queries }: StoredLookup): readonly WordedReason[] {
  const stem = `${name.replace(/\.$/, '')}.`;
  return queries.map((query, at) => reasonOf(query, queries.slice(0, at), stem));
}

function reasonOf(query: StoredQuery, before: readonly StoredQuery[], stem: string): WordedReason {
  const named = before.filter(({ name }) => name === query.name);
  const same = named.findLast(({ type }) => type === query.type);
  if (same !== undefined) return againReason(query, same);
  if (named.length > 0) return otherType(query, named);
  const domain =
    query.name.startsWith(stem) && query.name.length > stem.length
      ? query.name.slice(stem.length).replace(/\.$/, '')
      : null;
  if (domain !== null)
    return {
      reason: before.length === 0 ? 'first' : 'search',
      why: `search domain ${domain}${before.length === 0 ? '' : ` (${endOf(before.at(-1)!)} before)`}`,
    };
  if (before.length === 0) return { reason: 'first', why: 'the name as written' };
  return { reason: 'as-written', why: `the name as written (${endOf(before.at(-1)!)} before)` };
}

function againReason(query: StoredQuery, same: StoredQuery): WordedReason {
  if (query.protocol === 'tcp' && same.protocol === 'udp')
    return same.truncated
      ? { reason: 'truncated', why: 'over TCP, because the UDP reply was truncated' }
      : { reason: 'no-reply', why: 'over TCP, because no UDP reply arrived' };
  const isOther = query.server.address !== same.server.address;
  const after = `after ${waited(query.sentMs - same.sentMs)}`;
  if (isOther) return { reason: 'next-server', why: `the next server: ${endOf(same)}, ${after}` };
  if (isLostQuery(same) || same.rcode < 0)
    return { reason: 'no-reply', why: `again ${after}: no reply came` };
  if (same.rcode !== RCODE.NOERROR && same.rcode !== RCODE.NXDOMAIN)
    return { reason: 'error', why: `again ${after}, because the reply was an error` };
  return { reason: 'no-reply', why: `again ${after}, because the other family was not answered` };
}

function otherType({ type }: StoredQuery, named: readonly StoredQuery[]): WordedReason {
  if (!isAddressType(type) || !named.some((each) => isAddressType(each.type)))
    return { reason: 'other-type', why: 'another type of the same name' };
  return {
    reason: 'other-family',
    why: type === TYPE.AAAA ? 'the same name for IPv6' : 'the same name for IPv4',
  };
}

function endOf(query: StoredQuery): string {
  if (isLostQuery(query) || query.rcode < 0) return 'no reply';
  if (query.rcode === RCODE.NXDOMAIN) return 'no such name';
  if (query.rcode !== RCODE.NOERROR) return 'an error';
  return query.answers === 0 ? 'no record' : 'an answer';
}

function waited(ms: number): string {
  return ms >= 1000 ? `${(ms / 1000).toFixed(1)} s` : `${Math.round(ms)} ms`;
}
