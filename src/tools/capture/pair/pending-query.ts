/** Queries that are waiting for replies, and how packets and replies are matched to them. */
import type { Peer } from '../../../server/wire/exchange.ts';
import type { PassingMessage } from '../read/packets/dissect.ts';
import { isCut, type MessageHead } from './message-head.ts';
import type { PairedExchange } from './paired-exchange.ts';
import type { Hop, SeenExchange } from './seen-exchange.ts';

/** Copies of a packet are captured within this many milliseconds of each other. */
export const COPY_MS = 50;
/**
 * The same for copies in two places, in milliseconds. Since the path between them may be slow, they are recognised by
 * the packet's number. No path takes longer, and a client's next packet rarely has the same number.
 */
const PATH_MS = 2000;

const REPLY_PORTS_MAX = 4;

/** An answered query, which is remembered to recognise copies of the reply. */
export interface AnsweredQuery {
  readonly exchange: PairedExchange;
  readonly timeMs: number;
  /** The interface where the reply is still expected, or `NOWHERE` if there is none. */
  expectedAt: number;
  /** The hop that it answered, or null if that was the query itself. */
  readonly hop: Hop | null;
}

/** A repeated question that has had one reply and may get another. */
export interface HalfAnswered {
  /** In sending order. */
  readonly exchanges: PairedExchange[];
  /** True if the reply came so long after the last repeat that it may belong to an earlier query. */
  readonly isLate: boolean;
  readonly isError: boolean;
  /** In milliseconds. If there were another reply, it would have arrived by then. */
  untilMs: number;
  /** Times of replies that have not yet been assigned to one of these. */
  readonly replies: number[];
}

/** A query, or one of its hops, without a reply. */
export interface PendingQuery {
  readonly exchange: PairedExchange;
  /** The same question, sent from the same socket a moment earlier. Both end together. */
  readonly earlier: readonly PairedExchange[] | null;
  /** Earlier repeats, in order. A reply may answer any of them. */
  repeated: PairedExchange[] | null;
  /** The keys of the exchange's hops, or null if there are none. */
  readonly key: string;
  hopKeys: string[] | null;
  readonly question: number;
  readonly ipId: number;
  readonly ttl: number;
  readonly port: number;
  /** Null: the exchange itself. */
  readonly hop: Hop | null;
}

/** True if this is the same packet, captured on another interface or one router further along. */
export function isCopy(
  { exchange, hop, ipId, ttl, port }: PendingQuery,
  message: PassingMessage,
): boolean {
  const sinceMs = Math.abs(message.timeMs - (hop?.sentMs ?? exchange.sentMs));
  if (sinceMs > (isElsewhere({ ipId, port }, message) ? PATH_MS : COPY_MS)) return false;
  return ipId !== 0 ? ipId === message.ipId : port !== message.port || ttl !== message.ttl;
}

/**
 * True if a query with the same port, ID and question is the waiting packet with its addresses translated. It may have
 * passed a router or been captured elsewhere. (musl queries all of its servers at once, using one port and one ID.
 * Those are different packets.)
 */
export function isSamePacket(
  { exchange, ipId, ttl, port }: PendingQuery,
  message: PassingMessage,
  client: Peer,
): boolean {
  const sinceMs = Math.abs(message.timeMs - exchange.sentMs);
  const limitMs = isElsewhere({ ipId, port }, message) ? PATH_MS : COPY_MS;
  if (sinceMs > limitMs || ipId !== message.ipId) return false;
  const wentOn = message.ttl < ttl || port !== message.port;
  return wentOn || (ipId !== 0 && client.address === exchange.client.address);
}

/** True if the packet's number shows that it is the same one on another interface. */
function isElsewhere(
  { ipId, port }: Pick<PendingQuery, 'ipId' | 'port'>,
  message: PassingMessage,
): boolean {
  return ipId !== 0 && ipId === message.ipId && port !== message.port;
}

/** Replies without a question, such as some servers' FORMERR and REFUSED, are matched by ID. */
export function answers(head: MessageHead, { name, type }: SeenExchange): boolean {
  return head.questions === 0 || isCut(name) || (head.name === name && head.type === type);
}

/** A hop uses its first reply's time and its last reply's size. */
export function answerHop(hop: Hop, { timeMs, size, port }: PassingMessage): void {
  hop.repliedMs ??= timeMs;
  hop.replyBytes = size;
  const { replyPorts } = hop;
  if (replyPorts !== undefined && replyPorts.length < REPLY_PORTS_MAX && !replyPorts.includes(port))
    replyPorts.push(port);
}
