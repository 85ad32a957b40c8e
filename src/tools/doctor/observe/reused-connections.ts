/**
 * Queries on TCP connections that were used before: the time since the last reply, and whether they
 * got one.
 */
import { isLost, latencyOf, type SeenExchange } from '../../capture/pair/seen-exchange.ts';
import { BoundedMap } from './bounded-map.ts';
import { CopiedBytes } from '../../capture/pair/copied-bytes.ts';

const CONNECTIONS_MAX = 5000;
const REPLIES_MAX = 100;
const QUERIES_MAX = 5000;

/** A query on a connection that had carried a reply. */
export interface ReusingQuery {
  readonly exchange: SeenExchange;
  /** From the last reply to the query, milliseconds. */
  readonly idleMs: number;
  /** The server that had sent that reply. */
  readonly before: string;
}

export class ReusedConnections {
  /** Without a reply. */
  readonly lost: ReusingQuery[] = [];
  /** Idle times before queries that were answered, milliseconds. */
  readonly answered: number[] = [];
  /** Answered queries on connections without an earlier reply. */
  fresh: number = 0;
  readonly #replies: BoundedMap<string, { readonly ms: number; readonly server: string }[]> =
    new BoundedMap(CONNECTIONS_MAX);
  readonly #kept = new CopiedBytes();

  add(exchange: SeenExchange): void {
    if (exchange.protocol !== 'tcp') return;
    const { client, server, sentMs, repliedMs } = exchange;
    const replies = this.#replies.at(`${client.address} ${client.port}`, () => []);
    if (replies === null) return;
    const last = replies.findLast(({ ms }) => ms <= sentMs);
    if (isLost(exchange)) {
      if (last === undefined || this.lost.length >= QUERIES_MAX) return;
      this.#kept.keep(exchange);
      this.lost.push({ exchange, idleMs: sentMs - last.ms, before: last.server });
    } else if (latencyOf(exchange) !== null) {
      if (last === undefined) this.fresh++;
      else if (this.answered.length < QUERIES_MAX) this.answered.push(sentMs - last.ms);
      if (replies.length < REPLIES_MAX) replies.push({ ms: repliedMs!, server: server.address });
    }
  }

  clear(): void {
    this.lost.length = 0;
    this.#replies.clear();
  }
}
