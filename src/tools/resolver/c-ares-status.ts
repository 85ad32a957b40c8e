/** How a c-ares query ends, and what its two ways of sending have in common. */
import { failed, found, newId, type LookupOutcome, type ModelContext } from './client.ts';
import type { CaresTraits } from './c-ares-releases.ts';
import type { QueryToSend } from './network.ts';
import { hasCname, sameName, type ClientReply } from './reply.ts';

/** Why a query ended. */
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

/** The end of a query: its status, and the reply if there is one. */
export interface Ended {
  readonly status: CaresStatus;
  readonly reply: ClientReply | null;
}

/** A question under way. */
export interface PendingQuestion {
  readonly done: Promise<Ended>;
  /** Whether it was answered from the cache, before the next question was asked. */
  readonly cached?: boolean;
  /** Stops retries: the next failure is final. */
  stopRetrying(): void;
}

/** How a program configures c-ares. */
export interface ChannelSetup {
  readonly edns: boolean;
  readonly caching: boolean;
  /**
   * Whether SERVFAIL, REFUSED and NOTIMP are handed to the caller at once (ARES_FLAG_NOCHECKRESP).
   */
  readonly finalErrors: boolean;
  /** Milliseconds between two checks for time-outs; 0: they are noticed at once. */
  readonly tickMs: number;
  /** Whether `use-vc` has an effect: with c-ares's own defaults it is read and then forgotten. */
  readonly useVc: boolean;
}

/** c-ares's own defaults. */
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
  /** Called when the lookup is over: closes sockets that are no longer needed. */
  rest(): void;
}

/** A query as c-ares makes it, with an id that no open query has. */
export function caresQuery(
  { random }: ModelContext,
  open: Iterable<{ readonly query: QueryToSend }>,
  question: Pick<QueryToSend, 'name' | 'type' | 'why'>,
): QueryToSend {
  const taken = new Set(Array.from(open, ({ query }) => query.id));
  return { ...question, id: newId(random, taken), edns: null, ad: false };
}

/** A failed lookup with this status, in the words of ares_strerror. */
export function caresError(status: CaresStatus): LookupOutcome {
  if (status === 'SUCCESS') return found([]);
  if (status === 'SIGSEGV') return failed(status, null, 'Segmentation fault');
  const [number, text] = errors[status];
  return failed(`ARES_${status}`, number, text);
}

/** The addresses of a reply that the release accepts. */
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

/** The status of a query that got this reply. */
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
