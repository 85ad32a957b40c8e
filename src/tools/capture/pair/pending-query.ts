/** Queries that wait for replies, and how packets and replies are matched to them. */
import type { Peer } from '../../../server/wire/exchange.ts';
import type { PassingMessage } from '../read/packets/dissect.ts';
import { isCut, type MessageHead } from './message-head.ts';
import type { PairedExchange } from './paired-exchange.ts';
import type { Hop, SeenExchange } from './seen-exchange.ts';

/** Milliseconds within which copies of one packet are captured. */
export const COPY_MS = 50;

/** A query that was answered, remembered to recognise copies of the reply. */
export interface AnsweredQuery {
  readonly exchange: PairedExchange;
  readonly timeMs: number;
  /** The interface that should still see the reply; `NOWHERE`: none. */
  expectedAt: number;
}

/** A repeated question with one reply, which may get another. */
export interface HalfAnswered {
  /** In order of sending. */
  readonly exchanges: PairedExchange[];
  /** True if the reply is late enough after the last repeat to belong to an earlier query. */
  readonly isLate: boolean;
  readonly isError: boolean;
  /** Milliseconds; another reply would have come by then. */
  untilMs: number;
  /** The times of replies that are not yet assigned to one of these. */
  readonly replies: number[];
}

/** A query, or one hop of it, without a reply. */
export interface PendingQuery {
  readonly exchange: PairedExchange;
  /** The same question from the same socket, sent a moment before: they end together. */
  readonly earlier: readonly PairedExchange[] | null;
  /** Earlier repeats, in order. A reply may answer any of them. */
  repeated: PairedExchange[] | null;
  /** The keys of the exchange's hops; null: none. */
  readonly key: string;
  hopKeys: string[] | null;
  /** Its `questionHash`. */
  readonly question: number;
  readonly ipId: number;
  readonly ttl: number;
  readonly port: number;
  /** Null: the exchange itself. */
  readonly hop: Hop | null;
}

/** True if this is the same packet, captured on another interface or one router further. */
export function isCopy(
  { exchange, hop, ipId, ttl, port }: PendingQuery,
  message: PassingMessage,
): boolean {
  const sinceMs = Math.abs(message.timeMs - (hop?.sentMs ?? exchange.sentMs));
  if (sinceMs > COPY_MS) return false;
  return ipId !== 0 ? ipId === message.ipId : port !== message.port || ttl !== message.ttl;
}

/**
 * True if a query with the same port, id and question is the waiting packet with translated addresses: it
 * either passed a router or was captured elsewhere. (musl asks all of its servers at once, from one port with
 * one id: those are distinct packets.)
 */
export function isSamePacket(
  { exchange, ipId, ttl, port }: PendingQuery,
  message: PassingMessage,
  client: Peer,
): boolean {
  const sinceMs = Math.abs(message.timeMs - exchange.sentMs);
  if (sinceMs > COPY_MS || ipId !== message.ipId) return false;
  const wentOn = message.ttl < ttl || port !== message.port;
  return wentOn || (ipId !== 0 && client.address === exchange.client.address);
}

/** Replies without a question (FORMERR and REFUSED of some servers) are matched by id. */
export function answers(head: MessageHead, { name, type }: SeenExchange): boolean {
  return head.questions === 0 || isCut(name) || (head.name === name && head.type === type);
}

/** A hop has the time of its first reply, and the size of its last one. */
export function answerHop(hop: Hop, { timeMs, size }: PassingMessage): void {
  hop.repliedMs ??= timeMs;
  hop.replyBytes = size;
}
