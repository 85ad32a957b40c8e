/** The results of a c-ares query, and code shared by the two sending halves. */
import { failed, found, newId, type LookupOutcome, type ModelContext } from './client.ts';
import type { CaresTraits } from './c-ares-releases.ts';
import type { QueryToSend } from './network.ts';
import { hasCname, sameName, type ClientReply } from './reply.ts';

export type CaresStatus =
  | 'SUCCESS'
  | 'ENODATA'
  | 'EFORMERR'
  | 'ESERVFAIL'
  | 'ENOTFOUND'
  | 'ENOTIMP'
  | 'EREFUSED'
  | 'EBADNAME'
  | 'EBADRESP'
  | 'ECONNREFUSED'
  | 'ETIMEOUT'
  | 'ENOMEM'
  /** The process crashed. */
  | 'SIGSEGV';

const errors: Readonly<
  Record<Exclude<CaresStatus, 'SUCCESS' | 'SIGSEGV'>, readonly [number, string]>
> = {
  ENODATA: [1, 'DNS server returned answer with no data'],
  EFORMERR: [2, 'DNS server claims query was misformatted'],
  ESERVFAIL: [3, 'DNS server returned general failure'],
  ENOTFOUND: [4, 'Domain name not found'],
  ENOTIMP: [5, 'DNS server does not implement requested operation'],
  EREFUSED: [6, 'DNS server refused query'],
  EBADNAME: [8, 'Misformatted domain name'],
  EBADRESP: [10, 'Misformatted DNS reply'],
  ECONNREFUSED: [11, 'Could not contact DNS servers'],
  ETIMEOUT: [12, 'Timeout while contacting DNS servers'],
  ENOMEM: [15, 'Out of memory'],
};

export interface Ended {
  readonly status: CaresStatus;
  readonly reply: ClientReply | null;
}

export interface PendingQuestion {
  readonly done: Promise<Ended>;
  /** True if it was answered from the cache before the next question was sent. */
  readonly cached?: boolean;
  /** Makes the next failure final. */
  stopRetrying(): void;
}

export interface ChannelSetup {
  readonly edns: boolean;
  readonly caching: boolean;
  /** True if SERVFAIL, REFUSED and NOTIMP are returned immediately (ARES_FLAG_NOCHECKRESP). */
  readonly finalErrors: boolean;
  /** Milliseconds between time-out checks, or 0 if there is no delay. */
  readonly tickMs: number;
  /** True if `use-vc` has an effect, which it does not have with c-ares's defaults. */
  readonly useVc: boolean;
}

export const plainSetup: ChannelSetup = {
  edns: true,
  caching: true,
  finalErrors: false,
  tickMs: 0,
  useVc: false,
};

/** The part of c-ares that sends queries. */
export interface CaresChannel {
  query(name: string, type: string, why: string): PendingQuestion;
  /** Called when the lookup is over, to close sockets that are no longer needed. */
  rest(): void;
}

/** Builds a c-ares query with an ID that is not used by any open query. */
export function caresQuery(
  { random }: ModelContext,
  open: Iterable<{ readonly query: QueryToSend }>,
  question: Pick<QueryToSend, 'name' | 'type' | 'why'>,
): QueryToSend {
  const taken = new Set(Array.from(open, ({ query }) => query.id));
  return { ...question, id: newId(random, taken), edns: null, ad: false };
}

/** Uses the wording of ares_strerror. */
export function caresError(status: CaresStatus): LookupOutcome {
  if (status === 'SUCCESS') return found([]);
  if (status === 'SIGSEGV') return failed(status, null, 'Segmentation fault');
  const [number, text] = errors[status];
  return failed(`ARES_${status}`, number, text);
}

/** Returns the addresses in a reply that this release accepts. */
export function usableAddresses(reply: ClientReply, { ordersCnames }: CaresTraits): string[] {
  let expected = reply.name;
  const addresses: string[] = [];
  for (const record of reply.answer) {
    if (record.type === 'CNAME') expected = record.data;
    else if (record.type === 'A' || record.type === 'AAAA') {
      if (!ordersCnames || sameName(record.name, expected)) addresses.push(record.data);
    }
  }
  return addresses;
}

export function statusOf(reply: ClientReply): CaresStatus {
  switch (reply.rcode) {
    case 'NOERROR':
      return reply.answer.length > 0 || hasCname(reply) ? 'SUCCESS' : 'ENODATA';
    case 'NXDOMAIN':
      return 'ENOTFOUND';
    case 'SERVFAIL':
      return 'ESERVFAIL';
    case 'REFUSED':
      return 'EREFUSED';
    case 'NOTIMP':
      return 'ENOTIMP';
    case 'FORMERR':
      return 'EFORMERR';
    default:
      return 'EBADRESP';
  }
}
