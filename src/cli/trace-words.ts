/** What all forms of a trace say in the same words. */
import type { QueryDocument, TraceDocument } from '../resolver/report.ts';
import { failure } from './trace-comparison.ts';

export function label(document: TraceDocument): string {
  const { name, version } = document.client;
  return version === '' ? name : `${name} ${version}`;
}

export function outcome(document: TraceDocument): string {
  const { result } = document;
  if (result.ok) return result.addresses.join(' ') || 'no address';
  return `fails: ${failure(result)}`;
}

export function answer(query: QueryDocument): string {
  return query.data.length > 0 ? query.data.join(' ') : query.answer;
}

/** What resolv.conf says, as this client reads it. */
export function settings({ conf }: TraceDocument): string {
  const search = conf.search.length === 0 ? [] : [`search ${conf.search.join(' ')}`];
  return [`nameserver ${conf.servers.join(' ')}`, ...search, `ndots:${conf.ndots}`].join('; ');
}
