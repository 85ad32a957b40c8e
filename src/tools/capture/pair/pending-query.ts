/** Queries whose replies have not come, and how packets and replies are recognised as theirs. */
import type { Peer } from '../../../server/wire/exchange.ts';
import type { PassingMessage } from '../read/packets/dissect.ts';
import { isCut, type MessageHead } from './message-head.ts';
import type { PairedExchange } from './paired-exchange.ts';
import type { Hop, SeenExchange } from './seen-exchange.ts';

/** Copies of one packet are captured within this time. */
export const COPY_MS = 50;

/** A query whose reply has come, remembered in order to recognise copies of the reply. */
export interface AnsweredQuery {
  readonly timeMs: number;
  /** The interface that the reply was not seen at and should come to; `NOWHERE`: none. */
  expectedAt: number;
}

/** A repeated question of which one reply has come, and another may. */
export interface HalfAnswered {
  /** In order. */
  readonly exchanges: PairedExchange[];
  /**
   * Whether the reply came so long after the last repeat that it may well be that to an earlier
   * one.
   */
  readonly isLate: boolean;
  readonly isError: boolean;
  /** Another reply would have come by then, milliseconds. */
  untilMs: number;
  /** When replies came that were not yet given to one of these. */
  readonly replies: number[];
}

/** A query, or one hop of it, whose reply has not come. */
export interface PendingQuery {
  readonly exchange: PairedExchange;
  /** The same question from the same socket, sent a moment before: they end together. */
  readonly earlier: readonly PairedExchange[] | null;
  /**
   * The same, sent so long before that it was repeated: in order. A reply may be to any of them.
   */
  repeated: PairedExchange[] | null;
  /** Of the exchange, and of its hops; null: it has none. */
  readonly key: string;
  hopKeys: string[] | null;
  /** Its `questionHash`. */
  readonly question: number;
  readonly ipId: number;
  readonly ttl: number;
  readonly port: number;
  /** What this entry is about; null: the exchange itself. */
  readonly hop: Hop | null;
}

/** Whether this is the same packet captured again: on another interface, or one router further. */
export function isCopy(
  { exchange, hop, ipId, ttl, port }: PendingQuery,
  message: PassingMessage,
): boolean {
  const sinceMs = Math.abs(message.timeMs - (hop?.sentMs ?? exchange.sentMs));
  if (sinceMs > COPY_MS) return false;
  return ipId !== 0 ? ipId === message.ipId : port !== message.port || ttl !== message.ttl;
}

/**
 * Whether a query with the same port, id and question is the packet that is waiting, with its
 * addresses translated: it either passed a router or was captured elsewhere. (musl asks all of its
 * servers at once, from one port with one id: those are packets of their own.)
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

/** Replies without a question (some servers' FORMERR and REFUSED) are taken by their id. */
export function answers(head: MessageHead, { name, type }: SeenExchange): boolean {
  return head.questions === 0 || isCut(name) || (head.name === name && head.type === type);
}

/** A hop has the time of its first reply, and the bytes of its last one. */
export function answerHop(hop: Hop, { timeMs, size }: PassingMessage): void {
  hop.repliedMs ??= timeMs;
  hop.replyBytes = size;
}
