/**
 * Replies that reach the socket of a query and do not match it: another id, another question, or the flag
 * that makes it a reply is missing. The client ignores them and continues to wait.
 */
import type { MessageHead } from './message-head.ts';
import type { Peer } from '../../../server/wire/exchange.ts';
import type { Misfit, SeenExchange } from './seen-exchange.ts';

/** Sockets with such replies; at the limit all are dropped. */
const SOCKETS_MAX = 5000;
/** Replies of one socket. */
const OF_SOCKET_MAX = 8;
/** Milliseconds; no client waits longer. */
const WAIT_MS = 15_000;

interface Reply {
  readonly timeMs: number;
  readonly id: number;
  readonly name: string;
  readonly type: number;
  readonly isReply: boolean;
}

/** Client socket and server as one text. */
export function textOfSocket(protocol: string, client: Peer, server: Peer): string {
  return `${protocol} ${client.address} ${client.port} ${server.address} ${server.port}`;
}

/** Remembers replies without a query, and finds those that reached the socket of a lost query. */
export class Misfits {
  readonly #sockets = new Map<string, Reply[]>();

  /** @param socket protocol and both ends, without the id */
  add(socket: string, { id, name, type }: MessageHead, isReply: boolean, timeMs: number): void {
    if (name === '') return;
    let replies = this.#sockets.get(socket);
    if (replies === undefined) {
      if (this.#sockets.size >= SOCKETS_MAX) this.#sockets.clear();
      this.#sockets.set(socket, (replies = []));
    }
    replies.push({ timeMs, id, name, type, isReply });
    if (replies.length > OF_SOCKET_MAX) replies.shift();
  }

  get isEmpty(): boolean {
    return this.#sockets.size === 0;
  }

  /** The reply that reached the socket of a lost query instead of its own; null: none. */
  take(socket: string, { id, name, type, sentMs }: SeenExchange): Misfit | null {
    const replies = this.#sockets.get(socket);
    if (replies === undefined) return null;
    const at = replies.findIndex((reply) => {
      const isOf = reply.name === name && reply.type === type;
      const isInTime = reply.timeMs >= sentMs && reply.timeMs - sentMs < WAIT_MS;
      return isInTime && (reply.isReply ? isOf !== (reply.id === id) : isOf && reply.id === id);
    });
    if (at < 0) return null;
    const [reply] = replies.splice(at, 1) as [Reply];
    if (replies.length === 0) this.#sockets.delete(socket);
    if (!reply.isReply) return 'flag';
    return reply.id === id ? 'question' : 'id';
  }

  clear(): void {
    this.#sockets.clear();
  }
}
