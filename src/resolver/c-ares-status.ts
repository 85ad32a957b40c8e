/** How a query of c-ares ends, and what its two ways of sending have in common. */
import { failed, found, newId, type Found, type ModelContext } from './client.ts';
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
  /** The process died. */
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

/** What ends a query: its status, and the reply if there is one. */
export interface Ended {
  readonly status: CaresStatus;
  readonly reply: ClientReply | null;
}

/** One question under way, and how to end its repetitions. */
export interface Pending {
  readonly done: Promise<Ended>;
  /** Whether it was over at once, before the next question was asked. */
  readonly cached?: boolean;
  /** From now on a failure is final. */
  stopRetrying(): void;
}

/** How a program sets c-ares up. */
export interface ChannelSetup {
  readonly edns: boolean;
  readonly caching: boolean;
  /** SERVFAIL, REFUSED and NOTIMP go to the caller at once (ARES_FLAG_NOCHECKRESP). */
  readonly finalErrors: boolean;
  /** Milliseconds between two looks for time-outs; 0 = they are noticed at once. */
  readonly tickMs: number;
  /** Whether `use-vc` counts: with c-ares' own defaults it is read, then forgotten. */
  readonly useVc: boolean;
}

/** What c-ares does by itself. */
export const plainSetup: ChannelSetup = {
  edns: true,
  caching: true,
  finalErrors: false,
  tickMs: 0,
  useVc: false,
};

/** The part of c-ares that sends. */
export interface CaresChannel {
  query(name: string, type: string, why: string): Pending;
  /** The lookup is over: sockets that nobody needs are closed. */
  rest(): void;
}

/** A query as c-ares makes it; its id is that of none under way. */
export function caresQuery(
  { random }: ModelContext,
  open: Iterable<{ readonly query: QueryToSend }>,
  question: Pick<QueryToSend, 'name' | 'type' | 'why'>,
): QueryToSend {
  const taken = new Set(Array.from(open, ({ query }) => query.id));
  return { ...question, id: newId(random, taken), edns: null, ad: false };
}

/** The end of a lookup with this status, as ares_strerror words it. */
export function caresError(status: CaresStatus): Found {
  if (status === 'SUCCESS') return found([]);
  if (status === 'SIGSEGV') return failed(status, null, 'Segmentation fault');
  const [number, text] = errors[status];
  return failed(`ARES_${status}`, number, text);
}

/** The addresses of a reply that count. */
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

/** What a reply means to a query. */
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
